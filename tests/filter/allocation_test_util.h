// What the tests of the allocator share: trees, curves, and an exact count of what a plan spends.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "tamis/filter_allocation.h"

namespace tamis::allocation_testing {

// The settings of the engine: 2 to 24 in steps of 1/8, and none.
inline const FilterCurve& EngineCurve() {
  static const FilterCurve curve = CurveOf(FilterKind::kBlockedBloom).value();
  return curve;
}

// The exact 512-bit curve up to 32 bits per key, with the best k up to 16 (a builder stops at 12).
inline const FilterCurve& WideCurve() {
  static const FilterCurve curve = SampleCurve(
                                       [](double bits) {
                                         double best = 1;
                                         for (uint32_t k = 1; k <= 16; ++k)
                                           best = std::min(best, fpr_model::FalsePositiveRate(FilterKind::kBlockedBloom, bits, k));
                                         return best;
                                       },
                                       {.minimum = 1, .maximum = 32})
                                       .value();
  return curve;
}

// One run a level, ratio 10, the smallest first.
inline std::vector<FilterRun> Levels(int levels, const FilterCurve& curve, uint64_t smallest = 1'000'000) {
  std::vector<FilterRun> runs;
  for (int i = 0; i < levels; ++i, smallest *= 10) {
    runs.push_back({.keys = smallest, .absent_probability = 1, .read_cost = 1, .curve = curve, .level = static_cast<uint32_t>(i)});
  }
  return runs;
}

// The share `absent` of the lookups finds nothing, the others find keys spread by size: f = absent + (1 - absent) * (share of keys below).
inline void SetAbsent(std::vector<FilterRun>& runs, double absent) {
  double all = 0;
  for (const FilterRun& run : runs) all += static_cast<double>(run.keys);
  double below = all;
  for (size_t i = 0; i < runs.size(); ++i) {
    below = i + 1 == runs.size() ? 0 : below - static_cast<double>(runs[i].keys);
    runs[i].absent_probability = absent + (1 - absent) * below / all;
  }
}

// Sum of keys times bits in eighths of a bit, in integers. REQUIRES: settings in eighths.
inline internal::FilterUint128 ExactEighths(const std::vector<FilterRun>& runs, const FilterPlan& plan) {
  internal::FilterUint128 sum = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    const FilterTarget& target = plan.runs[i];
    sum += static_cast<internal::FilterUint128>(runs[i].keys - target.next_keys) * static_cast<uint64_t>(target.setting.bits_per_key * 8);
    sum += static_cast<internal::FilterUint128>(target.next_keys) * static_cast<uint64_t>(target.next.bits_per_key * 8);
  }
  return sum;
}

class RandomTrees {
 public:
  explicit RandomTrees(uint64_t seed) : random_(seed) {}
  double Uniform(double low, double high) { return low + (high - low) * static_cast<double>(random_() >> 11) * 0x1p-53; }
  double LogUniform(double low, double high) { return std::exp(Uniform(std::log(low), std::log(high))); }
  uint64_t Below(uint64_t n) { return random_() % n; }
  std::vector<FilterRun> Runs(size_t count, const FilterCurve& curve, double most_keys = 1e9) {
    std::vector<FilterRun> runs(count);
    for (FilterRun& run : runs) {
      run = {.keys = static_cast<uint64_t>(LogUniform(1e3, most_keys)),
             .absent_probability = LogUniform(1e-4, 1),
             .read_cost = LogUniform(.1, 10),
             .curve = curve};
    }
    std::sort(runs.begin(), runs.end(), [](const FilterRun& a, const FilterRun& b) { return a.keys < b.keys; });
    return runs;
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace tamis::allocation_testing
