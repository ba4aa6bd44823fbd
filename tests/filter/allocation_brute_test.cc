// The optimum against all allocations that there are, at the settings of the engine: every combination for all runs but the last, which
// takes the most that what is left affords.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/filter/allocation_test_util.h"
#include "tests/filter/filter_test_util.h"
#include "tests/support/status_matchers.h"

namespace tamis {
namespace {

using allocation_testing::EngineCurve;
using allocation_testing::RandomTrees;

class BruteForce {
 public:
  BruteForce(const std::vector<FilterRun>& runs, double budget) : runs_(runs) {
    settings_.push_back({});
    settings_.insert(settings_.end(), EngineCurve().begin(), EngineCurve().end());
    Try(0, budget, 0);
  }
  double best() const { return best_; }              // the last run has one setting
  double best_mixed() const { return best_mixed_; }  // the last run is divided between two

 private:
  void Try(size_t i, double left, double wasted) {
    const auto keys = static_cast<double>(runs_[i].keys);
    const double weight = runs_[i].absent_probability * runs_[i].read_cost;
    if (i + 1 < runs_.size()) {
      for (const FilterSetting& at : settings_) {
        if (keys * at.bits_per_key > left) break;
        Try(i + 1, left - keys * at.bits_per_key, wasted + weight * at.rate);
      }
      return;
    }
    const double bits = left / keys;
    const size_t at = bits < 2 ? 0 : std::min(settings_.size() - 1, static_cast<size_t>((bits - 2) * 8) + 1);
    best_ = std::min(best_, wasted + weight * settings_[at].rate);
    double mixed = settings_[at].rate;
    if (at + 1 < settings_.size()) {
      const FilterSetting& next = settings_[at + 1];
      mixed += (bits - settings_[at].bits_per_key) / (next.bits_per_key - settings_[at].bits_per_key) * (next.rate - mixed);
    }
    best_mixed_ = std::min(best_mixed_, wasted + weight * mixed);
  }

  const std::vector<FilterRun>& runs_;
  FilterCurve settings_;
  double best_ = 1e300;
  double best_mixed_ = 1e300;
};

void CompareTrees(int trees, size_t least_runs, size_t most_runs, uint64_t seed) {
  RandomTrees random(seed);
  double worst = 0;
  double least = 1;
  int fine_trees = 0;
  for (int t = 0; t < trees; ++t) {
    const std::vector<FilterRun> runs = random.Runs(least_runs + random.Below(most_runs - least_runs + 1), EngineCurve());
    const double budget = BudgetBits(runs, random.Uniform(.1, 20));
    ASSERT_OK_AND_ASSIGN(const FilterPlan plan, OptimalAllocation(runs, {.bits = budget}));
    const BruteForce brute(runs, budget);
    EXPECT_LE(plan.wasted_reads, 1.005 * brute.best()) << t;
    worst = std::max(worst, plan.wasted_reads / brute.best_mixed());
    // Below two bits a key a setting is so far from the next that dividing another run than the last gains much.
    const bool fine = std::all_of(plan.runs.begin(), plan.runs.end(), [](const FilterTarget& at) { return at.setting.bits_per_key >= 2; });
    if (fine) least = std::min(least, plan.wasted_reads / brute.best_mixed());
    fine_trees += fine ? 1 : 0;
  }
  // Mixing in any run includes mixing in the last, so not above but by what a key of a run of a thousand is worth; and not far below, or
  // the plan would promise what it cannot hold.
  EXPECT_LE(worst, 1.0005);
  EXPECT_GT(least, .99);
  EXPECT_GT(fine_trees, trees / 4);
}

TEST(AllocationBruteForce, IsNotBetterOnTreesOfTwoAndThreeRuns) { CompareTrees(filter_testing::kSmall ? 50 : 1000, 2, 3, 11); }

TEST(AllocationBruteForceLarge, IsNotBetterOnTreesOfFourRuns) { CompareTrees(50, 4, 4, 12); }

}  // namespace
}  // namespace tamis
