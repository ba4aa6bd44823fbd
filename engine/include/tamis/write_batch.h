// A group of writes applied atomically, in order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace tamis {

// Not thread-safe. May be written any number of times, also after a failed write. A key of more than 65,535 bytes, a value of more than
// 1 GiB, or a batch of more than 2 GiB in all makes the batch invalid: status() says so, DB::Write refuses it with that status and
// writes nothing; Clear makes it usable again.
class WriteBatch {
 public:
  WriteBatch();
  void Put(std::string_view key, std::string_view value);
  void Delete(std::string_view key);
  void Append(const WriteBatch& other);
  void Clear();
  uint64_t Count() const { return count_; }
  uint64_t ByteSize() const { return representation_.size(); }
  const absl::Status& status() const { return status_; }

  class Handler {
   public:
    virtual ~Handler() = default;
    virtual void Put(std::string_view key, std::string_view value) = 0;
    virtual void Delete(std::string_view key) = 0;
  };
  // Calls the handler for each write, in order.
  absl::Status Iterate(Handler* handler) const;

  // The encoded form (engine/write/batch_format.h); for the engine and for tools.
  std::string_view representation() const { return representation_; }

 private:
  std::string representation_;
  uint64_t count_ = 0;
  absl::Status status_;
};

}  // namespace tamis
