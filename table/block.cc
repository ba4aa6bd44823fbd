#include "table/block.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/status_util.h"
#include "table/block_builder.h"

namespace tamis::internal {
namespace {

constexpr uint64_t kContinuationBits = 0x8080808080808080u;
constexpr size_t kMaxKeyLengthBytes = 3;  // varint of kMaxKeyBytes

// The 7-bit groups of up to 8 bytes, low group first, pulled together: three shifts instead of a loop per byte.
inline uint64_t GatherGroups(uint64_t word) {
  word = ((word & 0x7f007f007f007f00u) >> 1) | (word & 0x007f007f007f007fu);
  word = ((word & 0x3fff00003fff0000u) >> 2) | (word & 0x00003fff00003fffu);
  return ((word & 0x0fffffff00000000u) >> 4) | (word & 0x000000000fffffffu);
}

// Bytes of the varint at the front of `word`, which begins with one of at most 8 bytes; 0 if it does not.
inline size_t VarintBytes(uint64_t word) {
  const uint64_t ends = ~word & kContinuationBits;
  return ends == 0 ? 0 : static_cast<size_t>(std::countr_zero(ends)) / 8 + 1;
}

// A varint of at most `max_bytes`, without bounds (I4). nullptr if it is longer.
inline const char* DecodeLength(const char* from, size_t max_bytes, uint64_t* value) {
  uint64_t byte = static_cast<unsigned char>(*from);
  if (byte < 0x80) {
    *value = byte;
    return from + 1;
  }
  uint64_t result = byte & 0x7f;
  for (size_t i = 1; i < max_bytes; ++i) {
    byte = static_cast<unsigned char>(from[i]);
    result |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      *value = result;
      return from + i + 1;
    }
  }
  return nullptr;
}

struct Header {
  const char* rest;
  SequenceNumber sequence;
  uint64_t key_length;
  uint64_t value_length;
};

// REQUIRES: an entry that CheckEntries has passed.
inline Header DecodeHeader(const char* at) {
  Header header;
  const uint64_t word = LoadLittle<uint64_t>(at + 1);
  const size_t bytes = VarintBytes(word);
  header.sequence = GatherGroups(word & (~uint64_t{0} >> (64 - 8 * bytes)));
  at = DecodeLength(at + 1 + bytes, kMaxKeyLengthBytes, &header.key_length);
  header.rest = DecodeLength(at, kMaxVarint32Bytes, &header.value_length);
  return header;
}

inline uint64_t RestLength(uint64_t key_length, size_t shared_bytes) {
  return key_length > shared_bytes + 8 ? key_length - shared_bytes - 8 : 0;
}

absl::Status Damaged(std::string_view what) { return absl::DataLossError(Concat("damaged block: ", what)); }

}  // namespace

absl::StatusOr<Block> Block::Parse(std::string_view bytes) {
  if (bytes.size() < kEntrySlackBytes || bytes.size() > UINT32_MAX) return Damaged(Concat("size ", bytes.size()));
  const char* tail = bytes.data() + bytes.size() - kBlockTailBytes;
  const uint64_t count = LoadLittle<uint32_t>(tail);
  const uint64_t entries_end = LoadLittle<uint32_t>(tail + 4);
  const uint64_t shared = LoadLittle<uint16_t>(tail + 8);
  const uint32_t flags = LoadLittle<uint16_t>(tail + 10);
  if (flags > 1) return absl::UnimplementedError(Concat("block flags ", flags));
  const uint64_t element_bytes = flags == 1 ? 10 : 12;
  // All below 2^36: no overflow.
  if (count == 0 || shared > entries_end || entries_end + count * element_bytes + kBlockTailBytes != bytes.size()) {
    return Damaged("its parts do not add up to its size");
  }
  Block block;
  block.bytes_ = bytes;
  block.shared_ = bytes.substr(0, shared);
  block.prefixes_ = bytes.data() + entries_end;
  block.offsets_ = block.prefixes_ + count * 8;
  block.count_ = static_cast<uint32_t>(count);
  block.short_offsets_ = flags == 1;
  TAMIS_RETURN_IF_ERROR(block.CheckEntries());
  return block;
}

