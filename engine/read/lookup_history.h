// What lookups have found in each level, over the life of the database: the counters of this process added to what the manifest brought
// from earlier ones, with the past fading (Aged). The f of the allocation comes from here.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "engine/read/lookup_counters.h"
#include "tamis/filter_allocation.h"

namespace tamis::internal {

// Not thread-safe.
class LookupHistory {
 public:
  // What the manifest holds; before the first Fold. Levels that it does not mention start from nothing.
  void Restore(const std::vector<LevelMisses>& levels) {
    std::copy_n(levels.begin(), std::min(levels.size(), levels_.size()), levels_.begin());
  }

  // Adds what `counters` have counted since the last call.
  void Fold(const LookupCounters& counters) {
    const uint64_t gets = Since(counters.Sum(LookupCounters::kGets), &gets_);
    unsaved_ += gets;
    const LevelsLookups levels = counters.Levels();
    for (uint32_t level = 0; level < kMaxLevels; ++level) {
      const LevelLookups& now = levels[level];
      const uint64_t denied_or_wrong = now.outcomes.skipped_sum() + now.outcomes.false_positives_sum();
      LevelMisses& sum = levels_[level];
      sum.lookups += gets;
      sum.probes += Since(denied_or_wrong + now.true_positives + now.unfiltered, &probes_[level]);
      sum.misses += Since(denied_or_wrong + now.unfiltered_misses, &misses_[level]);
      sum = Aged(sum);
    }
  }

  std::vector<LevelMisses> levels() const { return {levels_.begin(), levels_.end()}; }
  // Lookups folded in since MarkSaved.
  uint64_t unsaved() const { return unsaved_; }
  void MarkSaved() { unsaved_ = 0; }

 private:
  // The counters may lose counts to each other, and so go back a little: never below zero here.
  static uint64_t Since(uint64_t now, uint64_t* before) {
    const uint64_t more = now > *before ? now - *before : 0;
    *before = now;
    return more;
  }

  std::array<LevelMisses, kMaxLevels> levels_{};
  uint64_t gets_ = 0;
  std::array<uint64_t, kMaxLevels> probes_{};
  std::array<uint64_t, kMaxLevels> misses_{};
  uint64_t unsaved_ = 0;
};

}  // namespace tamis::internal
