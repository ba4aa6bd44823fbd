// Little-endian fixed-width integers, varints (7 bits a byte, low bits first) and a bounds-checked reader. All formats are built on these.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace tamis::internal {

template <typename T>
inline T LoadLittle(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  if constexpr (std::endian::native == std::endian::big && sizeof(T) > 1) {
    T swapped = 0;
    for (size_t i = 0; i < sizeof(T); ++i) swapped = static_cast<T>((swapped << 8) | ((value >> (8 * i)) & 0xff));
    value = swapped;
  }
  return value;
}

template <typename T>
inline void StoreLittle(void* to, T value) {
  if constexpr (std::endian::native == std::endian::big && sizeof(T) > 1) {
    T swapped = 0;
    for (size_t i = 0; i < sizeof(T); ++i) swapped = static_cast<T>((swapped << 8) | ((value >> (8 * i)) & 0xff));
    value = swapped;
  }
  std::memcpy(to, &value, sizeof value);
}

void PutFixed16(std::string* to, uint16_t value);
void PutFixed32(std::string* to, uint32_t value);
void PutFixed64(std::string* to, uint64_t value);
void PutVarint32(std::string* to, uint32_t value);
void PutVarint64(std::string* to, uint64_t value);
void PutLengthPrefixed(std::string* to, std::string_view bytes);  // varint64 length, bytes

inline constexpr size_t kMaxVarint32Bytes = 5;
inline constexpr size_t kMaxVarint64Bytes = 10;
char* EncodeVarint32(char* to, uint32_t value);  // returns the end; at most kMaxVarint32Bytes
char* EncodeVarint64(char* to, uint64_t value);
size_t VarintLength(uint64_t value);

// Return the end of the varint, or nullptr if [from, limit) does not hold a whole, canonical-width one (5 or 10 bytes at most, no bits
// beyond the width).
const char* DecodeVarint32Slow(const char* from, const char* limit, uint32_t* value);
const char* DecodeVarint64(const char* from, const char* limit, uint64_t* value);
inline const char* DecodeVarint32(const char* from, const char* limit, uint32_t* value) {
  if (from < limit && static_cast<unsigned char>(*from) < 0x80) {
    *value = static_cast<unsigned char>(*from);
    return from + 1;
  }
  return DecodeVarint32Slow(from, limit, value);
}

// Reads fields off the front of bytes it does not own. Every call returns false, and changes neither the reader nor *out, if what it
// asks for is not wholly there: a decoder written with it cannot read out of bounds.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  [[nodiscard]] bool Fixed8(uint8_t* out);
  [[nodiscard]] bool Fixed16(uint16_t* out);
  [[nodiscard]] bool Fixed32(uint32_t* out);
  [[nodiscard]] bool Fixed64(uint64_t* out);
  [[nodiscard]] bool Varint32(uint32_t* out);
  [[nodiscard]] bool Varint64(uint64_t* out);
  [[nodiscard]] bool Bytes(uint64_t length, std::string_view* out);
  [[nodiscard]] bool LengthPrefixed(std::string_view* out);
  bool empty() const { return rest_.empty(); }
  size_t remaining() const { return rest_.size(); }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

// The first 8 bytes of `bytes` as a big-endian number, zero-padded: orders as the bytes do, up to ties.
inline uint64_t LoadBigPrefix(std::string_view bytes) {
  uint64_t value = 0;
  if (bytes.size() >= 8) {
    std::memcpy(&value, bytes.data(), 8);
  } else {
    std::memcpy(&value, bytes.data(), bytes.size());
  }
  if constexpr (std::endian::native == std::endian::little) value = __builtin_bswap64(value);
  return value;
}

}  // namespace tamis::internal
