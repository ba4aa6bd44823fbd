// Flushes and compactions: what is due, running it, installing the result, and what happens when it fails.
#include <algorithm>
#include <new>

#include "base/epoch.h"
#include "base/heap.h"
#include "base/status_util.h"
#include "engine/compact/filter_runs.h"
#include "engine/db_impl.h"
#include "engine/version/file_names.h"

namespace tamis::internal {
namespace {

constexpr uint64_t kFirstRetryMicros = 100'000;
constexpr uint64_t kLastRetryMicros = 5'000'000;
constexpr uint32_t kIoRetries = 3;
// A job that moved at least this much leaves enough freed memory behind to give it back.
constexpr uint64_t kLargeJobBytes = uint64_t{8} << 20;

// Cancelled means to a caller that a callback of its own said so.
absl::Status Closing() { return absl::FailedPreconditionError("the database is being closed"); }

}  // namespace

void DbImpl::WakeBackground() {
  if (InForkedChild()) return;
  if (options_.background_threads == 0) {
    DeleteObsolete();
    return;
  }
  MutexLock lock(mutex_);
  background_wake_.SignalAll();
}

void DbImpl::BackgroundLoop(uint32_t thread) {
  // From two threads on, the first is kept for flushes and L0, so that neither waits behind a long deep compaction.
  const CompactionLane lane = options_.background_threads >= 2 && thread == 0 ? CompactionLane::kL0Only : CompactionLane::kAny;
  while (!stopping_.load(std::memory_order_acquire)) {
    try {
      if (RunOneJob(lane)) continue;
    } catch (const std::bad_alloc&) {
      MutexLock lock(mutex_);
      ScheduleRetry();
    }
    MutexLock lock(mutex_);
    if (stopping_.load() || !obsolete_->empty()) continue;
    const uint64_t now = environment_.clock->NowMicros();
    if (!background_error_.ok()) {
      background_wake_.Wait(mutex_);
    } else if (retry_at_micros_ > now) {
      background_wake_.WaitFor(mutex_, retry_at_micros_ - now);
    } else if (!JobDue(lane)) {  // looked at again: what came up since RunOneJob looked has signalled nobody
      background_wake_.Wait(mutex_);
    }
  }
}

bool DbImpl::FlushDue() const { return !immutable_.empty() && !flush_running_ && background_error_.ok(); }

bool DbImpl::TakeFlush() {
  if (!FlushDue()) return false;
  flush_running_ = true;
  return true;
}

bool DbImpl::CompactionDue(CompactionLane lane) {
  return PickCompaction(view_owner_->version->Shape(), options_.compaction, compaction_cursor_,
                        snapshots_->OldestOr(visible_.load(std::memory_order_acquire)), lane)
      .has_value();
}

bool DbImpl::JobDue(CompactionLane lane) {
  return (log_wanted_ && !logs_->has_next()) || FlushDue() || CompactionDue(lane) || FilterCheckDue(lane);
}

bool DbImpl::WorkDue() {
  if (!background_error_.ok()) return false;
  return !immutable_.empty() || CompactionDue(CompactionLane::kAny) || filter_check_due_;
}

bool DbImpl::RunOneJob(CompactionLane lane) {
  EpochReclaim();
  DeleteObsolete();
  bool prepare_log = false;
  bool flush = false;
  bool check_filters = false;
  std::optional<CompactionPlan> plan;
  {
    MutexLock lock(mutex_);
    if (!background_error_.ok()) return false;
    if (retry_at_micros_ > environment_.clock->NowMicros()) return false;
    if (log_wanted_ && !logs_->has_next()) {
      prepare_log = true;
      log_wanted_ = false;
    } else if (TakeFlush()) {
      flush = true;
    } else {
      plan = TakeCompaction(lane);
      check_filters = !plan && TakeFilterCheck(lane);
    }
  }
  if (prepare_log) {
    // Whatever goes wrong here comes again, and is reported, when the writer needs the log.
    logs_->PrepareNext().IgnoreError();
    return true;
  }
  if (flush) {
    FlushOldest().IgnoreError();  // recorded in flush_failure_ or background_error_
    return true;
  }
  if (check_filters) {
    RebuildOneFilter();
    return true;
  }
  if (!plan) return false;
  RunCompaction(*plan, {}).IgnoreError();  // recorded by NoteCompactionFailure
  return true;
}

absl::Status DbImpl::RunDueWork() {
  for (;;) {
    bool flush;
    bool check_filters;
    std::optional<CompactionPlan> plan;
    {
      MutexLock lock(mutex_);
      TAMIS_RETURN_IF_ERROR(background_error_);
      flush = TakeFlush();
      if (!flush) plan = TakeCompaction(CompactionLane::kAny);
      check_filters = !flush && !plan && TakeFilterCheck(CompactionLane::kAny);
    }
    if (flush) {
      TAMIS_RETURN_IF_ERROR(FlushOldest());
    } else if (plan) {
      const absl::Status status = RunCompaction(*plan, {});
      if (absl::IsCancelled(status)) return Closing();
      // Damage has taken its file out of compaction; the work goes on without it.
      if (!status.ok() && !absl::IsDataLoss(status) && !absl::IsUnimplemented(status)) return status;
    } else if (check_filters) {
      if (stopping_.load(std::memory_order_acquire)) return Closing();
      RebuildOneFilter();
    } else {
      EpochReclaim();
      DeleteObsolete();
      return absl::OkStatus();
    }
  }
}

std::vector<LevelMisses> DbImpl::FoldLookups() {
  lookup_history_.Fold(lookups_);
  return lookup_history_.levels();
}

OutputOptions DbImpl::MakeOutputOptions(const Version& version, absl::Span<const uint64_t> inputs, uint64_t keys, uint32_t level,
                                        uint64_t target_file_bytes) {
  OutputOptions output;
  output.table.block_bytes = options_.table.block_bytes;
  output.table.compression = level < options_.table.first_compressed_level ? Compression::kNone : options_.table.compression;
  output.table.filter_kind = KindOfTables(options_.filter, level + 1 == version.levels().size());
  output.table.prefix_rule = options_.filter.prefix_rule;
  output.table.prefix_bits_per_key = options_.filter.prefix_bits_per_key;
  std::vector<LevelMisses> lookups;
  {
    MutexLock lock(mutex_);
    lookups = FoldLookups();
    output.filter_carry = filter_carry_[level];
  }
  const std::vector<RunSize> runs = RunsAfter(version, inputs, level, keys);
  output.filter_bits = AllocateFilterBits(options_.filter, runs, lookups).back();
  output.table.hash_seed = hash_seed_;
  output.table.level = level;
  output.target_file_bytes = target_file_bytes;
  output.random = environment_.random;
  output.new_file_number = [this] { return versions_->NewFileNumber(); };
  output.context = context_;
  if (target_file_bytes != 0 && level + 1 < version.levels().size()) {
    for (const auto& file : version.levels()[level + 1].files()) {
      output.grandparents.emplace_back(file->meta().largest, file->meta().size);
    }
  }
  return output;
}

void DbImpl::PublishVersion(std::shared_ptr<const Version> version) {
  std::shared_ptr<const ReadView> retired;
  {
    MutexLock lock(mutex_);
    PropagateBlocked(*version);
    retired = SwapView(std::move(version));
  }
  RetireView(std::move(retired));
}

absl::StatusOr<MergeResult> DbImpl::MergeMemtable(const ImmutableMemtable& job, std::vector<SequenceNumber> snapshots) {
  MergeJob merge;
  merge.memtables.push_back(job.memtable);
  merge.entries_expected = job.memtable->entries();
  merge.snapshots = std::move(snapshots);
  merge.may_exist_below = [](std::string_view) { return true; };  // older entries may be anywhere below L0, or in L0
  merge.output = MakeOutputOptions(*versions_->current(), {}, job.memtable->entries(), 0, 0);
  try {
    return RunMergeJob(merge);
  } catch (const std::bad_alloc&) {
    return absl::Status(absl::StatusCode::kResourceExhausted, "");
  }
}

absl::Status DbImpl::InstallFlush(const ImmutableMemtable& job, const MergeResult& merged) {
  VersionEdit edit;
  edit.flushed_sequence = job.memtable->last_sequence();
  edit.oldest_log = job.next_log_number;
  for (const auto& table : merged.tables) edit.added.emplace_back(0, table->meta());
  const absl::Status status = versions_->Install(std::move(edit), merged.tables, [&](std::shared_ptr<const Version> installed) {
    std::shared_ptr<const ReadView> retired;
    {
      MutexLock lock(mutex_);
      immutable_.pop_front();
      PropagateBlocked(*installed);
      retired = SwapView(std::move(installed));
      filter_carry_[0] = merged.filter_carry;
      ++flushes_;
      flush_bytes_ += merged.bytes_written;
    }
    RetireView(std::move(retired));
  });
  if (absl::IsResourceExhausted(status)) {
    for (const auto& table : merged.tables) directory_->Remove(TableName(table->meta().number)).IgnoreError();
  }
  return status;
}

absl::Status DbImpl::FlushOldest() {
  ImmutableMemtable job;
  std::vector<SequenceNumber> snapshots;
  {
    MutexLock lock(mutex_);
    job = immutable_.front();
    snapshots = snapshots_->Sorted();
  }
  absl::Status status;
  bool output_failed = false;
  {
    const absl::StatusOr<MergeResult> merged = MergeMemtable(job, std::move(snapshots));
    status = merged.status();
    output_failed = !status.ok();
    // The log must be durable before its memtable leaves: the flushed entries would otherwise outlive older unsynced ones elsewhere.
    if (status.ok()) status = logs_->SyncClosedThrough(job.log_number);
    if (status.ok()) status = InstallFlush(job, *merged);
  }
  if (status.ok()) logs_->RemoveBelow(job.next_log_number);
  const bool large = job.memtable->used_bytes() >= kLargeJobBytes;
  job.memtable.reset();  // before the flush counts as ended: whoever waits for that finds the memory given back
  if (large) ReturnFreeMemory();
  const bool again = absl::IsResourceExhausted(status) || output_failed;
  std::string report;
  {
    MutexLock lock(mutex_);
    flush_running_ = false;
    flush_failure_ = absl::OkStatus();
    if (status.ok()) {
      io_failures_ = 0;
      retry_delay_micros_ = 0;
      stall_action_.store(StallDecision::Action::kSlow, std::memory_order_relaxed);  // decided anew by the next write
    } else if (again && (absl::IsResourceExhausted(status) || ++io_failures_ <= kIoRetries)) {
      flush_failure_ = status;
      ScheduleRetry();
      report = Concat("a flush failed and will be tried again: ", status.ToString());
    } else {
      StopWrites(status);
      report = Concat("a flush failed, writes are stopped: ", status.ToString());
    }
    background_wake_.SignalAll();
    background_done_.SignalAll();
  }
  if (!report.empty()) Log(LogLevel::kError, report);
  return status;
}

void DbImpl::ScheduleRetry() {
  retry_delay_micros_ = std::clamp(retry_delay_micros_ * 2, kFirstRetryMicros, kLastRetryMicros);
  retry_at_micros_ = environment_.clock->NowMicros() + retry_delay_micros_;
  ++background_errors_;
}

void DbImpl::StopWrites(const absl::Status& status) {
  ++background_errors_;
  if (!background_error_.ok()) return;
  background_error_ = status;
  writes_stopped_.store(true, std::memory_order_release);
  background_done_.SignalAll();
}

std::optional<CompactionPlan> DbImpl::TakeCompaction(CompactionLane lane) {
  std::optional<CompactionPlan> plan = PickCompaction(view_owner_->version->Shape(), options_.compaction, compaction_cursor_,
                                                      snapshots_->OldestOr(visible_.load(std::memory_order_acquire)), lane);
  if (plan) MarkBusy(*plan, true);
  return plan;
}

void DbImpl::MarkBusy(const CompactionPlan& plan, bool busy) {
  const Version& version = *view_owner_->version;
  const auto mark = [&version, busy](uint32_t level, const std::vector<uint64_t>& numbers) {
    for (const auto& file : version.levels()[level].files()) {
      if (std::find(numbers.begin(), numbers.end(), file->meta().number) != numbers.end()) file->marks().busy = busy;
    }
  };
  mark(plan.level, plan.inputs);
  mark(plan.output_level, plan.output_inputs);
  // A moved file is then in the output level.
  if (plan.trivial_move) mark(plan.output_level, plan.inputs);
  compactions_running_ += busy ? 1 : -1;
}

absl::Status DbImpl::RunCompaction(const CompactionPlan& plan, const std::function<absl::Status(uint64_t)>& progress) {
  const uint64_t start = environment_.clock->NowMicros();
  std::shared_ptr<const Version> version = versions_->current();
  absl::Status status;
  try {
    status = plan.trivial_move ? MoveFile(plan, *version) : Compact(plan, *version, progress);
  } catch (const std::bad_alloc&) {
    status = absl::Status(absl::StatusCode::kResourceExhausted, "");
  }
  if (!status.ok() && !absl::IsCancelled(status)) NoteCompactionFailure(plan, status);
  std::string largest;
  for (const uint64_t number : plan.inputs) {
    if (const auto file = version->FindByNumber(number)) largest = std::max(largest, file->meta().largest);
  }
  version.reset();  // before the job counts as ended: whoever waits for that finds the inputs deleted
  if (!plan.trivial_move && plan.input_bytes >= kLargeJobBytes) {
    EpochReclaim();
    ReturnFreeMemory();
  }
  MutexLock lock(mutex_);
  MarkBusy(plan, false);
  if (status.ok()) {
    io_failures_ = 0;
    retry_delay_micros_ = 0;
    compaction_failure_ = absl::OkStatus();
    compaction_cursor_[plan.level] = largest;
    plan.trivial_move ? ++trivial_moves_ : ++compactions_;
    level_work_[plan.output_level].micros += environment_.clock->NowMicros() - start;
    stall_action_.store(StallDecision::Action::kSlow, std::memory_order_relaxed);
  }
  background_wake_.SignalAll();
  background_done_.SignalAll();
  return status;
}

absl::Status DbImpl::Breathe(uint64_t bytes) {
  if (stopping_.load(std::memory_order_acquire)) return absl::CancelledError("the database is being closed");
  limiter_.Acquire(bytes, stopping_);
  // A flush that no thread is free for is run in between: writers wait for it, this job does not matter to them.
  bool flush = false;
  if (options_.background_threads != 0) {
    MutexLock lock(mutex_);
    flush = retry_at_micros_ <= environment_.clock->NowMicros() && TakeFlush();
  }
  if (flush) FlushOldest().IgnoreError();  // recorded
  return absl::OkStatus();
}

absl::Status DbImpl::MoveFile(const CompactionPlan& plan, const Version& version) {
  const std::shared_ptr<TableFile> file = version.FindByNumber(plan.inputs[0]);
  VersionEdit edit;
  edit.dropped.emplace_back(plan.level, file->meta().number);
  edit.added.emplace_back(plan.output_level, file->meta());
  TAMIS_RETURN_IF_ERROR(
      versions_->Install(std::move(edit), {}, [this](std::shared_ptr<const Version> installed) { PublishVersion(std::move(installed)); }));
  MutexLock lock(mutex_);
  level_work_[plan.output_level].moved_bytes += file->meta().size;
  return absl::OkStatus();
}

absl::Status DbImpl::Compact(const CompactionPlan& plan, const Version& version, const std::function<absl::Status(uint64_t)>& progress) {
  MergeJob merge;
  VersionEdit edit;
  uint64_t input_bytes = 0;
  uint64_t keys = 0;  // those in several inputs are counted in each
  std::vector<uint64_t> taken;
  const auto take = [&](uint32_t level, const std::vector<uint64_t>& numbers, bool each_its_own_run) {
    std::vector<std::shared_ptr<TableFile>> run;
    for (const auto& file : version.levels()[level].files()) {
      if (std::find(numbers.begin(), numbers.end(), file->meta().number) == numbers.end()) continue;
      merge.entries_expected += file->meta().entries;
      input_bytes += file->meta().size;
      keys += file->meta().distinct_keys;
      taken.push_back(file->meta().number);
      edit.dropped.emplace_back(level, file->meta().number);
      run.push_back(file);
      if (each_its_own_run) merge.runs.push_back(std::exchange(run, {}));
    }
    if (!run.empty()) merge.runs.push_back(std::move(run));
  };
  take(plan.level, plan.inputs, plan.level == 0);
  if (plan.output_level != plan.level) take(plan.output_level, plan.output_inputs, false);
  {
    MutexLock lock(mutex_);
    merge.snapshots = snapshots_->Sorted();
  }
  merge.may_exist_below = [&](std::string_view key) { return version.MayExistBelow(plan.output_level, key); };
  merge.output = MakeOutputOptions(version, taken, keys, plan.output_level, options_.compaction.target_file_bytes);
  merge.breathe = [&](uint64_t bytes) -> absl::Status {
    if (stopping_.load(std::memory_order_acquire)) return absl::CancelledError("the database is being closed");
    if (progress) TAMIS_RETURN_IF_ERROR(progress(bytes));
    return Breathe(bytes);
  };
  TAMIS_ASSIGN_OR_RETURN(MergeResult merged, RunMergeJob(merge));
  for (const auto& table : merged.tables) edit.added.emplace_back(plan.output_level, table->meta());
  const absl::Status status = versions_->Install(
      std::move(edit), merged.tables, [this](std::shared_ptr<const Version> installed) { PublishVersion(std::move(installed)); });
  if (absl::IsResourceExhausted(status)) {
    for (const auto& table : merged.tables) directory_->Remove(TableName(table->meta().number)).IgnoreError();
  }
  TAMIS_RETURN_IF_ERROR(status);
  MutexLock lock(mutex_);
  filter_carry_[plan.output_level] = merged.filter_carry;
  LevelWork& work = level_work_[plan.output_level];
  work.bytes_read += input_bytes;
  work.bytes_written += merged.bytes_written;
  ++work.compactions;
  return absl::OkStatus();
}

void DbImpl::NoteCompactionFailure(const CompactionPlan& plan, const absl::Status& status) {
  Log(LogLevel::kWarning, Concat("a compaction from level ", plan.level, " to ", plan.output_level, " failed: ", status.ToString()));
  if (absl::IsDataLoss(status) || absl::IsUnimplemented(status)) {
    BlockDamaged(plan, status);
    return;
  }
  if (const absl::Status manifest = versions_->failure(); !manifest.ok()) {
    RecordBackgroundError(manifest);  // no later edit can be made: trying again is of no use
    return;
  }
  MutexLock lock(mutex_);
  if (absl::IsResourceExhausted(status) || ++io_failures_ <= kIoRetries) {
    compaction_failure_ = status;
    ScheduleRetry();
  } else {
    StopWrites(status);
  }
}

// Damage in an input takes that file, and every newer file that overlaps it in L0 and the levels above, out of compaction: nothing newer
// may sink past it. Which input it was is found by reading each.
void DbImpl::BlockDamaged(const CompactionPlan& plan, const absl::Status& status) {
  const std::shared_ptr<const Version> version = versions_->current();
  std::vector<std::shared_ptr<TableFile>> damaged;
  const auto check = [&](const std::vector<uint64_t>& numbers) {
    for (const uint64_t number : numbers) {
      std::shared_ptr<TableFile> file = version->FindByNumber(number);
      if (file == nullptr) continue;
      const absl::StatusOr<const TableReader*> reader = file->Reader();
      if (!reader.ok() || !(*reader)->Verify(hash_seed_, [this](uint64_t, uint64_t) { return !stopping_.load(); }).ok()) {
        damaged.push_back(std::move(file));
      }
    }
  };
  check(plan.inputs);
  check(plan.output_inputs);
  MutexLock lock(mutex_);
  ++background_errors_;
  if (damaged.empty() && !stopping_.load()) {
    // The fault does not show again: try again, but not for ever.
    if (++io_failures_ > kIoRetries) StopWrites(status);
    return;
  }
  for (const auto& file : damaged) file->marks().blocked = true;
  any_blocked_ = true;
  PropagateBlocked(*view_owner_->version);
}

// Every file that overlaps a blocked one and holds newer entries is blocked too, in this version and in each later one: what is flushed
// or compacted to above it can sink no further, so it must not count for stalls either.
void DbImpl::PropagateBlocked(const Version& version) {
  if (!any_blocked_) return;
  std::vector<const TableMeta*> blocked;
  const auto overlaps = [&blocked](const TableMeta& meta) {
    return std::any_of(blocked.begin(), blocked.end(),
                       [&meta](const TableMeta* bad) { return meta.smallest <= bad->largest && bad->smallest <= meta.largest; });
  };
  for (size_t level = version.levels().size(); level-- > 0;) {
    const auto& files = version.levels()[level].files();
    // Below L0 the files of one level do not overlap; L0 goes from the oldest to the newest.
    for (auto it = files.rbegin(); it != files.rend(); ++it) {
      TableFile& file = **it;
      bool& is_blocked = file.marks().blocked;
      is_blocked = is_blocked || overlaps(file.meta());
      if (is_blocked) blocked.push_back(&file.meta());
    }
  }
}

void DbImpl::RecordBackgroundError(const absl::Status& status) {
  {
    MutexLock lock(mutex_);
    StopWrites(status);
  }
  Log(LogLevel::kError, Concat("writes are stopped: ", status.ToString()));
}

void DbImpl::DeleteObsolete() {
  for (const auto& [name, bytes] : obsolete_->Take()) {
    const absl::Status status = directory_->Remove(name);
    if (!status.ok()) Log(LogLevel::kWarning, Concat("an obsolete file stays until the next open: ", status.ToString()));
  }
}

absl::Status DbImpl::CompactLevels(std::optional<std::string_view> begin, std::optional<std::string_view> end, const Progress& progress) {
  uint64_t total = 0;
  uint64_t done = 0;
  {
    const std::shared_ptr<const Version> version = versions_->current();
    total = version->TotalBytes();
  }
  const auto report = [&](uint64_t bytes) -> absl::Status {
    done += bytes;
    total = std::max(total, done);
    if (progress && !progress(done, total)) return absl::CancelledError("cancelled by the progress callback");
    return absl::OkStatus();
  };
  // What was written when this began; later flushes are not waited for, or steady writes would keep it going for ever.
  const SequenceNumber limit = visible_.load(std::memory_order_acquire);
  const auto l0_is_done = [&](const Version& version) {
    const auto& files = version.levels()[0].files();
    return std::none_of(files.begin(), files.end(), [&](const auto& file) { return file->meta().smallest_sequence <= limit; });
  };
  const uint32_t levels = static_cast<uint32_t>(versions_->current()->levels().size());
  for (uint32_t level = 0; level < levels; ++level) {
    for (;;) {
      std::optional<CompactionPlan> plan;
      {
        MutexLock lock(mutex_);
        for (;;) {
          TAMIS_RETURN_IF_ERROR(background_error_);
          if (stopping_.load()) return Closing();
          bool busy = false;
          if (level == 0 && l0_is_done(*view_owner_->version)) break;
          plan = PickManual(view_owner_->version->Shape(), options_.compaction, level, begin, end, &busy);
          if (plan || !busy || (compactions_running_ == 0 && rebuilds_running_ == 0)) break;
          background_done_.Wait(mutex_);
        }
        if (plan) MarkBusy(*plan, true);
      }
      if (!plan) break;
      const absl::Status status = RunCompaction(*plan, report);
      if (absl::IsCancelled(status) && stopping_.load()) return Closing();
      TAMIS_RETURN_IF_ERROR(status);
    }
  }
  if (options_.background_threads == 0) {
    return commits_.RunExclusive([this] { return RunDueWork(); });
  }
  return absl::OkStatus();
}

}  // namespace tamis::internal
