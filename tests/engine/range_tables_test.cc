// Which tables iterators leave out, seen through the database: reads, statistics, settings and damage of prefix filters.
#include "engine/read/range_tables.h"

#include <gtest/gtest.h>

#include <atomic>

#include "engine/db_impl.h"
#include "table/table_format.h"
#include "tests/support/database_test_util.h"
#include "tests/support/hooked_file_system.h"

namespace tamis {
namespace {

using internal::FileKind;
using testing_support::Contents;
using testing_support::FileOperation;
using testing_support::FilesOfKind;
using testing_support::ReadAll;
using testing_support::ReadAllBackward;
using testing_support::ReadBytes;
using testing_support::WriteBytes;

constexpr FilterPrefixRule kFour{FilterPrefixKind::kFixedLength, 4};
constexpr FilterPrefixRule kSlash{FilterPrefixKind::kDelimiter, '/'};

class RangeTablesTest : public ::testing::Test {
 protected:
  RangeTablesTest() : files_(FileSystem::Posix()), path_(directory_.path() + "/db") {
    files_.SetHook([this](const FileOperation& operation) {
      if (operation.kind == FileOperation::Kind::kRead) ++reads_;
      return absl::OkStatus();
    });
    options_.file_system = &files_;
    options_.background_threads = 0;
    options_.filter.hash_seed = 7;
    options_.filter.prefix_bits_per_key = 24;  // no false positives among the few prefixes here
    options_.compaction.l0_trigger = 8;
    options_.compaction.l0_slowdown = 20;
    options_.logger = [](LogLevel, std::string_view) {};
  }
  void Open(std::optional<FilterPrefixRule> rule) {
    db_.reset();
    options_.filter.prefix_rule = rule;
    ASSERT_OK_AND_ASSIGN(db_, DB::Open(options_, path_));
  }
  // One table in L0.
  void PutTable(const std::vector<std::string>& keys) {
    for (const std::string& key : keys) {
      contents_[key] = "of " + key;
      ASSERT_OK(db_->Put(key, contents_[key]));
    }
    ASSERT_OK(db_->Flush());
  }
  Stats GetStats() const {
    auto stats = db_->GetStats();
    EXPECT_OK(stats);
    return *stats;
  }
  Contents Expected(std::string_view prefix) const {
    Contents expected;
    for (const auto& [key, value] : contents_) {
      if (key.starts_with(prefix)) expected.emplace(key, value);
    }
    return expected;
  }
  // Reads all of the prefix, both ways. Returns how many tables were left out on a filter's word by each of the two iterators.
  uint64_t Skipped(std::string_view prefix) {
    ReadOptions options;
    options.prefix = prefix;
    const uint64_t before = GetStats().prefix_skipped;
    EXPECT_EQ(ReadAll(*db_, options), Expected(prefix)) << testing::PrintToString(prefix);
    EXPECT_EQ(ReadAllBackward(*db_, options), Expected(prefix)) << testing::PrintToString(prefix);
    const uint64_t skipped = GetStats().prefix_skipped - before;
    EXPECT_EQ(skipped % 2, 0u);
    return skipped / 2;
  }

