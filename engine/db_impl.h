// The database: owns the parts, holds the mutex that orders changes of the memtables and the tree, and forwards.
//
// Which thread does what: write_path.cc runs in the commit leader, background.cc and rebuild_filters.cc in background threads (or, with
// background_threads = 0, in the leader), db_impl.cc in callers. Lock order: commit queue, then VersionSet's install lock, then mutex_.
// Nothing is read, written or freed under mutex_: views, versions and tables are released after it (their last reference may call back
// into the database through ObsoleteFiles), and no epoch function is called under it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/mutex.h"
#include "engine/compact/compaction_job.h"
#include "engine/compact/compaction_picker.h"
#include "engine/compact/filter_budget.h"
#include "engine/handle_state.h"
#include "engine/info_log.h"
#include "engine/obsolete_files.h"
#include "engine/rate_limiter.h"
#include "engine/read/filter_ledger.h"
#include "engine/read/lookup_counters.h"
#include "engine/read/lookup_history.h"
#include "engine/read/point_get.h"
#include "engine/read/read_view.h"
#include "engine/snapshot_list.h"
#include "engine/version/version_set.h"
#include "engine/write/commit_queue.h"
#include "engine/write/log_set.h"
#include "engine/write/write_stall.h"
#include "tamis/db.h"

namespace tamis::internal {

// A memtable that waits for its flush, and the log that holds its writes.
struct ImmutableMemtable {
  std::shared_ptr<Memtable> memtable;
  uint64_t log_number = 0;
  uint64_t next_log_number = 0;  // the log after it: the oldest one needed once this is flushed
};

struct LevelWork {
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
  uint64_t moved_bytes = 0;
  uint64_t compactions = 0;
  uint64_t micros = 0;
};

// What opening found and made; handed to the constructor.
struct OpenedDatabase {
  Options options;  // checked and completed
  Environment environment;
  std::string path;
  std::shared_ptr<Directory> directory;
  std::unique_ptr<FileLock> lock;                        // null when read-only
  std::shared_ptr<const TableFileContext> context;
  std::shared_ptr<ObsoleteFiles> obsolete;
  std::unique_ptr<VersionSet> versions;
  std::shared_ptr<Memtable> memtable;                    // recovered records (read-only), else empty
  SequenceNumber last_sequence = 0;
  RecoveryStats recovery;
  Logger logger;
  std::shared_ptr<std::atomic<uint64_t>> filters_refused;
};

class DbImpl : public std::enable_shared_from_this<DbImpl> {
 public:
  explicit DbImpl(OpenedDatabase opened);
  ~DbImpl();

  // Starts the logs and the background threads (writable databases). Once, before anything else.
  absl::Status Start();

  absl::Status Write(const WriteOptions& options, std::string_view operations, uint64_t count);
  absl::Status SyncLog();
  absl::Status Get(const ReadOptions& options, std::string_view key, std::string* value);
  absl::Status Get(const ReadOptions& options, std::string_view key, PinnedValue* value);
  void MultiGet(const ReadOptions& options, absl::Span<const std::string_view> keys, absl::Span<PinnedValue> values,
                absl::Span<absl::Status> statuses);
  absl::StatusOr<bool> MayExist(const ReadOptions& options, std::string_view key);
  absl::StatusOr<std::unique_ptr<Iterator>> NewIterator(const ReadOptions& options);
  absl::StatusOr<Snapshot> GetSnapshot();
  absl::Status Flush();
  absl::Status CompactRange(std::optional<std::string_view> begin, std::optional<std::string_view> end, const Progress& progress);
  absl::Status WaitForBackgroundWork();
  absl::Status RebuildFilters(const Progress& progress);
  absl::Status VerifyChecksums(const Progress& progress);
  // Counts bytes, or entries, of the tables in the range; see stats.cc.
  absl::StatusOr<uint64_t> Approximate(std::optional<std::string_view> begin, std::optional<std::string_view> end, bool count_entries);
  absl::StatusOr<Stats> GetStats(const StatsOptions& options = {});
  std::optional<std::string> GetProperty(std::string_view name);
  absl::Status Close();

