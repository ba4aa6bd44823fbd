#include <algorithm>
#include <chrono>
#include <memory>

#include "bench/filter_bench.h"
#include "bench/workload.h"
#include "filter/hash.h"

namespace tamis::bench {

void KeyArray::Set(size_t i, uint64_t index) {
  static_assert(kStride == kHashedKeyBytes);
  HashedKey(index, data_.data() + i * kStride);
}

KeyArray AddedKeys(uint64_t num, size_t key_bytes) {
  KeyArray keys(num, key_bytes);
  for (uint64_t i = 0; i < num; ++i) keys.Set(i, i);
  return keys;
}

KeyArray QueryKeys(uint64_t num, uint64_t percent, size_t count, size_t key_bytes) {
  KeyArray keys(count, key_bytes);
  Random random(percent + 1);
  for (size_t i = 0; i < count; ++i) keys.Set(i, random.Uniform(100) < percent ? random.Uniform(num) : kAbsentKeys + i);
  return keys;
}

bool BuildTimed(const FilterBuildOptions& options, uint64_t num, size_t key_bytes, FilterBytes* bytes, double* ns_per_key) {
  using Clock = std::chrono::steady_clock;
  absl::StatusOr<std::unique_ptr<FilterBuilder>> builder = FilterBuilder::Create(options);
  if (!builder.ok()) return false;
  constexpr uint64_t kPiece = 1 << 16;
  KeyArray keys(std::min(num, kPiece), key_bytes);
  Clock::duration took{};
  for (uint64_t begin = 0; begin < num; begin += kPiece) {
    const uint64_t count = std::min(kPiece, num - begin);
    for (uint64_t i = 0; i < count; ++i) keys.Set(i, begin + i);
    const Clock::time_point start = Clock::now();
    for (uint64_t i = 0; i < count; ++i) (*builder)->AddHash(internal::KeyHash(keys[i], options.seed));
    took += Clock::now() - start;
  }
  const Clock::time_point start = Clock::now();
  absl::StatusOr<FilterBytes> finished = (*builder)->Finish();
  took += Clock::now() - start;
  if (!finished.ok()) return false;
  *bytes = *std::move(finished);
  *ns_per_key = std::chrono::duration<double, std::nano>(took).count() / static_cast<double>(num);
  return true;
}

std::vector<double> MedianNanoseconds(const std::vector<Step>& steps, uint32_t rounds) {
  std::vector<std::vector<double>> times(steps.size());
  for (uint32_t round = 0; round <= rounds; ++round) {
    for (size_t i = 0; i < steps.size(); ++i) {
      const size_t at = (i + round) % steps.size();
      const auto start = std::chrono::steady_clock::now();
      steps[at].run();
      const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
      if (round != 0) times[at].push_back(took.count() / steps[at].operations);
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& t : times) {
    std::nth_element(t.begin(), t.begin() + static_cast<std::ptrdiff_t>(t.size() / 2), t.end());
    medians.push_back(t[t.size() / 2]);
  }
  return medians;
}

}  // namespace tamis::bench
