// A tree of runs and what lookups ask of it, for the allocation of filter bits (tamis/filter_allocation.h): what `filters`
// reckons with.
#pragma once

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
  // As it is, of a database: the mean rate of its filters (1 where there is none) and their memory.
  double rate = 1;
  double filter_bytes = 0;
};

struct Workload {
  std::vector<WorkloadRun> runs;  // from the top
  bool counted = false;           // f comes from counters of lookups

  uint64_t keys() const;
  double filter_bytes() const;
  double wasted_reads() const;  // of the filters as they are
  // The runs for the allocator; `curve` must outlive them.
  std::vector<FilterRun> Runs(absl::Span<const FilterSetting> curve) const;
};

// Levels with keys; L0 as that many tables of equal size. f as the statistics have learned it; 1 where they have not.
Workload WorkloadOf(const Stats& stats);

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
