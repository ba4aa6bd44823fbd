// The hashes, inline: of keys (KeyHash is FilterKeyHash for the read path, XXH3-64 with seed, hash id 1), and the finaliser by which kinds
// get more than 64 bits out of a hash. Part of the format.
#pragma once

#include <cstdint>
#include <string_view>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tamis::internal {

inline constexpr uint8_t kHashIdXxh3 = 1;

// SplitMix64's finaliser (Steele, Lea, Flood 2014): one to one on 64 bits, each bit of the result depends on each of the argument.
inline uint64_t Mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}
inline constexpr uint64_t kGoldenGamma = 0x9e3779b97f4a7c15ULL;  // 2^64 / golden ratio, odd

inline uint64_t KeyHash(std::string_view key, uint64_t seed) { return XXH3_64bits_withSeed(key.data(), key.size(), seed); }

}  // namespace tamis::internal
