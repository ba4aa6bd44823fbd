#include "tamis/filter_allocation.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "filter/allocation_lagrange.h"
#include "tests/filter/allocation_test_util.h"
#include "tests/filter/filter_test_util.h"
#include "tests/support/status_matchers.h"

namespace tamis {
namespace {

using allocation_testing::EngineCurve;
using allocation_testing::ExactEighths;
using allocation_testing::Levels;
using allocation_testing::RandomTrees;
using allocation_testing::SetAbsent;
using allocation_testing::WideCurve;
using internal::LagrangianAllocation;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<double> BitsOf(const FilterPlan& plan) {
  std::vector<double> bits;
  for (const FilterTarget& target : plan.runs) bits.push_back(target.bits_per_key());
  return bits;
}

struct BlockedRow {
  int levels;
  double uniform[4];  // at 5, 8, 10, 12 bits per key
  double optimal[4];
};
constexpr BlockedRow kBlockedTable[] = {
    {3, {.2792, .06979, .02899, .012405}, {.1324, .03347, .01389, .005960}},
    {5, {.4653, .1163, .04832, .020675}, {.1335, .03378, .01401, .006018}},
    {7, {.6514, .1628, .06765, .028944}, {.1336, .03379, .01403, .006029}},
};

TEST(OptimalAllocation, ReproducesTheTableOfLevelsOnTheExactCurve) {
  constexpr double kBits[] = {5, 8, 10, 12};
  for (const BlockedRow& row : kBlockedTable) {
    const std::vector<FilterRun> runs = Levels(row.levels, WideCurve());
    for (int m = 0; m < 4; ++m) {
      ASSERT_OK_AND_ASSIGN(const FilterPlan plan, OptimalAllocation(runs, {.bits = BudgetBits(runs, kBits[m])}));
      EXPECT_NEAR(plan.wasted_reads / row.optimal[m], 1, .01) << row.levels << ' ' << kBits[m];
      ASSERT_OK_AND_ASSIGN(const FilterPlan uniform, UniformAllocation(runs, kBits[m]));
      EXPECT_NEAR(uniform.wasted_reads / row.uniform[m], 1, .01) << row.levels << ' ' << kBits[m];
    }
  }
}

TEST(OptimalAllocation, ReproducesTheBitsOfEachLevelOnTheExactCurve) {
  const std::vector<FilterRun> runs = Levels(5, WideCurve());
  const std::pair<double, std::vector<double>> last_first[] = {
      {5, {4.45, 9.38, 14.6, 20.5, 27.3}}, {8, {7.43, 12.5, 18.1, 24.6, 32}}, {10, {9.40, 14.8, 20.6, 27.5, 32}}};
  for (const auto& [m, bits] : last_first) {
    ASSERT_OK_AND_ASSIGN(const FilterPlan plan, OptimalAllocation(runs, {.bits = BudgetBits(runs, m)}));
    for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(plan.runs[4 - i].bits_per_key() / bits[i], 1, .01) << m << ' ' << i;
  }
  const std::pair<double, double> caps[] = {{32, 1}, {24, 1.004}, {20, 1.024}, {16, 1.15}, {14, 1.36}, {12, 1.94}};
  for (const auto& [cap, factor] : caps) {
    FilterCurve capped = WideCurve();
    std::erase_if(capped, [cap = cap](const FilterSetting& at) { return at.bits_per_key > cap; });
    ASSERT_OK_AND_ASSIGN(const FilterPlan plan, OptimalAllocation(Levels(5, capped), {.bits = BudgetBits(runs, 10)}));
    EXPECT_NEAR(plan.wasted_reads / .01401 / factor, 1, .01) << cap;
  }
}

struct MixRow {
  double absent;
  double uniform;
  double as_if_absent;  // the optimum for 100 % absent, asked by this mix
  double optimal;
  double bits[5];  // the last level last
};
constexpr MixRow kMixTable[] = {
    {1.0, .04832, .01401, .01401, {32, 27.5, 20.6, 14.8, 9.40}},
    {0.5, .04296, .00771, .00755, {32, 29.5, 22.4, 16.0, 9.25}},
    {0.1, .03866, .00267, .00183, {32, 32, 26.5, 19.6, 8.85}},
    {0.01, .03769, .00153, .00026, {32, 32, 32, 25.5, 8.21}},
    {0.0, .03759, .00141, 0, {32, 32, 32, 32, 0}},
};

TEST(OptimalAllocation, ReproducesTheTableOfMixedLookups) {
  const std::vector<FilterRun> absent_only = Levels(5, WideCurve());
  const FilterBudget budget{.bits = BudgetBits(absent_only, 10)};
  ASSERT_OK_AND_ASSIGN(const FilterPlan for_absent, OptimalAllocation(absent_only, budget));
  std::vector<double> absent_rates;
  for (const FilterTarget& target : for_absent.runs) absent_rates.push_back(target.rate());
  for (const MixRow& row : kMixTable) {
    std::vector<FilterRun> runs = absent_only;
    SetAbsent(runs, row.absent);
    ASSERT_OK_AND_ASSIGN(const FilterPlan plan, OptimalAllocation(runs, budget));
    if (row.optimal > 0) {
      EXPECT_NEAR(plan.wasted_reads, row.optimal, .01 * row.optimal + 5e-6) << row.absent;
    } else {
      EXPECT_LT(plan.wasted_reads, 5e-5);
    }
    for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(plan.runs[i].bits_per_key(), row.bits[i], .01 * row.bits[i]) << row.absent << ' ' << i;
    EXPECT_NEAR(*PredictedWastedReads(runs, absent_rates) / row.as_if_absent, 1, .01) << row.absent;
    EXPECT_NEAR(UniformAllocation(runs, 10)->wasted_reads / row.uniform, 1, .01) << row.absent;
  }
}

TEST(OptimalAllocation, StopsAtTheGoal) {
  const std::pair<double, double> stops[] = {{.01, 7.120}, {.001, 2.962}, {.0001, 1.683}, {0, 1.651}};
  for (const auto& [absent, average] : stops) {
    std::vector<FilterRun> runs = Levels(5, EngineCurve());
    SetAbsent(runs, absent);
    ASSERT_OK_AND_ASSIGN(const FilterPlan plan, OptimalAllocation(runs, {.bits = BudgetBits(runs, 10), .wasted_reads_goal = .001}));
    EXPECT_NEAR(plan.bits / BudgetBits(runs, 1), average, .001) << absent;
    EXPECT_NEAR(plan.wasted_reads, .001, 1e-9) << absent;
    ASSERT_OK_AND_ASSIGN(const FilterPlan least, LeastMemoryFor(runs, .001));
    EXPECT_EQ(least.bits, plan.bits) << absent;
    // The filter of the last level is dropped where so few ask it in vain that this alone stays below the goal.
    EXPECT_EQ(plan.runs[4].bits_per_key() == 0, absent < .0005) << absent;
  }
  // Without the goal the budget is spent, though it buys nothing that matters: 8.4 of 10 bits per key on the last level.
  std::vector<FilterRun> runs = Levels(5, EngineCurve());
  SetAbsent(runs, .01);
  ASSERT_OK_AND_ASSIGN(const FilterPlan all, OptimalAllocation(runs, {.bits = BudgetBits(runs, 10)}));
  EXPECT_NEAR(all.bits / BudgetBits(runs, 10), 1, 1e-9);
  EXPECT_NEAR(all.runs[4].bits_per_key(), 8.445, .001);
}

TEST(OptimalAllocation, RibbonOnTheLastLevelTakesMostOfTheSaving) {
  // Of r or r + 1 columns in shares: linear between whole numbers of columns.
  const auto columns = [](double bits) {
    const double whole = std::floor(bits / 1.045);
    return std::exp2(-whole) * (1 - (bits / 1.045 - whole) / 2);
  };
  ASSERT_OK_AND_ASSIGN(const FilterCurve ribbon, SampleCurve(columns, {.minimum = 1, .maximum = 32}));
  std::vector<std::vector<FilterRun>> trees;  // with no ribbon level, the last, all
  for (size_t ribbons : {0U, 1U, 5U}) {
    trees.push_back(Levels(5, WideCurve()));
    for (size_t i = 5 - ribbons; i < 5; ++i) trees.back()[i].curve = ribbon;
  }
  // The figures are those of another implementation: a greedy over the hulls, with the sums of the exact rates by inclusion and exclusion.
  const std::pair<double, std::array<double, 3>> waste_at[] = {{8, {.03378, .01029, .00741}}, {10, {.01401, .00309, .00195}}};
  for (const auto& [bits, expected] : waste_at) {
    std::array<double, 3> waste;
    for (size_t i = 0; i < 3; ++i) {
      waste[i] = OptimalAllocation(trees[i], {.bits = BudgetBits(trees[i], bits)})->wasted_reads;
      EXPECT_NEAR(waste[i], expected[i], 6e-6) << bits << ' ' << i;
    }
    EXPECT_GT((waste[0] - waste[1]) / (waste[0] - waste[2]), .89) << bits;
  }
  const double bits_for_same[] = {10.002, 7.554, 7.054};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(LeastMemoryFor(trees[i], .0140)->bits / BudgetBits(trees[i], 1), bits_for_same[i], .002) << i;
  }
}

TEST(OptimalAllocation, RunsMayHaveDifferentCurves) {
  ASSERT_OK_AND_ASSIGN(const FilterCurve ribbon, SampleCurve([](double bits) { return FingerprintRate(bits, 1.045); }));
  std::vector<FilterRun> runs = Levels(5, EngineCurve());
  const FilterBudget budget{.bits = BudgetBits(runs, 10)};
  ASSERT_OK_AND_ASSIGN(const FilterPlan before, OptimalAllocation(runs, budget));
  runs[4].curve = ribbon;
  ASSERT_OK_AND_ASSIGN(const FilterPlan after, OptimalAllocation(runs, budget));
  EXPECT_LT(after.wasted_reads, before.wasted_reads / 4);
  EXPECT_NEAR(after.runs[4].rate() / FingerprintRate(after.runs[4].bits_per_key(), 1.045), 1, .01);
  // The last level needs fewer for its rate, so that those above it get more.
  EXPECT_LT(after.runs[4].bits_per_key(), before.runs[4].bits_per_key());
  EXPECT_GT(after.runs[3].bits_per_key(), before.runs[3].bits_per_key());
}

void ExpectPlanIsConsistent(const std::vector<FilterRun>& runs, const FilterPlan& plan, double budget) {
  size_t divided = 0;
  double wasted = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    const FilterTarget& target = plan.runs[i];
    divided += target.next_keys != 0 ? 1 : 0;
    EXPECT_LT(target.next_keys, std::max<uint64_t>(1, runs[i].keys)) << i;
    EXPECT_EQ(target.next_keys == 0, target.next == target.setting) << i;
    if (target.next_keys != 0) {
      EXPECT_LT(target.setting.bits_per_key, target.next.bits_per_key) << i;
    }
    if (runs[i].keys != 0) {
      const double share = static_cast<double>(target.next_keys) / static_cast<double>(runs[i].keys);
      wasted += runs[i].absent_probability * runs[i].read_cost * ((1 - share) * target.setting.rate + share * target.next.rate);
    }
  }
  EXPECT_LE(divided, 1U);
  EXPECT_NEAR(plan.wasted_reads, wasted, 1e-12 * (1 + wasted));
  const auto eighths = ExactEighths(runs, plan);
  EXPECT_NEAR(plan.bits, static_cast<double>(eighths) / 8, 1e-9 * plan.bits);
  EXPECT_LE(plan.bits, budget);
  if (std::isfinite(budget)) {
    EXPECT_TRUE(eighths <= static_cast<internal::FilterUint128>(static_cast<long double>(budget) * 8));
  }
}