  const testing_support::TempDir directory_{testing_support::TempDir::MemoryBase()};
  testing_support::HookedFileSystem files_;
  std::atomic<uint64_t> reads_{0};
  Options options_;
  std::string path_;
  std::unique_ptr<DB> db_;
  Contents contents_;
};

// One prefix in each of a few tables that stretch over all of them.
std::vector<std::string> Stretching(const std::string& prefix) { return {"aaaa1", prefix + "1", prefix + "2", "zzzz9"}; }

TEST_F(RangeTablesTest, TablesWithoutThePrefixAreNotReadInL0AndBelow) {
  options_.block_cache_bytes = 0;
  ASSERT_NO_FATAL_FAILURE(Open(kFour));
  ASSERT_NO_FATAL_FAILURE(PutTable(Stretching("below")));
  ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt));
  for (const char* prefix : {"ggg1", "ggg2", "ggg3"}) ASSERT_NO_FATAL_FAILURE(PutTable(Stretching(prefix)));
  const Stats stats = GetStats();
  ASSERT_EQ(stats.levels[0].files, 3u);
  EXPECT_EQ(stats.levels[0].files_with_prefix_filter, 3u);
  EXPECT_EQ(stats.levels.back().files_with_prefix_filter, 1u);
  EXPECT_EQ(stats.prefix_filter_bytes, 4u * (128 + internal::kBlockTrailerBytes));
  const auto reads_of = [&](std::string_view prefix) {
    const uint64_t before = reads_;
    ReadOptions options;
    options.prefix = prefix;
    auto it = db_->NewIterator(options);
    EXPECT_OK(it);
    (*it)->SeekToFirst();
    EXPECT_EQ((*it)->Valid(), !Expected(prefix).empty());
    return reads_ - before;
  };
  EXPECT_EQ(reads_of("ggg2"), 1u);
  EXPECT_EQ(reads_of("ggg22"), 1u);
  EXPECT_EQ(reads_of("gggx"), 0u);
  EXPECT_EQ(reads_of("belo"), 1u);
  EXPECT_EQ(reads_of("ggg"), 4u);  // shorter than the rule: several prefixes
  EXPECT_EQ(Skipped("ggg2"), 3u);
  EXPECT_EQ(Skipped("belo"), 3u);
  EXPECT_EQ(Skipped("none"), 4u);
  EXPECT_EQ(Skipped("ggg"), 0u);
  EXPECT_EQ(Skipped(""), 0u);
  EXPECT_EQ(Skipped("aaaa"), 0u);  // a fence inside: it is there, no filter is asked
}

TEST_F(RangeTablesTest, TablesApartFromTheRangeAreNeitherReadNorAsked) {
  options_.block_cache_bytes = 0;
  ASSERT_NO_FATAL_FAILURE(Open(kFour));
  ASSERT_NO_FATAL_FAILURE(PutTable({"aaaa1", "bbbb1"}));
  ASSERT_NO_FATAL_FAILURE(PutTable({"eeee1", "ffff1"}));
  const uint64_t reads = reads_;
  EXPECT_EQ(Skipped("cccc"), 0u);
  EXPECT_EQ(Skipped("a000"), 0u);
  EXPECT_EQ(Skipped("zzzz"), 0u);
  EXPECT_EQ(reads_, reads);
  EXPECT_EQ(GetStats().prefix_probes, 0u);
}

TEST_F(RangeTablesTest, BothBoundsWithinOnePrefixAreAsGoodAsAPrefix) {
  ASSERT_NO_FATAL_FAILURE(Open(kSlash));
  ASSERT_NO_FATAL_FAILURE(PutTable({"a/1", "usr/1", "z/1"}));
  const auto probes = [&](std::optional<std::string_view> lower, std::optional<std::string_view> upper, bool use_filters) {
    const uint64_t before = GetStats().prefix_probes;
    ReadOptions options;
    options.lower_bound = lower;
    options.upper_bound = upper;
    options.use_filters = use_filters;
    EXPECT_OK(db_->NewIterator(options));
    return GetStats().prefix_probes - before;
  };
  EXPECT_EQ(probes("usr/a", "usr/b", true), 1u);
  EXPECT_EQ(probes("usr/a", "usr0", true), 1u);
  EXPECT_EQ(probes("usr/a", "usr/b", false), 0u);
  EXPECT_EQ(probes("usr/a", "usr1", true), 0u);
  EXPECT_EQ(probes("usr/a", std::nullopt, true), 0u);
  EXPECT_EQ(probes(std::nullopt, "usr/b", true), 0u);
  EXPECT_EQ(probes("usr/b", "usr/a", true), 0u);
  EXPECT_EQ(Skipped("var/"), 1u);
  EXPECT_EQ(Skipped("usr/"), 0u);
  EXPECT_EQ(Skipped("var"), 0u);
}

