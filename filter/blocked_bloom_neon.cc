// NEON, which every arm64 has. A line is a table of 64 bytes, which is just what one TBL instruction looks up, for 16 probes at once:
// byte (x >> 26) of the line, bit (x >> 23) & 7 of it. Lanes beyond k repeat the first probe.
#include "filter/blocked_bloom_kernels.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#include <array>

namespace tamis::internal {
namespace {

struct alignas(64) LaneMultipliers {
  uint32_t lanes[kMaxFilterProbes];
};

// By number of probes.
constexpr std::array<LaneMultipliers, kMaxFilterProbes + 1> kLaneMultipliers = [] {
  std::array<LaneMultipliers, kMaxFilterProbes + 1> all{};
  for (uint32_t probes = 1; probes <= kMaxFilterProbes; ++probes) {
    for (uint32_t lane = 0; lane < kMaxFilterProbes; ++lane) all[probes].lanes[lane] = kProbeMultipliers[lane < probes ? lane : 0];
  }
  return all;
}();

// Bit positions 0..511 of eight probes.
inline uint16x8_t Positions(uint32x4_t hash, uint32x4_t first, uint32x4_t second) {
  const uint16x4_t low = vshrn_n_u32(vmulq_u32(hash, first), 16);
  const uint16x4_t high = vshrn_n_u32(vmulq_u32(hash, second), 16);
  return vshrq_n_u16(vcombine_u16(low, high), 7);
}

// `repeats`: with up to eight probes the last eight lanes would repeat the first probe; they take the first eight positions instead.
inline bool BitsSet(const unsigned char* line, const uint32x4x4_t& multipliers, bool repeats, uint64_t hash) {
  const uint32x4_t x = vdupq_n_u32(static_cast<uint32_t>(hash));
  const uint16x8_t first = Positions(x, multipliers.val[0], multipliers.val[1]);
  const uint16x8_t second = repeats ? first : Positions(x, multipliers.val[2], multipliers.val[3]);
  const uint8x16_t byte = vcombine_u8(vshrn_n_u16(first, 3), vshrn_n_u16(second, 3));
  const uint8x16_t bit = vandq_u8(vcombine_u8(vmovn_u16(first), vmovn_u16(second)), vdupq_n_u8(7));
  const uint8x16_t mask = vshlq_u8(vdupq_n_u8(1), vreinterpretq_s8_u8(bit));
  const uint8x16_t found = vtstq_u8(vqtbl4q_u8(vld1q_u8_x4(line), byte), mask);
  return vminvq_u8(found) != 0;
}

bool LineMayContain(const unsigned char* line, uint32_t probes, uint64_t hash) {
  return BitsSet(line, vld1q_u32_x4(kLaneMultipliers[probes].lanes), probes <= 8, hash);
}

void MayContain(const unsigned char* base, uint64_t lines, uint32_t probes, const uint64_t* hashes, size_t count, bool* may) {
  const uint32x4x4_t multipliers = vld1q_u32_x4(kLaneMultipliers[probes].lanes);
  const bool repeats = probes <= 8;
  ProbeLines ahead(base, lines, hashes, count);
  for (size_t i = 0; i < count; ++i) may[i] = BitsSet(ahead.Take(i), multipliers, repeats, hashes[i]);
}

void Insert(unsigned char* base, uint64_t lines, uint32_t probes, const uint64_t* hashes, size_t count) {
  kScalarBlockedBloomKernels.insert(base, lines, probes, hashes, count);
}

}  // namespace

const BlockedBloomKernels kNeonBlockedBloomKernels = {SimdLevel::kNeon, LineMayContain, MayContain, Insert};

}  // namespace tamis::internal

#endif  // __aarch64__
