// The false-positive rate that lookups have met, and how far chance can have moved it. Pure functions of counts; thread-safe.
//
// Lookups are no independent trials: a filter answers the same key the same way for ever, so a thousand lookups of one absent key say
// as much about a filter as one. The counts are therefore kept in 64 groups by bits of the key hash. All lookups of a key fall into one
// group, so what repetition does to a total is seen as more difference between the groups than chance would make.
#pragma once

#include <array>
#include <cstdint>
#include <numeric>

namespace tamis {

inline constexpr uint32_t kHashGroups = 64;

// The group of a key by its hash: bits 32 to 37. Neither the line of a blocked Bloom filter (chosen by the bits above, up to 2^26 lines,
// 4 GiB) nor the bits in it (chosen by the low 32) depend on them, so every group has the filter's rate.
inline uint32_t HashGroup(uint64_t hash) { return static_cast<uint32_t>(hash >> 32) % kHashGroups; }

// What filters answered to lookups of keys that were not there, by group.
struct FilterOutcomes {
  std::array<uint64_t, kHashGroups> skipped{};          // "certainly not"
  std::array<uint64_t, kHashGroups> false_positives{};  // "maybe"
  uint64_t skipped_sum() const { return std::accumulate(skipped.begin(), skipped.end(), uint64_t{0}); }
  uint64_t false_positives_sum() const { return std::accumulate(false_positives.begin(), false_positives.end(), uint64_t{0}); }
  friend bool operator==(const FilterOutcomes&, const FilterOutcomes&) = default;
};

struct ObservedRate {
  uint64_t asked = 0;  // skipped + false positives
  uint64_t false_positives = 0;
  double rate = 0;  // false_positives / asked; 0 if none was asked
  // The two-sided 95 % interval; 0 and 1 if none was asked. Keys that are looked up again and again widen it; one key alone, whatever
  // it met, leaves nearly everything possible.
  double lower = 0;
  double upper = 1;
};

// The limits are those of a Poisson count (Byar's approximation, good to a few percent from no false positive on), stretched by the
// variance between the groups: below, that of the false positives; above, also that of the lookups, since the next key may be one that
// is asked often. Quantiles of Student's t with 63 degrees of freedom. Of few groups (fewer than about 64 distinct keys) it is rough.
ObservedRate ObserveRate(const FilterOutcomes& outcomes);

// Whether the filters err more often than `predicted` (0..1) by more than chance: the lower limit of the rate that is right in all but
// one of 100,000 cases, one-sided, lies above it. So strict because levels are many and looked at often.
//
// Two things besides the lookups are chance, and for the caller to add to `predicted`: which keys the filter holds (fpr_model::
// RateDeviation), and, of filters with different rates, which of them the lookups asked.
bool AbovePrediction(const FilterOutcomes& outcomes, double predicted);

// How many deviations are as unlikely as that.
inline constexpr double kAboveChanceDeviations = 4.27;

}  // namespace tamis