TEST(OptimalAllocation, NeverSpendsMoreThanTheBudget) {
  RandomTrees trees(3);
  for (int t = 0; t < 3000; ++t) {
    std::vector<FilterRun> runs = trees.Runs(1 + trees.Below(12), EngineCurve(), t % 2 == 0 ? 1e15 : 2e3);
    if (t % 3 == 0) runs.back().keys = kMaxRunKeys;
    if (t % 5 == 0) runs.front().keys = trees.Below(3);
    const double budget = BudgetBits(runs, trees.Uniform(0, 26));
    ASSERT_OK_AND_ASSIGN(const FilterPlan plan, OptimalAllocation(runs, {.bits = budget}));
    ExpectPlanIsConsistent(runs, plan, budget);
    // And leaves less than a step of one key, unless all have everything.
    if (plan.lambda > 0) {
      EXPECT_GT(plan.bits, budget * (1 - 1e-12) - 24) << t;
    }
  }
}

// For any price the least of sum f c p + lambda bits, each run on its own, minus lambda times the bits there are, is a lower bound of R: at
// the price of the plan it is met. A certificate that owes nothing to how the plan was found.
TEST(OptimalAllocation, MeetsTheLowerBoundThatItsPriceGives) {
  RandomTrees trees(4);
  for (int t = 0; t < 2000; ++t) {
    const std::vector<FilterRun> runs = trees.Runs(1 + trees.Below(10), EngineCurve());
    ASSERT_OK_AND_ASSIGN(const FilterPlan plan, OptimalAllocation(runs, {.bits = BudgetBits(runs, trees.Uniform(0, 22))}));
    double bound = -plan.lambda * plan.bits;
    for (const FilterRun& run : runs) {
      const double weight = run.absent_probability * run.read_cost;
      double least = weight;
      for (const FilterSetting& at : run.curve) {
        least = std::min(least, weight * at.rate + plan.lambda * static_cast<double>(run.keys) * at.bits_per_key);
      }
      bound += least;
    }
    EXPECT_NEAR(plan.wasted_reads, bound, 1e-9 * runs.size() * 10) << t;
    EXPECT_NEAR(plan.wasted_reads / bound, 1, 1e-6) << t;
  }
}

