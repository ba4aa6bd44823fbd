// The snapshots that are held. Shared by the database and by every Snapshot taken from it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "table/internal_key.h"

namespace tamis::internal {

// Thread-safe.
class SnapshotList {
 public:
  // Registers the sequence that `visible` returns; called under the list's lock, so that no job that copies the list afterwards can miss
  // it and no job that copied it before can have dropped what it sees.
  SequenceNumber Acquire(const std::function<SequenceNumber()>& visible) {
    MutexLock lock(mutex_);
    const SequenceNumber sequence = visible();
    ++held_[sequence];
    return sequence;
  }
  void Release(SequenceNumber sequence) {
    MutexLock lock(mutex_);
    const auto it = held_.find(sequence);
    if (--it->second == 0) held_.erase(it);
  }
  std::vector<SequenceNumber> Sorted() const {  // ascending, distinct
    MutexLock lock(mutex_);
    std::vector<SequenceNumber> all;
    for (const auto& [sequence, count] : held_) all.push_back(sequence);
    return all;
  }
  SequenceNumber OldestOr(SequenceNumber none) const {
    MutexLock lock(mutex_);
    return held_.empty() ? none : held_.begin()->first;
  }
  uint32_t count() const {
    MutexLock lock(mutex_);
    uint32_t total = 0;
    for (const auto& [sequence, count] : held_) total += count;
    return total;
  }

 private:
  mutable Mutex mutex_;
  std::map<SequenceNumber, uint32_t> held_ TAMIS_GUARDED_BY(mutex_);
};

class SnapshotHold {
 public:
  SnapshotHold(std::shared_ptr<SnapshotList> list, SequenceNumber sequence) : list_(std::move(list)), sequence_(sequence) {}
  ~SnapshotHold() { list_->Release(sequence_); }
  SnapshotHold(const SnapshotHold&) = delete;
  SnapshotHold& operator=(const SnapshotHold&) = delete;
  SequenceNumber sequence() const { return sequence_; }
  const SnapshotList* list() const { return list_.get(); }

 private:
  const std::shared_ptr<SnapshotList> list_;
  const SequenceNumber sequence_;
};

}  // namespace tamis::internal
