#include "tools/advice.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tamis::tools {
namespace {

constexpr double kKeepTime = 1.05;
constexpr double kKeepMemory = 1.1;

absl::Status Check(const LookupCosts& costs) {
  for (const auto& [name, value] : {std::pair("--read-cost-us", costs.read_us), std::pair("--probe-ns", costs.probe_ns)}) {
    if (!(value > 0 && std::isfinite(value))) return absl::InvalidArgumentError(absl::StrCat(name, " ", value, " is not above 0"));
  }
  return absl::OkStatus();
}

double ProbeMicros(FilterKind kind, const LookupCosts& costs) {
  return costs.probe_ns / 1000 * (kind == FilterKind::kRibbon ? kRibbonProbes : 1);
}

FilterOutcome OutcomeOf(double bytes, double wasted_reads, double probe_micros, const Workload& workload, const LookupCosts& costs) {
  return {.bytes = bytes,
          .bits_per_key = 8 * bytes / static_cast<double>(workload.keys()),
          .wasted_reads = wasted_reads,
          .micros = wasted_reads * costs.read_us + probe_micros};
}

FilterOutcome WithoutFilters(const Workload& workload, const LookupCosts& costs) {
  double wasted = 0;
  for (const WorkloadRun& run : workload.runs) wasted += run.absent;
  return OutcomeOf(0, wasted, 0, workload, costs);
}

FilterOutcome AsItIs(const Workload& workload, const LookupCosts& costs) {
  double probes = 0;
  for (const WorkloadRun& run : workload.runs) probes += run.asked * run.filtered * ProbeMicros(run.kind, costs);
  return OutcomeOf(workload.filter_bytes(), workload.wasted_reads(), probes, workload, costs);
}

FilterOutcome OutcomeOf(const FilterPlan& plan, FilterKind last_kind, const Workload& workload, const LookupCosts& costs) {
  double probes = 0;
  for (size_t i = 0; i < plan.runs.size(); ++i) {
    const FilterKind kind = i + 1 == plan.runs.size() ? last_kind : FilterKind::kBlockedBloom;
    probes += workload.runs[i].asked * FilteredShare(plan.runs[i]) * ProbeMicros(kind, costs);
  }
  return OutcomeOf(plan.bits / 8, plan.wasted_reads, probes, workload, costs);
}

// Down to two digits, so that the goal that is printed is the goal that was reckoned with.
double TwoDigits(double value) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - 1);
  return std::floor(value / unit + 1e-9) * unit;
}

// What all filters take to be asked, in reads.
double ProbesInReads(const Workload& workload, const LookupCosts& costs) {
  double asked = 0;
  for (const WorkloadRun& run : workload.runs) asked += run.asked;
  return asked * ProbeMicros(FilterKind::kBlockedBloom, costs) / costs.read_us;
}

double UpToAStep(double bits_per_key) { return std::ceil(bits_per_key / kBitsPerKeyStep - 1e-9) * kBitsPerKeyStep; }

FilterOptions OptionsFor(const FilterOutcome& advised, double goal) {
  FilterOptions options;
  // The goal ends the spending; a budget below the least filter would only stand in the way of filters of new databases, which have not
  // learned yet that the last level needs none.
  options.bits_per_key = std::clamp(UpToAStep(advised.bits_per_key), kMinBitsPerKey, kMaxBitsPerKey);
  options.wasted_reads_goal = goal;
  return options;
}

bool RibbonIsWorthIt(const Advice& advice, const Workload& workload) {
  return advice.advised.bytes - advice.ribbon->bytes >= kRibbonSavesBytesMin && workload.runs.back().absent <= kRibbonAbsentMax &&
         advice.ribbon->micros - advice.advised.micros <= kRibbonTimeShareMax * (advice.none.micros - advice.advised.micros);
}

absl::Status TryRibbon(const Workload& workload, const LookupCosts& costs, double goal, std::vector<FilterRun> runs, Advice* advice) {
  const absl::StatusOr<FilterCurve> curve = CurveOf(FilterKind::kRibbon);
  if (!curve.ok()) return curve.status();
  runs.back().curve = *curve;
  absl::StatusOr<FilterPlan> plan = OptimalAllocation(runs, {.wasted_reads_goal = goal});
  if (!plan.ok()) return plan.status();
  advice->blocked = advice->advised;
  advice->ribbon = OutcomeOf(*plan, FilterKind::kRibbon, workload, costs);
  if (!RibbonIsWorthIt(*advice, workload)) return absl::OkStatus();
  advice->advised = *advice->ribbon;
  advice->runs = std::move(plan->runs);
  advice->options = OptionsFor(advice->advised, goal);
  advice->options.last_level_kind = FilterKind::kRibbon;
  return absl::OkStatus();
}

void AdviseNone(const Workload& workload, Advice* advice) {
  advice->which = AdviceCase::kNoFilters;
  advice->options = FilterOptions();
  advice->options.kind = FilterKind::kNone;
  advice->runs.assign(workload.runs.size(), FilterTarget());
  advice->advised = advice->none;
}

}  // namespace

absl::StatusOr<Advice> Advise(const Workload& workload, const LookupCosts& costs) {
  if (absl::Status s = Check(costs); !s.ok()) return s;
  Advice advice;
  if (workload.keys() == 0) return advice;
  const absl::StatusOr<FilterCurve> curve = CurveOf(FilterKind::kBlockedBloom);
  if (!curve.ok()) return curve.status();
  const std::vector<FilterRun> runs = workload.Runs(*curve);
  advice.none = WithoutFilters(workload, costs);
  advice.now = AsItIs(workload, costs);
  const absl::StatusOr<FilterPlan> same_memory = OptimalAllocation(runs, {.bits = 8 * workload.filter_bytes()});
  if (!same_memory.ok()) return same_memory.status();
  advice.same_memory = OutcomeOf(*same_memory, FilterKind::kBlockedBloom, workload, costs);

  const double probes = ProbesInReads(workload, costs);
  const double goal = TwoDigits(std::clamp(advice.now.wasted_reads, probes / 10, probes));
  absl::StatusOr<FilterPlan> plan = OptimalAllocation(runs, {.wasted_reads_goal = goal});
  if (!plan.ok()) return plan.status();
  advice.advised = OutcomeOf(*plan, FilterKind::kBlockedBloom, workload, costs);
  if (advice.none.wasted_reads <= probes || advice.advised.micros >= advice.none.micros) {
    AdviseNone(workload, &advice);
  } else {
    advice.which = FilteredShare(plan->runs.back()) > 0 ? AdviceCase::kAllLevels : AdviceCase::kUpperLevels;
    advice.runs = std::move(plan->runs);
    advice.options = OptionsFor(advice.advised, goal);
    if (advice.which == AdviceCase::kAllLevels) {
      if (absl::Status s = TryRibbon(workload, costs, goal, runs, &advice); !s.ok()) return s;
    }
  }
  advice.keep = advice.now.micros <= kKeepTime * advice.advised.micros && advice.now.bytes <= kKeepMemory * advice.advised.bytes;
  return advice;
}

}  // namespace tamis::tools
