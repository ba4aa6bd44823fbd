// A tree of runs and what lookups ask of it, for the allocation of filter bits (tamis/filter_allocation.h): what `filters` and `advise`
// reckon with. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tamis/filter_allocation.h"
#include "tamis/stats.h"

namespace tamis::tools {

struct WorkloadRun {
  uint32_t level = 0;
  uint64_t keys = 0;
  double absent = 1;  // f: a lookup asks the run in vain
  double asked = 1;   // a lookup asks the run at all; at least `absent`
  // As it is, of a database: the mean rate of its filters (1 where there is none) and their memory.
  double rate = 1;
  double filter_bytes = 0;
  double filtered = 0;  // share that has a filter
  FilterKind kind = FilterKind::kNone;
};

struct Workload {
  std::vector<WorkloadRun> runs;  // from the top
  bool counted = false;           // f comes from counters of lookups
  uint64_t lookups = 0;           // that the last run's f comes from

  uint64_t keys() const;
  double filter_bytes() const;
  double wasted_reads() const;  // of the filters as they are
  // The runs for the allocator; `curve` must outlive them.
  std::vector<FilterRun> Runs(absl::Span<const FilterSetting> curve) const;
};

// Levels with keys; L0 as that many tables of equal size. f as the statistics have learned it; 1 where they have not.
Workload WorkloadOf(const Stats& stats);

// What is known of a workload without counting: all but --keys and --negative-share may stay open.
struct WorkloadFlags {
  std::optional<uint64_t> keys{};
  std::optional<uint32_t> levels{};        // with keys, 1 to 12; 4
  std::optional<double> size_ratio{};      // of neighbouring levels, 1 to 100; 10
  std::optional<double> negative_share{};  // of lookups, for absent keys, 0 to 1
  std::optional<double> bits_per_key{};    // as it is: blocked Bloom, the same in each level, 0 to 24; 10
};
// The workload of a database with what the flags say instead, or, without a database, of the flags alone. Number of levels or size ratio:
// another tree. Keys alone: the same tree, larger or smaller. Share of absent keys: f of each level from the keys below it, as if all
// present keys were asked for equally often. A database without keys is a tree to be described, once the flags say how many keys.
// InvalidArgument for a flag out of its range, and without a database if the keys or the share are missing.
absl::StatusOr<Workload> Described(const std::optional<Workload>& database, const WorkloadFlags& flags);

// The share of a run's keys whose tables get a filter at all.
double FilteredShare(const FilterTarget& target);

struct FilterVerdict {
  FilterPlan same_memory;  // the fewest wasted reads
  FilterPlan same_reads;   // the least memory
};
// What the best allocation would make of the memory, or of the wasted reads, of the filters as they are. Of no use without keys: fails
// as the allocation does.
absl::StatusOr<FilterVerdict> Judge(const Workload& workload, FilterKind kind);

// "12.3 MiB"
std::string Mebibytes(double bytes);

}  // namespace tamis::tools