// Establishes I2 to I4. Header fields are read before their end is compared: a header has at most 17 bytes, and kEntrySlackBytes follow.
absl::Status Block::CheckEntries() const {
  const char* at = shared_.data() + shared_.size();
  for (uint32_t i = 0; i < count_; ++i) {
    if (at >= prefixes_ || OffsetAt(i) != static_cast<uint64_t>(at - bytes_.data())) return Damaged(Concat("offset of entry ", i));
    const uint8_t kind = static_cast<uint8_t>(*at);
    if (!IsKnownEntryKind(kind)) return absl::UnimplementedError(Concat("entry kind ", static_cast<uint32_t>(kind)));
    const size_t sequence_bytes = VarintBytes(LoadLittle<uint64_t>(at + 1));
    uint64_t key_length = 0;
    uint64_t value_length = 0;
    // The kind is known, and a sequence of at most 8 varint bytes is at most kMaxSequence.
    if (sequence_bytes == 0) return Damaged(Concat("sequence of entry ", i));
    at = DecodeLength(at + 1 + sequence_bytes, kMaxKeyLengthBytes, &key_length);
    if (at == nullptr || key_length > kMaxKeyBytes || key_length < shared_.size()) return Damaged(Concat("key length of entry ", i));
    at = DecodeLength(at, kMaxVarint32Bytes, &value_length);
    if (at == nullptr || at > prefixes_) return Damaged(Concat("value length of entry ", i));
    const uint64_t body = RestLength(key_length, shared_.size()) + value_length;
    if (body > static_cast<uint64_t>(prefixes_ - at)) return Damaged(Concat("length of entry ", i));
    at += body;
  }
  return at == prefixes_ ? absl::OkStatus() : Damaged("bytes behind the last entry");
}

Block::Entry Block::At(uint32_t i) const {
  const char* at = bytes_.data() + OffsetAt(i);
  const Header header = DecodeHeader(at);
  const uint64_t rest_length = RestLength(header.key_length, shared_.size());
  return {{header.rest, rest_length},
          {header.rest + rest_length, header.value_length},
          header.sequence,
          static_cast<uint32_t>(header.key_length),
          static_cast<EntryKind>(*at)};
}

bool Block::TiedEntryIsBefore(uint32_t i, std::string_view rest, uint64_t key_length, SequenceNumber sequence) const {
  const Entry entry = At(i);
  if (const int order = entry.rest.compare(rest); order != 0) return order < 0;
  if (entry.key_length != key_length) return entry.key_length < key_length;
  return entry.sequence > sequence;
}

bool Block::DecidedByShared(std::string_view user_key, uint32_t* found) const {
  const size_t shared = shared_.size();
  if (shared == 0) return false;
  const int order = std::memcmp(user_key.data(), shared_.data(), std::min(user_key.size(), shared));
  *found = order > 0 ? count_ : 0;
  return order != 0 || user_key.size() < shared;
}

uint32_t Block::LowerBound(std::string_view user_key, SequenceNumber sequence) const {
  if (count_ == 0) return 0;
  if (user_key.empty()) user_key = "";  // memcmp and memcpy may not be given nullptr
  // In a cold block the array's lines (5 for 35 entries) would be fetched one after the other: ask for the first steps' lines at once.
  const size_t array_bytes = size_t{count_} * 8;
  __builtin_prefetch(prefixes_ + array_bytes / 2);
  __builtin_prefetch(prefixes_ + array_bytes / 4);
  __builtin_prefetch(prefixes_ + array_bytes / 4 * 3);
  __builtin_prefetch(offsets_);
  uint32_t found;
  if (DecidedByShared(user_key, &found)) return found;
  return LowerBoundIn(0, count_, user_key.substr(shared_.size()), user_key.size(), sequence);
}

uint32_t Block::LowerBound(std::string_view user_key, SequenceNumber sequence, const BucketIndex& buckets) const {
  if (user_key.empty()) user_key = "";  // as above
  uint32_t found;
  if (DecidedByShared(user_key, &found)) return found;
  const std::string_view behind = user_key.substr(shared_.size());
  const BucketIndex::Range range = buckets.Find(LoadBigPrefix(behind));
  return LowerBoundIn(static_cast<uint32_t>(range.begin), static_cast<uint32_t>(range.end), behind, user_key.size(), sequence);
}

BucketIndex Block::Buckets() const {
  return BucketIndex(count_, [this](size_t i) { return PrefixAt(static_cast<uint32_t>(i)); });
}

uint32_t Block::LowerBoundIn(uint32_t begin, uint32_t end, std::string_view behind, uint64_t key_length, SequenceNumber sequence) const {
  const uint64_t target = LoadBigPrefix(behind);
  uint32_t low = begin;
  for (uint32_t left = end - begin; left != 0;) {
    const uint32_t half = (left + 1) / 2;
    const uint32_t below = PrefixAt(low + half - 1) < target ? 1 : 0;
    low += half & (0 - below);  // a mask, lest the compiler make it a branch
    left -= half;
  }
  if (low == count_ || PrefixAt(low) != target) return low;

  const std::string_view rest = behind.size() > 8 ? behind.substr(8) : std::string_view();
  uint32_t high = low + 1;  // behind the last tie
  if (high < count_ && PrefixAt(high) == target) {
    uint32_t limit = count_;
    while (high < limit) {
      const uint32_t middle = high + (limit - high) / 2;
      if (PrefixAt(middle) == target) {
        high = middle + 1;
      } else {
        limit = middle;
      }
    }
  }
  uint32_t first = low;
  while (first < high) {
    const uint32_t middle = first + (high - first) / 2;
    if (TiedEntryIsBefore(middle, rest, key_length, sequence)) {
      first = middle + 1;
    } else {
      high = middle;
    }
  }
  return first;
}

