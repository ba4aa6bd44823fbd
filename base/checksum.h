// XXH3-64, seeded: the only checksum of Tamis. Full 64 bits in footers, headers, filters and the manifest; the low 32 bits in block
// trailers and log records.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tamis::internal {

// 128 random bits that name a table, a log's owner or a database.
using Id128 = std::array<uint8_t, 16>;

uint64_t Checksum64(std::string_view bytes, uint64_t seed = 0);
inline uint32_t Checksum32(std::string_view bytes, uint64_t seed) { return static_cast<uint32_t>(Checksum64(bytes, seed)); }

// The seed of what stands at `offset` of the file `id`: bytes of another file or place never pass.
uint64_t ChecksumSeed(const Id128& id, uint64_t offset);
uint64_t ChecksumSeed(uint64_t id, uint64_t offset);

// Checksum over two pieces as over their concatenation.
uint64_t Checksum64(std::string_view first, std::string_view second, uint64_t seed);

}  // namespace tamis::internal