TEST(OptimalAllocation, IsWhatTheLagrangianFindsAtTheMemoryThatItSpends) {
  RandomTrees trees(5);
  for (int t = 0; t < 500; ++t) {
    std::vector<FilterRun> runs = trees.Runs(1 + trees.Below(8), EngineCurve());
    if (t % 4 == 0) runs.back().none_allowed = false;
    const double budget = BudgetBits(runs, trees.Uniform(2, 26));
    ASSERT_OK_AND_ASSIGN(const FilterPlan by_price, LagrangianAllocation(runs, budget));
    EXPECT_LE(by_price.bits, budget);
    ASSERT_OK_AND_ASSIGN(const FilterPlan greedy, OptimalAllocation(runs, {.bits = by_price.bits}));
    EXPECT_NEAR(greedy.wasted_reads / by_price.wasted_reads, 1, 1e-9) << t;
    EXPECT_EQ(greedy.bits, by_price.bits) << t;
    ASSERT_OK_AND_ASSIGN(const FilterPlan all, OptimalAllocation(runs, {.bits = budget}));
    EXPECT_LE(all.wasted_reads, by_price.wasted_reads * (1 + 1e-12)) << t;
  }
}

TEST(SettingAtPrice, IsThePlanOfEachRunButTheDividedOne) {
  RandomTrees trees(6);
  for (int t = 0; t < 500; ++t) {
    const std::vector<FilterRun> runs = trees.Runs(1 + trees.Below(8), EngineCurve());
    ASSERT_OK_AND_ASSIGN(const FilterPlan plan, OptimalAllocation(runs, {.bits = BudgetBits(runs, trees.Uniform(0, 26))}));
    size_t different = 0;
    for (size_t i = 0; i < runs.size(); ++i) {
      ASSERT_OK_AND_ASSIGN(const FilterSetting at, SettingAtPrice(runs[i], plan.lambda));
      EXPECT_LE(at.bits_per_key, plan.runs[i].setting.bits_per_key) << t << ' ' << i;
      different += at == plan.runs[i].setting ? 0 : 1;
    }
    EXPECT_LE(different, 1U) << t;  // where the last step was a whole one
  }
  FilterRun run{.keys = 1000, .curve = EngineCurve()};
  EXPECT_EQ(SettingAtPrice(run, 0)->bits_per_key, 24);
  EXPECT_EQ(SettingAtPrice(run, 1)->bits_per_key, 0);
  run.none_allowed = false;
  EXPECT_EQ(SettingAtPrice(run, kInf)->bits_per_key, 2);
  EXPECT_CODE(SettingAtPrice(run, -1), absl::StatusCode::kInvalidArgument);
  EXPECT_CODE(SettingAtPrice(run, kNan), absl::StatusCode::kInvalidArgument);
}

