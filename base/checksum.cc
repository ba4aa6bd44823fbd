#include "base/checksum.h"

#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/coding.h"

namespace tamis::internal {

uint64_t Checksum64(std::string_view bytes, uint64_t seed) { return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed); }

uint64_t ChecksumSeed(const Id128& id, uint64_t offset) {
  char name[24];
  std::memcpy(name, id.data(), id.size());
  StoreLittle(name + 16, offset);
  return XXH3_64bits(name, sizeof name);
}

uint64_t ChecksumSeed(uint64_t id, uint64_t offset) {
  char name[16];
  StoreLittle(name, id);
  StoreLittle(name + 8, offset);
  return XXH3_64bits(name, sizeof name);
}

uint64_t Checksum64(std::string_view first, std::string_view second, uint64_t seed) {
  // Setting up the streaming state (576 bytes) costs more than copying a record of this size.
  constexpr size_t kCopyBytes = 512;
  if (first.size() <= kCopyBytes && second.size() <= kCopyBytes - first.size()) {
    char joined[kCopyBytes];
    if (!first.empty()) std::memcpy(joined, first.data(), first.size());
    if (!second.empty()) std::memcpy(joined + first.size(), second.data(), second.size());
    return XXH3_64bits_withSeed(joined, first.size() + second.size(), seed);
  }
  XXH3_state_t state;
  XXH3_INITSTATE(&state);
  XXH3_64bits_reset_withSeed(&state, seed);
  if (!first.empty()) XXH3_64bits_update(&state, first.data(), first.size());
  if (!second.empty()) XXH3_64bits_update(&state, second.data(), second.size());
  return XXH3_64bits_digest(&state);
}

}  // namespace tamis::internal
