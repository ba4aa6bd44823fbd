// A checked view of one block in the form of block_builder.h, its search, and a cursor over it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/bucket_index.h"
#include "base/coding.h"
#include "table/cursor.h"
#include "table/internal_key.h"

namespace tamis::internal {

inline constexpr size_t kEntrySlackBytes = 22;  // one array element, one short offset, the tail

// Points into bytes it does not own. Thread-safe. Parse checks everything that later code relies on without a further check (I1..I4):
//   I1  the arrays and the tail lie inside the block; n >= 1.
//   I2  every entry lies wholly inside the entries section, its kind is known, its key is at most kMaxKeyBytes.
//   I3  a key length is at least p; the rest length follows from it.
//   I4  entries follow each other without a gap, from the end of the shared prefix to the prefix array. So at least kEntrySlackBytes of
//       the block follow the last byte of any entry: short fields may be loaded and copied in whole words.
// Order of keys is not checked by Parse (the checksum was); VerifyOrder does.
class Block {
 public:
  Block() = default;
  static absl::StatusOr<Block> Parse(std::string_view bytes);

  uint32_t count() const { return count_; }
  // First index whose entry is at or after (user_key, sequence); count() if none.
  uint32_t LowerBound(std::string_view user_key, SequenceNumber sequence) const;
  // The same with Buckets() of this block, for a block that is searched often and is too large for the cache lines that halving touches.
  uint32_t LowerBound(std::string_view user_key, SequenceNumber sequence, const BucketIndex& buckets) const;
  // Of the prefix array. REQUIRES: VerifyOrder has passed.
  BucketIndex Buckets() const;
  // The entry's parts. `i` < count().
  struct Entry {
    std::string_view rest;  // of the user key, behind shared prefix and array bytes
    std::string_view value;
    SequenceNumber sequence;
    uint32_t key_length;
    EntryKind kind;
  };
  Entry At(uint32_t i) const;
  // Index i's user key equals `user_key`? The form with `entry` fills it in if so.
  bool KeyEquals(uint32_t i, std::string_view user_key) const;
  bool KeyEquals(uint32_t i, std::string_view user_key, Entry* entry) const;
  // Writes entry i's user key into *key (assign).
  void CopyKey(uint32_t i, std::string* key) const;
  // DataLoss unless the entries ascend strictly and short keys are zero-padded in the prefix array.
  absl::Status VerifyOrder() const;
  std::string_view bytes() const { return bytes_; }

 private:
  friend class BlockCursor;
  absl::Status CheckEntries() const;
  uint64_t PrefixAt(uint32_t i) const { return LoadLittle<uint64_t>(prefixes_ + size_t{i} * 8); }
  uint32_t OffsetAt(uint32_t i) const {
    return short_offsets_ ? LoadLittle<uint16_t>(offsets_ + size_t{i} * 2) : LoadLittle<uint32_t>(offsets_ + size_t{i} * 4);
  }
  // Whether the search is decided by the shared prefix: then its result in *found.
  bool DecidedByShared(std::string_view user_key, uint32_t* found) const;
  // LowerBound for a target that has the shared prefix and then `behind`, if the first array element >= its prefix has an index in
  // [begin, end].
  uint32_t LowerBoundIn(uint32_t begin, uint32_t end, std::string_view behind, uint64_t key_length, SequenceNumber sequence) const;
  // Whether entry i, whose prefix ties with the target's, stands before the target; `rest` as in Entry.
  bool TiedEntryIsBefore(uint32_t i, std::string_view rest, uint64_t key_length, SequenceNumber sequence) const;

  std::string_view bytes_;
  std::string_view shared_;
  const char* prefixes_ = nullptr;
  const char* offsets_ = nullptr;
  uint32_t count_ = 0;
  bool short_offsets_ = false;
};

// Moves over one block. The block's bytes must outlive it.
class BlockCursor final : public Cursor {
 public:
  BlockCursor() = default;
  void Reset(const Block& block);
  void Clear();  // not Valid, on no block
  void SeekToFirst() override;
  void SeekToLast() override;
  void Seek(std::string_view user_key, SequenceNumber sequence) override;
  void SeekForPrev(std::string_view user_key, SequenceNumber sequence) override;
  void Next() override;
  void Prev() override;
  absl::Status status() const override { return absl::OkStatus(); }
  uint32_t index() const { return index_; }

 private:
  void Load();         // entry_ := entry index_
  void LoadOrClear();  // the same if index_ is in the block, else not Valid
  Block block_;
  uint32_t index_ = 0;
  // Buffer of the key: its first p bytes are the shared prefix for as long as the cursor is on the block; longer than the key.
  std::string key_;
};

}  // namespace tamis::internal
