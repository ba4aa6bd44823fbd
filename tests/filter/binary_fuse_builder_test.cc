#include "filter/binary_fuse_builder.h"

#include <gtest/gtest.h>

#include <algorithm>
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
using filter_testing::kSmall;
using filter_testing::Mix;
using filter_testing::Open;
using internal::FuseMixed;
using internal::FuseProbe;
using internal::FuseShape;
using internal::FuseShapeFor;
using internal::FuseShapeWithin;

constexpr FilterBuildOptions kFuseOptions = {.kind = FilterKind::kBinaryFuse};

TEST(BinaryFuseBuilder, TooFewKeysOrBitsAndNoSuccessFallBackToBlocked) {
  for (uint64_t n : {0, 1, 300, 511}) EXPECT_EQ(Open(Build(Hashes(n), 24, kFuseOptions)).kind(), FilterKind::kBlockedBloom) << n;
  EXPECT_EQ(Open(Build(Hashes(512), 24, kFuseOptions)).kind(), FilterKind::kBinaryFuse);
  // With no attempt allowed there is no success. What comes instead is byte for byte what the blocked builder makes.
  const std::vector<uint64_t> hashes = Hashes(100000);
  internal::BinaryFuseBuilder builder({.kind = FilterKind::kBinaryFuse, .seed = 3}, 80, 0);
  for (uint64_t hash : hashes) builder.AddHash(hash);
  ASSERT_OK_AND_ASSIGN(const FilterBytes instead, builder.Finish());
  EXPECT_EQ(instead.view(), Build(hashes, 10, {.seed = 3}).view());
  EXPECT_EQ(builder.keys(), 0U);
  // With bits for no fingerprint neither.
  EXPECT_EQ(Build(hashes, 9, kFuseOptions).view(), Build(hashes, 9).view());
}

// At most one attempt in four fails, at any size: else 64 of them in a row might.
TEST(BinaryFuseBuilder, NoNumberOfKeysIsHardToBuild) {
  for (double n = 512; n < (kSmall ? 20'000 : 300'000); n *= 1.03) {
    const auto keys = static_cast<uint64_t>(n);
    FuseShape shape = *FuseShapeFor(keys, 8);
    const std::vector<uint64_t> hashes = Hashes(keys, keys << 20);
    internal::FusePeeling peeling(shape.slots, keys);
    int peeled = 0;
    for (shape.attempt = 0; shape.attempt < 16; ++shape.attempt) peeled += peeling.Peel(shape, hashes.data(), keys) ? 1 : 0;
    EXPECT_GE(peeled, 12) << keys << " keys";
  }
}

TEST(BinaryFuseBuilder, TakesTheWidestFingerprintsThatFitAndNoMoreMemoryThanTheyNeed) {
  const std::vector<uint64_t> hashes = Hashes(200000);
  uint32_t last = 0;
  for (double bits = 2; bits <= 24; bits += .125) {
    const auto shape = FuseShapeWithin(hashes.size(), static_cast<uint32_t>(bits * 8));
    const uint32_t width = shape ? shape->width : 0;
    EXPECT_GE(width, last) << bits;
    if (width != last || bits == 24) {
      const FilterBytes bytes = Build(hashes, bits, kFuseOptions);
      const FilterInfo info = Open(bytes).Info();
      EXPECT_EQ(info.kind, FilterKind::kBinaryFuse);
      EXPECT_EQ(info.probes, width);
      EXPECT_EQ(info.predicted_fpr, width == 8 ? 1.0 / 256 : 1.0 / 65536);
      EXPECT_LE(info.bits_per_key, bits);
      EXPECT_NEAR(info.bits_per_key, width * 1.167, width * .01);
      EXPECT_EQ(CountMissing(Open(bytes), hashes), 0U);
    }
    last = width;
  }
  EXPECT_EQ(last, 16U);
}

