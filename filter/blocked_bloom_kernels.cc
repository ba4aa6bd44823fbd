// The scalar functions, and which functions are in use.
#include "filter/blocked_bloom_kernels.h"

#include <array>
#include <atomic>
#include <utility>

namespace tamis::internal {
namespace {

// In batches an exit costs more than it saves up to here: at 10 bits and k = 6, absent / half / all present, 5.7 ns each without and
// 4.8 / 12.6 / 6.0 ns with the one of FilterLineMayContainScalar, whose branch nobody can guess when half are present. Above, absent keys
// would pay for all the probes.
constexpr uint32_t kMaxProbesWithoutExit = 8;

bool LineMayContainWithoutExit(const unsigned char* line, uint32_t probes, uint64_t hash) {
  const auto x = static_cast<uint32_t>(hash);
  uint32_t all = 1;
  for (uint32_t i = 0; i < probes; ++i) all &= FilterProbe(line, x, i);
  return (all & 1) != 0;
}

template <bool (*LineMayContain)(const unsigned char*, uint32_t, uint64_t)>
void MayContainWith(const unsigned char* base, uint64_t lines, uint32_t probes, const uint64_t* hashes, size_t count, bool* may) {
  ProbeLines ahead(base, lines, hashes, count);
  for (size_t i = 0; i < count; ++i) may[i] = LineMayContain(ahead.Take(i), probes, hashes[i]);
}

void MayContain(const unsigned char* base, uint64_t lines, uint32_t probes, const uint64_t* hashes, size_t count, bool* may) {
  if (probes <= kMaxProbesWithoutExit) {
    MayContainWith<LineMayContainWithoutExit>(base, lines, probes, hashes, count, may);
  } else {
    MayContainWith<FilterLineMayContainScalar>(base, lines, probes, hashes, count, may);
  }
}

// One instance for each number of probes: without the inner loop it is 5.1 ns instead of 5.8 at k = 6. By bytes: by 32- or 64-bit words
// it is 7 ns, because two probes of a key meet in a word more often, and the second one then waits for the store of the first.
template <uint32_t kProbes>
void InsertWith(unsigned char* base, uint64_t lines, const uint64_t* hashes, size_t count) {
  InsertLines ahead(base, lines, hashes, count);
  for (size_t i = 0; i < count; ++i) {
    unsigned char* line = ahead.Take(i);
    const auto x = static_cast<uint32_t>(hashes[i]);
#pragma GCC unroll 16
    for (uint32_t probe = 0; probe < kProbes; ++probe) {
      const uint32_t bit = (x * kProbeMultipliers[probe]) >> 23;
      line[bit >> 3] = static_cast<unsigned char>(line[bit >> 3] | (1U << (bit & 7)));
    }
  }
}

using Inserter = void (*)(unsigned char* base, uint64_t lines, const uint64_t* hashes, size_t count);
constexpr auto kInserters = []<size_t... kI>(std::index_sequence<kI...>) {
  return std::array<Inserter, kMaxFilterProbes>{InsertWith<kI + 1>...};
}
(std::make_index_sequence<kMaxFilterProbes>());

void Insert(unsigned char* base, uint64_t lines, uint32_t probes, const uint64_t* hashes, size_t count) {
  kInserters[probes - 1](base, lines, hashes, count);
}

constinit std::atomic<const BlockedBloomKernels*> active{nullptr};

// A single probe is inline and scalar unless that is known to be slower. On arm64 it is not known: no machine to measure it on.
void Activate(const BlockedBloomKernels& kernels) {
  active.store(&kernels, std::memory_order_relaxed);
  const bool call = kernels.level == SimdLevel::kAvx2 || kernels.level == SimdLevel::kAvx512;
  filter_line_probe.store(call ? kernels.line_may_contain : nullptr, std::memory_order_relaxed);
}

const BlockedBloomKernels& BestKernels() {
  const BlockedBloomKernels* best = BlockedBloomKernelsFor(BestSimdLevel());
  return best != nullptr ? *best : kScalarBlockedBloomKernels;
}

// Before main. Whoever asks earlier, in other start-up code, gets the same answers from the scalar form.
[[maybe_unused]] const bool activated = (Activate(BestKernels()), true);

}  // namespace

constinit std::atomic<FilterLineProbe> filter_line_probe{nullptr};

const BlockedBloomKernels kScalarBlockedBloomKernels = {SimdLevel::kScalar, FilterLineMayContainScalar, MayContain, Insert};

const BlockedBloomKernels* BlockedBloomKernelsFor(SimdLevel level) {
  if (!SimdLevelRuns(level)) return nullptr;
  switch (level) {
    case SimdLevel::kScalar:
      return &kScalarBlockedBloomKernels;
#if defined(__x86_64__)
    case SimdLevel::kAvx2:
      return &kAvx2BlockedBloomKernels;
    case SimdLevel::kAvx512:
      return &kAvx512BlockedBloomKernels;
#elif defined(__aarch64__)
    case SimdLevel::kNeon:
      return &kNeonBlockedBloomKernels;
#endif
    default:
      return nullptr;
  }
}

const BlockedBloomKernels& ActiveBlockedBloomKernels() {
  const BlockedBloomKernels* kernels = active.load(std::memory_order_relaxed);
  return kernels != nullptr ? *kernels : kScalarBlockedBloomKernels;
}

void SetBlockedBloomKernelsForTesting(const BlockedBloomKernels* kernels) { Activate(kernels != nullptr ? *kernels : BestKernels()); }

}  // namespace tamis::internal