  // For tools and benchmarks that look inside.
  const std::atomic<const ReadView*>& view() const { return view_; }
  uint64_t hash_seed() const { return hash_seed_; }
  SequenceNumber visible_sequence() const { return visible_.load(std::memory_order_acquire); }
  std::shared_ptr<const ReadView> PinView();

  // In a forked child the threads do not exist and any mutex may be held for ever: nothing of this object may be used or destroyed.
  bool InForkedChild() const { return handle_->InForkedChild(); }

  // There is an obsolete file to delete, or other work. From any thread, without mutex_.
  void WakeBackground();

 private:
  // --- write_path.cc: the commit leader ---
  absl::Status CommitGroup(absl::Span<CommitQueue::Writer* const> group);
  absl::Status PrepareWrite(uint64_t bytes);
  absl::Status Throttle(const StallDecision& decision, uint64_t bytes);
  absl::Status WaitForRoom(StallReason reason);
  static absl::Status NothingWritten(const absl::Status& status);
  absl::Status RotateMemtable();
  StallInputs CollectStallInputs() TAMIS_REQUIRES(mutex_);
  absl::Status WritableStatus() const;

  // --- background.cc ---
  void BackgroundLoop(uint32_t thread);
  // Runs one job of the lane if one is due; true if it did something. Called and returns without mutex_.
  bool RunOneJob(CompactionLane lane);
  absl::Status RunDueWork();  // background_threads = 0: until nothing is due
  bool FlushDue() const TAMIS_REQUIRES(mutex_);
  bool CompactionDue(CompactionLane lane) TAMIS_REQUIRES(mutex_);
  bool JobDue(CompactionLane lane) TAMIS_REQUIRES(mutex_);
  bool TakeFlush() TAMIS_REQUIRES(mutex_);  // true: the caller runs FlushOldest, and nobody else does until it has ended
  absl::Status FlushOldest();
  absl::StatusOr<MergeResult> MergeMemtable(const ImmutableMemtable& job, std::vector<SequenceNumber> snapshots);
  absl::Status InstallFlush(const ImmutableMemtable& job, const MergeResult& merged);
  std::optional<CompactionPlan> TakeCompaction(CompactionLane lane) TAMIS_REQUIRES(mutex_);
  void MarkBusy(const CompactionPlan& plan, bool busy) TAMIS_REQUIRES(mutex_);
  absl::Status RunCompaction(const CompactionPlan& plan, const std::function<absl::Status(uint64_t)>& progress);
  absl::Status Compact(const CompactionPlan& plan, const Version& version, const std::function<absl::Status(uint64_t)>& progress);
  absl::Status MoveFile(const CompactionPlan& plan, const Version& version);
  // What a job that takes the tables `inputs`, and `keys` keys in all, writes to `level`.
  OutputOptions MakeOutputOptions(const Version& version, absl::Span<const uint64_t> inputs, uint64_t keys, uint32_t level,
                                  uint64_t target_file_bytes);
  // What lookups have found up to now.
  std::vector<LevelMisses> FoldLookups() TAMIS_REQUIRES(mutex_);
  void NoteCompactionFailure(const CompactionPlan& plan, const absl::Status& status);
  void BlockDamaged(const CompactionPlan& plan, const absl::Status& status);
  void PropagateBlocked(const Version& version) TAMIS_REQUIRES(mutex_);
  void ScheduleRetry() TAMIS_REQUIRES(mutex_);
  void StopWrites(const absl::Status& status) TAMIS_REQUIRES(mutex_);
  absl::Status CompactLevels(std::optional<std::string_view> begin, std::optional<std::string_view> end, const Progress& progress);
  void PublishVersion(std::shared_ptr<const Version> version);
  void RecordBackgroundError(const absl::Status& status);
  void DeleteObsolete();
  bool WorkDue() TAMIS_REQUIRES(mutex_);
  // What a long job does about every MiB: ends when the database closes, keeps to the rate limit, runs a flush that no thread is free for.
  absl::Status Breathe(uint64_t bytes);

