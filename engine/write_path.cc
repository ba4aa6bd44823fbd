// What the commit leader does: makes room, writes the log record of its group, applies it to the memtable, publishes the sequence.
#include <algorithm>

#include "base/status_util.h"
#include "engine/db_impl.h"
#include "engine/write/batch_format.h"

namespace tamis::internal {
namespace {

// A write that waits longer than this in one go lets the log say so.
constexpr uint64_t kLongStallMicros = 1'000'000;
constexpr uint64_t kLongestSleepMicros = 50'000;

}  // namespace

absl::Status DbImpl::WritableStatus() const {
  if (read_only_) return absl::FailedPreconditionError("the database is open read-only");
  TAMIS_RETURN_IF_ERROR(handle_->Check());
  if (!writes_stopped_.load(std::memory_order_acquire)) return absl::OkStatus();
  MutexLock lock(mutex_);
  return absl::FailedPreconditionError(
      Concat("an earlier error stopped all writes, reopen to go on: ", ToStd(background_error_.message())));
}

absl::Status DbImpl::Write(const WriteOptions& options, std::string_view operations, uint64_t count) {
  if (read_only_) return absl::FailedPreconditionError("the database is open read-only");
  TAMIS_RETURN_IF_ERROR(handle_->Check());
  if (count == 0 && !options.sync) return absl::OkStatus();
  return commits_.Commit(operations, count, options.sync);
}

absl::Status DbImpl::SyncLog() { return Write({.sync = true}, {}, 0); }

absl::Status DbImpl::CommitGroup(absl::Span<CommitQueue::Writer* const> group) {
  TAMIS_RETURN_IF_ERROR(WritableStatus());
  uint64_t bytes = 0;
  uint64_t count = 0;
  bool sync = false;
  for (const CommitQueue::Writer* writer : group) {
    bytes += writer->operations.size();
    count += writer->count;
    sync = sync || writer->sync;
  }
  if (count == 0) {
    const absl::Status status = logs_->Sync();
    if (!status.ok() && !absl::IsResourceExhausted(status)) RecordBackgroundError(status);
    return status;
  }
  TAMIS_RETURN_IF_ERROR(PrepareWrite(bytes));
  // From here on nothing but the log's own write can fail: space and memory are reserved.
  if (!memtable_->Reserve(count, bytes)) return absl::Status(absl::StatusCode::kResourceExhausted, "");
  TAMIS_RETURN_IF_ERROR(logs_->Reserve(bytes));
  std::string joined;
  std::string_view operations = group[0]->operations;
  if (group.size() > 1) {
    joined.reserve(bytes);
    for (const CommitQueue::Writer* writer : group) joined.append(writer->operations);
    operations = joined;
  }
  const absl::Status status = logs_->Append(last_sequence_ + 1, static_cast<uint32_t>(count), operations, sync);
  if (!status.ok()) {
    const absl::Status unknown = absl::UnknownError(Concat("the write may or may not survive: ", ToStd(status.message())));
    RecordBackgroundError(unknown);
    return unknown;
  }
  BatchReader reader(operations);
  EntryKind kind;
  std::string_view key, value;
  uint64_t deletes = 0;
  while (reader.Next(&kind, &key, &value)) {
    memtable_->Add(++last_sequence_, kind, key, value);
    deletes += kind == EntryKind::kDelete ? 1 : 0;
  }
  visible_.store(last_sequence_, std::memory_order_release);
  // Counted by the one leader: plain sums would do, but the stats read them from other threads.
  puts_.store(puts_.load(std::memory_order_relaxed) + count - deletes, std::memory_order_relaxed);
  deletes_.store(deletes_.load(std::memory_order_relaxed) + deletes, std::memory_order_relaxed);
  user_bytes_.store(user_bytes_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::Status DbImpl::PrepareWrite(uint64_t bytes) {
  const uint64_t used = memtable_->used_bytes();
  if (options_.background_threads == 0) {
    const bool full = used >= options_.memtable_bytes;
    if (!full && !inline_work_left_) return absl::OkStatus();
    inline_work_left_ = true;  // until RunDueWork succeeds: a failure fails this call, and the work is due again in the next
    if (full) TAMIS_RETURN_IF_ERROR(RotateMemtable());
    TAMIS_RETURN_IF_ERROR(NothingWritten(RunDueWork()));
    inline_work_left_ = false;
    return absl::OkStatus();
  }
  if (used < options_.memtable_bytes) {
    if (used > options_.memtable_bytes / 2 && !logs_->has_next()) {
      MutexLock lock(mutex_);
      if (!log_wanted_) {
        log_wanted_ = true;
        background_wake_.SignalAll();
      }
    }
    if (stall_action_.load(std::memory_order_relaxed) != StallDecision::Action::kSlow) return absl::OkStatus();
  }
  for (;;) {
    TAMIS_RETURN_IF_ERROR(WritableStatus());
    StallDecision decision;
    bool full;
    {
      MutexLock lock(mutex_);
      StallInputs inputs = CollectStallInputs();
      full = inputs.memtable_full;
      decision = DecideStall(inputs, options_.max_immutable_memtables, options_.compaction);
      stall_action_.store(decision.action, std::memory_order_relaxed);
    }
    if (decision.action == StallDecision::Action::kWait) {
      TAMIS_RETURN_IF_ERROR(WaitForRoom(decision.reason));
      continue;
    }
    if (full) TAMIS_RETURN_IF_ERROR(RotateMemtable());
    if (decision.action == StallDecision::Action::kSlow) return Throttle(decision, bytes);
    return absl::OkStatus();
  }
}

// What background work failed with, as the answer to a write that was not begun: Unknown would say that it may survive.
absl::Status DbImpl::NothingWritten(const absl::Status& status) {
  if (status.ok() || absl::IsResourceExhausted(status) || absl::IsFailedPrecondition(status)) return status;
  return absl::FailedPreconditionError(Concat("nothing was written, background work failed: ", status.ToString()));
}

StallInputs DbImpl::CollectStallInputs() {
  StallInputs inputs;
  inputs.immutable_memtables = static_cast<uint32_t>(immutable_.size());
  inputs.memtable_full = memtable_->used_bytes() >= options_.memtable_bytes;
  const TreeShape shape = view_owner_->version->Shape();
  for (const FileShape& file : shape[0]) inputs.l0_files += file.blocked ? 0 : 1;
  inputs.compaction_debt_bytes = CompactionDebtBytes(shape, options_.compaction);
  return inputs;
}

absl::Status DbImpl::Throttle(const StallDecision& decision, uint64_t bytes) {
  const uint64_t micros =
      std::min<uint64_t>(kLongestSleepMicros, bytes * 1'000'000 / std::max<uint64_t>(1, decision.bytes_per_second));
  environment_.clock->SleepMicros(micros);
  MutexLock lock(mutex_);
  ++stalls_.slowdowns;
  stalls_.micros += micros;
  (decision.reason == StallReason::kDebt ? stalls_.micros_debt : stalls_.micros_l0) += micros;
  return absl::OkStatus();
}

absl::Status DbImpl::WaitForRoom(StallReason reason) {
  const uint64_t start = environment_.clock->NowMicros();
  absl::Status status;
  {
    MutexLock lock(mutex_);
    ++stalls_.stops;
    stalls_.current_reason = std::string(StallReasonName(reason));
    // Any end of a job may have made room; the caller decides anew.
    const bool closing = stopping_.load();
    const absl::Status& failure = reason == StallReason::kMemtables ? flush_failure_ : compaction_failure_;
    if (!closing && background_error_.ok() && failure.ok()) {
      background_wake_.SignalAll();
      background_done_.WaitFor(mutex_, kLongStallMicros);
    }
    stalls_.current_reason.clear();
    // Work that cannot be done (disk full) is tried again in the background; the write is refused meanwhile.
    status = NothingWritten(failure);
    if (closing && status.ok()) status = absl::FailedPreconditionError("the database is being closed");
    const uint64_t micros = environment_.clock->NowMicros() - start;
    stalls_.micros += micros;
    (reason == StallReason::kMemtables ? stalls_.micros_memtables : reason == StallReason::kDebt ? stalls_.micros_debt : stalls_.micros_l0) +=
        micros;
  }
  return status;
}

absl::Status DbImpl::RotateMemtable() {
  const uint64_t old_log = logs_->current_number();
  const absl::Status rotated = logs_->Rotate();
  if (!rotated.ok()) {
    if (!absl::IsResourceExhausted(rotated)) RecordBackgroundError(rotated);
    return rotated;
  }
  auto fresh = std::make_shared<Memtable>();
  std::shared_ptr<const ReadView> retired;
  {
    MutexLock lock(mutex_);
    immutable_.push_back({memtable_, old_log, logs_->current_number()});
    memtable_ = std::move(fresh);
    NoteMemtable();
    retired = SwapView(nullptr);
    log_wanted_ = false;
    background_wake_.SignalAll();
  }
  RetireView(std::move(retired));
  return absl::OkStatus();
}

}  // namespace tamis::internal
