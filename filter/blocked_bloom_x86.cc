// AVX2 and AVX-512. Compiled for every x86-64 by function attributes (no compiler flags: inline functions of other headers, compiled once
// with wider instructions, could be the copy that the linker keeps for everyone), run where the processor has them.
//
// A line is 16 words of 32 bits. All probes of a hash are done at once, one in each lane: x = hash * multiplier, the word x >> 28 is picked
// out of the line by a permutation of registers, and its bit (x >> 23) & 31 is tested. Lanes beyond k repeat the first probe.
#include "filter/blocked_bloom_kernels.h"

#if defined(__x86_64__)

#if defined(__GNUC__) && !defined(__clang__)
// False reports in the AVX-512 header itself (gcc.gnu.org/PR105593, fixed in 13).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#include <array>
#include <utility>

namespace tamis::internal {
namespace {

#define TAMIS_AVX2 __attribute__((target("avx2")))
#define TAMIS_AVX2_INLINE __attribute__((target("avx2"), always_inline)) inline
#define TAMIS_AVX512 __attribute__((target("avx512f")))
#define TAMIS_AVX512_INLINE __attribute__((target("avx512f"), always_inline)) inline

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

TAMIS_AVX2_INLINE __m256i Load256(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }

// ---- AVX2: probing -----------------------------------------------------------------------------------------------------------------

TAMIS_AVX2_INLINE bool EightBitsSet(__m256i low, __m256i high, __m256i hash, __m256i multipliers) {
  const __m256i x = _mm256_mullo_epi32(hash, multipliers);
  const __m256i word = _mm256_srli_epi32(x, 28);  // the permutations use its low 3 bits; the fourth is the sign of x and chooses the half
  const __m256 in_low = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(low, word));
  const __m256 in_high = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(high, word));
  const __m256i words = _mm256_castps_si256(_mm256_blendv_ps(in_low, in_high, _mm256_castsi256_ps(x)));
  const __m256i bit = _mm256_srli_epi32(_mm256_slli_epi32(x, 4), 27);
  return _mm256_testc_si256(words, _mm256_sllv_epi32(_mm256_set1_epi32(1), bit)) != 0;
}

template <bool kMoreThanEight>
TAMIS_AVX2_INLINE bool BitsSetAvx2(const unsigned char* line, __m256i first, __m256i second, uint64_t hash) {
  const __m256i low = Load256(line);
  const __m256i high = Load256(line + 32);
  const __m256i x = _mm256_set1_epi32(static_cast<int>(static_cast<uint32_t>(hash)));
  bool all = EightBitsSet(low, high, x, first);
  // No exit in between: when half of the keys are there nobody can guess it, and the second half costs only 2 ns.
  if constexpr (kMoreThanEight) all &= EightBitsSet(low, high, x, second);
  return all;
}

TAMIS_AVX2 bool LineMayContainAvx2(const unsigned char* line, uint32_t probes, uint64_t hash) {
  const uint32_t* m = kLaneMultipliers[probes].lanes;
  if (probes <= 8) return BitsSetAvx2<false>(line, Load256(m), _mm256_setzero_si256(), hash);
  return BitsSetAvx2<true>(line, Load256(m), Load256(m + 8), hash);
}

template <bool kMoreThanEight>
TAMIS_AVX2 void MayContainAvx2With(const unsigned char* base, uint64_t lines, uint32_t probes, const uint64_t* hashes, size_t count,
                                   bool* may) {
  const __m256i first = Load256(kLaneMultipliers[probes].lanes);
  const __m256i second = Load256(kLaneMultipliers[probes].lanes + 8);
  ProbeLines ahead(base, lines, hashes, count);
  for (size_t i = 0; i < count; ++i) may[i] = BitsSetAvx2<kMoreThanEight>(ahead.Take(i), first, second, hashes[i]);
}

void MayContainAvx2(const unsigned char* base, uint64_t lines, uint32_t probes, const uint64_t* hashes, size_t count, bool* may) {
  if (probes <= 8) return MayContainAvx2With<false>(base, lines, probes, hashes, count, may);
  return MayContainAvx2With<true>(base, lines, probes, hashes, count, may);
}

// ---- AVX2: building ----------------------------------------------------------------------------------------------------------------