  // --- rebuild_filters.cc ---
  struct LiveTable {
    std::shared_ptr<TableFile> file;
    uint32_t level = 0;
    FilterKind wanted_kind = FilterKind::kNone;  // filter and bits per key that it would get if it were written now
    double wanted_bits = 0;                      // 0: no filter
  };
  // Reports bytes of the table that are done; an error ends the rebuild with it.
  using RebuildProgress = std::function<absl::Status(uint64_t table_bytes)>;
  std::vector<LiveTable> LiveTables(const Version& version);
  bool HasWantedFilter(const LiveTable& table, const TableFile& file) const;  // file: as table.file is, or would be
  bool HasTooManyBits(const LiveTable& table) const;
  bool FilterCheckDue(CompactionLane lane) const TAMIS_REQUIRES(mutex_);
  bool TakeFilterCheck(CompactionLane lane) TAMIS_REQUIRES(mutex_);  // true: the caller runs RebuildOneFilter
  std::optional<LiveTable> TakeOverfull();  // a table with too many bits, marked busy
  void RebuildOneFilter();
  absl::Status RebuildAllFilters(const Progress& progress);
  // True: the table is as given in the published version, nothing else is at work on it, and it is marked busy now.
  bool TakeForRebuild(const LiveTable& table) TAMIS_REQUIRES(mutex_);
  absl::Status RebuildByNumber(uint64_t number, const RebuildProgress& progress);
  absl::Status RunRebuild(LiveTable table, const RebuildProgress& progress);
  absl::StatusOr<uint64_t> RebuildFilter(const LiveTable& table, const RebuildProgress& progress);  // bytes written
  absl::StatusOr<std::shared_ptr<TableFile>> OwnFilterIfWanted(const LiveTable& table) const;
  absl::StatusOr<FilterBytes> BuildFilter(const LiveTable& table, const RebuildProgress& progress);
  absl::StatusOr<std::shared_ptr<TableFile>> WriteFilterOf(const TableFile& file, const FilterBytes& bytes);

  // --- open.cc ---
  // Opens the readers of all tables, L0 first, with background_threads threads; waits for a second at most.
  void LoadTables();

  // --- shared ---
  absl::Status Shutdown();  // what Close does once no call is in progress
  void NoteMemtable() TAMIS_REQUIRES(mutex_);  // memtable_ is new
  // A call in progress, which Close waits for.
  class Call;
  absl::Status CheckSnapshot(const ReadOptions& options) const;
  // Swaps the view; the old one must be passed to RetireView after mutex_ is released.
  [[nodiscard]] std::shared_ptr<const ReadView> SwapView(std::shared_ptr<const Version> version) TAMIS_REQUIRES(mutex_);
  static void RetireView(std::shared_ptr<const ReadView> view);
  void Log(LogLevel level, const std::string& text) const;

  const Options options_;
  const Environment environment_;
  const std::string path_;
  const std::shared_ptr<Directory> directory_;
  const std::shared_ptr<const TableFileContext> context_;
  const std::shared_ptr<ObsoleteFiles> obsolete_;
  const std::shared_ptr<HandleState> handle_ = std::make_shared<HandleState>();
  const std::shared_ptr<SnapshotList> snapshots_ = std::make_shared<SnapshotList>();
  const std::unique_ptr<VersionSet> versions_;
  const uint64_t hash_seed_;
  const bool read_only_;
  const Logger logger_;
  const RecoveryStats recovery_;
  const std::shared_ptr<const std::atomic<uint64_t>> filters_refused_;  // counted by the tables as they are opened
  std::unique_ptr<FileLock> lock_;
  std::unique_ptr<LogSet> logs_;
  RateLimiter limiter_;
  CommitQueue commits_;
  LookupCounters lookups_;

  std::atomic<const ReadView*> view_{nullptr};      // owned by view_owner_
  std::atomic<SequenceNumber> visible_{0};
  SequenceNumber last_sequence_ = 0;                 // the leader's
  std::shared_ptr<Memtable> memtable_;               // the leader's; changed under mutex_
  bool inline_work_left_ = false;                    // the leader's, background_threads = 0

