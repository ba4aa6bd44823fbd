// The internal cursor: moves over entries in internal-key order (internal_key.h), all versions, deletes included.
//
// A cursor is Valid at an entry, or not Valid; a cursor that stopped because of an error is not Valid and status() is not OK, and stays
// so until the next Seek*. Next and Prev need a Valid cursor. The bytes of key() and value() stay until the cursor moves or dies. Not
// thread-safe. The accessors are not virtual: implementations keep `entry_` up to date.
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "table/internal_key.h"

namespace tamis::internal {

struct EntryView {
  std::string_view key;  // user key
  std::string_view value;
  SequenceNumber sequence = 0;
  EntryKind kind = EntryKind::kPut;
};

class Cursor {
 public:
  virtual ~Cursor() = default;
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;

  virtual void SeekToFirst() = 0;
  virtual void SeekToLast() = 0;
  // To the first entry at or after (user_key, sequence).
  virtual void Seek(std::string_view user_key, SequenceNumber sequence) = 0;
  // To the last entry at or before (user_key, sequence).
  virtual void SeekForPrev(std::string_view user_key, SequenceNumber sequence) = 0;
  // A hint that Seek with the same target comes next: starts loading what it will touch and returns without waiting. Cursors that are
  // merged all get it before the first of them seeks, so that their memory accesses overlap.
  virtual void PrepareSeek(std::string_view user_key, SequenceNumber sequence);
  virtual void Next() = 0;
  virtual void Prev() = 0;
  virtual absl::Status status() const = 0;

  bool Valid() const { return valid_; }
  std::string_view key() const { return entry_.key; }
  std::string_view value() const { return entry_.value; }
  SequenceNumber sequence() const { return entry_.sequence; }
  EntryKind kind() const { return entry_.kind; }
  const EntryView& entry() const { return entry_; }

 protected:
  Cursor() = default;
  EntryView entry_;
  bool valid_ = false;
};

// A cursor over nothing; with an error, its status.
std::unique_ptr<Cursor> NewEmptyCursor(absl::Status status = absl::OkStatus());

}  // namespace tamis::internal
