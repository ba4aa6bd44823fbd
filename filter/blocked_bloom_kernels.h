// The inner loops of kind kBlockedBloom: one table of functions for each SimdLevel. All tables give the same bits and the same answers;
// they differ in speed only. The format of the bits is in tamis/filter_inline.h.
//
// Thread-safe, apart from SetBlockedBloomKernelsForTesting.
#pragma once

#include <cstddef>
#include <cstdint>

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

// Lines on their way into the cache. Enough to hide a miss (a core has 10 to 16 line-fill buffers), few enough to be there still when
// their turn comes.
inline constexpr size_t kProbesAhead = 32;
inline constexpr size_t kInsertsAhead = 16;  // 16 Mi keys at 10 bits: 9.3 ns a key with 16, 10 with 8, 8.4 with 32; in cache 5 with any

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
