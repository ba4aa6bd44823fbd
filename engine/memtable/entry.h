// One entry of a memtable and the chain of versions of its key, newest first. Entries are immutable once published.
//
//   [jump u64 | depth u64]   only if there is an older version
//   older u64 | sequence << 8 + kind u64 | key bytes u32 | value bytes u32 | key | value
//
// The chain is a random access list (Myers, "An applicative random-access stack", IPL 17, 1983): beside `older`, a version points to one
// further back such that any sequence is found in O(log versions) steps. A key overwritten 500,000 times in one memtable is ordinary; a
// plain chain would make a read at an old snapshot walk all of them and a backward scan over them quadratic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "table/internal_key.h"

namespace tamis::internal {

struct Entry {
  const Entry* older;  // the next older version; null in the first
  uint64_t sequence_and_kind;
  uint32_t key_bytes;
  uint32_t value_bytes;

  SequenceNumber sequence() const { return sequence_and_kind >> 8; }
  EntryKind kind() const { return static_cast<EntryKind>(sequence_and_kind & 0xff); }
  const char* data() const { return reinterpret_cast<const char*>(this + 1); }
  std::string_view key() const { return {data(), key_bytes}; }
  std::string_view value() const { return {data() + key_bytes, value_bytes}; }

  struct Back {
    const Entry* jump;
    uint64_t depth;  // versions older than this one
  };
  // The first version jumps to itself.
  const Entry* jump() const { return older == nullptr ? this : back()->jump; }
  uint64_t depth() const { return older == nullptr ? 0 : back()->depth; }
  const Back* back() const { return reinterpret_cast<const Back*>(this) - 1; }
};
static_assert(sizeof(Entry) == 24 && sizeof(Entry::Back) == 16);

// What an entry costs beside its key and value: headers and rounding up to 8.
inline constexpr uint64_t kEntryOverheadMax = sizeof(Entry) + sizeof(Entry::Back) + 7;

inline size_t EntryBytes(const Entry* older, std::string_view key, std::string_view value) {
  return (older == nullptr ? 0 : sizeof(Entry::Back)) + sizeof(Entry) + key.size() + value.size();
}

// Writes an entry into EntryBytes() bytes at `to`, aligned to 8.
inline const Entry* WriteEntry(char* to, const Entry* older, uint64_t sequence_and_kind, std::string_view key, std::string_view value) {
  if (older != nullptr) {
    // Two jumps of equal length in a row become one of their sum and one: lengths are 2^k - 1, as digits of a skew binary number.
    const Entry* mid = older->jump();
    const Entry* far = mid->jump();
    const bool joins = older->depth() - mid->depth() == mid->depth() - far->depth();
    const Entry::Back back{joins ? far : older, older->depth() + 1};
    std::memcpy(to, &back, sizeof back);
    to += sizeof back;
  }
  const Entry entry{older, sequence_and_kind, static_cast<uint32_t>(key.size()), static_cast<uint32_t>(value.size())};
  std::memcpy(to, &entry, sizeof entry);
  if (!key.empty()) std::memcpy(to + sizeof entry, key.data(), key.size());
  if (!value.empty()) std::memcpy(to + sizeof entry + key.size(), value.data(), value.size());
  return reinterpret_cast<const Entry*>(to);
}

// The oldest version above `sequence`. REQUIRES: head->sequence() > sequence.
inline const Entry* OldestAbove(const Entry* head, SequenceNumber sequence) {
  while (head->older != nullptr && head->older->sequence() > sequence) {
    const Entry* jump = head->jump();
    head = jump->sequence() > sequence ? jump : head->older;
  }
  return head;
}

// The newest version at or below `sequence`, or null.
inline const Entry* NewestAtOrBelow(const Entry* head, SequenceNumber sequence) {
  return head->sequence() <= sequence ? head : OldestAbove(head, sequence)->older;
}

}  // namespace tamis::internal
