#include "filter/classic_bloom.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/filter/filter_test_util.h"
#include "tests/support/status_matchers.h"

namespace tamis {
namespace {

using filter_testing::Hashes;
using filter_testing::kAbsent;
using filter_testing::Mix;
using internal::ClassicProbes;

constexpr FilterBuildOptions kWide = {.kind = FilterKind::kClassicBloom, .seed = 5, .hash_id = kFilterHashXxh3_128};
constexpr FilterExpectations kExpectWide = {.hash_id = kFilterHashXxh3_128};

TEST(ClassicBloom, ProbesAreHighHalvesOfSteppedProducts) {
  // Beyond 2^32 bits, without allocating them. The same by long division instead of by 128-bit products.
  for (uint64_t bits : {uint64_t{512}, uint64_t{1} << 32, (uint64_t{1} << 33) + 512, uint64_t{1} << 49}) {
    uint64_t above_half = 0;
    for (uint64_t i = 0; i < 5000; ++i) {
      ClassicProbes probes(Mix(i));
      EXPECT_EQ(probes.step & 1, 1U);
      uint64_t point = Mix(i);
      for (uint32_t p = 0; p < 17; ++p) {
        const uint64_t bit = probes.Next(bits);
        ASSERT_LT(bit, bits);
        ASSERT_NEAR(static_cast<double>(bit), std::ldexp(static_cast<double>(point), -64) * static_cast<double>(bits), 1.001);
        point += probes.step;
        above_half += bit >= bits / 2 ? 1 : 0;
      }
    }
    EXPECT_NEAR(static_cast<double>(above_half), 42500, 800) << bits;
  }
  ClassicProbes last(FilterHash128{~uint64_t{0}, 0});
  EXPECT_EQ(last.Next(uint64_t{1} << 49), (uint64_t{1} << 49) - 1);
  EXPECT_EQ(last.Next(uint64_t{1} << 49), 0U);  // the circle closes
}

TEST(ClassicBloom, SecondValueIsTheDocumentedFinaliser) {
  // SplitMix64 of the hash, which the tests' own Mix is.
  for (uint64_t i = 0; i < 100; ++i) EXPECT_EQ(ClassicProbes(Mix(i)).step, Mix(Mix(i)) | 1);
}

TEST(ClassicBloom, WideHashesAreFoundAndNarrowQuestionsSayMaybe) {
  ASSERT_OK_AND_ASSIGN(auto builder, FilterBuilder::Create(kWide));
  for (int i = 0; i < 10000; ++i) builder->AddHash128(FilterKeyHash128(std::to_string(i), 5));
  builder->AddHash128(FilterKeyHash128("9999", 5));  // adjacent repeat
  EXPECT_EQ(builder->keys(), 10000U);
  ASSERT_OK_AND_ASSIGN(const FilterBytes bytes, builder->Finish());
  EXPECT_CODE(FilterView::Open(bytes.view(), {}), absl::StatusCode::kFailedPrecondition);
  ASSERT_OK_AND_ASSIGN(const FilterView view, FilterView::Open(bytes.view(), kExpectWide));
  EXPECT_EQ(view.hash_id(), kFilterHashXxh3_128);
  for (int i = 0; i < 10000; ++i) ASSERT_TRUE(view.MayContain128(FilterKeyHash128(std::to_string(i), 5)));
  uint64_t maybe = 0;
  for (int i = 0; i < 100000; ++i) {
    maybe += view.MayContain128(FilterKeyHash128(std::to_string(-1 - i), 5)) ? 1 : 0;
    ASSERT_TRUE(view.MayContain(Mix(static_cast<uint64_t>(i))));
  }
  EXPECT_NEAR(static_cast<double>(maybe), 819, 5 * std::sqrt(819.0) * 1.1);
  bool may[2] = {false, false};
  view.MayContainBatch(Hashes(2), may);
  EXPECT_TRUE(may[0] && may[1]);
  const FilterBytes narrow = filter_testing::Build(Hashes(10), 10, {.kind = FilterKind::kClassicBloom});
  EXPECT_TRUE(filter_testing::Open(narrow).MayContain128({1, 2}));
  EXPECT_TRUE(FilterView().MayContain128({1, 2}));
}

TEST(ClassicBloom, NarrowHashInAWideFilterIsAnErrorOfFinish) {
  ASSERT_OK_AND_ASSIGN(auto builder, FilterBuilder::Create(kWide));
  builder->AddHash(7);
  EXPECT_CODE(builder->Finish(), absl::StatusCode::kFailedPrecondition);
  builder->AddHash128({1, 2});
  EXPECT_OK(builder->Finish());  // and the builder is as new
}

TEST(ClassicBloom, MoreProbesThanTheBlockedKindAreWrittenAndRead) {
  const FilterBytes bytes = filter_testing::Build(Hashes(10000), 24, {.kind = FilterKind::kClassicBloom});
  const FilterView view = filter_testing::Open(bytes);
  EXPECT_EQ(view.Info().probes, 17U);
  EXPECT_EQ(filter_testing::CountMissing(view, Hashes(10000)), 0U);
  EXPECT_GT(filter_testing::CountMissing(view, Hashes(100000, kAbsent)), 99990U);
}

}  // namespace
}  // namespace tamis
