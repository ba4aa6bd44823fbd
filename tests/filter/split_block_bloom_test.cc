#include "filter/split_block_bloom.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tamis/filter_merge.h"
#include "tamis/filter_parquet.h"
#include "tests/filter/filter_test_util.h"
#include "tests/support/status_matchers.h"

namespace tamis {
namespace {

using filter_testing::Copy;
using filter_testing::Hashes;
using filter_testing::Mix;
using filter_testing::Reseal;

constexpr const char* kParquetKeys[] = {"hello", "parquet", "bloom", "filter"};
constexpr FilterExpectations kParquet = {.hash_id = kFilterHashXxh64};

std::string ParquetBits() {  // 32 blocks, as data/bloom_filter.xxhash.bin of apache/parquet-testing after its header
  std::string bits(1024, '\0');
  for (const char* key : kParquetKeys) {
    const uint64_t hash = SplitBlockKeyHash(key);
    internal::SplitBlockInsert(reinterpret_cast<unsigned char*>(bits.data()), 32, &hash, 1);
  }
  return bits;
}

TEST(SplitBlockBloom, BitsAreThoseOfTheParquetTestFile) {
  const std::string bits = ParquetBits();
  EXPECT_EQ(XXH64(bits.data(), bits.size(), 0), 0xb56ca192578a4053ULL);
  EXPECT_EQ(XXH3_64bits(bits.data(), bits.size()), 0xb92a1c7df53d7354ULL);
  EXPECT_EQ(SplitBlockKeyHash("hello"), 0x26c7827d889f6da3ULL);
  constexpr uint64_t kBlocks[] = {4, 7, 10, 5};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(internal::SplitBlockIndex(SplitBlockKeyHash(kParquetKeys[i]), 32), kBlocks[i]);
}

TEST(SplitBlockBloom, ForeignBitsGoInAndOutUnchanged) {
  const std::string bits = ParquetBits();
  ASSERT_OK_AND_ASSIGN(const FilterBytes bytes, SplitBlockFromBits(bits));
  ASSERT_OK_AND_ASSIGN(const FilterView view, FilterView::Open(bytes.view(), kParquet));
  for (const char* key : kParquetKeys) EXPECT_TRUE(view.MayContain(SplitBlockKeyHash(key)));
  EXPECT_FALSE(view.MayContain(SplitBlockKeyHash("absent")));
  ASSERT_OK_AND_ASSIGN(const std::string_view out, SplitBlockBits(view));
  EXPECT_EQ(out, bits);
  // Bits with unknown keys are not taken for an empty filter.
  EXPECT_EQ(view.Info().keys, kFilterKeysUnknown);
  EXPECT_EQ(view.Info().predicted_fpr, 1);
  EXPECT_EQ(view.Info().bits_per_key, 0);
  ASSERT_OK_AND_ASSIGN(const FilterKeyEstimate estimate, EstimateFilterKeys(view));
  EXPECT_NEAR(estimate.keys, 4, 5 * estimate.standard_error + .1);
  ASSERT_OK_AND_ASSIGN(const FilterBytes counted, SplitBlockFromBits(bits, 4));
  ASSERT_OK_AND_ASSIGN(const FilterView counted_view, FilterView::Open(counted.view(), kParquet));
  EXPECT_EQ(counted_view.Info().bits_per_key, 2048);
}

TEST(SplitBlockBloom, BuilderOfHashId2MakesTheSameBits) {
  ASSERT_OK_AND_ASSIGN(auto builder, FilterBuilder::Create({.kind = FilterKind::kSplitBlockBloom, .hash_id = kFilterHashXxh64}));
  for (const char* key : kParquetKeys) builder->AddHash(SplitBlockKeyHash(key));
  ASSERT_OK_AND_ASSIGN(const FilterBytes bytes, builder->Finish());
  EXPECT_CODE(FilterView::Open(bytes.view(), {}), absl::StatusCode::kFailedPrecondition);  // would be asked with another hash
  ASSERT_OK_AND_ASSIGN(const FilterView view, FilterView::Open(bytes.view(), kParquet));
  ASSERT_OK_AND_ASSIGN(const std::string_view bits, SplitBlockBits(view));
  ASSERT_EQ(bits.size(), 32U);
  std::string expected(32, '\0');
  for (const char* key : kParquetKeys) {
    const uint64_t hash = SplitBlockKeyHash(key);
    internal::SplitBlockInsert(reinterpret_cast<unsigned char*>(expected.data()), 1, &hash, 1);
  }
  EXPECT_EQ(bits, expected);
}

TEST(SplitBlockBloom, OnlyParquetsOwnBitsAreExported) {
  const FilterBytes tables = filter_testing::Build(Hashes(100), 10, {.kind = FilterKind::kSplitBlockBloom});
  EXPECT_CODE(SplitBlockBits(filter_testing::Open(tables)), absl::StatusCode::kFailedPrecondition);
  const FilterBytes blocked = filter_testing::Build(Hashes(100), 10);
  EXPECT_CODE(SplitBlockBits(filter_testing::Open(blocked)), absl::StatusCode::kInvalidArgument);
  EXPECT_CODE(SplitBlockBits(FilterView()), absl::StatusCode::kInvalidArgument);
}

TEST(SplitBlockBloom, OddBitsetsAreRefusedAndOddBlocksArePadded) {
  for (size_t size : {0, 1, 31, 33, 63, 1040}) {
    EXPECT_CODE(SplitBlockFromBits(std::string(size, '\1')), absl::StatusCode::kInvalidArgument);
  }
  for (size_t blocks : {1, 2, 3, 5}) {
    ASSERT_OK_AND_ASSIGN(FilterBytes bytes, SplitBlockFromBits(std::string(32 * blocks, '\xff')));
    EXPECT_EQ(bytes.size(), 64 + (blocks + 1) / 2 * 64);
    ASSERT_OK_AND_ASSIGN(const FilterView view, FilterView::Open(bytes.view(), kParquet));
    EXPECT_EQ(view.MeasuredFill(), 1);
    EXPECT_EQ(SplitBlockBits(view)->size(), 32 * blocks);
    if (blocks % 2 == 0) continue;
    bytes.data()[bytes.size() - 1] = 1;
    Reseal(bytes);
    EXPECT_CODE(FilterView::Open(bytes.view(), kParquet), absl::StatusCode::kInvalidArgument);
  }
}

TEST(SplitBlockBloom, BlockIndexIsTheHighHalfOfA64BitProduct) {
  using internal::SplitBlockIndex;
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  for (uint64_t blocks : {uint64_t{1}, uint64_t{3}, uint64_t{1} << 20, (uint64_t{1} << 31) - 1, internal::kMaxSplitBlocks}) {
    EXPECT_EQ(SplitBlockIndex(0, blocks), 0U);
    EXPECT_EQ(SplitBlockIndex(kMax, blocks), blocks - 1);
    EXPECT_EQ(SplitBlockIndex(uint64_t{1} << 63, blocks), blocks / 2);
    for (uint64_t i = 0; i < 1000; ++i) {
      // As with signed 64-bit numbers.
      const int64_t product = static_cast<int64_t>(Mix(i) >> 32) * static_cast<int64_t>(blocks);
      ASSERT_EQ(SplitBlockIndex(Mix(i), blocks), static_cast<uint64_t>(product >> 32));
    }
  }
  EXPECT_EQ(internal::SplitBlocksFor(uint64_t{1} << 35, 128), uint64_t{1} << 31);
  EXPECT_EQ(internal::SplitBlocksFor(kMax, 192), uint64_t{384} << 52);
  EXPECT_OK(fpr_model::SizeBytes(FilterKind::kSplitBlockBloom, uint64_t{1} << 35, 16));
  EXPECT_CODE(fpr_model::SizeBytes(FilterKind::kSplitBlockBloom, (uint64_t{1} << 35) + 1, 16), absl::StatusCode::kInvalidArgument);
}

TEST(SplitBlockBloom, EachProbeIsNeeded) {
  for (uint64_t i = 0; i < 200; ++i) {
    const uint64_t hash = Mix(i);
    alignas(32) unsigned char block[32] = {};
    internal::SplitBlockInsert(block, 1, &hash, 1);
    ASSERT_TRUE(internal::SplitBlockMayContain(block, hash));
    for (uint32_t bit = 0; bit < 256; ++bit) {
      const auto mask = static_cast<unsigned char>(1U << (bit & 7));
      if ((block[bit >> 3] & mask) == 0) continue;
      block[bit >> 3] ^= mask;
      ASSERT_FALSE(internal::SplitBlockMayContain(block, hash));
      block[bit >> 3] ^= mask;
    }
  }
}

}  // namespace
}  // namespace tamis
