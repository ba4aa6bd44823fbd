// The filter over prefixes of a table: what goes in, what it answers, and what becomes of one that is damaged or not the table's.
#include <algorithm>

#include "filter/hash.h"
#include "table/table_format.h"
#include "table/table_reader.h"
#include "tests/table/table_test_util.h"

namespace tamis::internal {
namespace {

constexpr FilterPrefixRule kThree{FilterPrefixKind::kFixedLength, 3};
constexpr FilterPrefixRule kSlash{FilterPrefixKind::kDelimiter, '/'};

std::vector<TestEntry> EntriesOf(const std::vector<std::string>& keys) {
  std::vector<TestEntry> entries;
  for (const std::string& key : keys) {
    entries.push_back({key, 9, EntryKind::kPut, "new"});
    entries.push_back({key, 3, EntryKind::kDelete, ""});
  }
  SortUnique(&entries);
  return entries;
}

TableBuildOptions OptionsOf(std::optional<FilterPrefixRule> rule) {
  TableBuildOptions options = TestBuildOptions(Compression::kNone, 300);
  options.prefix_rule = rule;
  options.prefix_bits_per_key = 24;
  return options;
}

MetaBlock PrefixBlock(const std::string& bytes) {
  const std::string_view view(bytes);
  const Footer footer = DecodeFooter(view.substr(bytes.size() - kFooterBytes), bytes.size(), "t").value();
  const std::vector<MetaBlock> blocks = DecodeMetaIndex(view.substr(footer.meta_index.offset, footer.meta_index.size)).value();
  for (const MetaBlock& block : blocks) {
    if (block.type == static_cast<uint32_t>(MetaBlockType::kPrefixFilter)) return block;
  }
  ADD_FAILURE() << "no prefix filter";
  return {};
}

// The table with other bytes, of the same number, as its prefix filter, and a good trailer.
std::string WithPrefixFilter(std::string bytes, std::string_view filter) {
  const BlockHandle handle = PrefixBlock(bytes).handle;
  EXPECT_EQ(handle.size, filter.size());
  std::string stored(filter);
  stored.push_back('\0');
  PutFixed32(&stored, Checksum32(stored, ChecksumSeed(TestId(1), handle.offset)));
  return bytes.replace(handle.offset, stored.size(), stored);
}

std::string FilterOf(const FilterBuildOptions& options, const std::vector<std::string>& prefixes) {
  const auto builder = FilterBuilder::Create(options).value();
  for (const std::string& prefix : prefixes) builder->AddHash(KeyHash(prefix, options.seed));
  return std::string(builder->Finish().value().view());
}

const std::vector<std::string> kKeys = {"",      "a",      "aaa",   "aaa/1", "aaa/2", "aaab",      "b/",    "bb",
                                        "bbb/x", "bbb/y/", "c\xff", "ccc",   "d/1/2", "\xff\xff/", "zz\xff"};

TEST(TablePrefixFilterTest, HoldsEachPrefixOnceAndNoKeyWithoutOne) {
  using Case = std::pair<FilterPrefixRule, std::vector<std::string>>;
  for (const auto& [rule, prefixes] :
       {Case{kThree, {"aaa", "bbb", "ccc", "d/1", "zz\xff", "\xff\xff/"}}, Case{kSlash, {"aaa/", "b/", "bbb/", "d/", "\xff\xff/"}}}) {
    ASSERT_OK_AND_ASSIGN(const auto table, OpenTable(BuildTable(OptionsOf(rule), EntriesOf(kKeys))));
    ASSERT_OK(table->prefix_filter_refusal());
    const FilterInfo info = table->prefix_filter().Info();
    EXPECT_EQ(info.prefix_rule, rule);
    EXPECT_EQ(info.keys, prefixes.size());
    for (const std::string& prefix : prefixes) EXPECT_TRUE(table->prefix_filter().MayContain(KeyHash(prefix, kTestSeed))) << prefix;
    for (const char* absent : {"a", "bb", "c\xff", "x/", "xyz"}) {
      EXPECT_FALSE(table->prefix_filter().MayContain(KeyHash(absent, kTestSeed))) << absent;
    }
    EXPECT_OK(table->Verify(kTestSeed, {}));
    EXPECT_TRUE(table->filter().has_filter());
    EXPECT_EQ(table->filter().prefix_rule(), FilterPrefixRule());
  }
}

TEST(TablePrefixFilterTest, AnswersForRangesOfOnePrefixOnly) {
  ASSERT_OK_AND_ASSIGN(const auto table, OpenTable(BuildTable(OptionsOf(kSlash), EntriesOf(kKeys))));
  EXPECT_EQ(table->AskPrefixFilter("aaa/", "aaa0"), PrefixAnswer::kMaybe);
  EXPECT_EQ(table->AskPrefixFilter("aaa/x", "aaa/y"), PrefixAnswer::kMaybe);
  EXPECT_EQ(table->AskPrefixFilter("abc/", "abc0"), PrefixAnswer::kCertainlyNot);
  EXPECT_EQ(table->AskPrefixFilter("abc/", "abc1"), PrefixAnswer::kNotAsked);
  EXPECT_EQ(table->AskPrefixFilter("abc", "abc0"), PrefixAnswer::kNotAsked);
  EXPECT_EQ(table->AskPrefixFilter("abc0", "abc/"), PrefixAnswer::kNotAsked);
  ASSERT_OK_AND_ASSIGN(const auto without, OpenTable(BuildTable(OptionsOf(std::nullopt), EntriesOf(kKeys))));
  EXPECT_EQ(without->AskPrefixFilter("abc/", "abc0"), PrefixAnswer::kNotAsked);
}

TEST(TablePrefixFilterTest, IsThereOnlyIfAskedForAndCountsAsResident) {
  const auto open = [](const TableBuildOptions& options) { return OpenTable(BuildTable(options, EntriesOf(kKeys))).value(); };
  const auto with = open(OptionsOf(kThree));
  EXPECT_EQ(with->prefix_filter_bytes(), 128 + kBlockTrailerBytes);
  TableBuildOptions options = OptionsOf(kThree);
  options.prefix_bits_per_key = 0;
  const auto without = open(options);
  EXPECT_FALSE(without->prefix_filter().has_filter());
  EXPECT_GE(with->ResidentBytes(), without->ResidentBytes() + 128);
  options = OptionsOf(kThree);
  options.filter_kind = FilterKind::kNone;
  EXPECT_FALSE(open(options)->prefix_filter().has_filter());
  options = OptionsOf(kThree);
  options.bits_per_key = 0;
  EXPECT_FALSE(open(options)->filter().has_filter());
  EXPECT_TRUE(open(options)->prefix_filter().has_filter());
  EXPECT_OK(open(options)->Verify(kTestSeed, {}));
  // No key has a prefix: the filter says so.
  options.prefix_rule = FilterPrefixRule{FilterPrefixKind::kFixedLength, 100};
  EXPECT_EQ(open(options)->AskPrefixFilter(std::string(100, 'a'), std::string(100, 'a') + "b"), PrefixAnswer::kCertainlyNot);
  EXPECT_OK(open(options)->Verify(kTestSeed, {}));
}

TEST(TablePrefixFilterTest, EveryKindHoldsEveryPrefix) {
  std::vector<std::string> keys;
  for (int i = 0; i < 6000; ++i) keys.push_back(std::to_string(100000 + i * 7 / 3) + "/" + std::to_string(i));
  std::sort(keys.begin(), keys.end());
  for (const FilterKind kind : {FilterKind::kBlockedBloom, FilterKind::kSplitBlockBloom, FilterKind::kClassicBloom, FilterKind::kRibbon}) {
    TableBuildOptions options = OptionsOf(kSlash);
    options.filter_kind = kind;
    options.prefix_bits_per_key = 8;
    TableSummary summary;
    const std::string bytes = BuildTable(options, EntriesOf(keys), &summary);
    ASSERT_OK_AND_ASSIGN(const auto table, OpenTable(bytes));
    EXPECT_EQ(table->prefix_filter().kind(), kind);
    ASSERT_OK(table->Verify(kTestSeed, {}));
    for (const std::string& key : keys) {
      const std::string prefix = key.substr(0, 7);
      ASSERT_EQ(table->AskPrefixFilter(prefix, prefix.substr(0, 6) + "0"), PrefixAnswer::kMaybe);
    }
  }
}

TEST(TablePrefixFilterTest, EveryChangedByteOfItIsReportedAndTheTableDoesWithout) {
  const std::vector<TestEntry> entries = EntriesOf(kKeys);
  const std::string good = BuildTable(OptionsOf(kThree), entries);
  const BlockHandle handle = PrefixBlock(good).handle;
  for (uint64_t at = handle.offset; at < handle.offset + handle.size + kBlockTrailerBytes; ++at) {
    for (const int change : {0x01, 0x80, 0xff}) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ change);
      ASSERT_OK_AND_ASSIGN(const auto table, OpenTable(bytes));
      ASSERT_FALSE(table->prefix_filter_refusal().ok()) << at;
      ASSERT_FALSE(table->Verify(kTestSeed, {}).ok()) << at;
      ASSERT_OK(table->filter_refusal());
      ASSERT_EQ(table->AskPrefixFilter("xyz", "xyz1"), PrefixAnswer::kNotAsked);
      const auto cursor = table->NewCursor({});
      ASSERT_NO_FATAL_FAILURE(CheckCursor(cursor.get(), entries));
    }
    if (HasFatalFailure()) return;
  }
}

