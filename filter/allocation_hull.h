// What the allocators share: checks of their arguments, and the settings that an optimum can use.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tamis/filter_allocation.h"

namespace tamis::internal {

// Sums of keys times bits. 64 bits of mantissa on x86-64 (113 on arm64): exact for 2^6 runs of 2^50 keys in eighths of a bit.
using BitSum = long double;

inline BitSum BitsOf(uint64_t keys, double bits_per_key) { return static_cast<BitSum>(keys) * bits_per_key; }
// Keys times bits of a divided run.
inline BitSum BitsOf(uint64_t keys, const FilterTarget& target) {
  return BitsOf(keys - target.next_keys, target.setting.bits_per_key) + BitsOf(target.next_keys, target.next.bits_per_key);
}

// f c; 0 for a run without keys.
inline double Weight(const FilterRun& run) { return run.keys == 0 ? 0 : run.absent_probability * run.read_cost; }

// Everything but the curve.
absl::Status CheckRun(const FilterRun& run, size_t index);
absl::Status CheckRuns(absl::Span<const FilterRun> runs);
absl::Status CheckCurve(absl::Span<const FilterSetting> curve, size_t index);
absl::Status CheckNotNegative(const char* what, double value);

// Corners of the lower convex hull of the curve, and of {0, 1} if `with_none`: bits and rates strictly monotone, each step saving less for
// a bit than the one before. The first corner is the setting of fewest bits. REQUIRES: CheckCurve.
FilterCurve LowerHull(absl::Span<const FilterSetting> curve, bool with_none);

// Wasted reads saved by a bit on the way from corner a to corner b. REQUIRES: keys > 0. One formula for all who compare gains: rounding
// must not make a plan and its price disagree.
inline double GainPerBit(const FilterRun& run, const FilterSetting& a, const FilterSetting& b) {
  return Weight(run) * (a.rate - b.rate) / (static_cast<double>(run.keys) * (b.bits_per_key - a.bits_per_key));
}

// Fills wasted_reads and bits from the targets.
void SumUp(absl::Span<const FilterRun> runs, FilterPlan* plan);

}  // namespace tamis::internal
