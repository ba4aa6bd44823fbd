#include "engine/write/commit_queue.h"

#include <new>

namespace tamis::internal {

absl::Status CommitQueue::Commit(std::string_view operations, uint64_t count, bool sync) {
  Writer writer;
  writer.operations = operations;
  writer.count = count;
  writer.sync = sync;
  return Enter(&writer);
}

absl::Status CommitQueue::RunExclusive(const std::function<absl::Status()>& action) {
  Writer writer;
  writer.exclusive = &action;
  return Enter(&writer);
}

absl::Status CommitQueue::Enter(Writer* writer) {
  {
    MutexLock lock(mutex_);
    queue_.push_back(writer);
    while (!writer->done && queue_.front() != writer) writer->wake.Wait(mutex_);
    if (writer->done) return writer->status;
    // Leader. Members stay in the queue until the group is done, so that nobody else becomes leader (Q1).
    group_.clear();
    uint64_t bytes = 0;
    for (Writer* member : queue_) {
      if (group_.size() == group_.capacity()) break;  // kept by the constructor: nothing may fail between here and the commit
      if (member != writer && (member->exclusive != nullptr || writer->exclusive != nullptr ||
                               bytes + member->operations.size() > kMaxGroupBytes)) {
        break;
      }
      group_.push_back(member);
      bytes += member->operations.size();
    }
  }
  absl::Status status;
  try {
    status = writer->exclusive != nullptr ? (*writer->exclusive)() : commit_(group_);
  } catch (const std::bad_alloc&) {
    status = absl::Status(absl::StatusCode::kResourceExhausted, "");
  }
  MutexLock lock(mutex_);
  for (Writer* member : group_) {
    queue_.pop_front();
    if (member == writer) continue;
    member->status = status;
    member->done = true;
    member->wake.Signal();
  }
  if (!queue_.empty()) queue_.front()->wake.Signal();
  return status;
}

}  // namespace tamis::internal
