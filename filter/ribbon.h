// Kind kRibbon: a standard ribbon filter with rows of 128 coefficients (Dillinger and Walzer, "Ribbon filter: practically smaller than
// Bloom and xor", arXiv 2103.02515), columns interleaved and of a fractional number.
//
// FORMAT (on disk, never change): B blocks of 128 slots. Rows start in the first B - 1 of them, which are divided evenly into
// R = ceil((B - 1) / 512) regions of S slots each; each region has an attempt byte a. A hash is one linear equation over GF(2) per column.
// Of a hash, with Mix64 of hash.h, g = 0x9e3779b97f4a7c15, p = Mix64(hash) * R in 128 bits, and all sums modulo 2^64:
//   region        p >> 64
//   start         region * S + (((p mod 2^64) + a * Mix64(hash + g)) * S >> 64), the outer product in 128 bits: its first slot
//   coefficients  of the slots start + 0..127: bits 0..127 of Mix64(hash + g) + 2^64 * Mix64(hash + 2 g), bit 0 then set to one
//   result        bit i for column i: low 32 bits of Mix64(hash)
// The first L blocks ("lower blocks") have c - 1 columns, the others c. Block by block and column by column there is a segment of 128 bits,
// 16 bytes little-endian: bit j is the solution of that column for slot j of the block. A hash has the columns of its start's block (and
// looks at as many of the next one, which has no fewer). It may be in the filter if in each of its columns the parity of the solution bits
// under its coefficients is the result bit. An absent hash gets past a column with probability exactly 1/2.
// After the segments the R attempt bytes, then zeros up to a multiple of 16 bytes. Segments and this together fill the lines.
//
// Why regions: equations that contradict each other are removed by another attempt. With one attempt for all, the slots needed grow with
// the keys (1.02 a key at 10^4, 1.05 at 10^7), and a failure costs the whole build. With an attempt for each 64 Ki slots it is 1.025 at any
// number of keys, and a failure (one region in six) costs that region.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "filter/filter_format.h"
#include "filter/hash.h"
#include "tamis/filter.h"

namespace tamis::internal {

inline constexpr uint64_t kRibbonWidth = 128;  // slots a block and coefficients a row
inline constexpr size_t kRibbonSegmentBytes = kRibbonWidth / 8;

inline constexpr uint64_t kMaxRibbonRegionBlocks = 512;

struct RibbonShape {
  uint64_t blocks = 0;         // 2..kMaxRibbonBlocks
  uint32_t columns = 0;        // of the blocks that are not lower ones, 1..kMaxRibbonColumns
  uint64_t lower_blocks = 0;   // < blocks
  uint32_t region_blocks = 0;  // (blocks - 1) / regions(); kept, because a division costs as much as half a probe

  // With the region's blocks computed. Any values.
  static RibbonShape Of(uint64_t blocks, uint32_t columns, uint64_t lower_blocks) {
    RibbonShape shape{blocks, columns, lower_blocks, 0};
    if (blocks >= 2 && blocks <= kMaxRibbonBlocks) shape.region_blocks = static_cast<uint32_t>((blocks - 1) / shape.regions());
    return shape;
  }

  uint64_t regions() const { return (blocks - 1 + kMaxRibbonRegionBlocks - 1) / kMaxRibbonRegionBlocks; }
  uint64_t region_slots() const { return region_blocks * kRibbonWidth; }
  uint64_t slots() const { return blocks * kRibbonWidth; }
  uint64_t segments() const { return blocks * columns - lower_blocks; }
  uint64_t body_bytes() const { return segments() * kRibbonSegmentBytes + regions(); }  // without the zeros at the end
  const unsigned char* attempts(const unsigned char* base) const { return base + segments() * kRibbonSegmentBytes; }
  uint32_t ColumnsOf(uint64_t block) const { return columns - (block < lower_blocks ? 1 : 0); }
  // Index of the first segment of a block: those before it, less one for each lower block.
  uint64_t FirstSegment(uint64_t block) const { return block * columns - std::min(block, lower_blocks); }
  // The share of starts in lower blocks has one column fewer.
  double Rate() const;
};

// Segments that the attempt bytes take.
inline uint64_t RibbonAttemptSegments(uint64_t regions) { return (regions + kRibbonSegmentBytes - 1) / kRibbonSegmentBytes; }

// Whether the shape is one that the format has, and its size whole lines.
bool IsPossibleRibbonShape(const RibbonShape& shape);

// What of a hash does not depend on its region's attempt.
struct RibbonHash {
  uint64_t region;
  uint64_t fraction;  // of the region, in 2^64ths
  uint64_t low;       // coefficients before bit 0 is set
  uint64_t high;
  uint32_t result;

