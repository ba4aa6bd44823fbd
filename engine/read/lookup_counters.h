// Counts what point reads do, per level, without readers disturbing each other: 64 stripes on cache lines of their own, a thread always
// using the same one. An increment is a relaxed load and store (1 ns against 5 for an atomic add); when more than 64 threads read, two
// may share a stripe and now and then lose a count. Nothing but statistics depends on them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "engine/version/version_edit.h"

namespace tamis::internal {

struct LevelLookups {
  uint64_t probes = 0;
  uint64_t skipped = 0;
  uint64_t true_positives = 0;
  uint64_t false_positives = 0;
  uint64_t unfiltered = 0;         // tables asked without a filter
  uint64_t unfiltered_misses = 0;  // those of them that did not hold the key
};

class LookupCounters {
 public:
  enum Event : uint32_t { kProbe, kSkip, kTruePositive, kFalsePositive, kUnfiltered, kUnfilteredMiss, kEventsPerLevel };
  enum Total : uint32_t { kGets, kFound, kConsidered, kBlocksRead, kPrefixProbes, kPrefixSkips, kTotals };

  class Stripe {
   public:
    void Add(uint32_t level, Event event) { Bump(levels_[level * kEventsPerLevel + event], 1); }
    void Add(Total total, uint64_t n = 1) { Bump(totals_[total], n); }

   private:
    friend class LookupCounters;
    static void Bump(std::atomic<uint64_t>& counter, uint64_t n) {
      counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }
    std::array<std::atomic<uint64_t>, size_t{kMaxLevels} * kEventsPerLevel> levels_{};
    std::array<std::atomic<uint64_t>, kTotals> totals_{};
  };

  Stripe& Mine() {
    static std::atomic<uint32_t> next{0};
    thread_local const uint32_t mine = next.fetch_add(1, std::memory_order_relaxed) % kStripes;
    return stripes_[mine].stripe;
  }

  LevelLookups Level(uint32_t level) const {
    LevelLookups sum;
    for (const Padded& padded : stripes_) {
      const auto at = [&](Event event) { return padded.stripe.levels_[level * kEventsPerLevel + event].load(std::memory_order_relaxed); };
      sum.probes += at(kProbe);
      sum.skipped += at(kSkip);
      sum.true_positives += at(kTruePositive);
      sum.false_positives += at(kFalsePositive);
      sum.unfiltered += at(kUnfiltered);
      sum.unfiltered_misses += at(kUnfilteredMiss);
    }
    return sum;
  }
  uint64_t Sum(Total total) const {
    uint64_t sum = 0;
    for (const Padded& padded : stripes_) sum += padded.stripe.totals_[total].load(std::memory_order_relaxed);
    return sum;
  }

 private:
  static constexpr uint32_t kStripes = 64;
  struct alignas(128) Padded {
    Stripe stripe;
  };
  std::array<Padded, kStripes> stripes_;
};

}  // namespace tamis::internal
