#include "filter/allocation_lagrange.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "filter/allocation_hull.h"

namespace tamis::internal {
namespace {

FilterSetting LeastCost(const FilterRun& run, double lambda) {
  const double price = lambda * static_cast<double>(run.keys);
  FilterSetting best = run.none_allowed ? FilterSetting{} : run.curve.front();
  double least = Weight(run) * best.rate + price * best.bits_per_key;
  for (const FilterSetting& at : run.curve) {
    const double cost = Weight(run) * at.rate + price * at.bits_per_key;
    if (cost < least) {
      least = cost;
      best = at;
    }
  }
  return best;
}

FilterPlan PlanAt(absl::Span<const FilterRun> runs, double lambda) {
  FilterPlan plan;
  plan.lambda = lambda;
  plan.runs.reserve(runs.size());
  for (const FilterRun& run : runs) {
    const FilterSetting setting = LeastCost(run, lambda);
    plan.runs.push_back({.setting = setting, .next = setting});
  }
  SumUp(runs, &plan);
  return plan;
}

}  // namespace

absl::StatusOr<FilterPlan> LagrangianAllocation(absl::Span<const FilterRun> runs, double budget_bits) {
  if (!(budget_bits >= 0 && std::isfinite(budget_bits))) {
    return absl::InvalidArgumentError(absl::StrCat("budget of ", budget_bits, " bits is negative or not finite"));
  }
  if (absl::Status s = CheckRuns(runs); !s.ok()) return s;
  if (FilterPlan all = PlanAt(runs, 0); all.bits <= budget_bits) return all;
  // Upwards until the budget is kept or nothing is bought but what must be.
  double high = 1;
  FilterPlan within = PlanAt(runs, high);
  for (int i = 0; i < 1000 && within.bits > budget_bits; ++i) within = PlanAt(runs, high *= 2);
  if (within.bits > budget_bits) {
    return absl::InvalidArgumentError(absl::StrCat("a budget of ", budget_bits, " bits is less than the ", within.bits,
                                                   " that runs which may not go without a filter need at least"));
  }
  double log_low = std::log(high) - 200;  // 1e-87 times: below the value of any bit that a double can tell from none
  double log_high = std::log(high);
  for (int i = 0; i < 100; ++i) {
    const double middle = (log_low + log_high) / 2;
    FilterPlan plan = PlanAt(runs, std::exp(middle));
    if (plan.bits > budget_bits) {
      log_low = middle;
    } else {
      log_high = middle;
      within = std::move(plan);
    }
  }
  return within;
}

}  // namespace tamis::internal