TEST(TablePrefixFilterTest, OneThatIsNotTheTablesIsRefusedWithTheReason) {
  const std::string good = BuildTable(OptionsOf(kThree), EntriesOf(kKeys));
  const auto refusal = [&](const FilterBuildOptions& options) {
    const auto table = OpenTable(WithPrefixFilter(good, FilterOf(options, {"aaa"})));
    EXPECT_OK(table);
    EXPECT_FALSE((*table)->prefix_filter().has_filter());
    return (*table)->prefix_filter_refusal().code();
  };
  FilterBuildOptions options{.seed = kTestSeed, .owner = TestId(2), .prefix_rule = kThree};
  EXPECT_EQ(refusal(options), absl::StatusCode::kFailedPrecondition);
  options.owner = TestId(1);
  options.prefix_rule = {};
  EXPECT_EQ(refusal(options), absl::StatusCode::kFailedPrecondition);
}

TEST(TablePrefixFilterTest, VerifyFindsOneThatDeniesAKeyOrIsOfOtherKeysOrSeed) {
  const std::string good = BuildTable(OptionsOf(kThree), EntriesOf({"aaa1", "aaa2", "bbb1", "c"}));
  const auto verify = [&](uint64_t seed, const std::vector<std::string>& prefixes) {
    const FilterBuildOptions options{.bits_per_key = 24, .seed = seed, .owner = TestId(1), .prefix_rule = kThree};
    const auto table = OpenTable(WithPrefixFilter(good, FilterOf(options, prefixes)));
    EXPECT_OK(table);
    EXPECT_OK((*table)->prefix_filter_refusal());
    return (*table)->Verify(kTestSeed, {}).code();
  };
  EXPECT_EQ(verify(kTestSeed, {"aaa", "bbb"}), absl::StatusCode::kOk);
  EXPECT_EQ(verify(kTestSeed, {"aaa", "ccc"}), absl::StatusCode::kDataLoss);
  EXPECT_EQ(verify(kTestSeed, {"aaa", "bbb", "ccc"}), absl::StatusCode::kDataLoss);
  EXPECT_EQ(verify(kTestSeed + 1, {"aaa", "bbb"}), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace tamis::internal
