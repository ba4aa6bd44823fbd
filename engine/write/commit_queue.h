// Group commit: writers queue up, the one at the front (the leader) commits for itself and for those behind it, all get the same status.
//
// Invariants.
//   Q1  At most one thread is leader; only the leader touches the log, the memtable's writing side and the last sequence.
//   Q2  Writers are committed in the order in which they entered the queue.
//   Q3  A group is atomic towards its writers: the commit function is called once for it and its status is everybody's.
// Followers sleep on a condition variable; they do not spin.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/mutex.h"

namespace tamis::internal {

class CommitQueue {
 public:
  struct Writer {
    std::string_view operations;  // encoded batch
    uint64_t count = 0;
    bool sync = false;
    const std::function<absl::Status()>* exclusive = nullptr;
    absl::Status status;
    bool done = false;
    CondVar wake;
  };
  // Commits a group (never empty). Runs without the queue's lock.
  using CommitFunction = std::function<absl::Status(absl::Span<Writer* const> group)>;

  // A group ends before it would pass this many bytes; a writer on its own may be larger.
  static constexpr uint64_t kMaxGroupBytes = uint64_t{1} << 20;

  // ... and has at most so many members.
  static constexpr size_t kMaxGroupWriters = 256;

  explicit CommitQueue(CommitFunction commit) : commit_(std::move(commit)) { group_.reserve(kMaxGroupWriters); }

  absl::Status Commit(std::string_view operations, uint64_t count, bool sync);
  // Runs `action` as leader: no commit is in progress meanwhile, all earlier ones have ended.
  absl::Status RunExclusive(const std::function<absl::Status()>& action);

 private:
  absl::Status Enter(Writer* writer);

  const CommitFunction commit_;
  Mutex mutex_;
  std::deque<Writer*> queue_ TAMIS_GUARDED_BY(mutex_);  // front: the leader
  std::vector<Writer*> group_;                          // the leader's (Q1)
};

}  // namespace tamis::internal
