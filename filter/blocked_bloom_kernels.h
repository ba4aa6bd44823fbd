// The inner loops of kind kBlockedBloom: one table of functions for each SimdLevel. All tables give the same bits and the same answers;
// they differ in speed only. The format of the bits is in tamis/filter_inline.h.
//
// Thread-safe, apart from SetBlockedBloomKernelsForTesting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "filter/simd.h"
#include "tamis/filter.h"

namespace tamis::internal {

// For all: 1 <= probes <= kMaxFilterProbes, lines > 0. Lines need no alignment (but are slow if they cross a line of the cache).
struct BlockedBloomKernels {
  SimdLevel level;
  // Whether all bits of `hash` are set in `line`.
  FilterLineProbe line_may_contain;
  // may[i] = whether all bits of hashes[i] are set in its line. Lines are prefetched ahead.
  void (*may_contain)(const unsigned char* base, uint64_t lines, uint32_t probes, const uint64_t* hashes, size_t count, bool* may);
  // Sets the bits of `count` hashes. Lines are prefetched ahead.
  void (*insert)(unsigned char* base, uint64_t lines, uint32_t probes, const uint64_t* hashes, size_t count);
};

// Lines on their way into the cache, in the order of the hashes: Take(i) for i = 0, 1, 2, ... gives the line of hashes[i] and starts
// loading the one that is kAhead further on. Enough to hide a miss (a core has 10 to 16 line-fill buffers), few enough to be there still
// when their turn comes. A ring and not groups: between two groups nothing is under way (80 MiB: 6.7 ns a key instead of 8.6).
//
// Inlined into functions for any level, so that their loops have no calls.
template <typename Byte, size_t kAhead>
class LinesAhead {
 public:
  [[gnu::always_inline]] LinesAhead(Byte* base, uint64_t lines, const uint64_t* hashes, size_t count)
      : base_(base), lines_(lines), hashes_(hashes), count_(count) {
    for (size_t i = 0; i < kAhead && i < count; ++i) Fetch(i);
  }
  [[gnu::always_inline]] Byte* Take(size_t i) {
    Byte* line = ring_[i % kAhead];
    if (i + kAhead < count_) Fetch(i + kAhead);
    return line;
  }

 private:
  [[gnu::always_inline]] void Fetch(size_t i) {
    Byte* line = base_ + FilterLineIndex(hashes_[i], lines_) * kFilterLineBytes;
    __builtin_prefetch(line, std::is_const_v<Byte> ? 0 : 1);
    ring_[i % kAhead] = line;
  }

  Byte* const base_;
  const uint64_t lines_;
  const uint64_t* const hashes_;
  const size_t count_;
  Byte* ring_[kAhead];
};
using ProbeLines = LinesAhead<const unsigned char, 32>;
// 16 Mi keys at 10 bits: 9.3 ns a key with 16, 10 with 8, 8.4 with 32; in cache 5 with any.
using InsertLines = LinesAhead<unsigned char, 16>;

// The functions of `level`; null if they are not compiled in or do not run on this processor.
const BlockedBloomKernels* BlockedBloomKernelsFor(SimdLevel level);

// Those in use: of BestSimdLevel().
const BlockedBloomKernels& ActiveBlockedBloomKernels();

// Puts other functions in use, for FilterLineMayContain too; null: the best ones again. Not while another thread uses a filter.
void SetBlockedBloomKernelsForTesting(const BlockedBloomKernels* kernels);

// Compiled in for their architecture only.
extern const BlockedBloomKernels kScalarBlockedBloomKernels;
#if defined(__x86_64__)
extern const BlockedBloomKernels kAvx2BlockedBloomKernels;
extern const BlockedBloomKernels kAvx512BlockedBloomKernels;
#elif defined(__aarch64__)
extern const BlockedBloomKernels kNeonBlockedBloomKernels;
#endif

}  // namespace tamis::internal
