// How often filters may have erred by chance in the lookups counted so far, each judged by the filters that the tree had at its time: what
// was asked before filters were rebuilt, or tables rewritten with other settings, says nothing about those that are there now.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "engine/read/lookup_counters.h"

namespace tamis::internal {

// By level: the highest rate that a filter of it may have by chance (TableFile::filter_rate_limit).
using RateLimits = std::array<double, kMaxLevels>;

// Not thread-safe.
class FilterLedger {
 public:
  // What has been counted since the last call was answered by filters with these limits. To be called before the tree changes.
  void Settle(const LevelsLookups& now, const RateLimits& limits) {
    for (uint32_t level = 0; level < kMaxLevels; ++level) {
      const FilterOutcomes& outcomes = now[level].outcomes;
      const uint64_t asked = outcomes.skipped_sum() + outcomes.false_positives_sum();
      // The counters may lose counts to each other, and so go back a little.
      if (asked > asked_[level]) errors_[level] += limits[level] * static_cast<double>(asked - asked_[level]);
      asked_[level] = std::max(asked, asked_[level]);
    }
  }

  // The limit of the rate that `level` may have shown in all lookups that were settled. 1 before the first.
  double Limit(uint32_t level) const { return asked_[level] == 0 ? 1 : std::min(1.0, errors_[level] / static_cast<double>(asked_[level])); }

 private:
  std::array<uint64_t, kMaxLevels> asked_{};
  std::array<double, kMaxLevels> errors_{};
};

}  // namespace tamis::internal
