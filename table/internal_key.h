// The internal key: user key, sequence, entry kind; and its order. Nothing below the table layer knows it, nothing in the engine
// redefines it.
//
// Order: user key ascending (bytewise), then sequence descending, so that the newest entry of a user key comes first. One sequence
// belongs to at most one entry of a user key.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/coding.h"
#include "filter/hash.h"

namespace tamis::internal {

using SequenceNumber = uint64_t;
inline constexpr SequenceNumber kMaxSequence = (uint64_t{1} << 56) - 1;  // real ones start at 1; 0 means "after all versions"

// On disk, never renumber. Kinds above kPut are reserved; meeting one is Unimplemented.
enum class EntryKind : uint8_t {
  kDelete = 0,
  kPut = 1,
  kRangeDelete = 2,
  kValuePointer = 3,
  kPutWithExpiry = 4,
  kMerge = 5,
};
inline bool IsKnownEntryKind(uint8_t kind) { return kind <= static_cast<uint8_t>(EntryKind::kPut); }

inline constexpr uint64_t kMaxKeyBytes = 65535;
inline constexpr uint64_t kMaxValueBytes = uint64_t{1} << 30;

// <0, 0, >0 as (a_key, a_sequence) stands before, at or after (b_key, b_sequence).
inline int CompareInternalKeys(std::string_view a_key, SequenceNumber a_sequence, std::string_view b_key, SequenceNumber b_sequence) {
  const int by_key = a_key.compare(b_key);
  if (by_key != 0) return by_key;
  return a_sequence > b_sequence ? -1 : (a_sequence < b_sequence ? 1 : 0);
}

// What a point read carries through all layers: the key, its newest visible sequence and its hash, computed once.
struct LookupKey {
  LookupKey(std::string_view key, SequenceNumber visible, uint64_t key_hash) : user_key(key), sequence(visible), hash(key_hash) {}
  std::string_view user_key;
  SequenceNumber sequence;
  uint64_t hash;
};

enum class LookupState : uint8_t {
  kAbsent,  // no entry at or below the sequence here: look in older places
  kFound,
  kDeleted,
};

}  // namespace tamis::internal
