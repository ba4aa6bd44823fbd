// FORMAT: data and index blocks, format id 1 ("prefix array"). On disk, never renumber. Little-endian.
//
//   shared prefix (p bytes)                 of all user keys of the block
//   entries, n of them, in internal-key order:
//       kind u8 (EntryKind) | varint64 sequence | varint32 user key length | varint32 value length | rest of the user key | value
//     where "rest" is what follows the shared prefix and the (up to) 8 bytes after it.
//   prefix array, n x u64:                  the 8 bytes after the shared prefix, as a big-endian number, zero-padded
//   offset array, n x u32 (or u16):         of each entry, from the start of the block
//   tail, 12 bytes:
//       n u32 (at least 1) | end of the entries section u32, the offset of the prefix array | p u16 | flags u16 (bit 0: offsets are u16)
//
// Entries follow each other without a gap. Of the flags only bit 0 is defined; another is Unimplemented.
//
// Search: branch-free over the prefix array, one entry fetched. Equal array values form a range in which (rest of key, length,
// sequence descending) decides by binary search. A target that has not the shared prefix lies before or after the whole block. Prefix
// and array come from the user key only; since the array is zero-padded, keys that differ only in trailing NULs within the 8 bytes tie
// there and are told apart by their length.
//
// Index block: the same form, its keys being (user key, sequence), its kind kPut and its value a block handle: entry i's key is at or
// after every entry of data block i and before every entry of block i + 1. If the neighbouring user keys differ it is a shortened user
// key with sequence 0, else the last entry's own pair.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "table/internal_key.h"

namespace tamis::internal {

inline constexpr size_t kBlockTailBytes = 12;

// Collects entries in order, then lays the block out. Not thread-safe.
class BlockBuilder {
 public:
  void Add(std::string_view user_key, SequenceNumber sequence, EntryKind kind, std::string_view value);
  bool empty() const { return entries_.empty(); }
  size_t count() const { return entries_.size(); }
  // Raw size of the block if finished now (an estimate from above).
  uint64_t EstimatedBytes() const;
  // The finished block; valid until the next call on the builder. REQUIRES: not empty.
  std::string_view Finish();
  void Reset();

 private:
  struct Pending {
    uint64_t key_offset;  // into keys_
    uint32_t key_length;
    EntryKind kind;
    SequenceNumber sequence;
    uint64_t value_offset;  // into values_
    uint32_t value_length;
  };
  uint64_t SizeWithoutOffsets() const;

  std::vector<Pending> entries_;
  size_t shared_bytes_ = 0;  // common prefix of all keys so far
  size_t shortest_key_ = 0;
  uint64_t header_bytes_ = 0;  // kinds, sequences and lengths as encoded
  std::string keys_;
  std::string values_;
  std::string block_;  // buffer; the block is at its front
  std::vector<uint32_t> offsets_;
};

// The shortest user key k with last <= k < next (bytewise). REQUIRES: last < next.
std::string ShortestSeparator(std::string_view last, std::string_view next);

}  // namespace tamis::internal
