#include "filter/ribbon_builder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "tests/filter/filter_test_util.h"
#include "tests/support/status_matchers.h"

namespace tamis {
namespace {

using filter_testing::Build;
using filter_testing::CountMissing;
using filter_testing::Hashes;
using filter_testing::Mix;
using filter_testing::Open;
using internal::RibbonHash;
using internal::RibbonShape;
using internal::RibbonShapeFor;

constexpr FilterBuildOptions kRibbonOptions = {.kind = FilterKind::kRibbon};

TEST(RibbonBuilder, FewerThan512KeysAndNoSolutionFallBackToBlocked) {
  for (uint64_t n : {0, 1, 300, 511}) EXPECT_EQ(Open(Build(Hashes(n), 1, kRibbonOptions)).kind(), FilterKind::kBlockedBloom) << n;
  EXPECT_EQ(Open(Build(Hashes(512), 1, kRibbonOptions)).kind(), FilterKind::kRibbon);
  // With no attempt allowed there is no solution. What comes instead is byte for byte what the blocked builder makes.
  const std::vector<uint64_t> hashes = Hashes(100000);
  internal::RibbonBuilder builder({.kind = FilterKind::kRibbon, .seed = 3}, 80, 0);
  for (uint64_t hash : hashes) builder.AddHash(hash);
  ASSERT_OK_AND_ASSIGN(const FilterBytes instead, builder.Finish());
  const FilterView view = Open(instead);
  EXPECT_EQ(view.kind(), FilterKind::kBlockedBloom);
  EXPECT_EQ(view.seed(), 3U);
  EXPECT_EQ(CountMissing(view, hashes), 0U);
  EXPECT_EQ(builder.keys(), 0U);
  // Below two bits the blocked filter has two.
  EXPECT_EQ(Open(Build(Hashes(511), 1, kRibbonOptions)).lines(), 2U);
}

TEST(RibbonBuilder, RangeBeginsAtOneBit) {
  for (double bits : {0.0, .999, 24.01, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_CODE(FilterBuilder::Create({.kind = FilterKind::kRibbon, .bits_per_key = bits}), absl::StatusCode::kInvalidArgument);
  }
  ASSERT_OK_AND_ASSIGN(auto builder, FilterBuilder::Create({.kind = FilterKind::kRibbon, .bits_per_key = 1}));
  EXPECT_CODE(builder->SetBitsPerKey(.9), absl::StatusCode::kInvalidArgument);
  EXPECT_OK(builder->SetBitsPerKey(24));
}

TEST(RibbonBuilder, BitsAreHonouredInEighths) {
  double last = 1;
  for (double bits = 1; bits <= 24; bits += .125) {
    const FilterBytes bytes = Build(Hashes(20000), bits, kRibbonOptions);
    const FilterInfo info = Open(bytes).Info();
    ASSERT_EQ(info.kind, FilterKind::kRibbon);
    EXPECT_NEAR(static_cast<double>(info.lines) * 512 / 20000, bits, 512.0 / 20000);
    EXPECT_LT(info.predicted_fpr, last) << bits;
    // Within 3 % of the slots (rounding of a small filter) and the attempt byte of the model at 1.025 slots a key.
    const double model = fpr_model::FalsePositiveRate(FilterKind::kRibbon, bits);
    EXPECT_NEAR(std::log2(info.predicted_fpr / model), 0, .03 * bits);
    last = info.predicted_fpr;
    ASSERT_EQ(CountMissing(Open(bytes), Hashes(20000)), 0U);
  }
}

TEST(RibbonBuilder, ShapesFillTheirLinesAndAreThoseOfTheFormat) {
  for (uint64_t keys : {uint64_t{512}, uint64_t{1000}, uint64_t{65000}, uint64_t{1000003}, uint64_t{1} << 33, uint64_t{1} << 38}) {
    for (uint32_t eighths : {8U, 9U, 80U, 131U, 192U}) {
      const auto shape = RibbonShapeFor(keys, eighths);
      ASSERT_TRUE(shape.has_value()) << keys << ' ' << eighths;
      EXPECT_TRUE(internal::IsPossibleRibbonShape(*shape));
      EXPECT_EQ((shape->segments() + internal::RibbonAttemptSegments(shape->regions())) / 4, internal::FilterLinesFor(keys, eighths));
      const double slots = static_cast<double>(shape->slots()) / static_cast<double>(keys);
      EXPECT_GT(slots, 1.0249);
      EXPECT_LT(slots, keys >= 1000000 ? 1.0275 : keys >= 10000 ? 1.035 : 1.26) << keys;
      EXPECT_EQ(shape->region_slots() * shape->regions(), shape->slots() - 128);
      EXPECT_LE(shape->region_blocks, 512U);
    }
  }
  EXPECT_FALSE(RibbonShapeFor(std::numeric_limits<uint64_t>::max(), 80).has_value());
  EXPECT_FALSE(RibbonShapeFor(uint64_t{1} << 44, 192).has_value());
}

TEST(RibbonBuilder, StartsAndSegmentsAreRightBeyond32Bits) {
  const auto shape = RibbonShapeFor(uint64_t{1} << 37, 84);  // 1.4e11 slots, 180 GB, not allocated
  ASSERT_TRUE(shape.has_value());
  ASSERT_GT(shape->segments() * 16, uint64_t{1} << 37);
  uint64_t above_half = 0;
  for (uint64_t i = 0; i < 10000; ++i) {
    const RibbonHash row(Mix(i), shape->regions());
    ASSERT_LT(row.region, shape->regions());
    for (uint32_t attempt : {0U, 1U, 255U}) {
      const uint64_t start = row.Start(shape->region_slots(), attempt);
      ASSERT_EQ(start / shape->region_slots(), row.region);
      ASSERT_LT(start, shape->slots() - 128);
      const uint64_t block = start / 128;
      ASSERT_EQ(shape->FirstSegment(block) + shape->ColumnsOf(block), shape->FirstSegment(block + 1));
      ASSERT_LE(shape->FirstSegment(block + 1) + shape->ColumnsOf(block), shape->segments());
    }
    above_half += row.Start(shape->region_slots(), 0) > shape->slots() / 2 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(above_half), 5000, 250);
  EXPECT_EQ(shape->FirstSegment(shape->blocks), shape->segments());
}

TEST(RibbonBuilder, AttemptsMoveStartsInsideTheRegionEvenly) {
  const auto shape = RibbonShapeFor(1000000, 80);
  ASSERT_TRUE(shape.has_value());
  for (uint32_t attempt : {1U, 2U, 128U, 255U}) {
    uint64_t lower = 0;
    uint64_t same = 0;
    for (uint64_t i = 0; i < 20000; ++i) {
      const RibbonHash row(Mix(i), shape->regions());
      const uint64_t start = row.Start(shape->region_slots(), attempt);
      lower += start % shape->region_slots() < shape->region_slots() / 2 ? 1 : 0;
      same += start == row.Start(shape->region_slots(), attempt - 1) ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(lower), 10000, 5 * 71);
    EXPECT_LT(same, 10U);
  }
}

TEST(RibbonBuilder, FailedAttemptsAreTakenBackAndLaterOnesSucceed) {
  // A filter of several regions of which some did not succeed at once: the attempt bytes are at the end of the segments.
  const std::vector<uint64_t> hashes = Hashes(600000);
  const FilterBytes bytes = Build(hashes, 7, kRibbonOptions);
  const FilterView view = Open(bytes);
  ASSERT_EQ(view.kind(), FilterKind::kRibbon);
  const auto shape = RibbonShapeFor(600000, 56);
  ASSERT_TRUE(shape.has_value());
  std::multiset<int> attempts;
  for (uint64_t r = 0; r < shape->regions(); ++r) attempts.insert(shape->attempts(view.base())[r]);
  EXPECT_EQ(attempts.size(), 10U);
  EXPECT_GT(*attempts.rbegin(), 0) << "no region needed a second attempt: choose other keys";
  EXPECT_EQ(CountMissing(view, hashes), 0U);
}

TEST(RibbonBuilder, OrderOfKeysChangesNoAnswerAndManyDuplicatesAreConsistent) {
  std::vector<uint64_t> hashes = Hashes(5000);
  std::vector<uint64_t> many;
  for (int round = 0; round < 20; ++round) many.insert(many.end(), hashes.begin(), hashes.end());
  const FilterBytes bytes = Build(many, 3, kRibbonOptions);
  EXPECT_EQ(Open(bytes).kind(), FilterKind::kRibbon);
  EXPECT_EQ(CountMissing(Open(bytes), hashes), 0U);
}

TEST(RibbonBuilder, EachColumnIsNeeded) {
  // With a key's whole column inverted below its coefficients, it is certainly not there: no column is skipped.
  FilterBytes bytes = Build(Hashes(2000), 9, kRibbonOptions);
  const FilterView view = Open(bytes);
  const FilterInfo info = view.Info();
  const auto shape = RibbonShapeFor(2000, 72);
  ASSERT_TRUE(shape.has_value());
  auto* base = reinterpret_cast<unsigned char*>(bytes.data()) + 64;
  for (uint64_t hash : Hashes(100)) {
    const RibbonHash row(hash, shape->regions());
    const uint64_t start = row.Start(shape->region_slots(), shape->attempts(base)[row.region]);
    const uint64_t block = start / 128;
    for (uint32_t c = 0; c < shape->ColumnsOf(block); ++c) {
      unsigned char& byte = base[(shape->FirstSegment(block) + c) * 16 + start % 128 / 8];
      byte ^= static_cast<unsigned char>(1U << (start % 8));  // the first coefficient is always one
      ASSERT_FALSE(view.MayContain(hash)) << c << " of " << info.probes;
      byte ^= static_cast<unsigned char>(1U << (start % 8));
    }
    ASSERT_TRUE(view.MayContain(hash));
  }
}

TEST(RibbonBuilderLarge, SucceedsAtEverySize) {
  for (uint64_t n = 512; n <= 3000000; n = n * 5 / 3) {
    const FilterBytes bytes = Build(Hashes(n, n << 24), 2, kRibbonOptions);
    ASSERT_EQ(Open(bytes).kind(), FilterKind::kRibbon) << n;
    ASSERT_EQ(CountMissing(Open(bytes), Hashes(n, n << 24)), 0U) << n;
  }
}

}  // namespace
}  // namespace tamis
