#include "engine/write/log_set.h"

#include <algorithm>

#include "base/status_util.h"
#include "engine/version/file_names.h"

namespace tamis::internal {

absl::StatusOr<std::unique_ptr<LogWriter>> LogSet::CreateLog() {
  LogIdentity identity;
  identity.kind = LogKind::kWriteAheadLog;
  identity.log_number = context_.new_file_number();
  identity.log_id = context_.random->Next64();
  identity.database_id = context_.database_id;
  const std::string name = LogName(identity.log_number);
  absl::Status status;
  absl::StatusOr<std::unique_ptr<LogFile>> file = context_.directory->CreateLog(name);
  if (!file.ok()) return file.status();
  absl::StatusOr<std::unique_ptr<LogWriter>> log = LogWriter::Create(*std::move(file), identity);
  status = log.status();
  if (status.ok()) status = context_.directory->Sync();
  if (!status.ok()) {
    log = status;
    context_.directory->Remove(name).IgnoreError();  // not listed anywhere yet
    return status;
  }
  status = context_.register_log({identity.log_number, identity.log_id});
  if (status.ok()) return log;
  log = status;
  // ResourceExhausted says that the manifest is unchanged; after anything else it may list the log, so the file stays.
  if (absl::IsResourceExhausted(status)) context_.directory->Remove(name).IgnoreError();
  return status;
}

absl::Status LogSet::Start() {
  TAMIS_ASSIGN_OR_RETURN(current_, CreateLog());
  proven_ = current_->proven();  // recovery retired every older log
  current_allocated_ = current_->reserved();
  return absl::OkStatus();
}

absl::Status LogSet::Append(SequenceNumber first_sequence, uint32_t count, std::string_view operations, bool sync) {
  const uint64_t before = current_->offset();
  absl::Status status;
  if (sync) {
    MutexLock lock(closed_mutex_);
    TAMIS_RETURN_IF_ERROR(SyncClosed(current_number() - 1));
    if (closed_proven_ > proven_) proven_ = closed_proven_;
  }
  if (sync) {
    status = current_->AppendDurable(proven_, first_sequence, count, {}, operations);
    if (status.ok()) proven_ = current_->proven();
  } else {
    status = current_->Append(proven_, first_sequence, count, {}, operations);
  }
  bytes_written_.fetch_add(current_->offset() - before, std::memory_order_relaxed);
  current_allocated_.store(current_->reserved(), std::memory_order_relaxed);
  return status;
}

absl::Status LogSet::Sync() {
  {
    MutexLock lock(closed_mutex_);
    TAMIS_RETURN_IF_ERROR(SyncClosed(current_number() - 1));
  }
  TAMIS_RETURN_IF_ERROR(current_->Reserve(0));
  TAMIS_RETURN_IF_ERROR(current_->Sync());
  proven_ = current_->proven();
  return absl::OkStatus();
}

absl::Status LogSet::PrepareNext() {
  MutexLock lock(next_mutex_);
  if (next_ != nullptr) return absl::OkStatus();
  TAMIS_ASSIGN_OR_RETURN(next_, CreateLog());
  has_next_.store(true, std::memory_order_release);
  return absl::OkStatus();
}

absl::Status LogSet::Rotate() {
  TAMIS_RETURN_IF_ERROR(PrepareNext());
  TAMIS_RETURN_IF_ERROR(current_->Reserve(0));
  {
    MutexLock lock(closed_mutex_);
    if (closed_proven_ > proven_) proven_ = closed_proven_;
    closed_.emplace_back();  // before the log ends: nothing after that may fail for want of memory
  }
  const absl::Status finished = current_->Finish(LogWriter::FinishMode::kUnsynced, proven_);
  {
    MutexLock lock(closed_mutex_);
    if (!finished.ok()) {
      closed_.pop_back();
      return finished;
    }
    closed_.back().log = std::move(current_);
  }
  MutexLock lock(next_mutex_);
  current_ = std::move(next_);
  has_next_.store(false, std::memory_order_release);
  current_allocated_.store(current_->reserved(), std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::Status LogSet::Finish() {
  if (current_ == nullptr) return absl::OkStatus();  // Start failed
  {
    MutexLock lock(closed_mutex_);
    TAMIS_RETURN_IF_ERROR(SyncClosed(current_number() - 1));
  }
  // Room for the end mark was kept by every Reserve; asking for more could fail on a full disk before anything is synced.
  return current_->Finish(LogWriter::FinishMode::kSynced);
}

absl::Status LogSet::SyncClosed(uint64_t through) {
  TAMIS_RETURN_IF_ERROR(closed_failure_);
  for (Closed& closed : closed_) {
    if (closed.log == nullptr) break;  // being closed
    const uint64_t number = closed.log->identity().log_number;
    if (number > through) break;
    if (closed.synced) continue;
    closed_failure_ = closed.log->SyncData();
    TAMIS_RETURN_IF_ERROR(closed_failure_);
    closed.synced = true;
    closed_proven_ = std::max(closed_proven_, ProvenPoint{number, closed.log->offset()});
  }
  return absl::OkStatus();
}

absl::Status LogSet::SyncClosedThrough(uint64_t number) {
  MutexLock lock(closed_mutex_);
  return SyncClosed(number);
}

void LogSet::RemoveBelow(uint64_t oldest) {
  std::deque<Closed> removed;
  {
    MutexLock lock(closed_mutex_);
    while (!closed_.empty() && closed_.front().log != nullptr && closed_.front().log->identity().log_number < oldest) {
      removed.push_back(std::move(closed_.front()));
      closed_.pop_front();
    }
  }
  for (Closed& closed : removed) {
    const std::string name = LogName(closed.log->identity().log_number);
    closed.log.reset();
    context_.directory->Remove(name).IgnoreError();  // an orphan for the next open if it fails
  }
}

uint64_t LogSet::allocated_bytes() const {
  uint64_t total = current_allocated_.load(std::memory_order_relaxed);
  MutexLock lock(closed_mutex_);
  for (const Closed& closed : closed_) total += closed.log != nullptr ? closed.log->offset() : 0;
  return total;
}

}  // namespace tamis::internal