// Positions eight at a time, bits one by one: 4.2 ns a key at k = 6 and 7.6 at 11, where scalar it is 5.1 and 8.5. Setting the bits in
// registers instead (each position in all lanes, shifted by its distance from the lane) was 6.9 and 11.2 with AVX2, 4.9 and 8.4 with
// AVX-512; so AVX-512 builds with this too.
template <uint32_t kProbes>
TAMIS_AVX2 void InsertAvx2With(unsigned char* base, uint64_t lines, const uint64_t* hashes, size_t count) {
  constexpr uint32_t kRounds = (kProbes + 7) / 8;
  InsertLines ahead(base, lines, hashes, count);
  for (size_t i = 0; i < count; ++i) {
    unsigned char* line = ahead.Take(i);
    alignas(32) uint32_t byte[8 * kRounds];
    alignas(32) uint32_t mask[8 * kRounds];
    const __m256i hash = _mm256_set1_epi32(static_cast<int>(static_cast<uint32_t>(hashes[i])));
#pragma GCC unroll 2
    for (uint32_t round = 0; round < kRounds; ++round) {
      const __m256i x = _mm256_mullo_epi32(hash, Load256(kProbeMultipliers.data() + 8 * round));
      const __m256i bit = _mm256_and_si256(_mm256_srli_epi32(x, 23), _mm256_set1_epi32(7));
      _mm256_store_si256(reinterpret_cast<__m256i*>(byte + 8 * round), _mm256_srli_epi32(x, 26));
      _mm256_store_si256(reinterpret_cast<__m256i*>(mask + 8 * round), _mm256_sllv_epi32(_mm256_set1_epi32(1), bit));
    }
#pragma GCC unroll 16
    for (uint32_t probe = 0; probe < kProbes; ++probe) line[byte[probe]] = static_cast<unsigned char>(line[byte[probe]] | mask[probe]);
  }
}

using Inserter = void (*)(unsigned char* base, uint64_t lines, const uint64_t* hashes, size_t count);
constexpr auto kInserters = []<size_t... kI>(std::index_sequence<kI...>) {
  return std::array<Inserter, kMaxFilterProbes>{InsertAvx2With<kI + 1>...};
}
(std::make_index_sequence<kMaxFilterProbes>());

void InsertAvx2(unsigned char* base, uint64_t lines, uint32_t probes, const uint64_t* hashes, size_t count) {
  kInserters[probes - 1](base, lines, hashes, count);
}

// ---- AVX-512 -----------------------------------------------------------------------------------------------------------------------

TAMIS_AVX512_INLINE bool BitsSetAvx512(const unsigned char* line, __m512i multipliers, uint64_t hash) {
  const __m512i x = _mm512_mullo_epi32(_mm512_set1_epi32(static_cast<int>(static_cast<uint32_t>(hash))), multipliers);
  const __m512i words = _mm512_permutexvar_epi32(_mm512_srli_epi32(x, 28), _mm512_loadu_si512(line));
  const __m512i bit = _mm512_and_si512(_mm512_srli_epi32(x, 23), _mm512_set1_epi32(31));
  return _mm512_testn_epi32_mask(words, _mm512_sllv_epi32(_mm512_set1_epi32(1), bit)) == 0;
}

TAMIS_AVX512 bool LineMayContainAvx512(const unsigned char* line, uint32_t probes, uint64_t hash) {
  return BitsSetAvx512(line, _mm512_loadu_si512(kLaneMultipliers[probes].lanes), hash);
}

TAMIS_AVX512 void MayContainAvx512(const unsigned char* base, uint64_t lines, uint32_t probes, const uint64_t* hashes, size_t count,
                                   bool* may) {
  const __m512i multipliers = _mm512_loadu_si512(kLaneMultipliers[probes].lanes);
  ProbeLines ahead(base, lines, hashes, count);
  for (size_t i = 0; i < count; ++i) may[i] = BitsSetAvx512(ahead.Take(i), multipliers, hashes[i]);
}

}  // namespace

const BlockedBloomKernels kAvx2BlockedBloomKernels = {SimdLevel::kAvx2, LineMayContainAvx2, MayContainAvx2, InsertAvx2};
const BlockedBloomKernels kAvx512BlockedBloomKernels = {SimdLevel::kAvx512, LineMayContainAvx512, MayContainAvx512, InsertAvx2};

}  // namespace tamis::internal

#endif  // __x86_64__
