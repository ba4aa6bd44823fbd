// Inline form of FilterKeyHash for the read path: XXH3-64 with seed, hash id 1. Part of the format.
#pragma once

#include <cstdint>
#include <string_view>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tamis::internal {

inline constexpr uint8_t kHashIdXxh3 = 1;

inline uint64_t KeyHash(std::string_view key, uint64_t seed) { return XXH3_64bits_withSeed(key.data(), key.size(), seed); }

}  // namespace tamis::internal