  mutable Mutex mutex_;
  CondVar background_wake_;   // work may be due
  CondVar background_done_;   // a job ended, or an error was recorded
  std::shared_ptr<const ReadView> view_owner_ TAMIS_GUARDED_BY(mutex_);
  std::deque<ImmutableMemtable> immutable_ TAMIS_GUARDED_BY(mutex_);  // oldest first
  std::vector<std::weak_ptr<const Memtable>> memtables_alive_ TAMIS_GUARDED_BY(mutex_);  // all, also those that only readers hold
  absl::Status background_error_ TAMIS_GUARDED_BY(mutex_);             // sticky
  absl::Status flush_failure_ TAMIS_GUARDED_BY(mutex_);                // of the last flush; tried again
  absl::Status compaction_failure_ TAMIS_GUARDED_BY(mutex_);           // of the last compaction; tried again
  bool any_blocked_ TAMIS_GUARDED_BY(mutex_) = false;                  // a table was taken out of compaction
  std::atomic<bool> writes_stopped_{false};                            // background_error_ is set
  LookupHistory lookup_history_ TAMIS_GUARDED_BY(mutex_);  // lookups_ and what earlier processes saw
  FilterLedger filter_ledger_ TAMIS_GUARDED_BY(mutex_);
  std::array<double, kMaxLevels> filter_carry_ TAMIS_GUARDED_BY(mutex_){};  // FilterDivider, from job to job
  bool flush_running_ TAMIS_GUARDED_BY(mutex_) = false;
  uint32_t compactions_running_ TAMIS_GUARDED_BY(mutex_) = 0;
  uint32_t rebuilds_running_ TAMIS_GUARDED_BY(mutex_) = 0;             // of filters
  bool filter_check_due_ TAMIS_GUARDED_BY(mutex_) = false;             // the tree is new: a filter may have too many bits for its level
  bool log_wanted_ TAMIS_GUARDED_BY(mutex_) = false;                   // the leader asks for the next log ahead of rotation
  uint64_t retry_at_micros_ TAMIS_GUARDED_BY(mutex_) = 0;              // no job is started before, after a failure
  uint64_t retry_delay_micros_ TAMIS_GUARDED_BY(mutex_) = 0;
  uint32_t io_failures_ TAMIS_GUARDED_BY(mutex_) = 0;                  // in a row
  std::vector<std::string> compaction_cursor_ TAMIS_GUARDED_BY(mutex_);
  std::vector<LevelWork> level_work_ TAMIS_GUARDED_BY(mutex_);
  StallStats stalls_ TAMIS_GUARDED_BY(mutex_);
  uint64_t flushes_ TAMIS_GUARDED_BY(mutex_) = 0;
  uint64_t compactions_ TAMIS_GUARDED_BY(mutex_) = 0;
  uint64_t trivial_moves_ TAMIS_GUARDED_BY(mutex_) = 0;
  uint64_t flush_bytes_ TAMIS_GUARDED_BY(mutex_) = 0;
  uint64_t filters_rebuilt_ TAMIS_GUARDED_BY(mutex_) = 0;
  uint64_t filter_file_bytes_ TAMIS_GUARDED_BY(mutex_) = 0;            // written
  uint64_t background_errors_ TAMIS_GUARDED_BY(mutex_) = 0;
  uint32_t calls_ TAMIS_GUARDED_BY(mutex_) = 0;
  bool closing_ TAMIS_GUARDED_BY(mutex_) = false;
  bool closed_ TAMIS_GUARDED_BY(mutex_) = false;
  absl::Status close_status_ TAMIS_GUARDED_BY(mutex_);
  std::atomic<bool> stopping_{false};                                  // jobs and waits end soon
  std::atomic<StallDecision::Action> stall_action_{StallDecision::Action::kGo};
  std::atomic<uint64_t> slow_bytes_per_second_{0};
  std::atomic<uint64_t> puts_{0};
  std::atomic<uint64_t> deletes_{0};
  std::atomic<uint64_t> user_bytes_{0};
  std::vector<std::unique_ptr<Executor::Thread>> threads_;
};

// Opens, or creates; see open.cc.
absl::StatusOr<std::shared_ptr<DbImpl>> OpenDatabase(const Options& options, const std::string& path, const Environment& environment);

}  // namespace tamis::internal
