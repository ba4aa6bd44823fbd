#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "tests/filter/allocation_test_util.h"
#include "tests/support/status_matchers.h"

namespace tamis {
namespace {

using allocation_testing::EngineCurve;
using allocation_testing::Levels;
using allocation_testing::RandomTrees;
using allocation_testing::SetAbsent;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kLn2Squared = 0.480453013918201;

double UniformWaste(const std::vector<FilterRun>& runs, double bits) {
  return PredictedWastedReads(runs, std::vector<double>(runs.size(), ContinuousBloomRate(bits))).value();
}

// The doctest of another implementation (IntersectMBO/lsm-tree, Monkey.hs): tiering with ratio 4, three levels of three runs.
TEST(ContinuousAllocation, ReproducesThePublishedTieringExample) {
  std::vector<FilterRun> runs;
  for (uint64_t keys : {1587U, 6349U, 25396U}) {
    for (int i = 0; i < 3; ++i) runs.push_back({.keys = keys, .curve = {}});
  }
  ASSERT_OK_AND_ASSIGN(const ContinuousPlan plan, ContinuousAllocation(runs, 999'999));
  const double bits[] = {23721, 76578, 233034};
  const double rates[] = {.00076, .00304, .01217};
  double spent = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    const double run_bits = static_cast<double>(runs[i].keys) * plan.bits_per_key[i];
    EXPECT_NEAR(run_bits, bits[i / 3], 1) << i;
    EXPECT_NEAR(plan.rates[i], rates[i / 3], 5e-6) << i;
    spent += run_bits;
  }
  EXPECT_NEAR(spent, 999'999, 1e-6);
  EXPECT_NEAR(plan.wasted_reads, .04793, 5e-6);
  EXPECT_NEAR(UniformWaste(runs, 999'999 / (3.0 * (1587 + 6349 + 25396))), .0737, 5e-5);
}

struct LevelsRow {
  int levels;
  double uniform[4];  // at 5, 8, 10, 12 bits per key
  double optimal[4];
};
constexpr LevelsRow kContinuousTable[] = {
    {3, {.2715, .06425, .02458, .009402}, {.1289, .03049, .01166, .004462}},
    {4, {.3621, .08566, .03277, .012536}, {.1298, .03070, .01174, .004493}},
    {5, {.4526, .1071, .04096, .015670}, {.1299, .03073, .01175, .004497}},
    {6, {.5431, .1285, .04916, .018804}, {.1299, .03073, .01176, .004497}},
    {7, {.6336, .1499, .05735, .021938}, {.1299, .03073, .01176, .004497}},
};

TEST(ContinuousAllocation, ReproducesTheTableOfLevels) {
  constexpr double kBits[] = {5, 8, 10, 12};
  for (const LevelsRow& row : kContinuousTable) {
    const std::vector<FilterRun> runs = Levels(row.levels, {});
    for (int m = 0; m < 4; ++m) {
      ASSERT_OK_AND_ASSIGN(const ContinuousPlan plan, ContinuousAllocation(runs, BudgetBits(runs, kBits[m])));
      EXPECT_NEAR(plan.wasted_reads / row.optimal[m], 1, .01) << row.levels << ' ' << kBits[m];
      EXPECT_NEAR(UniformWaste(runs, kBits[m]) / row.uniform[m], 1, .01) << row.levels << ' ' << kBits[m];
    }
  }
  const std::vector<FilterRun> seven = Levels(7, {}, 10'000);
  const std::vector<std::pair<double, std::vector<double>>> last_first = {{5, {4.47, 9.26, 14.05, 18.85, 23.64, 28.4, 33.2}},
                                                                          {8, {7.47, 12.26, 17.05}},
                                                                          {10, {9.47, 14.26, 19.05, 23.85, 28.6}},
                                                                          {12, {11.47, 16.26, 21.05}}};
  for (const auto& [m, bits] : last_first) {
    ASSERT_OK_AND_ASSIGN(const ContinuousPlan plan, ContinuousAllocation(seven, BudgetBits(seven, m)));
    for (size_t i = 0; i < bits.size(); ++i) EXPECT_NEAR(plan.bits_per_key[6 - i] / bits[i], 1, .01) << m << ' ' << i;
  }
}

TEST(ContinuousAllocation, ReproducesTheTablesOfManyRunsAndOfFewBits) {
  for (const auto& [count, optimal, ratio] : {std::tuple{8, .0119, 8.2}, std::tuple{4, .0119, 5.5}}) {
    std::vector<FilterRun> runs = Levels(4, {}, 1'000'000);
    for (int i = 0; i < count; ++i) runs.push_back({.keys = 250'000, .curve = {}});
    ASSERT_OK_AND_ASSIGN(const ContinuousPlan plan, ContinuousAllocation(runs, BudgetBits(runs, 10)));
    EXPECT_NEAR(UniformWaste(runs, 10) / plan.wasted_reads, ratio, .05) << count;
    EXPECT_NEAR(plan.wasted_reads / optimal, 1, .01);
  }
  const std::vector<FilterRun> runs = Levels(5, {}, 10'000);
  // Below ln T / ((T - 1) ln2^2) = .533 bits per key the last level has none.
  for (const auto& [m, optimal] : {std::pair{1.0, .888}, std::pair{.533, 1.11}, std::pair{.25, 1.43}}) {
    ASSERT_OK_AND_ASSIGN(const ContinuousPlan plan, ContinuousAllocation(runs, BudgetBits(runs, m)));
    EXPECT_NEAR(plan.wasted_reads / optimal, 1, .01) << m;
    EXPECT_EQ(plan.bits_per_key[4] > .001, m > .54) << m;
  }
}

TEST(ContinuousAllocation, MeetsItsConditionsOnRandomTrees) {
  RandomTrees trees(1);
  for (int t = 0; t < 2000; ++t) {
    const std::vector<FilterRun> runs = trees.Runs(1 + trees.Below(8), {}, 1e15);
    const double budget = BudgetBits(runs, trees.Uniform(0, 20));
    ASSERT_OK_AND_ASSIGN(const ContinuousPlan plan, ContinuousAllocation(runs, budget));
    double spent = 0;
    for (size_t i = 0; i < runs.size(); ++i) {
      const double expected =
          std::min(1.0, plan.lambda * static_cast<double>(runs[i].keys) / (runs[i].absent_probability * runs[i].read_cost));
      EXPECT_NEAR(plan.rates[i] / expected, 1, 1e-9) << t << ' ' << i;
      spent += plan.bits_per_key[i] * static_cast<double>(runs[i].keys);
    }
    EXPECT_NEAR(spent, budget, 1e-9 * budget) << t;
  }
}

TEST(ContinuousAllocation, GainIsTheExponentOfTheDivergence) {
  RandomTrees trees(2);
  int unclamped = 0;
  for (int t = 0; t < 500; ++t) {
    const std::vector<FilterRun> runs = trees.Runs(1 + trees.Below(6), {}, 1e6);
    ASSERT_OK_AND_ASSIGN(const ContinuousPlan plan, ContinuousAllocation(runs, BudgetBits(runs, 15)));
    if (std::count(plan.rates.begin(), plan.rates.end(), 1.0) != 0) continue;
    ++unclamped;
    ASSERT_OK_AND_ASSIGN(const double nats, AllocationGainNats(runs));
    EXPECT_NEAR(UniformWaste(runs, 15) / plan.wasted_reads / std::exp(nats), 1, 1e-9) << t;
    EXPECT_NEAR(UniformWaste(runs, 15 + nats / kLn2Squared) / plan.wasted_reads, 1, 1e-9) << t;
  }
  EXPECT_GT(unclamped, 250);
  // One run a level, ratio 10, many levels: the number of levels over 10^(10/9) / 9 = 1.435.
  ASSERT_OK_AND_ASSIGN(const double nats, AllocationGainNats(Levels(7, {}, 1000)));
  EXPECT_NEAR(7 / std::exp(nats), std::pow(10, 10.0 / 9) / 9, 1e-4);
}

TEST(ContinuousAllocation, RunsThatAreNotAskedOrEmptyGetNothing) {
  std::vector<FilterRun> runs = Levels(3, {});
  runs[0].keys = 0;
  runs[1].absent_probability = 0;
  ASSERT_OK_AND_ASSIGN(ContinuousPlan plan, ContinuousAllocation(runs, 1e9));
  EXPECT_EQ(plan.bits_per_key[0], 0);
  EXPECT_EQ(plan.bits_per_key[1], 0);
  EXPECT_NEAR(plan.bits_per_key[2], 10, 1e-12);
  runs[2].read_cost = 0;
  ASSERT_OK_AND_ASSIGN(plan, ContinuousAllocation(runs, 1e9));
  EXPECT_EQ(plan.wasted_reads, 0);
  ASSERT_OK_AND_ASSIGN(plan, ContinuousAllocation({}, 1e9));
  EXPECT_EQ(plan.wasted_reads, 0);
}

TEST(ContinuousAllocation, RefusesOddNumbers) {
  std::vector<FilterRun> runs = Levels(2, {});
  for (double budget : {-1.0, kNan, kInf, -kInf}) {
    EXPECT_CODE(ContinuousAllocation(runs, budget), absl::StatusCode::kInvalidArgument);
  }
  for (double f : {-.1, 1.1, kNan}) {
    runs[1].absent_probability = f;
    EXPECT_CODE(ContinuousAllocation(runs, 100), absl::StatusCode::kInvalidArgument);
    EXPECT_CODE(AllocationGainNats(runs), absl::StatusCode::kInvalidArgument);
  }
}

TEST(KlDivergence, IsTheSumOfItsParts) {
  EXPECT_NEAR(*KlDivergence({.5, .5}, {.9, .1}), .5 * std::log(.5 / .9) + .5 * std::log(.5 / .1), 1e-15);
  EXPECT_NEAR(*KlDivergence({5, 5}, {900, 100}), *KlDivergence({.5, .5}, {.9, .1}), 1e-15);  // shares of their sums
  EXPECT_EQ(*KlDivergence({3, 0, 1}, {3, 0, 1}), 0);
  EXPECT_EQ(*KlDivergence({1, 1}, {1, 0}), kInf);
  EXPECT_NEAR(*KlDivergence({1, 0}, {1, 1}), std::log(2), 1e-15);
}

TEST(KlDivergence, RefusesWhatAreNotShares) {
  EXPECT_CODE(KlDivergence({1}, {1, 2}), absl::StatusCode::kInvalidArgument);
  EXPECT_CODE(KlDivergence({}, {}), absl::StatusCode::kInvalidArgument);
  EXPECT_CODE(KlDivergence({0, 0}, {1, 1}), absl::StatusCode::kInvalidArgument);
  for (double odd : {-1.0, kNan, kInf}) {
    EXPECT_CODE(KlDivergence({1, odd}, {1, 1}), absl::StatusCode::kInvalidArgument);
    EXPECT_CODE(KlDivergence({1, 1}, {odd, 1}), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace tamis
