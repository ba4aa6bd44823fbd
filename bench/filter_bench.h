// What the parts of filter_bench share: keys, queries, and rounds of steps.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/filter.h"

namespace tamis::bench {

struct FilterBenchFlags {
  uint64_t num = 100000;
  uint64_t num_large = 100000000;  // of the bars; 0 leaves them out
  uint32_t rounds = 11;
  size_t key_bytes = 16;  // read at run time, as every caller's key length is
  std::vector<double> bits = {6, 8, 10, 12, 16, 20};
};

// Keys in one piece, kHashedKeyBytes apart.
class KeyArray {
 public:
  KeyArray(size_t count, size_t key_bytes) : count_(count), key_bytes_(key_bytes), data_(count * kStride) {}
  size_t size() const { return count_; }
  std::string_view operator[](size_t i) const { return {data_.data() + i * kStride, key_bytes_}; }
  // The key of `index`: different indexes give different keys (of 8 bytes or more).
  void Set(size_t i, uint64_t index);

 private:
  static constexpr size_t kStride = 16;
  size_t count_;
  size_t key_bytes_;
  std::vector<char> data_;
};

// Indexes from here on were never added.
inline constexpr uint64_t kAbsentKeys = uint64_t{1} << 48;

KeyArray AddedKeys(uint64_t num, size_t key_bytes);
// `percent` of them among the `num` that were added; in random order, so that a branch on the answer cannot be learned.
KeyArray QueryKeys(uint64_t num, uint64_t percent, size_t count, size_t key_bytes);

// A filter of `num` keys, and the nanoseconds a key from keys to finished bytes (hash, add, finish). Makes keys in pieces, untimed. False
// if the kind cannot be built here.
bool BuildTimed(const FilterBuildOptions& options, uint64_t num, size_t key_bytes, FilterBytes* bytes, double* ns_per_key);

// One thing to be timed: `run` does `operations` of them.
struct Step {
  std::string name;
  double operations = 1;
  std::function<void()> run;
};
// Nanoseconds an operation, the median over `rounds`; every round runs each step once, the first one changing from round to round, so that
// what disturbs the machine for a while does not fall on one step. One round before does not count.
std::vector<double> MedianNanoseconds(const std::vector<Step>& steps, uint32_t rounds);

// Keeps a result, and the work behind it.
template <typename T>
inline void Keep(const T& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

void RunForms(const FilterBenchFlags& flags);  // filter_bench_forms.cc
bool RunBars(const FilterBenchFlags& flags);   // filter_bench_bars.cc; whether all hold

}  // namespace tamis::bench
