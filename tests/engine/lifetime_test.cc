// What is obtained from a database outlives it safely; what its numbers say is what is so.
#include <gtest/gtest.h>

#include <sys/stat.h>

#include "base/mem_file_system.h"
#include "base/random.h"
#include "tests/support/database_test_util.h"
#include "tests/support/hooked_file_system.h"

namespace tamis {
namespace {

using internal::FileKind;
using testing_support::Contents;
using testing_support::FilesIn;
using testing_support::FilesOfKind;
using testing_support::GetOr;
using testing_support::Key;
using testing_support::ReadAll;
using testing_support::SmallOptions;
namespace fs = std::filesystem;

class LifetimeTest : public ::testing::Test {
 protected:
  LifetimeTest() : path_(directory_.path() + "/db") {}
  void Open() {
    db_.reset();
    ASSERT_OK_AND_ASSIGN(db_, DB::Open(options_, path_));
  }
  void Fill(uint64_t keys, const std::string& value, uint64_t step = 1) {
    for (uint64_t i = 0; i < keys; i += step) ASSERT_OK(db_->Put(Key(i), value));
  }
  std::vector<std::string> ListedTables() {
    std::vector<std::string> names;
    const std::string text = *db_->GetProperty("tamis.files");
    for (size_t at = text.find(".table"); at != std::string::npos; at = text.find(".table", at + 1)) {
      const size_t start = text.rfind(' ', at) + 1;
      names.push_back(text.substr(start, at + 6 - start));
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  std::vector<std::string> TablesOnDisk() {
    std::vector<std::string> names = FilesOfKind(path_, FileKind::kTable);
    std::sort(names.begin(), names.end());
    return names;
  }

  testing_support::TempDir directory_{testing_support::TempDir::MemoryBase()};
  Options options_ = SmallOptions();
  std::string path_;
  std::unique_ptr<DB> db_;
};

TEST_F(LifetimeTest, IteratorsAndSnapshotsOutliveTheDatabase) {
  Open();
  Fill(3000, "v");
  ASSERT_OK_AND_ASSIGN(Snapshot snapshot, db_->GetSnapshot());
  std::vector<std::unique_ptr<Iterator>> iterators;
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<Iterator> it, db_->NewIterator());
    if (i % 2 == 0) it->SeekToFirst();
    iterators.push_back(std::move(it));
  }
  ASSERT_OK(db_->Close());
  const auto refused = [](Iterator* it) {
    EXPECT_FALSE(it->Valid());
    EXPECT_CODE(it->status(), absl::StatusCode::kFailedPrecondition);
  };
  for (const auto& it : iterators) refused(it.get());
  db_.reset();
  for (const auto& it : iterators) {
    it->SeekToFirst(), refused(it.get());
    it->SeekToLast(), refused(it.get());
    it->Seek("k"), refused(it.get());
    it->SeekForPrev("k"), refused(it.get());
  }
  // The directory is free for others while they live.
  Open();
  ReadOptions options;
  options.snapshot = &snapshot;
  EXPECT_CODE(db_->NewIterator(options), absl::StatusCode::kInvalidArgument);
  iterators.clear();
}

TEST_F(LifetimeTest, PinnedValuesStayThroughOverwriteCompactionAndClose) {
  for (const uint64_t cache : {0u, 1u << 20}) {
    for (const size_t bytes : {0u, 10u, 5000u, 200'000u}) {
      options_.block_cache_bytes = cache;
      Open();
      const std::string value(bytes, 'p');
      ASSERT_OK(db_->Put("key", value));
      PinnedValue from_memtable, from_table, moved;
      ASSERT_OK(db_->Get(ReadOptions(), "key", &from_memtable));
      ASSERT_OK(db_->Flush());
      ASSERT_OK(db_->Get(ReadOptions(), "key", &from_table));
      ASSERT_OK(db_->Put("key", "other"));
      for (uint64_t i = 0; i < 2000; ++i) ASSERT_OK(db_->Put(Key(i), std::string(100, 'x')));
      ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt));
      moved = std::move(from_table);
      EXPECT_EQ(from_memtable.view(), value);
      EXPECT_EQ(moved.view(), value);
      db_.reset();
      EXPECT_EQ(from_memtable.view(), value);
      EXPECT_EQ(moved.view(), value);
      PinnedValue again(std::move(moved));
      EXPECT_EQ(again.ToString(), value);
    }
  }
}

TEST_F(LifetimeTest, AtIdleTheDirectoryHoldsExactlyTheListedTables) {
  Open();
  internal::Random random(4);
  for (int round = 0; round < 6; ++round) {
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<Iterator> it, db_->NewIterator());
    it->SeekToFirst();
    for (int i = 0; i < 3000; ++i) ASSERT_OK(db_->Put(Key(random.Uniform(3000)), std::string(random.Uniform(100), 'v')));
    ASSERT_OK(db_->WaitForBackgroundWork());
    const std::vector<std::string> on_disk = TablesOnDisk();
    for (const std::string& name : ListedTables()) EXPECT_THAT(on_disk, ::testing::Contains(name));
    it.reset();
    ASSERT_OK(db_->WaitForBackgroundWork());
    EXPECT_EQ(TablesOnDisk(), ListedTables());
  }
  const std::vector<std::string> before = ListedTables();
  Open();
  ASSERT_OK(db_->WaitForBackgroundWork());
  EXPECT_EQ(TablesOnDisk(), ListedTables());
}