TEST(LeastMemoryFor, IsTheInverseOfTheOptimum) {
  RandomTrees trees(7);
  for (int t = 0; t < 500; ++t) {
    const std::vector<FilterRun> runs = trees.Runs(1 + trees.Below(8), EngineCurve());
    const double budget = BudgetBits(runs, trees.Uniform(.1, 20));
    ASSERT_OK_AND_ASSIGN(const FilterPlan plan, OptimalAllocation(runs, {.bits = budget}));
    ASSERT_OK_AND_ASSIGN(const FilterPlan back, LeastMemoryFor(runs, plan.wasted_reads));
    // To the bits of one key of the divided run.
    EXPECT_NEAR(back.bits, plan.bits, 24) << t;
    EXPECT_LE(back.wasted_reads, plan.wasted_reads * (1 + 1e-9)) << t;
    ExpectPlanIsConsistent(runs, back, kInf);
  }
  EXPECT_CODE(LeastMemoryFor(Levels(5, EngineCurve()), 1e-4), absl::StatusCode::kOutOfRange);
  EXPECT_CODE(LeastMemoryFor(Levels(5, EngineCurve()), -1), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(LeastMemoryFor(Levels(5, EngineCurve()), 5)->bits, 0);
}

TEST(LeastMemoryFor, SavesTheBitsThatUniformNeedsForTheSameReads) {
  const std::vector<FilterRun> runs = Levels(5, EngineCurve());
  ASSERT_OK_AND_ASSIGN(const FilterPlan least, LeastMemoryFor(runs, UniformAllocation(runs, 10)->wasted_reads));
  EXPECT_NEAR(10 - least.bits / BudgetBits(runs, 1), 2.8, .2);  // 2.60 on the continuous curve
}

TEST(OptimalAllocation, RunsThatAreNotAskedOrEmptyGetTheFewestBits) {
  std::vector<FilterRun> runs = Levels(4, EngineCurve());
  runs[0].keys = 0;
  runs[1].absent_probability = 0;
  runs[2].read_cost = 0;
  ASSERT_OK_AND_ASSIGN(FilterPlan plan, OptimalAllocation(runs, {}));
  EXPECT_EQ(BitsOf(plan), (std::vector<double>{0, 0, 0, 24}));
  EXPECT_EQ(plan.wasted_reads, EngineCurve().back().rate);
  for (FilterRun& run : runs) run.none_allowed = false;
  ASSERT_OK_AND_ASSIGN(plan, OptimalAllocation(runs, {}));
  EXPECT_EQ(BitsOf(plan), (std::vector<double>{2, 2, 2, 24}));
  EXPECT_EQ(plan.lambda, 0);
  ASSERT_OK_AND_ASSIGN(plan, OptimalAllocation({}, {}));
  EXPECT_EQ(plan.wasted_reads, 0);
  EXPECT_TRUE(plan.runs.empty());
}

TEST(OptimalAllocation, NothingIsBoughtWithNothing) {
  const std::vector<FilterRun> runs = Levels(3, EngineCurve());
  ASSERT_OK_AND_ASSIGN(const FilterPlan plan, OptimalAllocation(runs, {.bits = 0}));
  EXPECT_EQ(BitsOf(plan), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(plan.wasted_reads, 3);
  EXPECT_GT(plan.lambda, 0);
}

TEST(OptimalAllocation, PassesOverSettingsThatSaveNothing) {
  // 3 costs more than a mix of 2 and 4; 5 is worse than 4; 6 is not worth its bits beside 7.
  const FilterCurve odd = {{2, .4}, {3, .39}, {4, .1}, {5, .2}, {6, .099}, {7, .01}};
  const std::vector<FilterRun> runs = {{.keys = 1000, .curve = odd}};
  for (double bits = 0; bits <= 8; bits += .25) {
    ASSERT_OK_AND_ASSIGN(const FilterPlan plan, OptimalAllocation(runs, {.bits = 1000 * bits}));
    for (double never : {3.0, 5.0, 6.0}) {
      EXPECT_NE(plan.runs[0].setting.bits_per_key, never);
      EXPECT_NE(plan.runs[0].next.bits_per_key, never);
    }
  }
}

TEST(OptimalAllocation, RefusesOddArguments) {
  const auto expect_refused = [](FilterRun run, FilterBudget budget, const char* part) {
    const auto plan = OptimalAllocation({FilterRun{.keys = 1, .curve = EngineCurve()}, run}, budget);
    EXPECT_CODE(plan, absl::StatusCode::kInvalidArgument);
    EXPECT_NE(plan.status().ToString().find(part), std::string::npos) << plan.status().ToString();
  };
  const FilterRun good{.keys = 1000, .curve = EngineCurve()};
  for (double odd : {kNan, -1.0, -kInf}) {
    expect_refused(good, {.bits = odd}, "budget");
    expect_refused(good, {.bits = 1, .wasted_reads_goal = odd}, "goal");
    FilterRun run = good;
    run.absent_probability = odd;
    expect_refused(run, {}, "run 1: probability");
    run = good;
    run.read_cost = odd;
    expect_refused(run, {}, "run 1: read cost");
  }
  FilterRun run = good;
  run.absent_probability = 1.5;
  expect_refused(run, {}, "run 1: probability");
  run = good;
  run.read_cost = kInf;
  expect_refused(run, {}, "run 1: read cost");
  run = good;
  run.keys = kMaxRunKeys + 1;
  expect_refused(run, {}, "2^50");
  const std::pair<FilterCurve, const char*> curves[] = {{{}, "empty"},
                                                        {{{4, .1}, {3, .2}}, "not sorted"},
                                                        {{{4, .1}, {4, .1}}, "not sorted"},
                                                        {{{0, 1}, {3, .2}}, "above 0"},
                                                        {{{kNan, .1}}, "nan"},
                                                        {{{kInf, .1}}, "inf"},
                                                        {{{4, kNan}}, "rate nan"},
                                                        {{{4, 1.5}}, "rate 1.5"},
                                                        {{{4, -.1}}, "rate -0.1"}};
  for (const auto& [curve, part] : curves) {
    run = good;
    run.curve = curve;
    expect_refused(run, {}, part);
  }
  run = good;
  run.none_allowed = false;
  expect_refused(run, {.bits = 1999}, "at least");
  EXPECT_OK(OptimalAllocation({run}, {.bits = 2000}));
}

}  // namespace
}  // namespace tamis