TEST(BinaryFuseBuilder, ShapesAreThoseOfTheFormat) {
  for (uint64_t keys = 1; keys < uint64_t{1} << 44; keys += 1 + keys / 7) {
    for (uint32_t width : internal::kFuseWidths) {
      const auto shape = FuseShapeFor(keys, width);
      ASSERT_TRUE(shape.has_value()) << keys;
      EXPECT_TRUE(internal::IsPossibleFuseShape(*shape));
      const double slots = static_cast<double>(shape->slots) / static_cast<double>(keys);
      EXPECT_GE(slots, 1.125 - 1.0 / static_cast<double>(keys));
      EXPECT_LT(slots, keys >= 1000000 ? 1.14 : keys >= 100000 ? internal::kFuseSlotsPerKey : keys >= 512 ? 1.51 : 400) << keys;
    }
  }
  EXPECT_FALSE(FuseShapeFor(std::numeric_limits<uint64_t>::max(), 8).has_value());
  EXPECT_FALSE(FuseShapeFor(uint64_t{1} << 46, 8).has_value());
  EXPECT_FALSE(FuseShapeWithin(std::numeric_limits<uint64_t>::max(), 192).has_value());
}

TEST(BinaryFuseBuilder, SlotsAreInThreeNeighbouringSegmentsAlsoBeyond32Bits) {
  // The largest that there is: 2^46 slots, 64 TiB, not allocated.
  for (uint64_t slots : {uint64_t{3} << 18, uint64_t{1} << 33, uint64_t{1} << 46}) {
    const FuseShape shape{.slots = slots, .width = 8, .segment_log2 = 18};
    ASSERT_TRUE(internal::IsPossibleFuseShape(shape));
    uint64_t above_half = 0;
    uint64_t greatest = 0;
    for (uint64_t i = 0; i < 10000; ++i) {
      const FuseProbe probe(FuseMixed(Mix(i), 7), shape);
      ASSERT_LT(probe.slot[0], shape.starts());
      ASSERT_EQ(probe.slot[1] >> 18, (probe.slot[0] >> 18) + 1);
      ASSERT_EQ(probe.slot[2] >> 18, (probe.slot[0] >> 18) + 2);
      ASSERT_LT(probe.slot[2], slots);
      above_half += probe.slot[0] >= shape.starts() / 2 ? 1 : 0;
      greatest = std::max(greatest, probe.slot[0]);
    }
    EXPECT_NEAR(static_cast<double>(above_half), 5000, 250);
    EXPECT_GT(greatest, shape.starts() / 1000 * 995);
  }
  const FuseShape shape{.slots = uint64_t{3} << 18, .width = 16, .segment_log2 = 18};
  EXPECT_EQ(FuseProbe(0, shape).slot[0], 0U);
  EXPECT_EQ(FuseProbe(~uint64_t{0}, shape).slot[0], shape.starts() - 1);
}

TEST(BinaryFuseBuilder, AttemptsMoveEveryHash) {
  const FuseShape shape = *FuseShapeFor(100000, 8);
  uint64_t same = 0;
  for (uint64_t i = 0; i < 20000; ++i) {
    for (uint32_t attempt : {1U, 63U}) {
      same += FuseProbe(FuseMixed(Mix(i), attempt), shape).slot[0] == FuseProbe(FuseMixed(Mix(i), attempt - 1), shape).slot[0] ? 1 : 0;
    }
  }
  EXPECT_LT(same, 10U);
}

TEST(BinaryFuseBuilder, FailedAttemptsAreFollowedByOthers) {
  // One filter in a hundred of so few keys has two that share all their slots.
  std::multiset<int> attempts;
  for (uint64_t f = 0; f < 600; ++f) {
    const std::vector<uint64_t> hashes = Hashes(600, f << 20);
    const FilterBytes bytes = Build(hashes, 12, kFuseOptions);
    ASSERT_EQ(Open(bytes).kind(), FilterKind::kBinaryFuse);
    ASSERT_EQ(CountMissing(Open(bytes), hashes), 0U);
    attempts.insert(bytes.data()[13]);
  }
  EXPECT_GT(attempts.count(0), 500U);
  EXPECT_GT(*attempts.rbegin(), 0) << "no filter needed a second attempt: choose other keys";
}

