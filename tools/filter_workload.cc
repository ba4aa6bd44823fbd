#include "tools/filter_workload.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"

namespace tamis::tools {

uint64_t Workload::keys() const {
  uint64_t sum = 0;
  for (const WorkloadRun& run : runs) sum += run.keys;
  return sum;
}

double Workload::filter_bytes() const {
  double sum = 0;
  for (const WorkloadRun& run : runs) sum += run.filter_bytes;
  return sum;
}

double Workload::wasted_reads() const {
  double sum = 0;
  for (const WorkloadRun& run : runs) sum += run.absent * run.rate;
  return sum;
}

std::vector<FilterRun> Workload::Runs(absl::Span<const FilterSetting> curve) const {
  std::vector<FilterRun> made;
  made.reserve(runs.size());
  for (const WorkloadRun& run : runs) {
    made.push_back({.keys = std::min(run.keys, kMaxRunKeys), .absent_probability = run.absent, .curve = curve, .level = run.level});
  }
  return made;
}

Workload WorkloadOf(const Stats& stats) {
  Workload workload;
  for (const LevelStats& level : stats.levels) {
    if (level.keys == 0) continue;
    const uint64_t count = level.level == 0 ? level.files : 1;
    workload.counted = workload.counted || level.learned.lookups != 0;
    WorkloadRun run{.level = level.level, .absent = level.absent_probability, .rate = level.predicted_fpr};
    run.filter_bytes = static_cast<double>(level.filter_bytes) / static_cast<double>(count);
    for (uint64_t i = 0; i < count; ++i) {
      run.keys = level.keys / count + (i < level.keys % count ? 1 : 0);
      workload.runs.push_back(run);
    }
  }
  return workload;
}

absl::StatusOr<FilterVerdict> Judge(const Workload& workload, FilterKind kind) {
  const absl::StatusOr<FilterCurve> curve = CurveOf(kind == FilterKind::kNone ? FilterKind::kBlockedBloom : kind);
  if (!curve.ok()) return curve.status();
  const std::vector<FilterRun> runs = workload.Runs(*curve);
  absl::StatusOr<FilterPlan> same_memory = OptimalAllocation(runs, {.bits = 8 * workload.filter_bytes()});
  if (!same_memory.ok()) return same_memory.status();
  absl::StatusOr<FilterPlan> same_reads = LeastMemoryFor(runs, workload.wasted_reads());
  if (!same_reads.ok()) return same_reads.status();
  return FilterVerdict{*std::move(same_memory), *std::move(same_reads)};
}

std::string Mebibytes(double bytes) { return absl::StrFormat("%.2f MiB", bytes / (1 << 20)); }

}  // namespace tamis::tools
