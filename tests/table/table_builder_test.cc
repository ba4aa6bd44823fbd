#include "table/table_builder.h"

#include "tests/table/table_test_util.h"

namespace tamis::internal {
namespace {

TEST(TableBuilderTest, EntriesOutOfOrderAreInternalAndTheErrorSticks) {
  StringFile file;
  TableBuilder builder(TestBuildOptions(Compression::kNone, 4096), &file);
  ASSERT_OK(builder.Add("b", 5, EntryKind::kPut, "v"));
  ASSERT_OK(builder.Add("b", 4, EntryKind::kPut, "v"));
  EXPECT_CODE(builder.Add("b", 4, EntryKind::kPut, "v"), absl::StatusCode::kInternal);
  EXPECT_CODE(builder.Add("c", 4, EntryKind::kPut, "v"), absl::StatusCode::kInternal);
  EXPECT_CODE(builder.Finish(), absl::StatusCode::kInternal);
}

TEST(TableBuilderTest, WhatTheFormatCannotHoldIsRefused) {
  const auto add = [](std::string_view key, SequenceNumber sequence, EntryKind kind) {
    StringFile file;
    TableBuilder builder(TestBuildOptions(Compression::kNone, 4096), &file);
    return builder.Add(key, sequence, kind, "");
  };
  EXPECT_CODE(add(std::string(kMaxKeyBytes + 1, 'k'), 1, EntryKind::kPut), absl::StatusCode::kInvalidArgument);
  EXPECT_CODE(add("k", 0, EntryKind::kPut), absl::StatusCode::kInternal);
  EXPECT_CODE(add("k", kMaxSequence + 1, EntryKind::kPut), absl::StatusCode::kInternal);
  EXPECT_CODE(add("k", 1, EntryKind::kMerge), absl::StatusCode::kInternal);
  StringFile file;
  TableBuilder empty(TestBuildOptions(Compression::kNone, 4096), &file);
  EXPECT_CODE(empty.Finish(), absl::StatusCode::kInternal);
}

TEST(TableBuilderTest, AFailedWriteIsReturnedWhereverItHappens) {
  std::vector<TestEntry> entries;
  for (int i = 0; i < 40; ++i) entries.push_back({std::to_string(100 + i), 1, EntryKind::kPut, "v"});
  const size_t size = BuildTable(TestBuildOptions(Compression::kNone, 100), entries).size();
  for (uint64_t limit = 0; limit < size; ++limit) {
    StringFile file;
    file.fail_at = limit;
    TableBuilder builder(TestBuildOptions(Compression::kNone, 100), &file);
    for (const TestEntry& entry : entries) (void)builder.Add(entry.key, entry.sequence, entry.kind, entry.value).ok();
    EXPECT_CODE(builder.Finish(), absl::StatusCode::kResourceExhausted);
  }
}

TEST(TableBuilderTest, BitsPerKeyCountAtFinish) {
  const auto filter_bytes = [](double first, double last) {
    StringFile file;
    TableBuildOptions options = TestBuildOptions(Compression::kNone, 4096);
    options.bits_per_key = first;
    TableBuilder builder(options, &file);
    for (int i = 0; i < 4096; ++i) EXPECT_OK(builder.Add(std::to_string(10000 + i), 1, EntryKind::kPut, "v"));
    builder.SetBitsPerKey(last);
    const absl::StatusOr<TableSummary> summary = builder.Finish();
    EXPECT_OK(summary);
    EXPECT_EQ(summary->properties.filter_bits_target, last);
    const auto table = OpenTable(file.contents);
    EXPECT_OK(table);
    EXPECT_OK((*table)->Verify(kTestSeed, {}));
    EXPECT_EQ((*table)->filter().has_filter(), last != 0);
    return summary->properties.filter_bytes;
  };
  EXPECT_EQ(filter_bytes(10, 0), 0u);
  EXPECT_EQ(filter_bytes(0, 8), 64u + 4096);
  EXPECT_EQ(filter_bytes(10, 16), 64u + 2 * 4096);
}

TEST(TableBuilderTest, ImpossibleBitsPerKeyAreAnError) {
  for (const double bits : {1.0, 25.0, -1.0}) {
    StringFile file;
    TableBuilder builder(TestBuildOptions(Compression::kNone, 4096), &file);
    ASSERT_OK(builder.Add("k", 1, EntryKind::kPut, "v"));
    builder.SetBitsPerKey(bits);
    EXPECT_CODE(builder.Finish(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(TableBuilderTest, AnEstimateIsNearTheFileAndWritebackIsAskedFor) {
  StringFile file;
  TableBuilder builder(TestBuildOptions(Compression::kNone, 4096), &file);
  const std::string value(1000, 'v');
  for (int i = 0; i < 20000; ++i) ASSERT_OK(builder.Add(std::to_string(100000 + i), 1, EntryKind::kPut, value));
  const uint64_t estimate = builder.EstimatedFileBytes();
  ASSERT_OK(builder.Finish());
  EXPECT_NEAR(static_cast<double>(estimate), static_cast<double>(file.contents.size()), 0.005 * static_cast<double>(estimate));
  EXPECT_EQ(file.writebacks, 2);
}

TEST(TableBuilderTest, AHugeValueGetsABlockOfItsOwn) {
  std::vector<TestEntry> entries;
  for (int i = 0; i < 50; ++i) entries.push_back({std::to_string(100 + i), 1, EntryKind::kPut, std::string(i == 25 ? 1 << 20 : 10, 'v')});
  const std::string bytes = BuildTable(TestBuildOptions(Compression::kNone, 4096), entries);
  ASSERT_OK_AND_ASSIGN(const auto table, OpenTable(bytes));
  EXPECT_EQ(table->properties().data_blocks, 3u);
  const auto cursor = table->NewCursor({}, true);
  ASSERT_NO_FATAL_FAILURE(CheckCursor(cursor.get(), entries));
}

}  // namespace
}  // namespace tamis::internal