TEST_F(LifetimeTest, WhatAnIteratorKeepsIsSeenInTheStatsAndGivenBack) {
  Open();
  Fill(4000, std::string(100, 'a'));
  ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt));
  ASSERT_OK(db_->WaitForBackgroundWork());
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Iterator> it, db_->NewIterator());
  const uint64_t before = testing_support::BytesIn(path_);
  for (int round = 0; round < 3; ++round) Fill(4000, std::string(100, static_cast<char>('b' + round)));
  ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt));
  ASSERT_OK_AND_ASSIGN(Stats stats, db_->GetStats());
  EXPECT_GT(stats.obsolete_bytes, 0u) << "tables kept for an iterator do not show";
  it.reset();
  ASSERT_OK(db_->WaitForBackgroundWork());
  ASSERT_OK_AND_ASSIGN(stats, db_->GetStats());
  EXPECT_EQ(stats.obsolete_bytes, 0u);
  EXPECT_LE(testing_support::BytesIn(path_), before * 3 / 2);
}

TEST_F(LifetimeTest, WhatASnapshotKeepsIsGivenBackWithoutNewWrites) {
  Open();
  Fill(2000, std::string(100, 'a'));
  ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt));
  ASSERT_OK(db_->WaitForBackgroundWork());
  const uint64_t before = testing_support::BytesIn(path_);
  std::vector<Snapshot> held;
  for (int round = 0; round < 5; ++round) {
    ASSERT_OK_AND_ASSIGN(Snapshot snapshot, db_->GetSnapshot());
    held.push_back(std::move(snapshot));
    Fill(2000, std::string(100, static_cast<char>('b' + round)));
  }
  ASSERT_OK_AND_ASSIGN(const Stats stats, db_->GetStats());
  EXPECT_EQ(stats.snapshots, 5u);
  EXPECT_GT(stats.oldest_snapshot_sequence, 0u);
  ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt));
  held.clear();
  ASSERT_OK(db_->WaitForBackgroundWork());
  ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt));
  ASSERT_OK(db_->WaitForBackgroundWork());
  EXPECT_LE(testing_support::BytesIn(path_), before * 3 / 2);
}

TEST_F(LifetimeTest, EverythingDeletedTakesNoSpaceAfterACompaction) {
  Open();
  Fill(5000, std::string(1000, 'v'));
  for (uint64_t i = 0; i < 5000; ++i) ASSERT_OK(db_->Delete(Key(i)));
  Open();
  ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt));
  ASSERT_OK(db_->WaitForBackgroundWork());
  EXPECT_TRUE(ReadAll(*db_).empty());
  ASSERT_OK_AND_ASSIGN(const Stats stats, db_->GetStats());
  EXPECT_EQ(stats.table_bytes, 0u);
  ASSERT_OK(db_->Close());
  EXPECT_LT(testing_support::BytesIn(path_), 1u << 20);
}

TEST_F(LifetimeTest, AnEmptyDatabaseTakesLessThanAMebibyteOfDisk) {
  options_ = Options();
  Open();
  for (const bool open : {true, false}) {
    if (!open) ASSERT_OK(db_->Close());
    uint64_t allocated = 0;
    for (const auto& entry : fs::directory_iterator(path_)) {
      struct stat status;
      ASSERT_EQ(::stat(entry.path().c_str(), &status), 0);
      allocated += static_cast<uint64_t>(status.st_blocks) * 512;
    }
    EXPECT_LT(allocated, 1u << 20);
    EXPECT_LT(testing_support::BytesIn(path_), 1u << 20);
  }
}

