// Moves over the keys of a database in bytewise order.
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/status.h"

namespace tamis {

// Sees the state at its creation (or at its snapshot), whatever is written later. Keeps the files and memory it uses alive: destroy it
// when done. Not thread-safe; different iterators may be used by different threads. May outlive the DB object, but is then not Valid and
// its status is FailedPrecondition.
//
// After a move the iterator is Valid at a key, or not Valid: past the end, or stopped by an error, and then status() is not OK.
class Iterator {
 public:
  virtual ~Iterator() = default;
  Iterator(const Iterator&) = delete;
  Iterator& operator=(const Iterator&) = delete;

  virtual void SeekToFirst() = 0;
  virtual void SeekToLast() = 0;
  virtual void Seek(std::string_view target) = 0;         // to the first key >= target
  virtual void SeekForPrev(std::string_view target) = 0;  // to the last key <= target
  virtual void Next() = 0;                                // REQUIRES: Valid()
  virtual void Prev() = 0;                                // REQUIRES: Valid()
  virtual bool Valid() const = 0;
  // The bytes stay until the iterator moves or is destroyed. REQUIRES: Valid().
  virtual std::string_view key() const = 0;
  virtual std::string_view value() const = 0;
  virtual absl::Status status() const = 0;

 protected:
  Iterator() = default;
};

}  // namespace tamis