TEST_F(RangeTablesTest, APrefixIsExactlyTheKeysThatBeginWithIt) {
  const auto bytes = [](std::initializer_list<int> list) {
    std::string key;
    for (const int byte : list) key.push_back(static_cast<char>(byte));
    return key;
  };
  const std::vector<std::string> keys = {"",
                                         bytes({0}),
                                         bytes({1}),
                                         bytes({1, 0xff}),
                                         bytes({1, 0xff, 5}),
                                         bytes({1, 0xff, 0xff}),
                                         bytes({2, 0}),
                                         bytes({2, 0xff, 0}),
                                         bytes({0xff}),
                                         bytes({0xff, 0}),
                                         bytes({0xff, 0xff}),
                                         bytes({0xff, 0xff, 0xff, 1})};
  const FilterPrefixRule rules[] = {{FilterPrefixKind::kFixedLength, 1},
                                    {FilterPrefixKind::kFixedLength, 2},
                                    {FilterPrefixKind::kDelimiter, 0xff},
                                    {FilterPrefixKind::kDelimiter, 0}};
  for (const FilterPrefixRule& rule : rules) {
    ASSERT_NO_FATAL_FAILURE(Open(rule));
    ASSERT_NO_FATAL_FAILURE(PutTable(keys));
    for (const std::string& prefix : keys) Skipped(prefix);
    for (const std::string& prefix : {bytes({3}), bytes({1, 1}), bytes({0xff, 0xff, 0xff}), bytes({0xff, 0xfe})}) Skipped(prefix);
  }
}

TEST_F(RangeTablesTest, APrefixBesideABoundIsInvalid) {
  ASSERT_NO_FATAL_FAILURE(Open(kFour));
  ReadOptions options;
  options.prefix = "a";
  options.lower_bound = "a";
  EXPECT_CODE(db_->NewIterator(options), absl::StatusCode::kInvalidArgument);
  options.lower_bound.reset();
  options.upper_bound = "b";
  EXPECT_CODE(db_->NewIterator(options), absl::StatusCode::kInvalidArgument);
  options.upper_bound.reset();
  EXPECT_OK(db_->NewIterator(options));
}

TEST_F(RangeTablesTest, ImpossibleSettingsAreRefused) {
  const auto code = [&](FilterPrefixRule rule, double bits = 10, FilterKind kind = FilterKind::kBlockedBloom) {
    options_.filter.prefix_rule = rule;
    options_.filter.prefix_bits_per_key = bits;
    options_.filter.kind = kind;
    return DB::Open(options_, path_).status().code();
  };
  EXPECT_EQ(code({FilterPrefixKind::kNone, 0}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({FilterPrefixKind::kFixedLength, 0}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({FilterPrefixKind::kDelimiter, 256}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({static_cast<FilterPrefixKind>(9), 1}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(kFour, 1), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(kFour, 25), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(kFour, 10, FilterKind::kNone), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(kFour, 0), absl::StatusCode::kOk);
}

TEST_F(RangeTablesTest, EachTableIsAskedUnderItsOwnRuleAndOldOnesNotAtAll) {
  ASSERT_NO_FATAL_FAILURE(Open(std::nullopt));
  ASSERT_NO_FATAL_FAILURE(PutTable({"a/aa1", "old/1", "zzzz1"}));
  EXPECT_EQ(GetStats().prefix_filter_bytes, 0u);
  EXPECT_EQ(Skipped("none/"), 0u);
  ASSERT_NO_FATAL_FAILURE(Open(kFour));
  ASSERT_NO_FATAL_FAILURE(PutTable({"a/aa2", "four1", "zzzz2"}));
  ASSERT_NO_FATAL_FAILURE(Open(kSlash));
  ASSERT_NO_FATAL_FAILURE(PutTable({"a/aa3", "slash/1", "zzzz3"}));
  EXPECT_EQ(Skipped("x/"), 1u) << "of the table whose prefixes end at a slash";
  EXPECT_EQ(Skipped("xxxx"), 1u) << "of the table whose prefixes have four bytes";
  EXPECT_EQ(Skipped("xxxx/"), 2u);
  EXPECT_EQ(Skipped("four"), 0u);
  EXPECT_EQ(Skipped("slash/"), 1u);
  EXPECT_EQ(Skipped("old/"), 2u);
  options_.filter.kind = FilterKind::kNone;
  ASSERT_NO_FATAL_FAILURE(Open(std::nullopt));
  EXPECT_EQ(Skipped("xxxx/"), 2u);
  ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt));
  EXPECT_EQ(GetStats().prefix_filter_bytes, 0u);
  EXPECT_EQ(Skipped("xxxx/"), 0u);
}

TEST_F(RangeTablesTest, DeletesAndSnapshotsAreInTheFilterToo) {
  ASSERT_NO_FATAL_FAILURE(Open(kFour));
  ASSERT_NO_FATAL_FAILURE(PutTable(Stretching("gone")));
  ASSERT_OK_AND_ASSIGN(const Snapshot before, db_->GetSnapshot());
  const Contents then = Expected("gone");
  ASSERT_EQ(then.size(), 2u);
  for (const char* key : {"aaaa1", "gone1", "gone2", "zzzz9"}) ASSERT_OK(db_->Delete(key));
  ASSERT_OK(db_->Flush());
  contents_.clear();
  EXPECT_EQ(Skipped("gone"), 0u);  // a table that holds only deletes of the prefix hides what is below
  ReadOptions options;
  options.prefix = "gone";
  options.snapshot = &before;
  EXPECT_EQ(ReadAll(*db_, options), then);
  ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt));
  EXPECT_EQ(ReadAll(*db_, options), then);
  EXPECT_EQ(ReadAllBackward(*db_, options), then);
}

