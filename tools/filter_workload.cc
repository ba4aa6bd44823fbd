#include "tools/filter_workload.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tamis::tools {
namespace {

constexpr uint32_t kMaxLevels = 12;  // Options::compaction.levels
constexpr double kMaxSizeRatio = 100;
constexpr uint32_t kUsualLevels = 4;
constexpr double kUsualSizeRatio = 10;
constexpr double kUsualBitsPerKey = 10;

absl::Status OutOfRange(const char* flag, double value, double least, double most) {
  return absl::InvalidArgumentError(absl::StrCat(flag, " ", value, " is not in the range ", least, " to ", most));
}

bool Within(double value, double least, double most) { return value >= least && value <= most; }  // false for NaN

absl::Status Check(const WorkloadFlags& flags) {
  if (flags.keys && (*flags.keys == 0 || *flags.keys > kMaxRunKeys)) {
    return absl::InvalidArgumentError(absl::StrCat("--keys ", *flags.keys, " is not in the range 1 to ", kMaxRunKeys));
  }
  if (flags.levels && !Within(*flags.levels, 1, kMaxLevels)) return OutOfRange("--levels", *flags.levels, 1, kMaxLevels);
  if (flags.size_ratio && !Within(*flags.size_ratio, 1, kMaxSizeRatio)) {
    return OutOfRange("--size-ratio", *flags.size_ratio, 1, kMaxSizeRatio);
  }
  if (flags.negative_share && !Within(*flags.negative_share, 0, 1)) {
    return OutOfRange("--negative-share (percent)", 100 * *flags.negative_share, 0, 100);
  }
  if (flags.bits_per_key && !Within(*flags.bits_per_key, 0, kMaxBitsPerKey)) {
    return OutOfRange("--bits-per-key", *flags.bits_per_key, 0, kMaxBitsPerKey);
  }
  return absl::OkStatus();
}

// From the last level up, each a `ratio`th of the one below; levels of less than a key are left out.
std::vector<WorkloadRun> TreeOf(uint64_t keys, uint32_t levels, double ratio) {
  double parts = 0;
  for (uint32_t i = 0; i < levels; ++i) parts += std::pow(ratio, -static_cast<double>(i));
  std::vector<WorkloadRun> runs;
  uint64_t left = keys;
  for (uint32_t i = levels; i-- > 0;) {
    const double share = std::pow(ratio, -static_cast<double>(i)) / parts;
    const uint64_t here = i == 0 ? left : std::min(left, static_cast<uint64_t>(share * static_cast<double>(keys)));
    left -= here;
    if (here != 0) runs.push_back({.level = levels - i, .keys = here});
  }
  return runs;
}

// A present key is asked for in vain in all levels above its own.
void LetAbsentShareBe(double negative, Workload* workload) {
  const auto all = static_cast<double>(workload->keys());
  uint64_t below = workload->keys();
  for (WorkloadRun& run : workload->runs) {
    run.asked = negative + (1 - negative) * static_cast<double>(below) / all;
    below -= run.keys;
    run.absent = negative + (1 - negative) * static_cast<double>(below) / all;
  }
  workload->counted = false;
  workload->lookups = 0;
}

absl::Status LetFiltersBeUniform(double bits_per_key, Workload* workload) {
  const absl::StatusOr<FilterCurve> curve = CurveOf(FilterKind::kBlockedBloom);
  if (!curve.ok()) return curve.status();
  const absl::StatusOr<FilterPlan> plan = UniformAllocation(workload->Runs(*curve), bits_per_key);
  if (!plan.ok()) return plan.status();
  for (size_t i = 0; i < workload->runs.size(); ++i) {
    const FilterTarget& target = plan->runs[i];
    WorkloadRun& run = workload->runs[i];
    run.rate = target.rate();
    run.filter_bytes = static_cast<double>(run.keys) * target.bits_per_key() / 8;
    run.filtered = FilteredShare(target);
    run.kind = run.filtered > 0 ? FilterKind::kBlockedBloom : FilterKind::kNone;
  }
  return absl::OkStatus();
}

void ScaleTo(uint64_t keys, Workload* workload) {
  const double factor = static_cast<double>(keys) / static_cast<double>(workload->keys());
  for (WorkloadRun& run : workload->runs) {
    run.keys = std::max<uint64_t>(1, static_cast<uint64_t>(std::llround(factor * static_cast<double>(run.keys))));
    run.filter_bytes *= factor;
  }
}

}  // namespace

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
    if (level.learned.lookups != 0) {
      // Several files of L0 may be asked in one lookup: f and this are of a file.
      const uint64_t most = std::max(level.learned.lookups, level.learned.probes);
      run.asked = std::max(run.absent, static_cast<double>(level.learned.probes) / static_cast<double>(most));
    }
    workload.lookups = level.learned.lookups;
    run.kind = level.filter_kind;
    if (level.filter_bytes != 0 && level.files != 0) {
      run.filtered = 1 - static_cast<double>(level.files_without_filter) / static_cast<double>(level.files);
    }
    run.filter_bytes = static_cast<double>(level.filter_bytes) / static_cast<double>(count);
    for (uint64_t i = 0; i < count; ++i) {
      run.keys = level.keys / count + (i < level.keys % count ? 1 : 0);
      workload.runs.push_back(run);
    }
  }
  return workload;
}

absl::StatusOr<Workload> Described(const std::optional<Workload>& database, const WorkloadFlags& flags) {
  if (absl::Status s = Check(flags); !s.ok()) return s;
  if (!database && !(flags.keys && flags.negative_share)) {
    return absl::InvalidArgumentError("without a database --keys and --negative-share are needed");
  }
  Workload workload = database.value_or(Workload());
  const uint64_t keys = flags.keys.value_or(workload.keys());
  if (keys == 0) return workload;
  const bool tree = workload.runs.empty() || flags.levels || flags.size_ratio;
  std::optional<double> bits = flags.bits_per_key;
  std::optional<double> negative = flags.negative_share;
  if (tree) {
    const bool known = !workload.runs.empty();
    if (!bits)
      bits = known ? std::min(kMaxBitsPerKey, 8 * workload.filter_bytes() / static_cast<double>(workload.keys())) : kUsualBitsPerKey;
    if (!negative) negative = known ? workload.runs.back().absent : 1;
    const uint32_t levels = known ? static_cast<uint32_t>(std::min<size_t>(workload.runs.size(), kMaxLevels)) : kUsualLevels;
    workload.runs = TreeOf(keys, flags.levels.value_or(levels), flags.size_ratio.value_or(kUsualSizeRatio));
  } else if (flags.keys) {
    ScaleTo(keys, &workload);
  }
  if (negative) LetAbsentShareBe(*negative, &workload);
  if (bits) {
    if (absl::Status s = LetFiltersBeUniform(*bits, &workload); !s.ok()) return s;
  }
  return workload;
}

double FilteredShare(const FilterTarget& target) {
  const double without =
      (target.setting.bits_per_key > 0 ? 0 : 1 - target.next_share) + (target.next.bits_per_key > 0 ? 0 : target.next_share);
  return 1 - without;
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
