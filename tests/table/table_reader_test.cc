#include "table/table_reader.h"

#include "base/epoch.h"
#include "filter/hash.h"
#include "tests/table/table_test_util.h"

namespace tamis::internal {
namespace {

// Get of every key at every sequence around its versions, and of keys that are not there.
void CheckGets(const TableReader& table, const std::vector<TestEntry>& entries, const TableReadOptions& options) {
  const auto check = [&](const std::string& key, SequenceNumber sequence) {
    const TestEntry target{key, sequence, EntryKind::kPut, ""};
    const auto at = std::lower_bound(entries.begin(), entries.end(), target, Before);
    const bool there = at != entries.end() && at->key == key;
    const EpochGuard guard;
    TableLookup result;
    ASSERT_OK(table.Get(options, LookupKey(key, sequence, KeyHash(key, kTestSeed)), &result));
    if (!there) {
      ASSERT_EQ(result.state, LookupState::kAbsent);
      return;
    }
    ASSERT_EQ(result.state, at->kind == EntryKind::kDelete ? LookupState::kDeleted : LookupState::kFound);
    ASSERT_EQ(result.sequence, at->sequence);
    ASSERT_EQ(result.value, at->value);
    ASSERT_EQ(result.block_read, static_cast<bool>(result.block));
    ASSERT_NE(result.block_read, result.cached != nullptr);
  };
  for (const TestEntry& entry : entries) {
    for (const SequenceNumber sequence : {SequenceNumber{0}, entry.sequence - 1, entry.sequence, entry.sequence + 1, kMaxSequence}) {
      ASSERT_NO_FATAL_FAILURE(check(entry.key, sequence));
    }
    ASSERT_NO_FATAL_FAILURE(check(entry.key + '\0', kMaxSequence));
    ASSERT_NO_FATAL_FAILURE(check(entry.key.substr(0, entry.key.size() / 2), kMaxSequence));
  }
}

TEST(TableReaderTest, TieKeysAndVersionsOverBlockEdgesRoundTrip) {
  Random random(4);
  for (int round = 0; round < 24; ++round) {
    SCOPED_TRACE(round);
    const auto compression = round % 2 == 0 ? Compression::kLz4 : Compression::kNone;
    const uint32_t block_bytes = std::vector<uint32_t>{1, 60, 200, 4096}[round / 2 % 4];
    const std::vector<TestEntry> entries = TieEntries(&random, 1 + random.Uniform(200), round % 3 == 0 ? "" : "some/prefix", 6, 12);
    TableSummary summary;
    const std::string bytes = BuildTable(TestBuildOptions(compression, block_bytes), entries, &summary);
    auto cache = std::make_shared<BlockCache>(round % 4 == 0 ? 3000 : 1 << 20);
    ASSERT_OK_AND_ASSIGN(const auto table, OpenTable(bytes, TestId(1), cache));
    if (block_bytes == 1) {
      ASSERT_EQ(table->properties().data_blocks, entries.size());
    }
    for (const bool fill_cache : {false, true, true}) ASSERT_NO_FATAL_FAILURE(CheckGets(*table, entries, {fill_cache, true}));
    for (const bool read_ahead : {false, true}) {
      const auto cursor = table->NewCursor({}, read_ahead);
      ASSERT_NO_FATAL_FAILURE(CheckCursor(cursor.get(), entries));
    }
    ASSERT_OK(table->Verify(kTestSeed, {}));
  }
}

TEST(TableReaderTest, AMillionByteTableAnswersAsItsEntries) {
  Random random(5);
  std::vector<TestEntry> entries;
  for (int i = 0; i < 20000; ++i) {
    const std::string key = "user" + std::to_string(random.Uniform(100000));
    entries.push_back({key, 1 + random.Uniform(1u << 20), random.OneIn(10) ? EntryKind::kDelete : EntryKind::kPut, ""});
    if (entries.back().kind == EntryKind::kPut) entries.back().value.assign(random.Uniform(200), static_cast<char>(random.Uniform(4)));
  }
  SortUnique(&entries);
  for (const Compression compression : {Compression::kNone, Compression::kLz4}) {
    TableSummary summary;
    const std::string bytes = BuildTable(TestBuildOptions(compression, 4096), entries, &summary);
    ASSERT_OK_AND_ASSIGN(const auto table, OpenTable(bytes, TestId(1), std::make_shared<BlockCache>(1 << 20)));
    ASSERT_NO_FATAL_FAILURE(CheckGets(*table, entries, {}));
    const auto cursor = table->NewCursor({}, /*read_ahead=*/true);
    size_t i = 0;
    for (cursor->SeekToFirst(); cursor->Valid(); cursor->Next()) ASSERT_NO_FATAL_FAILURE(ExpectAt(*cursor, entries, i++));
    ASSERT_OK(cursor->status());
    ASSERT_EQ(i, entries.size());
    ASSERT_OK(table->Verify(kTestSeed, {}));
    for (const TestEntry& entry : entries) ASSERT_TRUE(table->filter().MayContain(KeyHash(entry.key, kTestSeed)));
    EXPECT_EQ(summary.properties.entries, entries.size());
    EXPECT_NEAR(static_cast<double>(summary.properties.raw_data_bytes) / static_cast<double>(summary.properties.data_blocks), 4096, 300);
    EXPECT_EQ(table->ApproximateOffsetOf(""), 0u);
    EXPECT_EQ(table->ApproximateOffsetOf("zzz"), summary.properties.stored_data_bytes);
    const double middle =
        static_cast<double>(table->ApproximateOffsetOf("user5")) / static_cast<double>(summary.properties.stored_data_bytes);
    EXPECT_NEAR(middle, 0.45, 0.1);
    if (compression == Compression::kLz4) {
      EXPECT_LT(summary.properties.stored_data_bytes, summary.properties.raw_data_bytes / 2);
    }
  }
}

TEST(TableReaderTest, ASecondGetComesFromTheCacheAndSharesItsBlock) {
  const std::string bytes = BuildTable(TestBuildOptions(Compression::kLz4, 4096), {{"k", 5, EntryKind::kPut, "value"}});
  const auto file = std::make_shared<BytesFile>(bytes);
  ASSERT_OK_AND_ASSIGN(auto table, OpenTable(file, TestId(1), std::make_shared<BlockCache>(1 << 20)));
  BlockRef kept;
  std::string_view value;
  {
    const EpochGuard guard;
    TableLookup result;
    ASSERT_OK(table->Get({}, LookupKey("k", 9, 0), &result));
    EXPECT_TRUE(result.block_read);
    const uint64_t reads = file->reads.load();
    ASSERT_OK(table->Get({}, LookupKey("k", 9, 0), &result));
    EXPECT_FALSE(result.block_read);
    EXPECT_EQ(file->reads.load(), reads);
    kept = BlockRef::Share(result.cached);
    value = result.value;
    ASSERT_OK(table->Get({}, LookupKey("x", 9, 0), &result));
    EXPECT_EQ(result.state, LookupState::kAbsent);
    EXPECT_EQ(file->reads.load(), reads) << "absent beyond the table: no block is read";
  }
  table.reset();
  EpochSynchronize();
  EXPECT_EQ(value, "value");
}

TEST(TableReaderTest, ReadAheadReadsInPiecesPastTheCache) {
  std::vector<TestEntry> entries;
  for (int i = 0; i < 10000; ++i) entries.push_back({std::to_string(1000000 + i), 1, EntryKind::kPut, std::string(100, 'x')});
  const std::string bytes = BuildTable(TestBuildOptions(Compression::kNone, 4096), entries);
  const auto file = std::make_shared<BytesFile>(bytes);
  const auto cache = std::make_shared<BlockCache>(8 << 20);
  ASSERT_OK_AND_ASSIGN(const auto table, OpenTable(file, TestId(1), cache));
  const uint64_t opened = file->reads.load();
  file->largest_read = 0;
  const auto cursor = table->NewCursor({}, /*read_ahead=*/true);
  size_t n = 0;
  for (cursor->SeekToFirst(); cursor->Valid(); cursor->Next()) ++n;
  EXPECT_EQ(n, entries.size());
  EXPECT_LE(file->largest_read.load(), 256u << 10);
  EXPECT_LE(file->reads.load() - opened, bytes.size() / (250 << 10) + 1);
  EXPECT_EQ(cache->GetStats().blocks, 0u);
}

TEST(TableReaderTest, AReadErrorStopsTheCursorUntilTheNextSeek) {
  std::vector<TestEntry> entries;
  for (int i = 0; i < 100; ++i) entries.push_back({std::to_string(1000 + i), 1, EntryKind::kPut, "v"});
  const auto file = std::make_shared<BytesFile>(BuildTable(TestBuildOptions(Compression::kNone, 100), entries));
  ASSERT_OK_AND_ASSIGN(const auto table, OpenTable(file, TestId(1)));
  file->fail_begin = 300;
  file->fail_end = 301;
  const auto cursor = table->NewCursor({});
  size_t n = 0;
  for (cursor->SeekToFirst(); cursor->Valid(); cursor->Next()) ++n;
  EXPECT_CODE(cursor->status(), absl::StatusCode::kDataLoss);
  EXPECT_GT(n, 0u);
  EXPECT_LT(n, 100u);
  size_t back = 0;
  for (cursor->SeekToLast(); cursor->Valid(); cursor->Prev()) ++back;
  EXPECT_CODE(cursor->status(), absl::StatusCode::kDataLoss);
  EXPECT_LT(n + back, 100u);
  cursor->SeekToFirst();
  EXPECT_OK(cursor->status());
  file->fail_end = 0;
  ASSERT_NO_FATAL_FAILURE(CheckCursor(cursor.get(), entries));
}

TEST(TableReaderTest, AnotherIdOrSizeIsDataLoss) {
  const std::string bytes = BuildTable(TestBuildOptions(Compression::kNone, 4096), {{"k", 5, EntryKind::kPut, "value"}});
  EXPECT_CODE(OpenTable(bytes, TestId(2)), absl::StatusCode::kDataLoss);
  TableOpenOptions options{.table_id = TestId(1), .file_size = bytes.size() + 1, .cache = nullptr, .load_filter = true};
  EXPECT_CODE(TableReader::Open(std::make_shared<BytesFile>(bytes), options), absl::StatusCode::kDataLoss);
}

TEST(TableReaderTest, VerifyReportsProgressAndCanBeCancelled) {
  std::vector<TestEntry> entries;
  for (int i = 0; i < 100; ++i) entries.push_back({std::to_string(1000 + i), 1, EntryKind::kPut, "v"});
  const std::string bytes = BuildTable(TestBuildOptions(Compression::kNone, 100), entries);
  ASSERT_OK_AND_ASSIGN(const auto table, OpenTable(bytes));
  uint64_t last = 0;
  ASSERT_OK(table->Verify(kTestSeed, [&](uint64_t done, uint64_t total) {
    EXPECT_EQ(total, bytes.size());
    EXPECT_GE(done, last);
    last = done;
    return true;
  }));
  EXPECT_EQ(last, bytes.size());
  EXPECT_CODE(table->Verify(kTestSeed, [](uint64_t, uint64_t) { return false; }), absl::StatusCode::kCancelled);
  EXPECT_CODE(table->Verify(kTestSeed + 1, {}), absl::StatusCode::kDataLoss);
}

TEST(TableReaderTest, ResidentBytesCoverIndexAndFilter) {
  std::vector<TestEntry> entries;
  for (int i = 0; i < 10000; ++i) entries.push_back({std::to_string(100000 + i), 1, EntryKind::kPut, "v"});
  ASSERT_OK_AND_ASSIGN(const auto table, OpenTable(BuildTable(TestBuildOptions(Compression::kLz4, 4096), entries)));
  EXPECT_GT(table->ResidentBytes(), table->properties().filter_bytes + table->footer().index.size);
  EXPECT_LT(table->ResidentBytes(), table->properties().filter_bytes + table->footer().index.size + 10000);
}

}  // namespace
}  // namespace tamis::internal
