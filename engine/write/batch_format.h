// FORMAT: a group of writes. On disk as the payload of a write-ahead log record, never renumber. Little-endian.
//
//   for each write, in order:
//     kind u8 (EntryKind)  |  varint32 key length, key  |  puts only: varint32 value length, value
//
// Nothing stands before, between or after. The i-th write (from 0) has the sequence first + i, where the record head (wal/log_format.h)
// holds first and the count; whoever replays a record checks that it held exactly count writes. Key and value lengths are at most
// kMaxKeyBytes and kMaxValueBytes. WriteBatch::representation() is this; batches written together are concatenated.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "base/coding.h"
#include "base/status_util.h"
#include "table/internal_key.h"

namespace tamis::internal {

inline constexpr uint64_t kMaxBatchBytes = uint64_t{1} << 31;

// Walks over the writes of a batch, which may come from a hostile file: it never reads out of bounds and stops at the first fault.
// Key and value point into the bytes given.
class BatchReader {
 public:
  explicit BatchReader(std::string_view bytes) : begin_(bytes.data()), next_(begin_), limit_(begin_ + bytes.size()) {}

  // False at the end and at a fault (see damaged()). *value is empty for a delete.
  [[nodiscard]] bool Next(EntryKind* kind, std::string_view* key, std::string_view* value) {
    if (next_ == limit_) return false;
    const uint8_t raw_kind = static_cast<uint8_t>(*next_);
    if (!IsKnownEntryKind(raw_kind)) {
      unimplemented_kind_ = raw_kind;
      damaged_ = true;
      return false;
    }
    const char* const behind_key = Piece(next_ + 1, kMaxKeyBytes, key);
    if (behind_key == nullptr) return Damaged();
    const char* behind = behind_key;
    if (raw_kind == static_cast<uint8_t>(EntryKind::kPut)) {
      behind = Piece(behind_key, kMaxValueBytes, value);
      if (behind == nullptr) return Damaged();
    } else {
      *value = std::string_view();
    }
    *kind = static_cast<EntryKind>(raw_kind);
    next_ = behind;
    return true;
  }

  // Next stopped before the end: bytes that this format does not allow, or a kind of a newer version.
  bool damaged() const { return damaged_; }
  // The kind that this version does not know, if that is why it stopped.
  std::optional<uint8_t> unimplemented_kind() const { return unimplemented_kind_; }
  // Where the write that Next returns next (or stopped at) begins.
  uint64_t offset() const { return static_cast<uint64_t>(next_ - begin_); }
  // OK, DataLoss with the offset in the batch, or Unimplemented with the kind.
  absl::Status status() const {
    if (!damaged_) return absl::OkStatus();
    if (unimplemented_kind_) {
      return absl::UnimplementedError(Concat("entry kind ", static_cast<uint32_t>(*unimplemented_kind_), " at offset ", offset(),
                                             " of a write batch needs a newer version"));
    }
    return absl::DataLossError(Concat("malformed write at offset ", offset(), " of a write batch"));
  }

 private:
  // A length-prefixed piece of at most `max` bytes at `from`; returns its end, or nullptr.
  const char* Piece(const char* from, uint64_t max, std::string_view* piece) const {
    uint32_t length;
    const char* const bytes = DecodeVarint32(from, limit_, &length);
    if (bytes == nullptr || length > max || length > static_cast<uint64_t>(limit_ - bytes)) return nullptr;
    *piece = std::string_view(bytes, length);
    return bytes + length;
  }
  bool Damaged() {
    damaged_ = true;
    return false;
  }

  const char* begin_;
  const char* next_;
  const char* limit_;
  bool damaged_ = false;
  std::optional<uint8_t> unimplemented_kind_;
};

}  // namespace tamis::internal
