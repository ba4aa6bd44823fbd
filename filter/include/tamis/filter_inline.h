// The probing of tamis/filter.h, inline: on the read path a call costs as much as the probe. Include tamis/filter.h, not this file.
//
// FORMAT of the bits, kind kBlockedBloom (on disk, never change):
//   line    high 64 bits of the 128-bit product hash * lines; lines are 64 bytes
//   x(i)    low 32 bits of the hash times 0x9e3779b9^i, modulo 2^32, for probes i = 1..k
//   bit     x(i) >> 23: bit (bit & 7) of byte (bit >> 3) of the line, which is also bit (bit & 31) of its little-endian 32-bit word bit >>
//   5
// The high bits of the hash choose the line and the low ones the bits in it, so the two are independent. Multiplying anew for each probe
// instead of stepping (double hashing) matters: in 512 bits double hashing costs 20 % more false positives at 10 bits per key and 3.5
// times as many at 16.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tamis/filter.h"

namespace tamis {
namespace internal {

inline constexpr size_t kFilterLineBytes = 64;
inline constexpr uint32_t kMaxFilterProbes = 16;  // that a reader accepts

// 0x9e3779b9 to the power of i + 1: the probes are independent multiplications, not a chain.
inline constexpr std::array<uint32_t, kMaxFilterProbes> kProbeMultipliers = [] {
  std::array<uint32_t, kMaxFilterProbes> powers{};
  uint32_t power = 1;
  for (uint32_t& p : powers) {
    power *= 0x9e3779b9U;
    p = power;
  }
  return powers;
}();

__extension__ typedef unsigned __int128 FilterUint128;

// Index of the line of `hash`: below `lines` for every lines > 0. 64 bits throughout; a 32-bit product would break at 2^32 lines.
inline uint64_t FilterLineIndex(uint64_t hash, uint64_t lines) {
  return static_cast<uint64_t>((static_cast<FilterUint128>(hash) * lines) >> 64);
}

// For flat arrays of {base, lines, probes}. REQUIRES: lines > 0 (every filter that Open accepts has a line, also one without keys).
inline const unsigned char* FilterLine(const unsigned char* base, uint64_t lines, uint64_t hash) {
  return base + FilterLineIndex(hash, lines) * kFilterLineBytes;
}

// Probe i of the hash whose low 32 bits are x: its bit in bit 0, noise above.
inline uint32_t FilterProbe(const unsigned char* line, uint32_t x, uint32_t i) {
  const uint32_t bit = (x * kProbeMultipliers[i]) >> 23;
  return static_cast<uint32_t>(line[bit >> 3]) >> (bit & 7);
}

// The scalar form of FilterLineMayContain.
//
// One exit, after four probes. An exit after each probe is a coin toss that the branch predictor loses, because half of the bits are
// set: 12 to 13 ns for an absent key, in cache. Without any exit it is 6 ns at k = 6 and 10 ns at k = 12. After four probes 96 % of the
// absent keys are gone and the branch is nearly free: 4 ns at any k.
inline bool FilterLineMayContainScalar(const unsigned char* line, uint32_t probes, uint64_t hash) {
  const auto x = static_cast<uint32_t>(hash);
  uint32_t i = 0;
  if (probes >= 4) {
    const uint32_t four = FilterProbe(line, x, 0) & FilterProbe(line, x, 1) & FilterProbe(line, x, 2) & FilterProbe(line, x, 3);
    if ((four & 1) == 0) return false;
    i = 4;
  }
  uint32_t all = 1;
  for (; i < probes; ++i) all &= FilterProbe(line, x, i);
  return (all & 1) != 0;
}

// Another form with the same answers, for processors on which a call to it is faster than the scalar form; null elsewhere, and until it
// is set before main. In cache, k = 6, absent / half / all present: scalar 4.8 / 11 / 6.3 ns (nobody can guess its branch when half are
// present in random order), AVX2 3.3 and AVX-512 2.8 ns whatever the keys, the call included.
using FilterLineProbe = bool (*)(const unsigned char* line, uint32_t probes, uint64_t hash);
extern std::atomic<FilterLineProbe> filter_line_probe;

// Whether all bits of `hash` are set in its line. REQUIRES: 1 <= probes <= kMaxFilterProbes.
inline bool FilterLineMayContain(const unsigned char* line, uint32_t probes, uint64_t hash) {
#if defined(__x86_64__)
  if (const FilterLineProbe probe = filter_line_probe.load(std::memory_order_relaxed); probe != nullptr) return probe(line, probes, hash);
#endif
  return FilterLineMayContainScalar(line, probes, hash);
}

}  // namespace internal

inline const unsigned char* FilterView::Line(uint64_t hash) const { return internal::FilterLine(base_, lines_, hash); }

inline bool FilterView::MayContain(uint64_t hash) const {
  if (lines_ == 0) return MayContainOther(hash);  // another kind, or none
  return internal::FilterLineMayContain(Line(hash), probes_, hash);
}

}  // namespace tamis
