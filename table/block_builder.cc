#include "table/block_builder.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace tamis::internal {
namespace {

constexpr uint64_t kShortOffsetLimit = uint64_t{1} << 16;

size_t CommonPrefix(std::string_view a, std::string_view b, size_t limit) {
  size_t n = 0;
  while (n < limit && a[n] == b[n]) ++n;
  return n;
}

}  // namespace

void BlockBuilder::Add(std::string_view user_key, SequenceNumber sequence, EntryKind kind, std::string_view value) {
  if (entries_.empty()) {
    shared_bytes_ = shortest_key_ = user_key.size();
  } else {
    const std::string_view first = std::string_view(keys_).substr(0, entries_.front().key_length);
    const size_t limit = std::min(shared_bytes_, user_key.size());
    // Most keys share as much as those before: one memcmp.
    const bool shares_all = limit == shared_bytes_ && (limit == 0 || std::memcmp(first.data(), user_key.data(), limit) == 0);
    if (!shares_all) shared_bytes_ = CommonPrefix(first, user_key, limit);
    shortest_key_ = std::min(shortest_key_, user_key.size());
  }
  header_bytes_ += 1 + VarintLength(sequence) + VarintLength(user_key.size()) + VarintLength(value.size());
  entries_.push_back(
      {keys_.size(), static_cast<uint32_t>(user_key.size()), kind, sequence, values_.size(), static_cast<uint32_t>(value.size())});
  keys_.append(user_key);
  values_.append(value);
}

// Exact unless some key ends within its 8 array bytes: then up to 8 bytes an entry too much.
uint64_t BlockBuilder::SizeWithoutOffsets() const {
  const uint64_t n = entries_.size();
  const uint64_t padding = shortest_key_ >= shared_bytes_ + 8 ? 0 : 8 * n;
  return shared_bytes_ + header_bytes_ + (keys_.size() - n * shared_bytes_) + padding + values_.size() + kBlockTailBytes;
}

uint64_t BlockBuilder::EstimatedBytes() const {
  const uint64_t size = SizeWithoutOffsets();
  return size + entries_.size() * (size < kShortOffsetLimit ? 2 : 4);
}

std::string_view BlockBuilder::Finish() {
  TAMIS_CHECK(!entries_.empty());
  const size_t n = entries_.size();
  const size_t p = shared_bytes_;
  // A buffer that only grows, so that nothing is zeroed or checked byte by byte (appending cost twice as much).
  const uint64_t most = SizeWithoutOffsets() + n * sizeof(uint32_t);
  TAMIS_CHECK(most <= UINT32_MAX);
  if (block_.size() < most) block_.resize(most);
  offsets_.resize(n);
  char* const begin = block_.data();
  char* to = std::copy_n(keys_.data(), p, begin);
  for (size_t i = 0; i < n; ++i) {
    const Pending& entry = entries_[i];
    offsets_[i] = static_cast<uint32_t>(to - begin);
    *to++ = static_cast<char>(entry.kind);
    to = EncodeVarint64(to, entry.sequence);
    to = EncodeVarint32(to, entry.key_length);
    to = EncodeVarint32(to, entry.value_length);
    if (entry.key_length > p + 8) to = std::copy_n(keys_.data() + entry.key_offset + p + 8, entry.key_length - p - 8, to);
    to = std::copy_n(values_.data() + entry.value_offset, entry.value_length, to);
  }
  const uint32_t entries_end = static_cast<uint32_t>(to - begin);
  for (const Pending& entry : entries_) {
    StoreLittle(to, LoadBigPrefix(std::string_view(keys_).substr(entry.key_offset + p, entry.key_length - p)));
    to += 8;
  }
  const bool short_offsets = offsets_.back() < kShortOffsetLimit;
  for (const uint32_t offset : offsets_) {
    if (short_offsets) {
      StoreLittle(to, static_cast<uint16_t>(offset));
      to += 2;
    } else {
      StoreLittle(to, offset);
      to += 4;
    }
  }
  StoreLittle(to, static_cast<uint32_t>(n));
  StoreLittle(to + 4, entries_end);
  StoreLittle(to + 8, static_cast<uint16_t>(p));
  StoreLittle(to + 10, static_cast<uint16_t>(short_offsets ? 1 : 0));
  return {begin, static_cast<size_t>(to - begin) + kBlockTailBytes};
}

void BlockBuilder::Reset() {
  entries_.clear();
  keys_.clear();
  values_.clear();
  shared_bytes_ = shortest_key_ = 0;
  header_bytes_ = 0;
}

std::string ShortestSeparator(std::string_view last, std::string_view next) {
  const size_t shared = CommonPrefix(last, next, std::min(last.size(), next.size()));
  // A prefix of `next`, or no byte to save.
  if (shared + 1 >= last.size()) return std::string(last);
  const auto byte = [](std::string_view key, size_t i) { return static_cast<unsigned char>(key[i]); };
  const auto bumped = [&](size_t at) {
    std::string key(last.substr(0, at + 1));
    key.back() = static_cast<char>(byte(last, at) + 1);
    return key;
  };
  // One byte after the common ones, if that stays before `next` (a proper prefix of `next` does).
  const unsigned next_byte = byte(next, shared);
  const unsigned candidate = byte(last, shared) + 1u;
  if (candidate < next_byte || (candidate == next_byte && next.size() > shared + 1)) return bumped(shared);
  // Else the first later byte that can grow; being behind last[shared] < next[shared], it cannot reach `next`.
  for (size_t at = shared + 1; at + 1 < last.size(); ++at) {
    if (byte(last, at) != 0xff) return bumped(at);
  }
  return std::string(last);
}

}  // namespace tamis::internal