TEST(BinaryFuseBuilder, ManyDuplicatesAreNoHindrance) {
  const std::vector<uint64_t> hashes = Hashes(5000);
  std::vector<uint64_t> many;
  for (int round = 0; round < 20; ++round) many.insert(many.end(), hashes.begin(), hashes.end());
  for (double bits : {9.75, 24.0}) {
    const FilterBytes bytes = Build(many, bits, kFuseOptions);
    EXPECT_EQ(Open(bytes).kind(), FilterKind::kBinaryFuse);
    EXPECT_EQ(Open(bytes).Info().keys, 100000U);
    EXPECT_EQ(CountMissing(Open(bytes), hashes), 0U);
    EXPECT_GT(CountMissing(Open(bytes), Hashes(10000, uint64_t{1} << 48)), 9900U);
  }
  // One pair among many, and one hash so often that a byte does not count it.
  std::vector<uint64_t> pair = Hashes(20000);
  pair.push_back(Mix(7));
  EXPECT_EQ(Open(Build(pair, 12, kFuseOptions)).kind(), FilterKind::kBinaryFuse);
  for (uint64_t i = 0; i < 256; ++i) {
    pair.push_back(Mix(100 + i));
    pair.push_back(Mix(3));
  }
  const FilterBytes bytes = Build(pair, 12, kFuseOptions);
  EXPECT_EQ(Open(bytes).kind(), FilterKind::kBinaryFuse);
  EXPECT_EQ(CountMissing(Open(bytes), pair), 0U);
}

TEST(BinaryFuseBuilder, EveryBitOfTheFingerprintIsNeeded) {
  // With any bit of one of a key's slots inverted, it is certainly not there.
  for (uint32_t width : internal::kFuseWidths) {
    FilterBytes bytes = Build(Hashes(2000), width == 8 ? 12 : 24, kFuseOptions);
    const FilterView view = Open(bytes);
    ASSERT_EQ(view.Info().probes, width);
    FuseShape shape = *FuseShapeFor(2000, width);
    shape.attempt = static_cast<uint8_t>(bytes.data()[13]);
    char* const base = bytes.data() + 64;
    for (uint64_t hash : Hashes(100)) {
      const FuseProbe probe(FuseMixed(hash, shape.attempt), shape);
      for (uint64_t slot : probe.slot) {
        for (uint32_t bit = 0; bit < width; ++bit) {
          char& byte = base[(slot * width + bit) / 8];
          byte = static_cast<char>(byte ^ (1 << bit % 8));
          ASSERT_FALSE(view.MayContain(hash)) << bit << " of " << width;
          byte = static_cast<char>(byte ^ (1 << bit % 8));
        }
      }
      ASSERT_TRUE(view.MayContain(hash));
    }
  }
}

TEST(BinaryFuseBuilder, FillIsHalfOfTheOwnSlots) {
  for (double bits : {12.0, 24.0}) {
    const FilterBytes bytes = Build(Hashes(50000), bits, kFuseOptions);
    const FilterInfo info = Open(bytes).Info();
    EXPECT_NEAR(Open(bytes).MeasuredFill(), .5 * info.probes / info.bits_per_key, 5 * .5 / std::sqrt(50000.0 * info.probes));
    EXPECT_NEAR(fpr_model::ExpectedFill(FilterKind::kBinaryFuse, bits, info.probes), .5 * info.probes / bits, 1e-12);
  }
}

TEST(BinaryFuseBuilderLarge, SucceedsAtEverySize) {
  for (uint64_t n = 512; n <= (kSmall ? 100000 : 3000000); n = n * 4 / 3) {
    const FilterBytes bytes = Build(Hashes(n, n << 24), n % 2 == 0 ? 12.5 : 24, kFuseOptions);
    ASSERT_EQ(Open(bytes).kind(), FilterKind::kBinaryFuse) << n;
    ASSERT_LT(bytes.data()[13], 5) << n;
    ASSERT_EQ(CountMissing(Open(bytes), Hashes(n, n << 24)), 0U) << n;
  }
}

}  // namespace
}  // namespace tamis
