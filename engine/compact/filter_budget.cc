#include "engine/compact/filter_budget.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace tamis::internal {
namespace {

FilterBits Undivided(double bits) { return {.bits_per_key = bits, .next = bits}; }

const FilterCurve& CurveOfTables(FilterKind kind) {
  static const std::array<FilterCurve, 6> curves = [] {
    std::array<FilterCurve, 6> all;
    for (size_t i = 1; i < all.size(); ++i) all[i] = CurveOf(static_cast<FilterKind>(i)).value();
    // What a table of 10^5 keys gets for 9.625 bits a key takes 10.25 (20.5) with 10^4, and for less it would get a filter of another kind
    // with three times the rate. A larger table takes what it needs.
    std::erase_if(all[static_cast<size_t>(FilterKind::kBinaryFuse)], [](const FilterSetting& setting) {
      return (setting.bits_per_key > 9.5 && setting.bits_per_key < 10.25) || (setting.bits_per_key > 19.125 && setting.bits_per_key < 20.5);
    });
    return all;
  }();
  return curves[static_cast<size_t>(kind)];
}

std::vector<FilterBits> Optimal(const FilterOptions& options, absl::Span<const RunSize> sizes, absl::Span<const LevelMisses> lookups) {
  std::vector<FilterRun> runs;
  runs.reserve(sizes.size());
  size_t last = 0;
  for (const RunSize& size : sizes) {
    FilterRun run;
    run.keys = std::min(size.keys, kMaxRunKeys);
    if (size.level < lookups.size()) run.absent_probability = AbsentProbability(lookups[size.level]);
    run.curve = CurveOfTables(KindOfTables(options, size.last_level));
    run.level = size.level;
    runs.push_back(run);
    if (runs[last].keys == 0 || (size.keys != 0 && runs[last].level < size.level)) last = runs.size() - 1;
  }
  FilterBudget budget;
  budget.bits =
      options.memory_budget_bytes != 0 ? 8.0 * static_cast<double>(options.memory_budget_bytes) : BudgetBits(runs, options.bits_per_key);
  budget.wasted_reads_goal = options.wasted_reads_goal;
  absl::StatusOr<FilterPlan> plan = absl::UnknownError("");
  const uint64_t seen = runs.empty() || runs[last].level >= lookups.size() ? 0 : lookups[runs[last].level].lookups;
  if (!runs.empty() && runs[last].keys != 0 && !MayDropLastFilter(seen)) {
    runs[last].none_allowed = false;
    plan = OptimalAllocation(runs, budget);  // refused if the budget does not hold the least filter of the last run
    runs[last].none_allowed = true;
  }
  if (!plan.ok()) plan = OptimalAllocation(runs, budget);
  TAMIS_CHECK(plan.ok());  // options and counters give numbers within its contract
  std::vector<FilterBits> bits;
  bits.reserve(runs.size());
  for (const FilterTarget& target : plan->runs) {
    bits.push_back({.bits_per_key = target.setting.bits_per_key, .next = target.next.bits_per_key, .next_share = target.next_share});
  }
  return bits;
}

}  // namespace

std::vector<FilterBits> AllocateFilterBits(const FilterOptions& options, absl::Span<const RunSize> runs,
                                           absl::Span<const LevelMisses> lookups) {
  if (options.kind != FilterKind::kNone && options.allocation == FilterAllocation::kOptimal) return Optimal(options, runs, lookups);
  std::vector<FilterBits> bits;
  bits.reserve(runs.size());
  for (const RunSize& run : runs) {
    double wanted = options.bits_per_key;
    if (options.kind == FilterKind::kNone) {
      wanted = 0;
    } else if (options.allocation == FilterAllocation::kPerLevel && !options.bits_per_level.empty()) {
      wanted = options.bits_per_level[std::min<size_t>(run.level, options.bits_per_level.size() - 1)];
    }
    bits.push_back(Undivided(wanted));
  }
  return bits;
}

double FilterDivider::Take(uint64_t keys) {
  if (bits_.next_share <= 0) return bits_.bits_per_key;
  const auto table = static_cast<double>(keys);
  carry_ += bits_.next_share * table;
  if (carry_ < table / 2) return bits_.bits_per_key;
  carry_ -= table;
  return bits_.next;
}

}  // namespace tamis::internal