TEST_F(LifetimeTest, NewFilesHaveTheModeAskedFor) {
  const auto mode_of = [](const std::string& path) {
    struct stat status;
    return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
  };
  for (const uint32_t mode : {0600u, 0640u, 0664u}) {
    const mode_t mask = ::umask(0);
    options_.file_mode = mode;
    Open();
    Fill(10, "v");
    ASSERT_OK(db_->Flush());
    for (const auto& entry : fs::directory_iterator(path_)) EXPECT_EQ(mode_of(entry.path()), mode) << entry.path();
    EXPECT_EQ(mode_of(path_), mode | ((mode & 0444) >> 2));
    ::umask(mask);
    db_.reset();
    ASSERT_OK(DestroyDB(options_, path_));
  }
}

TEST_F(LifetimeTest, AReaderSeesTheStateAtItsOpeningAndTouchesNothing) {
  Open();
  Fill(3000, "first");
  Options reading = options_;
  reading.read_only = true;
  const Contents files = FilesIn(path_);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<DB> one, DB::Open(reading, path_));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<DB> two, DB::Open(reading, path_));
  EXPECT_TRUE(FilesIn(path_) == files);
  const Contents state = ReadAll(*db_);
  // The writer changes everything; the readers see what was.
  for (int round = 0; round < 5; ++round) {
    Fill(3000, "round " + std::to_string(round));
    ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt));
  }
  const Contents later_files = FilesIn(path_);
  EXPECT_TRUE(ReadAll(*one) == state);
  EXPECT_TRUE(ReadAll(*two) == state);
  for (uint64_t i = 0; i < 3000; i += 11) ASSERT_EQ(GetOr(*one, Key(i)), "first");
  ASSERT_OK(one->VerifyChecksums());
  ASSERT_OK(one->Close());
  EXPECT_TRUE(FilesIn(path_) == later_files);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<DB> three, DB::Open(reading, path_));
  EXPECT_TRUE(ReadAll(*three) == ReadAll(*db_));
}