bool Block::KeyEquals(uint32_t i, std::string_view user_key, Entry* entry) const {
  const size_t shared = shared_.size();
  if (user_key.size() < shared) return false;
  if (user_key.empty()) user_key = "";  // as in LowerBound
  const std::string_view behind = user_key.substr(shared);
  // The array first: of absent keys almost all end here, without touching the entry.
  if (PrefixAt(i) != LoadBigPrefix(behind)) return false;
  if (shared != 0 && std::memcmp(user_key.data(), shared_.data(), shared) != 0) return false;
  *entry = At(i);
  if (entry->key_length != user_key.size()) return false;
  return entry->rest.empty() || std::memcmp(entry->rest.data(), behind.data() + 8, entry->rest.size()) == 0;
}

bool Block::KeyEquals(uint32_t i, std::string_view user_key) const {
  Entry entry;
  return KeyEquals(i, user_key, &entry);
}

void Block::CopyKey(uint32_t i, std::string* key) const {
  const Entry entry = At(i);
  char prefix[8];
  StoreLittle(prefix, __builtin_bswap64(PrefixAt(i)));
  key->assign(shared_);
  key->append(prefix, std::min<size_t>(8, entry.key_length - shared_.size()));
  key->append(entry.rest);
}

absl::Status Block::VerifyOrder() const {
  std::string previous;
  std::string key;
  SequenceNumber previous_sequence = 0;
  for (uint32_t i = 0; i < count_; ++i) {
    const Entry entry = At(i);
    CopyKey(i, &key);
    if (LoadBigPrefix(std::string_view(key).substr(shared_.size())) != PrefixAt(i)) return Damaged(Concat("array element ", i));
    if (i > 0 && CompareInternalKeys(previous, previous_sequence, key, entry.sequence) >= 0) {
      return Damaged(Concat("entry ", i, " is not after the one before it"));
    }
    previous.swap(key);
    previous_sequence = entry.sequence;
  }
  return absl::OkStatus();
}

void BlockCursor::Reset(const Block& block) {
  block_ = block;
  valid_ = false;
  const size_t shared = block.shared_.size();
  if (key_.size() < shared + kEntrySlackBytes + 8) key_.resize(shared + kEntrySlackBytes + 8);
  if (shared != 0) std::memcpy(key_.data(), block.shared_.data(), shared);
}

void BlockCursor::Clear() {
  block_ = Block();
  valid_ = false;
}

void BlockCursor::Load() {
  const char* at = block_.bytes_.data() + block_.OffsetAt(index_);
  const Header header = DecodeHeader(at);
  const size_t shared = block_.shared_.size();
  const uint64_t rest_length = RestLength(header.key_length, shared);
  if (shared + 8 + rest_length > key_.size()) key_.resize(shared + 8 + rest_length);
  char* to = key_.data() + shared;
  StoreLittle(to, __builtin_bswap64(block_.PrefixAt(index_)));
  // Short rests are copied as two words: cheaper than a memcpy of variable length, and inside block (I4) and buffer (Reset).
  if (rest_length <= 16) {
    std::memcpy(to + 8, header.rest, 16);
  } else {
    std::memcpy(to + 8, header.rest, rest_length);
  }
  entry_.key = {key_.data(), header.key_length};
  entry_.value = {header.rest + rest_length, header.value_length};
  entry_.sequence = header.sequence;
  entry_.kind = static_cast<EntryKind>(*at);
}

void BlockCursor::LoadOrClear() {
  valid_ = index_ < block_.count_;
  if (valid_) Load();
}

void BlockCursor::SeekToFirst() {
  index_ = 0;
  LoadOrClear();
}

void BlockCursor::SeekToLast() {
  index_ = block_.count_ - 1;  // of no block: 2^32 - 1, which is not in it
  LoadOrClear();
}

void BlockCursor::Seek(std::string_view user_key, SequenceNumber sequence) {
  index_ = block_.LowerBound(user_key, sequence);
  LoadOrClear();
}

void BlockCursor::SeekForPrev(std::string_view user_key, SequenceNumber sequence) {
  index_ = block_.LowerBound(user_key, sequence);
  if (index_ < block_.count_) {
    Block::Entry entry;
    if (block_.KeyEquals(index_, user_key, &entry) && entry.sequence == sequence) {
      LoadOrClear();
      return;
    }
  }
  --index_;  // from 0: 2^32 - 1, which is not in the block
  LoadOrClear();
}

void BlockCursor::Next() {
  ++index_;
  LoadOrClear();
}

void BlockCursor::Prev() {
  --index_;
  LoadOrClear();
}

}  // namespace tamis::internal
