#include "base/coding.h"

namespace tamis::internal {
namespace {

template <typename T>
void PutFixed(std::string* to, T value) {
  char bytes[sizeof(T)];
  StoreLittle(bytes, value);
  to->append(bytes, sizeof bytes);
}

template <typename T>
char* EncodeVarint(char* to, T value) {
  while (value >= 0x80) {
    *to++ = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  *to++ = static_cast<char>(value);
  return to;
}

template <typename T>
const char* DecodeVarint(const char* from, const char* limit, T* value) {
  constexpr int kBits = 8 * sizeof(T);
  T result = 0;
  for (int shift = 0; shift < kBits && from < limit; shift += 7) {
    const auto byte = static_cast<unsigned char>(*from++);
    const T bits = byte & 0x7f;
    // The last byte has room for the top bits only; what does not come back after the shift lies beyond the width.
    if (((bits << shift) >> shift) != bits) return nullptr;
    result |= bits << shift;
    if (byte < 0x80) {
      *value = result;
      return from;
    }
  }
  return nullptr;
}

template <typename T>
bool TakeFixed(std::string_view* rest, T* out) {
  if (rest->size() < sizeof(T)) return false;
  *out = LoadLittle<T>(rest->data());
  rest->remove_prefix(sizeof(T));
  return true;
}

template <typename T>
bool TakeVarint(std::string_view* rest, T* out) {
  const char* const end = DecodeVarint(rest->data(), rest->data() + rest->size(), out);
  if (end == nullptr) return false;
  rest->remove_prefix(static_cast<size_t>(end - rest->data()));
  return true;
}

}  // namespace

void PutFixed16(std::string* to, uint16_t value) { PutFixed(to, value); }
void PutFixed32(std::string* to, uint32_t value) { PutFixed(to, value); }
void PutFixed64(std::string* to, uint64_t value) { PutFixed(to, value); }

void PutVarint32(std::string* to, uint32_t value) { PutVarint64(to, value); }

void PutVarint64(std::string* to, uint64_t value) {
  char bytes[kMaxVarint64Bytes];
  to->append(bytes, static_cast<size_t>(EncodeVarint64(bytes, value) - bytes));
}

void PutLengthPrefixed(std::string* to, std::string_view bytes) {
  PutVarint64(to, bytes.size());
  to->append(bytes);
}

char* EncodeVarint32(char* to, uint32_t value) { return EncodeVarint(to, value); }
char* EncodeVarint64(char* to, uint64_t value) { return EncodeVarint(to, value); }

size_t VarintLength(uint64_t value) { return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7; }

const char* DecodeVarint32Slow(const char* from, const char* limit, uint32_t* value) { return DecodeVarint(from, limit, value); }
const char* DecodeVarint64(const char* from, const char* limit, uint64_t* value) { return DecodeVarint(from, limit, value); }

bool Reader::Fixed8(uint8_t* out) { return TakeFixed(&rest_, out); }
bool Reader::Fixed16(uint16_t* out) { return TakeFixed(&rest_, out); }
bool Reader::Fixed32(uint32_t* out) { return TakeFixed(&rest_, out); }
bool Reader::Fixed64(uint64_t* out) { return TakeFixed(&rest_, out); }
bool Reader::Varint32(uint32_t* out) { return TakeVarint(&rest_, out); }
bool Reader::Varint64(uint64_t* out) { return TakeVarint(&rest_, out); }

bool Reader::Bytes(uint64_t length, std::string_view* out) {
  if (length > rest_.size()) return false;
  *out = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return true;
}

bool Reader::LengthPrefixed(std::string_view* out) {
  Reader ahead = *this;
  uint64_t length = 0;
  if (!ahead.Varint64(&length) || !ahead.Bytes(length, out)) return false;
  *this = ahead;
  return true;
}

}  // namespace tamis::internal
