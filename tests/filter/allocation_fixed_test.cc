#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/filter/allocation_test_util.h"
#include "tests/support/status_matchers.h"

namespace tamis {
namespace {

using allocation_testing::EngineCurve;
using allocation_testing::Levels;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(SampleCurve, HasEachStepOfTheRange) {
  ASSERT_OK_AND_ASSIGN(FilterCurve curve, SampleCurve(ContinuousBloomRate));
  ASSERT_EQ(curve.size(), 177U);
  for (size_t i = 0; i < curve.size(); ++i) {
    EXPECT_EQ(curve[i].bits_per_key, 2 + static_cast<double>(i) / 8);
    EXPECT_EQ(curve[i].rate, ContinuousBloomRate(curve[i].bits_per_key));
  }
  ASSERT_OK_AND_ASSIGN(curve, SampleCurve(ContinuousBloomRate, {.minimum = 1, .maximum = 2, .step = 1.0 / 3}));
  ASSERT_EQ(curve.size(), 4U);
  EXPECT_EQ(curve.back().bits_per_key, 2);
  ASSERT_OK_AND_ASSIGN(curve, SampleCurve(ContinuousBloomRate, {.minimum = 7, .maximum = 7, .step = 1}));
  EXPECT_EQ(curve.size(), 1U);
}

TEST(SampleCurve, RefusesRangesAndRatesThatAreNone) {
  const FilterBitsRange odd[] = {{0, 1, 1},    {-1, 1, 1},   {2, 1, 1},    {1, 2, 0},    {1, 2, -1},
                                 {kNan, 2, 1}, {1, kNan, 1}, {1, 2, kNan}, {1, kInf, 1}, {1, 2, 1e-9}};
  for (const FilterBitsRange& range : odd) {
    EXPECT_CODE(SampleCurve(ContinuousBloomRate, range), absl::StatusCode::kInvalidArgument);
  }
  for (double rate : {-.1, 1.1, kNan}) {
    EXPECT_CODE(SampleCurve([rate](double) { return rate; }), absl::StatusCode::kInvalidArgument);
  }
}

TEST(CurveOf, HasTheRatesOfTheModel) {
  for (const FilterSetting& at : EngineCurve()) {
    EXPECT_EQ(at.rate, fpr_model::FalsePositiveRate(FilterKind::kBlockedBloom, at.bits_per_key));
  }
  EXPECT_EQ(EngineCurve().front().bits_per_key, 2);
  EXPECT_EQ(EngineCurve().back().bits_per_key, 24);
  EXPECT_CODE(CurveOf(FilterKind::kNone), absl::StatusCode::kInvalidArgument);
}

TEST(Rates, AreTheClosedForms) {
  EXPECT_NEAR(ContinuousBloomRate(10), .0081925, 1e-6);
  EXPECT_EQ(ContinuousBloomRate(0), 1);
  EXPECT_NEAR(FingerprintRate(10.45, 1.045), 1.0 / 1024, 1e-12);
}

TEST(UniformAllocation, GivesAllRunsTheSame) {
  const std::vector<FilterRun> runs = Levels(3, EngineCurve());
  for (double bits : {0.0, 1.0, 2.0, 9.9, 10.0, 10.0625, 24.0, 99.0}) {
    ASSERT_OK_AND_ASSIGN(const FilterPlan plan, UniformAllocation(runs, bits));
    for (size_t i = 0; i < runs.size(); ++i) EXPECT_NEAR(plan.runs[i].bits_per_key(), std::min(bits, 24.0), 1e-5) << bits;
    EXPECT_NEAR(plan.bits, BudgetBits(runs, std::min(bits, 24.0)), BudgetBits(runs, 1e-5)) << bits;
    EXPECT_LE(plan.bits, BudgetBits(runs, bits));
    EXPECT_EQ(plan.lambda, 0);
  }
  // Between two settings: neighbours, divided.
  ASSERT_OK_AND_ASSIGN(const FilterPlan plan, UniformAllocation(runs, 10.0625));
  EXPECT_EQ(plan.runs[0].setting.bits_per_key, 10);
  EXPECT_EQ(plan.runs[0].next.bits_per_key, 10.125);
  EXPECT_EQ(plan.runs[0].next_keys, runs[0].keys / 2);
  EXPECT_NEAR(plan.wasted_reads, 1.5 * (plan.runs[0].setting.rate + plan.runs[0].next.rate), 1e-12);
  EXPECT_NEAR(UniformAllocation(runs, 0)->wasted_reads, 3, 0);
}

TEST(PerLevelAllocation, RepeatsTheLastEntry) {
  std::vector<FilterRun> runs = Levels(4, EngineCurve());
  runs[0].keys = 0;
  ASSERT_OK_AND_ASSIGN(FilterPlan plan, PerLevelAllocation(runs, {16, 12, 0}));
  const double expected[] = {16, 12, 0, 0};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(plan.runs[i].bits_per_key(), expected[i]);
  EXPECT_NEAR(plan.wasted_reads, fpr_model::FalsePositiveRate(FilterKind::kBlockedBloom, 12) + 2, 1e-12);
  runs[3].level = 0;
  ASSERT_OK_AND_ASSIGN(plan, PerLevelAllocation(runs, {16, 12, 0}));
  EXPECT_EQ(plan.runs[3].bits_per_key(), 16);
}

TEST(PerLevelAllocation, RefusesOddBits) {
  const std::vector<FilterRun> runs = Levels(2, EngineCurve());
  EXPECT_CODE(PerLevelAllocation(runs, {}), absl::StatusCode::kInvalidArgument);
  for (double odd : {-1.0, kNan, kInf}) {
    EXPECT_CODE(PerLevelAllocation(runs, {10, odd}), absl::StatusCode::kInvalidArgument);
    EXPECT_CODE(UniformAllocation(runs, odd), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_CODE(UniformAllocation({FilterRun{.keys = 1}}, 10), absl::StatusCode::kInvalidArgument);
}

TEST(PredictedWastedReads, WeighsEachRateByHowOftenItIsMet) {
  const std::vector<FilterRun> runs = {
      {.keys = 10, .absent_probability = .5, .read_cost = 2}, {.keys = 0}, {.keys = 5, .absent_probability = .1}};
  ASSERT_OK_AND_ASSIGN(const double wasted, PredictedWastedReads(runs, {.01, 1, .2}));
  EXPECT_NEAR(wasted, .01 + .02, 1e-15);
  EXPECT_CODE(PredictedWastedReads(runs, {.1, .1}), absl::StatusCode::kInvalidArgument);
  for (double odd : {-.1, 1.1, kNan}) EXPECT_CODE(PredictedWastedReads(runs, {.1, .1, odd}), absl::StatusCode::kInvalidArgument);
}

TEST(BudgetBits, IsExactForManyKeys) {
  const std::vector<FilterRun> runs = {{.keys = kMaxRunKeys}, {.keys = 8}};
  EXPECT_EQ(BudgetBits(runs, 1), std::ldexp(1, 50) + 8);
  EXPECT_EQ(BudgetBits({}, 10), 0);
}

}  // namespace
}  // namespace tamis
