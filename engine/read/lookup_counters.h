// Counts what point reads do, per level, without readers disturbing each other: stripes that a thread always uses the same one of. An
// increment is a relaxed load and store (1 ns against 5 for an atomic add); when more than 64 threads read, two may share a stripe and now
// and then lose a count. Nothing but statistics and the learned f depends on them.
//
// What filters answered to lookups of keys that are not in the table is counted in 64 groups by bits of the key hash
// (tamis/filter_observed.h). The probes are not counted, being the sum of the answers: a key that a filter denies costs one increment.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>

#include "engine/version/version_edit.h"
#include "tamis/filter_observed.h"

namespace tamis::internal {

struct LevelLookups {
  FilterOutcomes outcomes;  // skipped and false positives
  uint64_t true_positives = 0;
  uint64_t unfiltered = 0;         // tables asked without a filter
  uint64_t unfiltered_misses = 0;  // those of them that did not hold the key
};
using LevelsLookups = std::array<LevelLookups, kMaxLevels>;

// Thread-safe.
class LookupCounters {
 public:
  enum Event : uint32_t { kTruePositive, kUnfiltered, kUnfilteredMiss, kEventsPerLevel };
  enum Total : uint32_t { kGets, kFound, kConsidered, kBlocksRead, kPrefixProbes, kPrefixSkips, kTotals };

  class alignas(128) Stripe {
   public:
    void AddSkipped(uint32_t level, uint64_t hash) { Bump(groups_[HashGroup(hash)].skipped[level], 1); }
    void AddFalsePositive(uint32_t level, uint64_t hash) { Bump(groups_[HashGroup(hash)].false_positives[level], 1); }
    void Add(uint32_t level, Event event) { Bump(levels_[level * kEventsPerLevel + event], 1); }
    void Add(Total total, uint64_t n = 1) { Bump(totals_[total], n); }

   private:
    friend class LookupCounters;
    // The levels of a group side by side: the lookup of an absent key touches one or two lines of the cache here, not one a level.
    struct Group {
      std::array<std::atomic<uint64_t>, kMaxLevels> skipped{};
      std::array<std::atomic<uint64_t>, kMaxLevels> false_positives{};
    };
    static void Bump(std::atomic<uint64_t>& counter, uint64_t n) {
      counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }
    std::array<std::atomic<uint64_t>, kTotals> totals_{};
    std::array<std::atomic<uint64_t>, size_t{kMaxLevels} * kEventsPerLevel> levels_{};
    std::array<Group, kHashGroups> groups_{};
  };

  LookupCounters() = default;
  LookupCounters(const LookupCounters&) = delete;
  LookupCounters& operator=(const LookupCounters&) = delete;
  ~LookupCounters() {
    for (std::atomic<Stripe*>& stripe : stripes_) delete stripe.load(std::memory_order_relaxed);
  }

  // The calling thread's. Made when a thread first asks (13 KiB; all 64 would be 0.8 MiB in every database); should there be no memory,
  // threads without one share a spare.
  Stripe& Mine() {
    static std::atomic<uint32_t> next{0};
    thread_local const uint32_t mine = next.fetch_add(1, std::memory_order_relaxed) % kStripes;
    Stripe* const stripe = stripes_[mine].load(std::memory_order_acquire);
    return stripe != nullptr ? *stripe : Make(&stripes_[mine]);
  }

  LevelsLookups Levels() const {
    LevelsLookups sums;
    ForEach([&sums](const Stripe& stripe) { AddTo(stripe, &sums); });
    return sums;
  }
  uint64_t Sum(Total total) const {
    uint64_t sum = 0;
    ForEach([&](const Stripe& stripe) { sum += Read(stripe.totals_[total]); });
    return sum;
  }

 private:
  static constexpr uint32_t kStripes = 64;

  static uint64_t Read(const std::atomic<uint64_t>& counter) { return counter.load(std::memory_order_relaxed); }

  Stripe& Make(std::atomic<Stripe*>* place) {
    std::unique_ptr<Stripe> made(new (std::nothrow) Stripe);
    if (made == nullptr) return spare_;
    Stripe* there = nullptr;
    if (!place->compare_exchange_strong(there, made.get(), std::memory_order_acq_rel)) return *there;  // the other user was first
    return *made.release();
  }

  template <typename Use>
  void ForEach(const Use& use) const {
    use(spare_);
    for (const std::atomic<Stripe*>& place : stripes_) {
      if (const Stripe* stripe = place.load(std::memory_order_acquire)) use(*stripe);
    }
  }

  static void AddTo(const Stripe& stripe, LevelsLookups* sums) {
    for (uint32_t level = 0; level < kMaxLevels; ++level) {
      LevelLookups& sum = (*sums)[level];
      const auto at = [&](Event event) { return Read(stripe.levels_[level * kEventsPerLevel + event]); };
      sum.true_positives += at(kTruePositive);
      sum.unfiltered += at(kUnfiltered);
      sum.unfiltered_misses += at(kUnfilteredMiss);
      for (uint32_t group = 0; group < kHashGroups; ++group) {
        sum.outcomes.skipped[group] += Read(stripe.groups_[group].skipped[level]);
        sum.outcomes.false_positives[group] += Read(stripe.groups_[group].false_positives[level]);
      }
    }
  }

  Stripe spare_;
  std::array<std::atomic<Stripe*>, kStripes> stripes_{};
};

}  // namespace tamis::internal
