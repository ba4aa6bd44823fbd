// Which filter a new table gets, and how many bits per key: pure, from the settings, the sizes of all runs as they will be after the job,
// and what lookups have found in each level.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "tamis/filter_allocation.h"
#include "tamis/filter_options.h"

namespace tamis::internal {

// A level, or a single table of L0.
struct RunSize {
  uint32_t level = 0;
  bool last_level = false;  // the level that FilterOptions::last_level_kind is for
  uint64_t keys = 0;
};

// The share `next_share` of a run's keys gets `next`, the rest `bits_per_key` (0: no filter).
struct FilterBits {
  double bits_per_key = 0;
  double next = 0;
  double next_share = 0;
  double average() const { return bits_per_key + next_share * (next - bits_per_key); }
};

// What tables of the last level, or of another, get.
inline FilterKind KindOfTables(const FilterOptions& options, bool last_level) {
  return last_level && options.kind != FilterKind::kNone ? options.last_level_kind.value_or(options.kind) : options.kind;
}

// The bits of each run. kUniform and kPerLevel look at the level only. kOptimal divides the budget (tamis/filter_allocation.h) with
// f of each level from `lookups` (by level; a level that is not in it has f = 1). The last run keeps a filter, if the budget has
// the bits for it, until 2^16 lookups have been counted.
std::vector<FilterBits> AllocateFilterBits(const FilterOptions& options, absl::Span<const RunSize> runs,
                                           absl::Span<const LevelMisses> lookups);

// Which setting each table of a run gets, so that the share of the run's keys is kept from table to table and from job to job: the
// rounding of each table is carried on to the next. Not thread-safe.
class FilterDivider {
 public:
  // `carry`: keys that the tables before lack of their share (or, negative, have beyond it).
  explicit FilterDivider(const FilterBits& bits, double carry = 0) : bits_(bits), carry_(carry) {}
  // The bits per key of the next table, of `keys` keys.
  double Take(uint64_t keys);
  double carry() const { return carry_; }

 private:
  FilterBits bits_;
  double carry_;
};

}  // namespace tamis::internal
