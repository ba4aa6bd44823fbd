#include "engine/db_impl.h"

#include <algorithm>
#include <new>

#include "base/epoch.h"
#include "base/status_util.h"
#include "engine/filter_stats.h"
#include "engine/read/db_iterator.h"
#include "engine/read/merging_cursor.h"
#include "engine/read/range_tables.h"
#include "engine/read/run_cursor.h"
#include "tamis/filter_prefix.h"

namespace tamis::internal {
namespace {

// Values in the memtable up to this size are copied into a PinnedValue, so that it does not hold the memtable.
constexpr size_t kMaxCopiedBytes = 4096;

// Closing saves what lookups have found since the last edit if there were as many: fewer hardly change f, and cost a sync.
constexpr uint64_t kLookupsWorthSaving = 1024;

TableReadOptions TableOptionsOf(const ReadOptions& options) {
  return {.fill_cache = options.fill_cache, .verify_checksums = options.verify_checksums};
}

absl::Status SetBounds(const ReadOptions& options, DbIteratorOptions* iterator) {
  if (options.lower_bound) iterator->lower_bound = std::string(*options.lower_bound);
  if (options.upper_bound) iterator->upper_bound = std::string(*options.upper_bound);
  if (!options.prefix) return absl::OkStatus();
  if (options.lower_bound || options.upper_bound) {
    return absl::InvalidArgumentError("ReadOptions::prefix sets both bounds: it goes with neither lower_bound nor upper_bound");
  }
  iterator->lower_bound = std::string(*options.prefix);
  iterator->upper_bound = PrefixSuccessor(*options.prefix);
  return absl::OkStatus();
}

void HoldResult(PointResult* result, PinnedValue* value) {
  if (result->memtable != nullptr) {
    if (result->value.size() <= kMaxCopiedBytes) {
      value->Copy(result->value);
      return;
    }
    auto* held = new std::shared_ptr<Memtable>(*result->memtable);
    value->Pin(result->value, held, [](void* object) { delete static_cast<std::shared_ptr<Memtable>*>(object); });
    return;
  }
  CachedBlock* block = result->table.block ? result->table.block.get() : result->table.cached;
  block->Ref();
  value->Pin(result->value, block, [](void* object) { static_cast<CachedBlock*>(object)->Unref(); });
}

}  // namespace

// Counts the call among those that Close waits for, if the handle is usable.
class DbImpl::Call {
 public:
  explicit Call(DbImpl* db) : db_(db), status_(db->handle_->Check()) {
    if (!status_.ok()) return;
    MutexLock lock(db->mutex_);
    status_ = db->handle_->Check();
    if (status_.ok() && db->closing_) status_ = absl::FailedPreconditionError("the database is being closed");
    if (status_.ok()) ++db->calls_;
  }
  ~Call() {
    if (!status_.ok()) return;
    MutexLock lock(db_->mutex_);
    if (--db_->calls_ == 0) db_->background_done_.SignalAll();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  const absl::Status& status() const { return status_; }

 private:
  DbImpl* const db_;
  absl::Status status_;
};

DbImpl::DbImpl(OpenedDatabase opened)
    : options_(std::move(opened.options)),
      environment_(opened.environment),
      path_(std::move(opened.path)),
      directory_(std::move(opened.directory)),
      context_(std::move(opened.context)),
      obsolete_(std::move(opened.obsolete)),
      versions_(std::move(opened.versions)),
      hash_seed_(versions_->identity().hash_seed),
      read_only_(options_.read_only),
      logger_(std::move(opened.logger)),
      recovery_(std::move(opened.recovery)),
      filters_refused_(std::move(opened.filters_refused)),
      lock_(std::move(opened.lock)),
      limiter_(options_.background_bytes_per_second, environment_.clock),
      commits_([this](absl::Span<CommitQueue::Writer* const> group) { return CommitGroup(group); }),
      memtable_(std::move(opened.memtable)) {
  last_sequence_ = opened.last_sequence;
  visible_.store(opened.last_sequence, std::memory_order_release);
  const size_t levels = versions_->current()->levels().size();
  MutexLock lock(mutex_);
  compaction_cursor_.resize(levels);
  level_work_.resize(levels);
  NoteMemtable();
  std::shared_ptr<const ReadView> none = SwapView(versions_->current());
}

void DbImpl::NoteMemtable() {
  std::erase_if(memtables_alive_, [](const auto& memtable) { return memtable.expired(); });
  memtables_alive_.push_back(memtable_);
}

DbImpl::~DbImpl() { Close().IgnoreError(); }

std::shared_ptr<const ReadView> DbImpl::SwapView(std::shared_ptr<const Version> version) {
  auto view = std::make_shared<ReadView>();
  if (version != nullptr && view_owner_ != nullptr) filter_ledger_.Settle(lookups_.Levels(), RateLimitsOf(*view_owner_->version));
  view->memtable = memtable_;
  for (auto it = immutable_.rbegin(); it != immutable_.rend(); ++it) view->immutable.push_back(it->memtable);
  filter_check_due_ = filter_check_due_ || version != nullptr;
  view->version = version != nullptr ? std::move(version) : view_owner_->version;
  view_.store(view.get(), std::memory_order_release);
  return std::exchange(view_owner_, std::move(view));
}

void DbImpl::RetireView(std::shared_ptr<const ReadView> view) {
  if (view == nullptr) return;
  EpochRetire([view = std::move(view)]() mutable { view.reset(); });
  EpochReclaim();  // a view may hold a memtable and a compaction's inputs: not something to keep until 64 have come together
}

void DbImpl::Log(LogLevel level, const std::string& text) const {
  if (logger_) logger_(level, text);
}

absl::Status DbImpl::CheckSnapshot(const ReadOptions& options) const {
  if (options.snapshot == nullptr) return absl::OkStatus();
  const SnapshotHold* hold = options.snapshot->hold();
  if (hold == nullptr) return absl::InvalidArgumentError("the snapshot is empty");
  if (hold->list() != snapshots_.get()) return absl::InvalidArgumentError("the snapshot is of another database");
  return absl::OkStatus();
}

// A point read: `use(result)` runs while the bytes are protected.
template <typename Use>
static absl::Status ReadPoint(const HandleState& handle, const std::atomic<const ReadView*>& view, const std::atomic<SequenceNumber>& visible,
                              uint64_t seed, LookupCounters* lookups, const ReadOptions& options, std::string_view key, const Use& use) {
  EpochGuard guard;
  if (!handle.Usable()) return handle.Check();
  // The sequence after the view: what it admits beyond the view is not in the view, so the view's own end decides.
  const ReadView* pinned = view.load(std::memory_order_acquire);
  const SequenceNumber sequence =
      options.snapshot != nullptr ? options.snapshot->sequence() : visible.load(std::memory_order_acquire);
  const LookupKey lookup(key, sequence, KeyHash(key, seed));
  PointResult result;
  const absl::Status status =
      PointGet(*pinned, {.table = TableOptionsOf(options), .use_filters = options.use_filters}, lookup, lookups, &result);
  if (!status.ok()) return status;
  if (result.state != LookupState::kFound) return absl::Status(absl::StatusCode::kNotFound, "");
  use(&result);
  return absl::OkStatus();
}

absl::Status DbImpl::Get(const ReadOptions& options, std::string_view key, std::string* value) {
  TAMIS_RETURN_IF_ERROR(CheckSnapshot(options));
  return ReadPoint(*handle_, view_, visible_, hash_seed_, &lookups_, options, key,
                   [&](PointResult* result) { value->assign(result->value); });
}

absl::Status DbImpl::Get(const ReadOptions& options, std::string_view key, PinnedValue* value) {
  TAMIS_RETURN_IF_ERROR(CheckSnapshot(options));
  return ReadPoint(*handle_, view_, visible_, hash_seed_, &lookups_, options, key,
                   [&](PointResult* result) { HoldResult(result, value); });
}

void DbImpl::MultiGet(const ReadOptions& options, absl::Span<const std::string_view> keys, absl::Span<PinnedValue> values,
                      absl::Span<absl::Status> statuses) {
  absl::Status refused = CheckSnapshot(options);
  if (keys.size() != values.size() || keys.size() != statuses.size()) {
    refused = absl::InvalidArgumentError("keys, values and statuses differ in number");
  }
  EpochGuard guard;
  if (refused.ok()) refused = handle_->Check();
  if (!refused.ok()) {
    std::fill(statuses.begin(), statuses.end(), refused);
    return;
  }
  const ReadView* view = view_.load(std::memory_order_acquire);
  const SequenceNumber sequence =
      options.snapshot != nullptr ? options.snapshot->sequence() : visible_.load(std::memory_order_acquire);
  const PointGetOptions point{.table = TableOptionsOf(options), .use_filters = options.use_filters};
  for (size_t begin = 0; begin < keys.size(); begin += kMultiGetGroup) {
    const size_t count = std::min(kMultiGetGroup, keys.size() - begin);
    std::vector<LookupKey> lookups;
    lookups.reserve(count);
    for (size_t i = 0; i < count; ++i) lookups.emplace_back(keys[begin + i], sequence, KeyHash(keys[begin + i], hash_seed_));
    std::array<PointResult, kMultiGetGroup> results;
    const absl::Span<absl::Status> group_statuses = statuses.subspan(begin, count);
    std::fill(group_statuses.begin(), group_statuses.end(), absl::OkStatus());
    PointMultiGet(*view, point, lookups, &lookups_, absl::MakeSpan(results).first(count), group_statuses);
    for (size_t i = 0; i < count; ++i) {
      if (!group_statuses[i].ok()) continue;
      if (results[i].state == LookupState::kFound) {
        HoldResult(&results[i], &values[begin + i]);
      } else {
        group_statuses[i] = absl::Status(absl::StatusCode::kNotFound, "");
      }
    }
  }
}

absl::StatusOr<bool> DbImpl::MayExist(const ReadOptions& options, std::string_view key) {
  TAMIS_RETURN_IF_ERROR(CheckSnapshot(options));
  EpochGuard guard;
  TAMIS_RETURN_IF_ERROR(handle_->Check());
  const ReadView* view = view_.load(std::memory_order_acquire);
  const SequenceNumber sequence =
      options.snapshot != nullptr ? options.snapshot->sequence() : visible_.load(std::memory_order_acquire);
  return PointMayExist(*view, LookupKey(key, sequence, KeyHash(key, hash_seed_)));
}

std::shared_ptr<const ReadView> DbImpl::PinView() {
  EpochGuard guard;
  if (!handle_->Usable()) return nullptr;
  return view_.load(std::memory_order_acquire)->shared_from_this();
}

absl::StatusOr<std::unique_ptr<Iterator>> DbImpl::NewIterator(const ReadOptions& options) {
  TAMIS_RETURN_IF_ERROR(CheckSnapshot(options));
  const std::shared_ptr<const ReadView> view = PinView();
  if (view == nullptr) return handle_->Check();
  DbIteratorOptions iterator;
  TAMIS_RETURN_IF_ERROR(SetBounds(options, &iterator));
  iterator.sequence = options.snapshot != nullptr ? options.snapshot->sequence() : visible_.load(std::memory_order_acquire);
  iterator.handle = handle_;
  // The table files in the view keep what they need (descriptors, cache) themselves; the directory they are in is shared.
  iterator.keep_alive = view;
  const TableReadOptions table = TableOptionsOf(options);
  std::vector<std::unique_ptr<Cursor>> cursors;
  if (view->memtable->entries() != 0) cursors.push_back(view->memtable->NewCursor(view->memtable));
  for (const auto& memtable : view->immutable) cursors.push_back(memtable->NewCursor(memtable));
  const auto& levels = view->version->levels();
  RangeTables range(iterator.lower_bound, iterator.upper_bound, options.use_filters, &lookups_.Mine());
  for (size_t i = 0; i < levels[0].size(); ++i) {
    if (range.MayHold(levels[0], i)) cursors.push_back(NewTableFileCursor(levels[0].file(i), table, /*read_ahead=*/false));
  }
  for (size_t level = 1; level < levels.size(); ++level) {
    if (!range.RunMayHold(levels[level])) continue;
    // Shares the version's list instead of copying it.
    std::shared_ptr<const std::vector<std::shared_ptr<TableFile>>> run(view->version, &levels[level].files());
    cursors.push_back(NewRunCursor(std::move(run), table, /*read_ahead=*/false));
  }
  return NewDbIterator(NewMergingCursor(std::move(cursors)), std::move(iterator));
}

absl::StatusOr<Snapshot> DbImpl::GetSnapshot() {
  TAMIS_RETURN_IF_ERROR(handle_->Check());
  const SequenceNumber sequence = snapshots_->Acquire([this] { return visible_.load(std::memory_order_acquire); });
  return Snapshot(std::make_unique<SnapshotHold>(snapshots_, sequence));
}

absl::Status DbImpl::VerifyChecksums(const Progress& progress) {
  const std::shared_ptr<const ReadView> view = PinView();
  if (view == nullptr) return handle_->Check();
  const uint64_t total = view->version->TotalBytes();
  uint64_t before = 0;
  for (const LevelFiles& level : view->version->levels()) {
    for (const auto& file : level.files()) {
      const absl::StatusOr<const TableReader*> reader = file->Reader();
      TAMIS_RETURN_IF_ERROR(reader.status());
      if (!file->filter_refusal().ok()) return file->filter_refusal();
      if (!(*reader)->prefix_filter_refusal().ok()) return (*reader)->prefix_filter_refusal();
      const auto report = [&](uint64_t done, uint64_t) { return handle_->Usable() && (!progress || progress(before + done, total)); };
      const absl::Status verified = (*reader)->Verify(hash_seed_, report, file->meta().filter_file ? &file->filter() : nullptr);
      if (absl::IsCancelled(verified)) TAMIS_RETURN_IF_ERROR(handle_->Check());  // not the caller's wish
      TAMIS_RETURN_IF_ERROR(verified);
      before += file->meta().size;
    }
  }
  return absl::OkStatus();
}

absl::Status DbImpl::Flush() {
  Call call(this);
  TAMIS_RETURN_IF_ERROR(call.status());
  SequenceNumber wanted = 0;
  TAMIS_RETURN_IF_ERROR(commits_.RunExclusive([&]() -> absl::Status {
    TAMIS_RETURN_IF_ERROR(WritableStatus());
    wanted = last_sequence_;
    if (memtable_->entries() == 0) return options_.background_threads == 0 ? RunDueWork() : absl::OkStatus();
    TAMIS_RETURN_IF_ERROR(RotateMemtable());
    return options_.background_threads == 0 ? RunDueWork() : absl::OkStatus();
  }));
  MutexLock lock(mutex_);
  while (!immutable_.empty() && immutable_.front().memtable->first_sequence() <= wanted) {
    TAMIS_RETURN_IF_ERROR(background_error_);
    TAMIS_RETURN_IF_ERROR(flush_failure_);
    if (stopping_.load()) return absl::FailedPreconditionError("the database is being closed");
    background_done_.Wait(mutex_);
  }
  return absl::OkStatus();
}

absl::Status DbImpl::WaitForBackgroundWork() {
  Call call(this);
  TAMIS_RETURN_IF_ERROR(call.status());
  if (read_only_) return absl::OkStatus();
  if (options_.background_threads == 0) {
    TAMIS_RETURN_IF_ERROR(commits_.RunExclusive([this]() -> absl::Status {
      TAMIS_RETURN_IF_ERROR(WritableStatus());
      return RunDueWork();
    }));
  } else {
    MutexLock lock(mutex_);
    for (;;) {
      TAMIS_RETURN_IF_ERROR(background_error_);
      if (stopping_.load()) return absl::FailedPreconditionError("the database is being closed");
      if (!flush_running_ && compactions_running_ == 0 && rebuilds_running_ == 0 && !WorkDue()) break;
      TAMIS_RETURN_IF_ERROR(flush_failure_);
      TAMIS_RETURN_IF_ERROR(compaction_failure_);
      background_wake_.SignalAll();
      background_done_.Wait(mutex_);
    }
  }
  EpochReclaim();
  DeleteObsolete();
  return absl::OkStatus();
}

absl::Status DbImpl::CompactRange(std::optional<std::string_view> begin, std::optional<std::string_view> end, const Progress& progress) {
  Call call(this);
  TAMIS_RETURN_IF_ERROR(call.status());
  if (read_only_) return absl::FailedPreconditionError("the database is open read-only");
  if (begin && end && *begin >= *end) return absl::OkStatus();
  TAMIS_RETURN_IF_ERROR(Flush());
  return CompactLevels(begin, end, progress);
}

absl::Status DbImpl::RebuildFilters(const Progress& progress) {
  Call call(this);
  TAMIS_RETURN_IF_ERROR(call.status());
  TAMIS_RETURN_IF_ERROR(WritableStatus());
  return RebuildAllFilters(progress);
}

absl::Status DbImpl::Close() {
  if (handle_->InForkedChild()) return handle_->Check();  // a forked child closes nothing
  {
    MutexLock lock(mutex_);
    if (closed_ || closing_) {
      while (!closed_) background_done_.Wait(mutex_);
      return close_status_;
    }
    closing_ = true;
    stopping_.store(true);
    background_wake_.SignalAll();
    background_done_.SignalAll();
    while (calls_ != 0) background_done_.Wait(mutex_);
  }
  absl::Status status;
  try {
    status = Shutdown();
  } catch (const std::bad_alloc&) {
    status = absl::Status(absl::StatusCode::kResourceExhausted, "");
  }
  MutexLock lock(mutex_);
  close_status_ = status;
  closed_ = true;
  background_done_.SignalAll();
  return status;
}

absl::Status DbImpl::Shutdown() {
  absl::Status status;
  if (logs_ != nullptr) {
    // As leader: every write that was queued before has ended. Later ones find the handle closed.
    status = commits_.RunExclusive([this]() -> absl::Status {
      handle_->MarkClosed();
      // Also after a background error: the log may be whole, and what it holds was acknowledged. A failed log says so again.
      TAMIS_RETURN_IF_ERROR(logs_->Finish());
      MutexLock lock(mutex_);
      return background_error_;
    });
  }
  handle_->MarkClosed();
  threads_.clear();    // joins
  EpochSynchronize();  // reads in progress end
  if (logs_ != nullptr) {
    bool save_lookups;
    {
      MutexLock lock(mutex_);
      FoldLookups();
      save_lookups = lookup_history_.unsaved() >= kLookupsWorthSaving;
    }
    const absl::Status finished = versions_->Finish(save_lookups);
    if (status.ok()) status = finished;
  }
  std::shared_ptr<const ReadView> view;
  {
    MutexLock lock(mutex_);
    view_.store(nullptr);
    view = std::move(view_owner_);
  }
  view.reset();
  if (lock_ != nullptr) DeleteObsolete();
  obsolete_->Close();
  Log(status.ok() ? LogLevel::kInfo : LogLevel::kError, Concat("closed: ", status.ok() ? "OK" : status.ToString()));
  lock_.reset();
  return status;
}

}  // namespace tamis::internal
