// Kind kBinaryFuse: a binary fuse filter with three slots a key (Graf and Lemire, "Binary fuse filters: fast and smaller than xor filters",
// arXiv 2201.01174): the fingerprint of a key is the exclusive or of three slots of 8 or 16 bits.
//
// FORMAT (on disk, never change): S slots of w = 8 or 16 bits, little-endian, in segments of L = 2^l slots, l = 0..18, at least three
// segments; one attempt byte a for the whole filter. Of a hash, with Mix64 of hash.h, g = 0x9e3779b97f4a7c15, all sums and products modulo
// 2^64 unless said otherwise:
//   m             Mix64(hash + a * g)
//   t             m * 0xd6e8feb86659fd93
//   first slot    (m * (S - 2 L)) >> 64, the product in 128 bits
//   second slot   (first + L) with the low l bits of t >> 46 exclusive-ored in: in the segment after the first slot's
//   third slot    (first + 2 L) with the low l bits of t >> 28 exclusive-ored in: in the segment after that
//   fingerprint   the low w bits of t >> 12
// A hash may be in the filter if the exclusive or of its three slots is its fingerprint. No bit of the fingerprint chooses a slot, so an
// absent hash passes with probability exactly 2^-w. After the slots zeros up to a whole line.
//
// w, l and a are in the header (filter_format.h): k is w, and of the four bytes at 12 the first is l, the second a, the others are zero.
#pragma once

#include <cstdint>
#include <cstring>

#include "filter/filter_format.h"
#include "filter/hash.h"
#include "tamis/filter.h"

namespace tamis::internal {

inline constexpr uint32_t kMaxFuseSegmentLog2 = 18;
inline constexpr uint32_t kFuseWidths[] = {8, 16};

struct FuseShape {
  uint64_t slots = 0;  // a multiple of the segment
  uint32_t width = 0;  // bits a slot
  uint32_t segment_log2 = 0;
  uint32_t attempt = 0;

  // From the header's units, k and layout. Any values.
  static FuseShape Of(uint64_t slots, uint32_t width, uint32_t layout) { return {slots, width, layout & 0xff, (layout >> 8) & 0xff}; }

  uint32_t layout() const { return segment_log2 | (attempt << 8); }
  uint64_t segment() const { return uint64_t{1} << segment_log2; }
  uint64_t starts() const { return slots - 2 * segment(); }
  uint64_t bits() const { return slots * width; }
  uint64_t lines() const { return (bits() + 8 * kFilterLineBytes - 1) / (8 * kFilterLineBytes); }
};

// Whether the shape is one that the format has, and its lines at most kMaxFilterLines.
inline bool IsPossibleFuseShape(const FuseShape& shape) {
  if ((shape.width != kFuseWidths[0] && shape.width != kFuseWidths[1]) || shape.segment_log2 > kMaxFuseSegmentLog2) return false;
  if (shape.slots % shape.segment() != 0 || shape.slots < 3 * shape.segment()) return false;
  return shape.slots <= kMaxFilterLines * kFilterLineBytes * 8 / shape.width;
}

inline uint64_t FuseMixed(uint64_t hash, uint32_t attempt) { return Mix64(hash + attempt * kGoldenGamma); }

struct FuseProbe {
  uint64_t slot[3];
  uint16_t fingerprint;  // 16 bits; of a filter of 8 the lower ones count

  // Of FuseMixed(hash, shape.attempt).
  FuseProbe(uint64_t mixed, const FuseShape& shape) {
    const uint64_t segment = shape.segment();
    const uint64_t more = mixed * 0xd6e8feb86659fd93ULL;
    slot[0] = FilterLineIndex(mixed, shape.starts());
    slot[1] = (slot[0] + segment) ^ ((more >> 46) & (segment - 1));
    slot[2] = (slot[0] + 2 * segment) ^ ((more >> 28) & (segment - 1));
    fingerprint = static_cast<uint16_t>(more >> 12);
  }
};

inline uint16_t LoadFuse16(const unsigned char* base, uint64_t slot) {
  const unsigned char* p = base + 2 * slot;
  return static_cast<uint16_t>(p[0] | (p[1] << 8));
}

inline bool FuseMayContain(const unsigned char* base, const FuseShape& shape, uint64_t hash) {
  const FuseProbe probe(FuseMixed(hash, shape.attempt), shape);
  if (shape.width == 8) {
    return (base[probe.slot[0]] ^ base[probe.slot[1]] ^ base[probe.slot[2]]) == static_cast<uint8_t>(probe.fingerprint);
  }
  return (LoadFuse16(base, probe.slot[0]) ^ LoadFuse16(base, probe.slot[1]) ^ LoadFuse16(base, probe.slot[2])) == probe.fingerprint;
}

inline void FusePrefetch(const unsigned char* base, const FuseShape& shape, uint64_t hash) {
  const FuseProbe probe(FuseMixed(hash, shape.attempt), shape);
  for (const uint64_t slot : probe.slot) __builtin_prefetch(base + slot * (shape.width / 8));
}

// may[i] = whether hashes[i] may be there. The lines of a group, three a key, are all asked for before the first is needed.
inline void FuseMayContainBatch(const unsigned char* base, const FuseShape& shape, const uint64_t* hashes, bool* may, size_t count) {
  constexpr size_t kGroup = 8;
  for (size_t begin = 0; begin < count; begin += kGroup) {
    const size_t end = begin + kGroup < count ? begin + kGroup : count;
    for (size_t i = begin; i < end; ++i) FusePrefetch(base, shape, hashes[i]);
    for (size_t i = begin; i < end; ++i) may[i] = FuseMayContain(base, shape, hashes[i]);
  }
}

}  // namespace tamis::internal
