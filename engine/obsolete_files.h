// Files that nobody needs any more and that may be deleted: the manifest that drops them is durable, and no reader is left.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace tamis::internal {

// Filled from whatever thread drops the last reference, emptied by the engine. Thread-safe; outlives the database (tables hold it).
class ObsoleteFiles {
 public:
  // `wake` is called after each Add until Close, without a lock of this object; a call that began before Close may end after it.
  explicit ObsoleteFiles(std::function<void()> wake) : wake_(std::move(wake)) {}

  void Add(std::string name, uint64_t bytes) {
    std::function<void()> wake;
    {
      MutexLock lock(mutex_);
      if (closed_) return;  // removed as an orphan at the next open
      files_.emplace_back(std::move(name), bytes);
      wake = wake_;
    }
    if (wake) wake();
  }
  std::vector<std::pair<std::string, uint64_t>> Take() {
    MutexLock lock(mutex_);
    return std::exchange(files_, {});
  }
  bool empty() const {
    MutexLock lock(mutex_);
    return files_.empty();
  }
  uint64_t pending_bytes() const {
    MutexLock lock(mutex_);
    uint64_t total = 0;
    for (const auto& [name, bytes] : files_) total += bytes;
    return total;
  }
  // From here on Add does nothing.
  void Close() {
    MutexLock lock(mutex_);
    closed_ = true;
    wake_ = nullptr;
  }

 private:
  mutable Mutex mutex_;
  std::function<void()> wake_ TAMIS_GUARDED_BY(mutex_);
  std::vector<std::pair<std::string, uint64_t>> files_ TAMIS_GUARDED_BY(mutex_);
  bool closed_ TAMIS_GUARDED_BY(mutex_) = false;
};

}  // namespace tamis::internal
