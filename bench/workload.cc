#include "bench/workload.h"

#include <algorithm>
#include <cstring>

namespace tamis::bench {
namespace {

constexpr size_t kPieceBytes = 100;
constexpr size_t kLeastBuffer = size_t{1} << 20;  // larger than LZ4's window of 64 KiB: no help from the piece before last time

// `bytes` bytes, of which the first share is random and the rest repeats it.
void AppendCompressible(double ratio, size_t bytes, Random* random, std::string* to) {
  const size_t distinct = std::clamp<size_t>(static_cast<size_t>(ratio * static_cast<double>(bytes)), 1, bytes);
  const size_t begin = to->size();
  for (size_t i = 0; i < distinct; ++i) to->push_back(static_cast<char>(' ' + random->Uniform(95)));
  while (to->size() - begin < bytes) {
    const size_t want = std::min(distinct, bytes - (to->size() - begin));
    to->append(*to, begin, want);
  }
}

}  // namespace

void IndexKey(uint64_t index, size_t key_bytes, std::string* key) {
  key->assign(key_bytes, '0');
  const size_t filled = std::min<size_t>(key_bytes, 8);
  for (size_t i = 0; i < filled; ++i) (*key)[i] = static_cast<char>(index >> (8 * (filled - 1 - i)));
}

void HashedKey(uint64_t index, char* key) {
  const uint64_t first = Mix(index);  // a bijection: the first half alone tells all indexes apart
  const uint64_t second = Mix(first ^ 0x6a09e667f3bcc909);
  std::memcpy(key, &first, 8);
  std::memcpy(key + 8, &second, 8);
}

ValueSource::ValueSource(double compression_ratio, size_t largest_value, uint64_t seed) {
  Random random(seed);
  const size_t bytes = std::max(kLeastBuffer, 2 * largest_value);
  data_.reserve(bytes + kPieceBytes);
  while (data_.size() < bytes) AppendCompressible(compression_ratio, kPieceBytes, &random, &data_);
}

std::string_view ValueSource::Next(size_t bytes) {
  if (position_ + bytes > data_.size()) position_ = 0;
  const std::string_view value(data_.data() + position_, bytes);
  position_ += bytes;
  return value;
}

}  // namespace tamis::bench