  RibbonHash(uint64_t hash, uint64_t regions) : low(Mix64(hash + kGoldenGamma)), high(Mix64(hash + 2 * kGoldenGamma)) {
    const uint64_t mixed = Mix64(hash);
    const FilterUint128 product = static_cast<FilterUint128>(mixed) * regions;
    region = static_cast<uint64_t>(product >> 64);
    fraction = static_cast<uint64_t>(product);
    result = static_cast<uint32_t>(mixed);
  }

  uint64_t Start(uint64_t region_slots, uint32_t attempt) const {
    return region * region_slots + FilterLineIndex(fraction + attempt * low, region_slots);
  }
  FilterUint128 Coefficients() const { return (static_cast<FilterUint128>(high) << 64) | low | 1; }
};

inline uint64_t LoadLittle64(const unsigned char* p) {
  uint64_t v;
  std::memcpy(&v, p, sizeof(v));
  if constexpr (std::endian::native == std::endian::big) v = __builtin_bswap64(v);
  return v;
}

// A row cut to the two blocks that it spans.
struct RibbonProbe {
  const unsigned char* here;  // segments of the start's block; those of the next block follow them
  uint32_t columns;
  uint32_t result;
  uint64_t coefficients[4];  // 64 bits each: of this block low and high, of the next low and high

  RibbonProbe(const unsigned char* base, const RibbonShape& shape, uint64_t hash) {
    const RibbonHash row(hash, shape.regions());
    const uint64_t start = row.Start(shape.region_slots(), shape.attempts(base)[row.region]);
    const uint64_t block = start / kRibbonWidth;
    const auto shift = static_cast<uint32_t>(start % kRibbonWidth);
    columns = shape.ColumnsOf(block);
    here = base + shape.FirstSegment(block) * kRibbonSegmentBytes;
    result = row.result;
    const FilterUint128 first = row.Coefficients() << shift;
    const FilterUint128 second = (row.Coefficients() >> 1) >> (kRibbonWidth - 1 - shift);  // in two steps: a shift by 128 is not defined
    coefficients[0] = static_cast<uint64_t>(first);
    coefficients[1] = static_cast<uint64_t>(first >> 64);
    coefficients[2] = static_cast<uint64_t>(second);
    coefficients[3] = static_cast<uint64_t>(second >> 64);
  }

  // Bit 0: whether column i differs from the result.
  uint32_t Differs(uint32_t i) const {
    const unsigned char* first = here + i * kRibbonSegmentBytes;
    const unsigned char* second = first + columns * kRibbonSegmentBytes;
    const uint64_t bits = (LoadLittle64(first) & coefficients[0]) ^ (LoadLittle64(first + 8) & coefficients[1]) ^
                          (LoadLittle64(second) & coefficients[2]) ^ (LoadLittle64(second + 8) & coefficients[3]);
    return (static_cast<uint32_t>(__builtin_parityll(bits)) ^ (result >> i)) & 1;
  }
};

// One exit, after four columns, as in FilterLineMayContain and for the same reason.
inline bool RibbonMayContain(const RibbonProbe& probe) {
  uint32_t i = 0;
  if (probe.columns >= 4) {
    if ((probe.Differs(0) | probe.Differs(1) | probe.Differs(2) | probe.Differs(3)) != 0) return false;
    i = 4;
  }
  uint32_t differs = 0;
  for (; i < probe.columns; ++i) differs |= probe.Differs(i);
  return differs == 0;
}

inline void RibbonPrefetch(const RibbonProbe& probe) {
  const unsigned char* end = probe.here + 2 * size_t{probe.columns} * kRibbonSegmentBytes;
  for (const unsigned char* p = probe.here; p < end; p += kFilterLineBytes) __builtin_prefetch(p);
  if (end != probe.here) __builtin_prefetch(end - 1);
}

// may[i] = whether hashes[i] may be there. A few at a time, their lines loaded before the first is asked: a key is three to six lines.
inline void RibbonMayContainBatch(const unsigned char* base, const RibbonShape& shape, const uint64_t* hashes, bool* may, size_t count) {
  constexpr size_t kGroup = 4;
  size_t i = 0;
  for (; i + kGroup <= count; i += kGroup) {
    const RibbonProbe probes[kGroup] = {
        {base, shape, hashes[i]}, {base, shape, hashes[i + 1]}, {base, shape, hashes[i + 2]}, {base, shape, hashes[i + 3]}};
    for (const RibbonProbe& probe : probes) RibbonPrefetch(probe);
    for (size_t p = 0; p < kGroup; ++p) may[i + p] = RibbonMayContain(probes[p]);
  }
  for (; i < count; ++i) may[i] = RibbonMayContain(RibbonProbe(base, shape, hashes[i]));
}

}  // namespace tamis::internal
