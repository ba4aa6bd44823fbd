#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "tamis/filter.h"
#include "tests/support/status_matchers.h"

namespace tamis {
namespace {

constexpr FilterKind kBloom = FilterKind::kBlockedBloom;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

struct Rate {
  double bits;
  uint32_t probes;
  double rate;
};

// Computed by another program from another formula: the inclusion-exclusion sum over the distinct positions of a key, Python doubles.
constexpr Rate kExact[] = {
    {2, 1, 3.934693402873e-01},     {2, 16, 9.940799000125e-01},  {4, 3, 1.481155731520e-01},   {5, 3, 9.306249277e-02},
    {6, 4, 5.774238173970e-02},     {8, 5, 2.326337594580e-02},   {8, 6, 2.361509351193e-02},   {10, 6, 9.664748360480e-03},
    {12, 8, 4.134917132501e-03},    {14, 9, 1.835008225765e-03},  {14, 8, 1.838184045702e-03},  {16, 9, 8.439133015454e-04},
    {16, 11, 8.855412652872e-04},   {20, 11, 1.978318198331e-04}, {24, 12, 5.329836610062e-05}, {24, 16, 6.469430895071e-05},
    {3.125, 2, 2.239752046422e-01}, {0.5, 3, 9.925100539543e-01},
};

TEST(FprModel, RatesAreTheExactMixture) {
  for (const Rate& r : kExact) {
    EXPECT_NEAR(fpr_model::FalsePositiveRate(kBloom, r.bits, r.probes) / r.rate, 1, 1e-8) << r.bits << " bits, k " << r.probes;
  }
}

// Percent, as published tables of the mixture give them, with the probes used.
constexpr Rate kTablePercent[] = {
    {4, 3, 14.81},  {6, 4, 5.774},   {8, 5, 2.326},    {10, 6, .9665},   {12, 8, .4135},
    {14, 9, .1835}, {16, 9, .08439}, {20, 11, .01978}, {24, 12, .00533},
};
constexpr Rate kSixProbesPercent[] = {
    {4, 6, 22.29},  {6, 6, 6.693},  {8, 6, 2.362},   {10, 6, .9665},  {12, 6, .4456},
    {14, 6, .2259}, {16, 6, .1235}, {20, 6, .04400}, {24, 6, .01865},
};
constexpr Rate kEightProbesPercent[] = {
    {4, 8, 31.56},  {6, 8, 9.149},   {8, 8, 2.878},   {10, 8, 1.028},  {12, 8, .4135},
    {14, 8, .1838}, {16, 8, .08887}, {20, 8, .02536}, {24, 8, .00887},
};

TEST(FprModel, ReproducesTheTables) {
  for (const Rate& r : kTablePercent) {
    EXPECT_EQ(fpr_model::BestProbes(kBloom, r.bits), r.probes) << r.bits;
    EXPECT_NEAR(100 * fpr_model::FalsePositiveRate(kBloom, r.bits) / r.rate, 1, 1e-3) << r.bits;
  }
  for (const Rate& r : kSixProbesPercent) EXPECT_NEAR(100 * fpr_model::FalsePositiveRate(kBloom, r.bits, 6) / r.rate, 1, 1e-3) << r.bits;
  for (const Rate& r : kEightProbesPercent) EXPECT_NEAR(100 * fpr_model::FalsePositiveRate(kBloom, r.bits, 8) / r.rate, 1, 1e-3) << r.bits;
}

TEST(FprModel, ProbesChangeWhereOneMoreBecomesBetter) {
  constexpr double kThresholds[] = {2.08, 3.58, 5.10, 6.67, 8.32, 10.06, 11.92, 13.93, 16.12, 18.53, 21.18};
  uint32_t k = 1;
  for (double t : kThresholds) {
    EXPECT_EQ(fpr_model::BestProbes(kBloom, t - 1e-9), k) << t;
    EXPECT_EQ(fpr_model::BestProbes(kBloom, t), k + 1) << t;
    EXPECT_LT(fpr_model::FalsePositiveRate(kBloom, t - .01, k), fpr_model::FalsePositiveRate(kBloom, t - .01, k + 1)) << t;
    EXPECT_GT(fpr_model::FalsePositiveRate(kBloom, t + .01, k), fpr_model::FalsePositiveRate(kBloom, t + .01, k + 1)) << t;
    ++k;
  }
  // Best k of all at every step that can be asked for, to within what two digits of a threshold can cost.
  for (double bits = kMinBitsPerKey; bits <= kMaxBitsPerKey; bits += kBitsPerKeyStep) {
    const double chosen = fpr_model::FalsePositiveRate(kBloom, bits);
    for (uint32_t other = 1; other <= 16; ++other) EXPECT_LE(chosen, fpr_model::FalsePositiveRate(kBloom, bits, other) * 1.0005) << bits;
  }
}

TEST(FprModel, ManyBitsForFewKeysKeepTwelveProbes) {
  for (double bits : {24.0, 25.0, 512.0, 512e12}) EXPECT_EQ(fpr_model::BestProbes(kBloom, bits), 12U);
  EXPECT_EQ(fpr_model::BestProbes(kBloom, 0.001), 1U);
  EXPECT_EQ(fpr_model::BestProbes(FilterKind::kNone, 10), 0U);
}

TEST(FprModel, RateFallsWithEachStepAndStaysAProbability) {
  double last = 1;
  for (double bits = kMinBitsPerKey; bits <= kMaxBitsPerKey; bits += kBitsPerKeyStep) {
    const double rate = fpr_model::FalsePositiveRate(kBloom, bits);
    EXPECT_LT(rate, last) << bits;
    last = rate;
  }
  for (double bits : {1e-300, 1e-9, 1e-3, .01, .1, 1.0, 100.0, 512.0, 1e6, 1e15, 1e300}) {
    double before = 0;
    for (uint32_t k = 16; k >= 1; --k) {
      const double rate = fpr_model::FalsePositiveRate(kBloom, bits, k);
      EXPECT_TRUE(rate >= 0 && rate <= 1) << bits << ' ' << k << ' ' << rate;
      if (bits >= 100) {
        EXPECT_TRUE(rate > before || bits > 1e200) << bits << ' ' << k;
      }
      before = rate;
    }
  }
  // One key in a line: the chance that all twelve bits of another fall on its twelve, which a cancelling sum would lose.
  EXPECT_NEAR(fpr_model::FalsePositiveRate(kBloom, 1e9, 1) / (512e-9 / 512), 1, 1e-6);
  const double two = 512e-9 * (2.0 * 2 / 512 / 512 * (1 - 1.0 / 512) + 1.0 / 512 / 512 / 512);
  EXPECT_NEAR(fpr_model::FalsePositiveRate(kBloom, 1e9, 2) / two, 1, 1e-6);
}

TEST(FprModel, WithoutAModelOrBitsNothingIsFiltered) {
  EXPECT_EQ(fpr_model::FalsePositiveRate(FilterKind::kNone, 10, 6), 1);
  EXPECT_EQ(fpr_model::FalsePositiveRate(FilterKind::kNone, 10), 1);
  EXPECT_EQ(fpr_model::FalsePositiveRate(static_cast<FilterKind>(6), 10), 1);
  for (double bits : {0.0, -1.0, kNan, -kInf}) EXPECT_EQ(fpr_model::FalsePositiveRate(kBloom, bits, 6), 1) << bits;
  EXPECT_EQ(fpr_model::FalsePositiveRate(kBloom, 10, 0), 1);
}

TEST(FprModel, BitsForRateIsTheInverse) {
  for (double bits = kMinBitsPerKey; bits <= kMaxBitsPerKey; bits += kBitsPerKeyStep) {
    const double rate = fpr_model::FalsePositiveRate(kBloom, bits);
    ASSERT_OK_AND_ASSIGN(const double exact, fpr_model::BitsForRate(kBloom, rate));
    EXPECT_EQ(exact, bits);
    ASSERT_OK_AND_ASSIGN(const double looser, fpr_model::BitsForRate(kBloom, std::min(rate * 1.0001, 0.9)));
    EXPECT_EQ(looser, bits);
    if (bits < kMaxBitsPerKey) {
      ASSERT_OK_AND_ASSIGN(const double tighter, fpr_model::BitsForRate(kBloom, rate * 0.9999));
      EXPECT_EQ(tighter, bits + kBitsPerKeyStep);
    }
  }
  // 4.84, 9.92, 11.54, 15.55 and 22.03 bits, to the next eighth.
  const Rate kTargets[] = {{4.875, 0, .1}, {10, 0, .01}, {11.625, 0, .005}, {15.625, 0, .001}, {22.125, 0, .0001}, {2, 0, .9}};
  for (const Rate& t : kTargets) {
    ASSERT_OK_AND_ASSIGN(const double bits, fpr_model::BitsForRate(kBloom, t.rate));
    EXPECT_EQ(bits, t.bits) << t.rate;
  }
}

// Percent, from published tables: Parquet's eight words; the classic filter with the best whole number of probes.
constexpr Rate kSplitPercent[] = {{4, 8, 32.58},  {6, 8, 9.934},  {8, 8, 3.321},   {10, 8, 1.265}, {12, 8, .5420},
                                  {14, 8, .2563}, {16, 8, .1316}, {20, 8, .04200}, {24, 8, .01627}};
constexpr Rate kClassicPercent[] = {{4, 3, 14.69},   {6, 4, 5.606},    {8, 6, 2.158},    {10, 7, .8194},     {12, 8, .3142},
                                    {14, 10, .1201}, {16, 11, .04587}, {20, 14, .00671}, {24, 17, 0.0009839}};

TEST(FprModel, ReproducesTheTablesOfTheOtherKinds) {
  for (const Rate& r : kSplitPercent) {
    EXPECT_NEAR(100 * fpr_model::FalsePositiveRate(FilterKind::kSplitBlockBloom, r.bits) / r.rate, 1, 1e-3) << r.bits;
    EXPECT_EQ(fpr_model::BestProbes(FilterKind::kSplitBlockBloom, r.bits), 8U);
  }
  EXPECT_NEAR(fpr_model::FalsePositiveRate(FilterKind::kSplitBlockBloom, 10), .0126485, 1e-7);
  EXPECT_NEAR(fpr_model::FalsePositiveRate(FilterKind::kSplitBlockBloom, 16), 1.31557e-3, 1e-8);
  // 1,024 blocks with 26,214, 52,428 and 13,107 keys: 1.26, 18 and .04 % in Parquet's own text.
  EXPECT_NEAR(fpr_model::FalsePositiveRate(FilterKind::kSplitBlockBloom, 262144.0 / 26214), .012648, 1e-6);
  EXPECT_NEAR(fpr_model::FalsePositiveRate(FilterKind::kSplitBlockBloom, 262144.0 / 52428), .1792, 1e-4);
  EXPECT_NEAR(fpr_model::FalsePositiveRate(FilterKind::kSplitBlockBloom, 262144.0 / 13107), .000420, 1e-6);
  for (const Rate& r : kClassicPercent) {
    EXPECT_EQ(fpr_model::BestProbes(FilterKind::kClassicBloom, r.bits), r.probes) << r.bits;
    EXPECT_NEAR(100 * fpr_model::FalsePositiveRate(FilterKind::kClassicBloom, r.bits) / r.rate, 1, 2e-3) << r.bits;
  }
  for (double bits : {2.0, 5.0, 7.9, 13.7, 24.0}) {
    for (uint32_t k = 1; k <= 24; ++k) {
      EXPECT_LE(fpr_model::FalsePositiveRate(FilterKind::kClassicBloom, bits),
                fpr_model::FalsePositiveRate(FilterKind::kClassicBloom, bits, k) * 1.0005);
    }
  }
  // Ribbon: halved by each column, linear between, 1.025 slots a key.
  EXPECT_NEAR(fpr_model::FalsePositiveRate(FilterKind::kRibbon, 8 * 1.025), 1.0 / 256, 1e-12);
  EXPECT_NEAR(fpr_model::FalsePositiveRate(FilterKind::kRibbon, 8.5 * 1.025), 1.5 / 512, 1e-12);
  EXPECT_EQ(fpr_model::BestProbes(FilterKind::kRibbon, 10), 10U);
}

TEST(FprModel, BinaryFuseHasTwoStepsAboveTheBlockedKind) {
  constexpr FilterKind kFuse = FilterKind::kBinaryFuse;
  for (double bits : {2.0, 5.5, 9.5}) {
    EXPECT_EQ(fpr_model::FalsePositiveRate(kFuse, bits), fpr_model::FalsePositiveRate(kBloom, bits));
    EXPECT_EQ(fpr_model::BestProbes(kFuse, bits), fpr_model::BestProbes(kBloom, bits));
  }
  for (double bits : {9.625, 12.0, 19.125}) {
    EXPECT_EQ(fpr_model::FalsePositiveRate(kFuse, bits), 1.0 / 256);
    EXPECT_EQ(fpr_model::BestProbes(kFuse, bits), 8U);
  }
  for (double bits : {19.25, 24.0}) {
    EXPECT_EQ(fpr_model::FalsePositiveRate(kFuse, bits), 1.0 / 65536);
    EXPECT_EQ(fpr_model::BestProbes(kFuse, bits), 16U);
  }
  EXPECT_EQ(*fpr_model::BitsForRate(kFuse, .05), *fpr_model::BitsForRate(kBloom, .05));
  EXPECT_EQ(*fpr_model::BitsForRate(kFuse, .01), 9.625);
  EXPECT_EQ(*fpr_model::BitsForRate(kFuse, 1.0 / 256), 9.625);
  EXPECT_EQ(*fpr_model::BitsForRate(kFuse, .001), 19.25);
  EXPECT_CODE(fpr_model::BitsForRate(kFuse, 1e-5), absl::StatusCode::kOutOfRange);
  // Any number of keys from 10^5 on has the width that the model says.
  for (uint64_t keys = 100000; keys < uint64_t{1} << 36; keys += keys / 64) {
    EXPECT_EQ(fpr_model::BuiltKind(kFuse, keys, 9.625), kFuse) << keys;
    EXPECT_GT(*fpr_model::SizeBytes(kFuse, keys, 19.25), keys * 18 / 8) << keys << ": not 16 bits";
  }
  EXPECT_EQ(fpr_model::BuiltKind(kFuse, 1000000, 9.125), kFuse);
  EXPECT_EQ(fpr_model::BuiltKind(kFuse, 1000000, 9), kBloom);
  EXPECT_EQ(fpr_model::BuiltKind(kFuse, 10000, 9.625), kBloom);
  EXPECT_EQ(fpr_model::BuiltKind(FilterKind::kRibbon, 511, 9), kBloom);
  EXPECT_EQ(fpr_model::BuiltKind(FilterKind::kRibbon, 512, 9), FilterKind::kRibbon);
  EXPECT_EQ(fpr_model::BuiltKind(FilterKind::kClassicBloom, 0, 9), FilterKind::kClassicBloom);
}

TEST(FprModel, EveryKindHasFallingRatesAndTheirInverse) {
  for (FilterKind kind : {FilterKind::kSplitBlockBloom, FilterKind::kClassicBloom, FilterKind::kRibbon}) {
    double last = 1;
    for (double bits = kind == FilterKind::kRibbon ? 1 : 2; bits <= kMaxBitsPerKey; bits += kBitsPerKeyStep) {
      const double rate = fpr_model::FalsePositiveRate(kind, bits);
      ASSERT_LT(rate, last) << bits;
      last = rate;
      ASSERT_OK_AND_ASSIGN(const double inverse, fpr_model::BitsForRate(kind, rate));
      ASSERT_EQ(inverse, bits);
    }
    EXPECT_CODE(fpr_model::BitsForRate(kind, last / 2), absl::StatusCode::kOutOfRange);
    for (double bits : {1e-300, 1e-9, .1, 100.0, 1e6, 1e300}) {
      const double rate = fpr_model::FalsePositiveRate(kind, bits);
      EXPECT_TRUE(rate >= 0 && rate <= 1) << bits << ' ' << rate;
    }
    for (double bits : {0.0, -1.0, kNan}) EXPECT_EQ(fpr_model::FalsePositiveRate(kind, bits), 1);
  }
  // 1 %: 10.53 bits of split blocks, 9.59 classic, 6.72 columns of ribbon (6.89 bits), to the next eighth.
  EXPECT_EQ(*fpr_model::BitsForRate(FilterKind::kSplitBlockBloom, .01), 10.625);
  EXPECT_EQ(*fpr_model::BitsForRate(FilterKind::kClassicBloom, .01), 9.625);
  EXPECT_EQ(*fpr_model::BitsForRate(FilterKind::kRibbon, .01), 7);
}

TEST(FprModel, FillsOfTheOtherKinds) {
  EXPECT_NEAR(fpr_model::ExpectedFill(FilterKind::kSplitBlockBloom, 10, 8), .550671, 5e-7);
  EXPECT_NEAR(fpr_model::ExpectedFill(FilterKind::kClassicBloom, 10, 7), 1 - std::exp(-.7), 1e-12);
  EXPECT_NEAR(fpr_model::ExpectedFill(FilterKind::kRibbon, 10, 10), .5 / 1.025, 1e-12);
}

TEST(FprModel, BitsForOddRatesAreRefused) {
  for (double rate : {-1.0, 0.0, 1.0, 2.0, kNan, kInf, -kInf}) {
    EXPECT_CODE(fpr_model::BitsForRate(kBloom, rate), absl::StatusCode::kInvalidArgument);
  }
  for (double rate : {1e-300, 1e-12, 5e-5}) EXPECT_CODE(fpr_model::BitsForRate(kBloom, rate), absl::StatusCode::kOutOfRange);
  EXPECT_CODE(fpr_model::BitsForRate(static_cast<FilterKind>(6), .01), absl::StatusCode::kInvalidArgument);
  EXPECT_CODE(fpr_model::BitsForRate(FilterKind::kNone, .01), absl::StatusCode::kInvalidArgument);
}

TEST(FprModel, FillIsTheClosedForm) {
  EXPECT_NEAR(fpr_model::ExpectedFill(kBloom, 10, 6), .449582, 5e-7);
  for (uint32_t k : {1U, 6U, 12U}) {
    const double c = 7.5;
    EXPECT_NEAR(fpr_model::ExpectedFill(kBloom, c, k), 1 - std::exp(-512 / c * (1 - std::pow(1 - 1.0 / 512, k))), 1e-12);
  }
  EXPECT_EQ(fpr_model::ExpectedFill(FilterKind::kNone, 10, 6), 0);
  EXPECT_EQ(fpr_model::ExpectedFill(kBloom, 0, 6), 0);
}

TEST(FprModel, SizesGrowWithKeysAndBitsOrAreRefused) {
  for (int shift = 20; shift <= 50; ++shift) {
    uint64_t last_by_bits = 0;
    for (double bits = kMinBitsPerKey; bits <= kMaxBitsPerKey; bits += 1) {
      const auto size = fpr_model::SizeBytes(kBloom, uint64_t{1} << shift, bits);
      const double lines = std::ldexp(bits / 512, shift);
      if (lines > std::ldexp(1, 40)) {
        EXPECT_CODE(size, absl::StatusCode::kInvalidArgument);
        continue;
      }
      ASSERT_OK(size);
      EXPECT_EQ(*size, 64 + 64 * static_cast<uint64_t>(std::ceil(lines))) << shift << ' ' << bits;
      EXPECT_GT(*size, last_by_bits);
      last_by_bits = *size;
      ASSERT_OK_AND_ASSIGN(const uint64_t half, fpr_model::SizeBytes(kBloom, uint64_t{1} << (shift - 1), bits));
      EXPECT_GT(*size, half);
    }
  }
  for (uint64_t keys : {uint64_t{1} << 60, std::numeric_limits<uint64_t>::max()}) {
    EXPECT_CODE(fpr_model::SizeBytes(kBloom, keys, 24), absl::StatusCode::kInvalidArgument);
    EXPECT_CODE(fpr_model::SizeBytes(kBloom, keys, 2), absl::StatusCode::kInvalidArgument);
  }
  // The bound itself: 2^40 lines and one key more.
  EXPECT_OK(fpr_model::SizeBytes(kBloom, uint64_t{1} << 45, 16));
  EXPECT_CODE(fpr_model::SizeBytes(kBloom, (uint64_t{1} << 45) + 1, 16), absl::StatusCode::kInvalidArgument);
}

TEST(FprModel, SizesOfFewKeysAndOddBits) {
  EXPECT_EQ(*fpr_model::SizeBytes(kBloom, 0, 10), 128U);
  EXPECT_EQ(*fpr_model::SizeBytes(kBloom, 1, 10), 128U);
  EXPECT_EQ(*fpr_model::SizeBytes(kBloom, 51, 10), 128U);
  EXPECT_EQ(*fpr_model::SizeBytes(kBloom, 52, 10), 192U);
  EXPECT_EQ(*fpr_model::SizeBytes(kBloom, 1000, 10.124), *fpr_model::SizeBytes(kBloom, 1000, 10));  // rounded down to eighths
  EXPECT_EQ(*fpr_model::SizeBytes(FilterKind::kNone, 1000, 10), 0U);
  for (double bits : {-1.0, 0.0, 1.0, 1.999, 24.001, 1e9, kNan, kInf}) {
    EXPECT_CODE(fpr_model::SizeBytes(kBloom, 1000, bits), absl::StatusCode::kInvalidArgument);
  }
}

// What the standard deviation is for: rates of real filters of few lines lie no further from the model than it says.
TEST(RateDeviation, BoundsThatOfFiltersWithOtherKeys) {
  struct Case {
    FilterKind kind;
    double bits;
  };
  for (const Case c : {Case{FilterKind::kBlockedBloom, 10}, Case{FilterKind::kBlockedBloom, 4}, Case{FilterKind::kSplitBlockBloom, 8},
                       Case{FilterKind::kClassicBloom, 6}}) {
    std::mt19937_64 random(static_cast<uint64_t>(c.bits) + 40);
    constexpr int kFilters = 300;
    constexpr int kQueries = 60000;
    constexpr uint64_t kKeys = 1000;
    double squares = 0;
    FilterInfo info;
    for (int i = 0; i < kFilters; ++i) {
      const auto builder = FilterBuilder::Create({.kind = c.kind, .bits_per_key = c.bits}).value();
      for (uint64_t key = 0; key < kKeys; ++key) builder->AddHash(random());
      const FilterBytes bytes = builder->Finish().value();
      const FilterView view = FilterView::Open(bytes.view(), {}).value();
      info = view.Info();
      int maybe = 0;
      for (int q = 0; q < kQueries; ++q) maybe += view.MayContain(random()) ? 1 : 0;
      const double off = maybe / double{kQueries} - info.predicted_fpr;
      squares += off * off;
    }
    const double lookups = info.predicted_fpr * (1 - info.predicted_fpr) / kQueries;
    const double deviation = fpr_model::RateDeviation(info);
    const double seen = std::sqrt(squares / kFilters - lookups);
    EXPECT_LT(seen, 1.15 * deviation) << c.bits;
    EXPECT_GT(seen, .3 * deviation) << c.bits;  // the upper estimate
  }
}

TEST(RateDeviation, FallsWithTheRootOfTheSize) {
  FilterInfo info{.kind = FilterKind::kBlockedBloom, .probes = 6, .lines = 100, .bits = 51200, .bits_per_key = 10, .predicted_fpr = .009665};
  EXPECT_NEAR(fpr_model::RateDeviation(info) / .009665, .0602, 2e-4);
  info.lines *= 100;
  EXPECT_NEAR(fpr_model::RateDeviation(info) / .009665, .00602, 2e-5);
  info.predicted_fpr = 0;
  EXPECT_EQ(fpr_model::RateDeviation(info), 0);
  EXPECT_EQ(fpr_model::RateDeviation({}), 0);
}

}  // namespace
}  // namespace tamis