TEST_F(RangeTablesTest, ARebuiltKeyFilterLeavesThePrefixFilter) {
  ASSERT_NO_FATAL_FAILURE(Open(kFour));
  ASSERT_NO_FATAL_FAILURE(PutTable(Stretching("gggg")));
  options_.filter.bits_per_key = 20;
  ASSERT_NO_FATAL_FAILURE(Open(kFour));
  const uint64_t bytes = GetStats().prefix_filter_bytes;
  EXPECT_GT(bytes, 0u);
  for (const double bits : {20.0, 0.0}) {
    options_.filter.bits_per_key = bits;
    ASSERT_NO_FATAL_FAILURE(Open(std::nullopt));
    ASSERT_OK(db_->RebuildFilters());
    for (int reopened = 0; reopened < 2; ++reopened) {
      EXPECT_EQ(GetStats().prefix_filter_bytes, bytes);
      EXPECT_EQ(Skipped("none"), 1u);
      EXPECT_EQ(Skipped("gggg"), 0u);
      ASSERT_OK(db_->VerifyChecksums());
      ASSERT_NO_FATAL_FAILURE(Open(std::nullopt));
    }
  }
}

TEST_F(RangeTablesTest, ADamagedPrefixFilterIsRefusedCountedAndDoneWithout) {
  ASSERT_NO_FATAL_FAILURE(Open(kFour));
  ASSERT_NO_FATAL_FAILURE(PutTable(Stretching("gggg")));
  db_.reset();
  const std::string file = path_ + "/" + FilesOfKind(path_, FileKind::kTable).at(0);
  std::string bytes = ReadBytes(file);
  const auto footer = internal::DecodeFooter(std::string_view(bytes).substr(bytes.size() - internal::kFooterBytes), bytes.size(), file);
  ASSERT_OK(footer);
  const auto meta = internal::DecodeMetaIndex(std::string_view(bytes).substr(footer->meta_index.offset, footer->meta_index.size));
  ASSERT_OK(meta);
  for (const internal::MetaBlock& block : *meta) {
    if (block.type == static_cast<uint32_t>(internal::MetaBlockType::kPrefixFilter)) bytes[block.handle.offset + 70] ^= 1;
  }
  WriteBytes(file, bytes);
  std::string logged;
  options_.logger = [&](LogLevel level, std::string_view text) {
    if (level == LogLevel::kWarning) logged.append(text).append("\n");
  };
  ASSERT_NO_FATAL_FAILURE(Open(kFour));
  EXPECT_EQ(Skipped("none"), 0u);
  EXPECT_EQ(Skipped("gggg"), 0u);
  EXPECT_EQ(GetStats().filters_refused, 1u);
  EXPECT_EQ(GetStats().prefix_filter_bytes, 0u);
  EXPECT_NE(logged.find("without its prefix filter"), std::string::npos) << logged;
  EXPECT_CODE(db_->VerifyChecksums(), absl::StatusCode::kDataLoss);
  options_.filter.bits_per_key = 4;
  ASSERT_NO_FATAL_FAILURE(Open(kFour));
  ASSERT_OK(db_->RebuildFilters());
  EXPECT_EQ(GetStats().filters_refused, 1u) << "once, whatever becomes of the table's key filter";
}

}  // namespace
}  // namespace tamis
