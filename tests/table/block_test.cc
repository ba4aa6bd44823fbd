#include "table/block.h"

#include <map>
#include <set>

#include "table/block_builder.h"
#include "tests/table/table_test_util.h"

namespace tamis::internal {
namespace {

std::string Build(const std::vector<TestEntry>& entries) {
  BlockBuilder builder;
  for (const TestEntry& entry : entries) builder.Add(entry.key, entry.sequence, entry.kind, entry.value);
  const uint64_t estimate = builder.EstimatedBytes();
  std::string block(builder.Finish());
  EXPECT_GE(estimate, block.size());
  EXPECT_LE(estimate, block.size() + 12 * entries.size());
  return block;
}

void CheckBlock(const std::vector<TestEntry>& entries) {
  const std::string bytes = Build(entries);
  ASSERT_OK_AND_ASSIGN(const Block block, Block::Parse(bytes));
  ASSERT_EQ(block.count(), entries.size());
  ASSERT_OK(block.VerifyOrder());
  std::string key;
  for (uint32_t i = 0; i < block.count(); ++i) {
    block.CopyKey(i, &key);
    ASSERT_EQ(key, entries[i].key);
    ASSERT_TRUE(block.KeyEquals(i, key));
    ASSERT_FALSE(block.KeyEquals(i, key + '\0'));
    if (!key.empty()) {
      ASSERT_FALSE(block.KeyEquals(i, key.substr(1)));
    }
  }
  BlockCursor cursor;
  cursor.Reset(block);
  CheckCursor(&cursor, entries);
}

TEST(BlockTest, KeysThatTieAreFoundInBothDirectionsAtAllSequences) {
  Random random(1);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const std::string prefix = round % 3 == 0 ? "" : TieKey(&random, "shared/", 20);
    ASSERT_NO_FATAL_FAILURE(CheckBlock(TieEntries(&random, 1 + random.Uniform(60), prefix, random.Uniform(14), 1 + random.Uniform(6))));
  }
}

TEST(BlockTest, OneKeyWithManyVersionsIsSearchedBySequence) {
  std::vector<TestEntry> entries;
  for (uint64_t sequence = 500; sequence > 0; sequence -= 2)
    entries.push_back({"key", sequence, EntryKind::kPut, std::to_string(sequence)});
  ASSERT_NO_FATAL_FAILURE(CheckBlock(entries));
}

TEST(BlockTest, TheEmptyKeyIsOrdinary) {
  ASSERT_NO_FATAL_FAILURE(CheckBlock({{"", 7, EntryKind::kPut, "v"}}));
  ASSERT_NO_FATAL_FAILURE(
      CheckBlock({{"", 7, EntryKind::kDelete, ""}, {"", 3, EntryKind::kPut, "v"}, {std::string(1, '\0'), 5, EntryKind::kPut, ""}}));
}

TEST(BlockTest, ANullKeyViewIsTheEmptyKey) {
  const std::string bytes = Build({{"", 7, EntryKind::kPut, "v"}, {"a", 7, EntryKind::kPut, "v"}});
  ASSERT_OK_AND_ASSIGN(const Block block, Block::Parse(bytes));
  EXPECT_EQ(block.LowerBound(std::string_view(), kMaxSequence), 0u);
  EXPECT_TRUE(block.KeyEquals(0, std::string_view()));
}

TEST(BlockTest, TheLongestKeysAndWideOffsetsRoundTrip) {
  std::vector<TestEntry> entries;
  for (char c = 'a'; c < 'e'; ++c) {
    entries.push_back({std::string(kMaxKeyBytes - 1, 'k') + c, kMaxSequence, EntryKind::kPut, std::string(70000, c)});
  }
  entries.push_back({std::string(kMaxKeyBytes - 1, 'l'), 1, EntryKind::kPut, ""});
  SortUnique(&entries);
  const std::string bytes = Build(entries);
  ASSERT_OK_AND_ASSIGN(const Block block, Block::Parse(bytes));
  for (uint32_t i = 0; i < block.count(); ++i) {
    EXPECT_EQ(block.LowerBound(entries[i].key, entries[i].sequence), i);
    EXPECT_EQ(block.At(i).value, entries[i].value);
  }
  BlockCursor cursor;
  cursor.Reset(block);
  size_t i = 0;
  for (cursor.SeekToFirst(); cursor.Valid(); cursor.Next()) ASSERT_NO_FATAL_FAILURE(ExpectAt(cursor, entries, i++));
  EXPECT_EQ(i, entries.size());
}

TEST(BlockTest, ACursorMovesFromBlockToBlock) {
  const std::vector<TestEntry> first = {{"long/shared/prefix/1", 4, EntryKind::kPut, "a"},
                                        {"long/shared/prefix/2", 4, EntryKind::kPut, "b"}};
  const std::vector<TestEntry> second = {{"x", 9, EntryKind::kPut, "c"}, {"y" + std::string(100, 'y'), 9, EntryKind::kPut, "d"}};
  const std::string first_bytes = Build(first);
  const std::string second_bytes = Build(second);
  BlockCursor cursor;
  for (int round = 0; round < 3; ++round) {
    cursor.Reset(Block::Parse(first_bytes).value());
    ASSERT_NO_FATAL_FAILURE(CheckCursor(&cursor, first));
    cursor.Reset(Block::Parse(second_bytes).value());
    ASSERT_NO_FATAL_FAILURE(CheckCursor(&cursor, second));
  }
  cursor.Clear();
  cursor.SeekToFirst();
  EXPECT_FALSE(cursor.Valid());
  cursor.SeekToLast();
  EXPECT_FALSE(cursor.Valid());
  cursor.Seek("a", 1);
  EXPECT_FALSE(cursor.Valid());
  cursor.SeekForPrev("a", 1);
  EXPECT_FALSE(cursor.Valid());
}

TEST(BlockTest, AReservedKindIsUnimplementedWithItsNumber) {
  std::string bytes = Build({{"k", 1, EntryKind::kPut, "v"}});
  bytes[1] = 3;  // behind the shared prefix "k"
  const absl::Status status = Block::Parse(bytes).status();
  EXPECT_CODE(status, absl::StatusCode::kUnimplemented);
  EXPECT_NE(status.ToString().find("kind 3"), std::string::npos) << status;
}

// Parse is what stands between hostile bytes and the unchecked decoding: whatever it accepts can be searched and walked (under ASan).
TEST(BlockTest, WhateverParseAcceptsIsSafe) {
  Random random(2);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = Build(TieEntries(&random, 1 + random.Uniform(6), "p", 12, 300));
    for (uint64_t n = 1 + random.Uniform(3); n > 0; --n) {
      const size_t at =
          random.OneIn(2) ? bytes.size() - 1 - random.Uniform(std::min<size_t>(30, bytes.size())) : random.Uniform(bytes.size());
      bytes[at] = random.OneIn(2) ? static_cast<char>(random.Next()) : static_cast<char>(bytes[at] ^ (1 << random.Uniform(8)));
    }
    if (random.OneIn(8)) bytes.resize(random.Uniform(bytes.size()));
    const std::unique_ptr<char[]> exact(new char[bytes.size()]);  // no room behind it
    std::memcpy(exact.get(), bytes.data(), bytes.size());
    const absl::StatusOr<Block> block = Block::Parse({exact.get(), bytes.size()});
    if (!block.ok()) continue;
    ++accepted;
    BlockCursor cursor;
    cursor.Reset(*block);
    uint32_t seen = 0;
    for (cursor.SeekToFirst(); cursor.Valid(); cursor.Next()) {
      ++seen;
      ASSERT_LE(cursor.key().size() + cursor.value().size(), bytes.size() + block->bytes().size());
      const std::string key(cursor.key());
      ASSERT_LE(block->LowerBound(key, cursor.sequence()), block->count());
    }
    ASSERT_EQ(seen, block->count());
    (void)block->VerifyOrder().ok();
  }
  EXPECT_GT(accepted, 1000);
}

