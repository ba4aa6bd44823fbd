// Equality of keys where neighbours in order are compared: they mostly differ in their last bytes, and a call of memcmp would cost more
// than the compare.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tamis::internal {

// The first `n` bytes of a and b.
inline bool BytesEqual(const char* a, const char* b, size_t n) {
  if (n < 8) return std::memcmp(a, b, n) == 0;
  const auto differ = [=](size_t at) {
    uint64_t x, y;
    std::memcpy(&x, a + at, 8);
    std::memcpy(&y, b + at, 8);
    return x != y;
  };
  if (differ(n - 8)) return false;
  for (size_t at = 0; at + 8 < n; at += 8) {
    if (differ(at)) return false;
  }
  return true;
}

inline bool KeysEqual(std::string_view a, std::string_view b) { return a.size() == b.size() && BytesEqual(a.data(), b.data(), a.size()); }

}  // namespace tamis::internal