TEST_F(LifetimeTest, FewDescriptorsServeManyTables) {
  options_.max_open_files = 8;
  options_.compaction.target_file_bytes = 4096;
  options_.block_cache_bytes = 0;
  Open();
  Fill(20'000, std::string(30, 'v'));
  ASSERT_OK(db_->WaitForBackgroundWork());
  ASSERT_GT(TablesOnDisk().size(), 60u);
  Open();
  const auto descriptors = [&] {
    size_t count = 0;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      std::error_code ignored;
      count += fs::read_symlink(entry.path(), ignored).string().find(".table") != std::string::npos ? 1 : 0;
    }
    return count;
  };
  internal::Random random(8);
  for (int i = 0; i < 2000; ++i) {
    ASSERT_TRUE(GetOr(*db_, Key(random.Uniform(20'000))).has_value());
    if (i % 200 != 0) continue;
    EXPECT_LE(descriptors(), 8u);
  }
  EXPECT_EQ(ReadAll(*db_).size(), 20'000u);
  ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt));
  EXPECT_LE(descriptors(), 8u);
}

TEST_F(LifetimeTest, TwoDatabasesShareABlockCache) {
  options_.block_cache = NewSharedBlockCache(256 << 10);
  Open();
  Fill(3000, "of the first");
  Options other_options = options_;
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<DB> other, DB::Open(other_options, directory_.path() + "/other"));
  for (uint64_t i = 0; i < 3000; ++i) ASSERT_OK(other->Put(Key(i), "of the second"));
  ASSERT_OK(db_->Flush());
  ASSERT_OK(other->Flush());
  for (int round = 0; round < 2; ++round) {
    for (uint64_t i = 0; i < 3000; i += 3) {
      ASSERT_EQ(GetOr(*db_, Key(i)), "of the first");
      ASSERT_EQ(GetOr(*other, Key(i)), "of the second");
    }
  }
  ASSERT_OK_AND_ASSIGN(const Stats stats, db_->GetStats());
  EXPECT_EQ(stats.block_cache_capacity, 256u << 10);
  EXPECT_GT(stats.block_cache_bytes, 0u);
  EXPECT_LE(stats.block_cache_bytes, stats.block_cache_capacity);
  db_.reset();
  for (uint64_t i = 0; i < 3000; i += 3) ASSERT_EQ(GetOr(*other, Key(i)), "of the second");
}

TEST_F(LifetimeTest, TheStatsAddUp) {
  options_.compaction.l0_trigger = 8;
  Open();
  Fill(6000, std::string(50, 'v'), 2);
  ASSERT_OK(db_->WaitForBackgroundWork());
  ASSERT_OK_AND_ASSIGN(const Stats before, db_->GetStats());
  for (uint64_t i = 0; i < 6000; ++i) EXPECT_EQ(GetOr(*db_, Key(i)).has_value(), i % 2 == 0);
  ASSERT_OK_AND_ASSIGN(const Stats stats, db_->GetStats());
  EXPECT_EQ(stats.gets - before.gets, 6000u);
  EXPECT_EQ(stats.gets_found - before.gets_found, 3000u);
  EXPECT_EQ(stats.puts, 3000u);
  EXPECT_EQ(stats.last_sequence, 3000u);
  uint64_t files = 0, bytes = 0, skipped = 0, filter = 0, keys = 0, probes = 0, answers = 0;
  for (const LevelStats& level : stats.levels) {
    files += level.files;
    bytes += level.bytes;
    skipped += level.skipped;
    filter += level.filter_bytes;
    keys += level.keys;
    probes += level.probes;
    answers += level.skipped + level.true_positives + level.false_positives;
    if (level.files != 0) {
      EXPECT_NEAR(level.bits_per_key, 10, 5);  // small filters are rounded up to whole lines
      EXPECT_LT(level.predicted_fpr, 0.02);
    }
  }
  EXPECT_EQ(files, TablesOnDisk().size());
  EXPECT_EQ(bytes, stats.table_bytes);
  EXPECT_EQ(skipped, stats.files_skipped);
  EXPECT_EQ(filter, stats.filter_bytes);
  EXPECT_EQ(keys + stats.memtable_entries, 3000u);
  EXPECT_EQ(probes, answers);
  uint64_t on_disk = 0;
  for (const std::string& name : TablesOnDisk()) on_disk += fs::file_size(path_ + "/" + name);
  EXPECT_EQ(on_disk, stats.table_bytes);
  EXPECT_GT(stats.write_amplification, 1.0);
  EXPECT_GE(stats.space_amplification, 1.0);
  EXPECT_GT(stats.files_skipped, 1000u);
}

TEST_F(LifetimeTest, ApproximationsAreNearTheTruth) {
  Open();
  Fill(20'000, std::string(60, 'v'));
  ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt));
  ASSERT_OK(db_->WaitForBackgroundWork());
  ASSERT_OK_AND_ASSIGN(const Stats stats, db_->GetStats());
  EXPECT_EQ(*db_->ApproximateSize(std::nullopt, std::nullopt), stats.table_bytes);
  EXPECT_EQ(*db_->ApproximateCount(std::nullopt, std::nullopt), 20'000u);
  for (const auto& [from, to] : std::vector<std::pair<uint64_t, uint64_t>>{{0, 10'000}, {5000, 15'000}, {100, 1100}, {19'000, 30'000}}) {
    const double expected = static_cast<double>(std::min<uint64_t>(to, 20'000) - from);
    const double count = static_cast<double>(*db_->ApproximateCount(Key(from), Key(to)));
    EXPECT_NEAR(count, expected, expected * 0.2 + 100);
    const double size = static_cast<double>(*db_->ApproximateSize(Key(from), Key(to)));
    EXPECT_NEAR(size, expected / 20'000 * static_cast<double>(stats.table_bytes), 0.2 * size + 10'000);
  }
  EXPECT_EQ(*db_->ApproximateCount("x", std::nullopt), 0u);
  EXPECT_EQ(*db_->ApproximateCount(std::nullopt, "a"), 0u);
}

TEST_F(LifetimeTest, PropertiesHaveTheirNames) {
  Open();
  Fill(10, "v");
  ASSERT_OK(db_->Flush());
  for (const char* name : {"tamis.stats", "tamis.levels", "tamis.filters", "tamis.id", "tamis.format", "tamis.hash-seed", "tamis.files"}) {
    const std::optional<std::string> text = db_->GetProperty(name);
    ASSERT_TRUE(text.has_value()) << name;
    EXPECT_FALSE(text->empty()) << name;
  }
  for (const char* name : {"", "tamis", "tamis.", "tamis.stats ", "rocksdb.stats"}) EXPECT_EQ(db_->GetProperty(name), std::nullopt);
}

TEST_F(LifetimeTest, LongCallsReportTheirProgressAndCanBeCancelled) {
  Open();
  Fill(20'000, std::string(60, 'v'));
  Fill(20'000, std::string(60, 'w'), 3);
  uint64_t last_done = 0, last_total = 0, calls = 0;
  const Progress watch = [&](uint64_t done, uint64_t total) {
    EXPECT_GE(done, last_done);
    EXPECT_LE(done, total);
    last_done = done;
    last_total = total;
    ++calls;
    return true;
  };
  const std::vector<std::string> before = TablesOnDisk();
  EXPECT_CODE(db_->CompactRange(std::nullopt, std::nullopt, [](uint64_t, uint64_t) { return false; }), absl::StatusCode::kCancelled);
  ASSERT_OK(db_->WaitForBackgroundWork());
  EXPECT_EQ(TablesOnDisk(), ListedTables()) << "a cancelled compaction left files";
  EXPECT_EQ(ReadAll(*db_).size(), 20'000u);
  ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt, watch));
  EXPECT_GT(calls, 5u);
  last_done = calls = 0;
  ASSERT_OK(db_->VerifyChecksums(watch));
  EXPECT_GT(calls, 5u);
  EXPECT_EQ(last_done, last_total);
  EXPECT_CODE(db_->VerifyChecksums([](uint64_t, uint64_t) { return false; }), absl::StatusCode::kCancelled);
  EXPECT_EQ(ReadAll(*db_).size(), 20'000u);
}

TEST_F(LifetimeTest, ADatabaseInMemoryNeedsNoDisk) {
  const std::unique_ptr<FileSystem> memory = internal::NewMemFileSystem();
  options_.file_system = memory.get();
  ASSERT_OK_AND_ASSIGN(db_, DB::Open(options_, "/db"));
  Fill(5000, "v");
  ASSERT_OK(db_->Close());
  ASSERT_OK_AND_ASSIGN(db_, DB::Open(options_, "/db"));
  EXPECT_EQ(ReadAll(*db_).size(), 5000u);
  db_.reset();
  ASSERT_OK(DestroyDB(options_, "/db"));
  ASSERT_OK_AND_ASSIGN(const bool exists, memory->PathExists("/db"));
  EXPECT_FALSE(exists);
}

// Counts what a lookup of an absent key costs with filters and without.
void CheckAbsentLookups(DB* db, uint64_t keys, uint64_t lookups) {
  for (const bool filters : {true, false}) {
    ReadOptions options;
    options.use_filters = filters;
    options.fill_cache = false;
    ASSERT_OK_AND_ASSIGN(const Stats before, db->GetStats());
    internal::Random random(12);
    for (uint64_t i = 0; i < lookups; ++i) ASSERT_EQ(GetOr(*db, Key(random.Uniform(keys) * 2 + 1), options), std::nullopt);
    ASSERT_OK_AND_ASSIGN(const Stats after, db->GetStats());
    const double reads = static_cast<double>(after.blocks_read - before.blocks_read) / static_cast<double>(lookups);
    if (filters) {
      EXPECT_LT(reads, 0.1);
      EXPECT_NEAR(reads, after.predicted_wasted_reads, after.predicted_wasted_reads * 0.5 + 0.01);
    } else {
      EXPECT_GT(reads, 0.9);
    }
  }
  for (uint64_t i = 0; i < lookups; ++i) ASSERT_TRUE(GetOr(*db, Key(i * 7919 % keys * 2)).has_value());
}

TEST_F(LifetimeTest, AbsentKeysCostFewReadsWithFilters) {
  options_.block_cache_bytes = 0;
  Open();
  for (uint64_t i = 0; i < 60'000; ++i) ASSERT_OK(db_->Put(Key(i * 7919 % 60'000 * 2), std::string(20, 'v')));
  ASSERT_OK(db_->WaitForBackgroundWork());
  ASSERT_OK_AND_ASSIGN(const Stats stats, db_->GetStats());
  size_t levels = 0;
  for (const LevelStats& level : stats.levels) levels += level.files != 0 ? 1 : 0;
  EXPECT_GE(levels, 3u);
  CheckAbsentLookups(db_.get(), 60'000, 10'000);
}

TEST_F(LifetimeTest, AbsentKeysAmongAMillionCostFewReadsWithFilters) {
  options_.memtable_bytes = 1 << 20;
  options_.compaction.level_base_bytes = 1 << 20;
  options_.compaction.target_file_bytes = 1 << 20;
  options_.block_cache_bytes = 0;
  Open();
  for (uint64_t i = 0; i < 1'000'000; ++i) ASSERT_OK(db_->Put(Key(i * 7919 % 1'000'000 * 2), std::string(20, 'v')));
  ASSERT_OK(db_->WaitForBackgroundWork());
  ASSERT_OK_AND_ASSIGN(const Stats stats, db_->GetStats());
  size_t levels = 0;
  for (const LevelStats& level : stats.levels) levels += level.files != 0 ? 1 : 0;
  EXPECT_GE(levels, 3u);
  CheckAbsentLookups(db_.get(), 1'000'000, 100'000);
}

}  // namespace
}  // namespace tamis
