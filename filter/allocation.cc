// The optimum. Settings that an optimum can use are the corners of a run's lower convex hull; from each corner the step to the next saves
// less a bit than the step before. So the best step of all runs, taken again and again, is the optimum for what has been spent so far,
// and with the last step taken for a part of its run's keys it is that for the whole budget (of settings mixed freely within a run).
#include <algorithm>
#include <cmath>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "filter/allocation_hull.h"
#include "tamis/filter_allocation.h"

namespace tamis {
namespace {

using internal::BitsOf;
using internal::BitSum;
using internal::GainPerBit;
using internal::Weight;

class Greedy {
 public:
  // REQUIRES: CheckRuns. `runs` must outlive this.
  Greedy(absl::Span<const FilterRun> runs, const FilterBudget& budget) : runs_(runs), budget_(budget) {
    hulls_.reserve(runs.size());
    corners_.resize(runs.size());
    for (size_t i = 0; i < runs.size(); ++i) {
      const FilterRun& run = runs[i];
      // Runs that share a curve share its hull.
      const auto [at, added] = known_.try_emplace({run.curve.data(), run.curve.size(), run.none_allowed});
      if (added) at->second = internal::LowerHull(run.curve, run.none_allowed);
      hulls_.push_back(&at->second);
      spent_ += BitsOf(run.keys, Corner(i).bits_per_key);
      wasted_ += Weight(run) * Corner(i).rate;
    }
  }

  absl::StatusOr<FilterPlan> Plan() {
    if (spent_ > budget_.bits) {
      return absl::InvalidArgumentError(absl::StrCat("a budget of ", budget_.bits, " bits is less than the ", static_cast<double>(spent_),
                                                     " that runs which may not go without a filter need at least"));
    }
    for (size_t i = 0; i < runs_.size(); ++i) Offer(i);
    FilterPlan plan;
    plan.lambda = steps_.empty() ? 0 : steps_.top().gain;
    size_t divided = 0;
    uint64_t next_keys = 0;
    while (!GoalReached()) {
      if (steps_.empty()) {
        plan.lambda = 0;
        break;
      }
      const Step step = steps_.top();
      steps_.pop();
      plan.lambda = step.gain;
      next_keys = Buy(step.run);
      divided = step.run;
      if (next_keys < runs_[divided].keys) break;
      next_keys = 0;
      ++corners_[divided];
      Offer(divided);
    }
    for (size_t i = 0; i < runs_.size(); ++i) plan.runs.push_back({.setting = Corner(i), .next = Corner(i)});
    if (next_keys != 0) {
      FilterTarget& target = plan.runs[divided];
      target.next = (*hulls_[divided])[corners_[divided] + 1];
      target.next_keys = next_keys;
      target.next_share = static_cast<double>(next_keys) / static_cast<double>(runs_[divided].keys);
    }
    internal::SumUp(runs_, &plan);
    return plan;
  }

 private:
  struct Step {
    double gain;
    size_t run;
    bool operator<(const Step& other) const { return std::make_pair(gain, other.run) < std::make_pair(other.gain, run); }
  };

  const FilterSetting& Corner(size_t i) const { return (*hulls_[i])[corners_[i]]; }

  bool GoalReached() const { return budget_.wasted_reads_goal > 0 && wasted_ <= budget_.wasted_reads_goal; }

  void Offer(size_t i) {
    if (Weight(runs_[i]) == 0 || corners_[i] + 1 == hulls_[i]->size()) return;
    const double gain = GainPerBit(runs_[i], Corner(i), (*hulls_[i])[corners_[i] + 1]);
    if (gain > 0) steps_.push({gain, i});
  }

  // Pays for the next corner, for as many keys of the run as the budget has bits and the goal asks for.
  uint64_t Buy(size_t i) {
    const FilterRun& run = runs_[i];
    const FilterSetting& next = (*hulls_[i])[corners_[i] + 1];
    const BitSum bits_a_key = static_cast<BitSum>(next.bits_per_key) - Corner(i).bits_per_key;
    const BitSum saved_a_key = static_cast<BitSum>(Weight(run)) * (Corner(i).rate - next.rate) / run.keys;
    BitSum keys = run.keys;
    if (budget_.wasted_reads_goal > 0) keys = std::min(keys, std::ceil((wasted_ - budget_.wasted_reads_goal) / saved_a_key));
    keys = std::min(keys, std::floor((budget_.bits - spent_) / bits_a_key));
    // The quotient may have been rounded up to a whole number.
    if (keys > 0 && spent_ + keys * bits_a_key > budget_.bits) --keys;
    spent_ += keys * bits_a_key;
    wasted_ -= keys * saved_a_key;
    return static_cast<uint64_t>(keys);
  }

  const absl::Span<const FilterRun> runs_;
  const FilterBudget budget_;
  std::map<std::tuple<const FilterSetting*, size_t, bool>, FilterCurve> known_;
  std::vector<const FilterCurve*> hulls_;
  std::vector<size_t> corners_;  // where each run stands on its hull
  std::priority_queue<Step> steps_;
  BitSum spent_ = 0;
  BitSum wasted_ = 0;
};

}  // namespace

double BudgetBits(absl::Span<const FilterRun> runs, double average_bits_per_key) {
  BitSum keys = 0;
  for (const FilterRun& run : runs) keys += static_cast<BitSum>(run.keys);
  return static_cast<double>(keys * average_bits_per_key);
}

absl::StatusOr<FilterPlan> OptimalAllocation(absl::Span<const FilterRun> runs, const FilterBudget& budget) {
  if (absl::Status s = internal::CheckNotNegative("budget of bits", budget.bits); !s.ok()) return s;
  if (absl::Status s = internal::CheckNotNegative("goal of wasted reads", budget.wasted_reads_goal); !s.ok()) return s;
  if (absl::Status s = internal::CheckRuns(runs); !s.ok()) return s;
  return Greedy(runs, budget).Plan();
}

absl::StatusOr<FilterPlan> LeastMemoryFor(absl::Span<const FilterRun> runs, double wasted_reads) {
  absl::StatusOr<FilterPlan> plan = OptimalAllocation(runs, {.wasted_reads_goal = wasted_reads});
  // The goal is met to rounding: the sum over the targets is not taken in the order of the purchases.
  if (plan.ok() && plan->wasted_reads > wasted_reads * (1 + 1e-9)) {
    return absl::OutOfRangeError(absl::StrCat("no settings reach ", wasted_reads, " wasted reads, the least are ", plan->wasted_reads));
  }
  return plan;
}

absl::StatusOr<FilterSetting> SettingAtPrice(const FilterRun& run, double lambda) {
  if (absl::Status s = internal::CheckNotNegative("price", lambda); !s.ok()) return s;
  if (absl::Status s = internal::CheckRuns({&run, 1}); !s.ok()) return s;
  const FilterCurve hull = internal::LowerHull(run.curve, run.none_allowed);
  size_t corner = 0;
  if (Weight(run) > 0) {
    while (corner + 1 < hull.size() && GainPerBit(run, hull[corner], hull[corner + 1]) > lambda) ++corner;
  }
  return hull[corner];
}

}  // namespace tamis