TEST(BlockTest, SizesAndCountsThatDoNotFitAreRefused) {
  const std::string good = Build({{"k1", 1, EntryKind::kPut, "v"}, {"k2", 1, EntryKind::kPut, "v"}});
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(Block::Parse(good.substr(0, length)).ok());
  }
  for (const uint32_t count : {0u, 1u, 3u, 0x7fffffffu, 0xffffffffu}) {
    std::string bytes = good;
    StoreLittle(bytes.data() + bytes.size() - 12, count);
    EXPECT_CODE(Block::Parse(bytes), absl::StatusCode::kDataLoss);
  }
  for (const uint32_t end : {0u, 1u, 0x7fffffffu, 0xfffffff0u}) {
    std::string bytes = good;
    StoreLittle(bytes.data() + bytes.size() - 8, end);
    EXPECT_CODE(Block::Parse(bytes), absl::StatusCode::kDataLoss);
  }
  std::string flags = good;
  flags[flags.size() - 2] = 2;
  EXPECT_CODE(Block::Parse(flags), absl::StatusCode::kUnimplemented);
}

TEST(BlockTest, VerifyOrderFindsSwappedEntries) {
  const std::string bytes = Build({{"b", 1, EntryKind::kPut, "v"}, {"a", 1, EntryKind::kPut, "v"}});
  ASSERT_OK_AND_ASSIGN(const Block block, Block::Parse(bytes));
  EXPECT_CODE(block.VerifyOrder(), absl::StatusCode::kDataLoss);
}

TEST(ShortestSeparatorTest, LiesBetweenItsNeighboursAndIsTheShortest) {
  EXPECT_EQ(ShortestSeparator("abc1", "abd9"), "abd");
  EXPECT_EQ(ShortestSeparator("abc", "abcd"), "abc");
  EXPECT_EQ(ShortestSeparator("", "a"), "");
  EXPECT_EQ(ShortestSeparator("a123", "z"), "b");
  EXPECT_EQ(ShortestSeparator("a\xff\xff"
                              "5xx",
                              "b"),
            "a\xff\xff"
            "6");
  // All strings of up to four bytes of a small alphabet, against the definition.
  std::vector<std::string> all = {""};
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].size() == 4) break;
    const std::string stem = all[i];
    for (const char c : {'\0', '\1', '\xfe', '\xff'}) all.push_back(stem + c);
  }
  std::sort(all.begin(), all.end());
  Random random(3);
  for (int round = 0; round < 40000; ++round) {
    const size_t a = random.Uniform(all.size() - 1);
    const size_t b = std::min(all.size() - 1, a + 1 + random.Uniform(random.OneIn(2) ? 5 : all.size()));
    const std::string k = ShortestSeparator(all[a], all[b]);
    ASSERT_LE(all[a], k);
    ASSERT_LT(k, all[b]);
    ASSERT_LE(k.size(), all[a].size());
    for (size_t i = a; i < b; ++i) ASSERT_GE(all[i].size(), k.size()) << "a shorter one is in the set";
  }
}

}  // namespace
}  // namespace tamis::internal
