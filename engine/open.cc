// Opening: what is in the directory, creating, recovering, and the order in which the disk changes.
//
//   1  the lock is taken (writable)                      2  CURRENT and the manifest are read
//   3  every table that the manifest lists is found with its size and id; every log is found
//   4  the logs are replayed (recovery.h) and what they held is written to new tables
//   5  a new manifest lists the result, without the old logs, and becomes CURRENT
//   6  only now is anything deleted: old logs, old manifests, temporaries, tables that nobody lists
//   7  a new log is created and listed; writes begin
#include <algorithm>
#include <set>

#include "base/status_util.h"
#include "engine/compact/filter_runs.h"
#include "engine/db_impl.h"
#include "engine/options_check.h"
#include "engine/recovery.h"
#include "engine/shared_block_cache.h"
#include "engine/version/file_names.h"
#include "engine/write/batch_format.h"
#include "wal/log_reader.h"

namespace tamis::internal {
namespace {

constexpr uint64_t kReadOnlyPatienceMicros = 10'000'000;
constexpr uint64_t kLoadPatienceMicros = 1'000'000;

enum class DirectoryState { kNoDatabase, kDatabase };

// Looks without touching. No CURRENT but a table, log or filter file: the database lost its CURRENT, and nothing is created over it.
// LOCK, LOG, temporaries and manifests alone are an unfinished creation.
absl::StatusOr<DirectoryState> Examine(const Directory& directory) {
  TAMIS_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, directory.List());
  bool current = false;
  std::string data, foreign;
  for (const DirectoryEntry& entry : entries) {
    const std::optional<FileName> name = ParseFileName(entry.name);
    if (!name) {
      foreign = entry.name;
    } else if (name->kind == FileKind::kCurrent) {
      current = true;
    } else if (name->kind == FileKind::kTable || name->kind == FileKind::kLog || name->kind == FileKind::kFilter) {
      data = entry.name;
    }
  }
  if (current) return DirectoryState::kDatabase;
  if (!data.empty()) {
    return absl::DataLossError(Concat(directory.path(), " holds ", data, " but no CURRENT: the database has lost it; nothing was changed (`tamis repair` is the tool)"));
  }
  if (!foreign.empty()) {
    return absl::FailedPreconditionError(Concat(directory.path(), " is not a Tamis database: it holds ", foreign));
  }
  return DirectoryState::kNoDatabase;
}

uint64_t NumberAboveAll(const std::vector<DirectoryEntry>& entries) {
  uint64_t above = 1;
  for (const DirectoryEntry& entry : entries) {
    if (const std::optional<FileName> name = ParseFileName(entry.name)) above = std::max(above, name->number + 1);
  }
  return above;
}

absl::Status CreateDatabase(Directory* directory, const Options& options, const Environment& environment) {
  TAMIS_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, directory->List());
  ManifestState state;
  state.identity.database_id = environment.random->NextId128();
  state.identity.hash_seed = options.filter.hash_seed ? *options.filter.hash_seed : environment.random->Next64();
  const uint64_t number = NumberAboveAll(entries);
  state.next_file_number = number + 2;
  return Manifest::Create(directory, number, number + 1, state, environment.random).status();
}

// Step 3: presence, size and id of each table.
absl::Status FindTables(const Directory& directory, const ManifestState& state) {
  for (const auto& level : state.levels) {
    for (const auto& [number, meta] : level) {
      const std::string name = TableName(number);
      TAMIS_ASSIGN_OR_RETURN(const std::optional<uint64_t> size, directory.FileSize(name));
      if (!size) return absl::DataLossError(Concat(directory.path(), "/", name, " is missing: the manifest lists it"));
      if (*size != meta.size || meta.size < kFooterBytes) {
        return absl::DataLossError(Concat(directory.path(), "/", name, " has ", *size, " bytes, the manifest lists ", meta.size));
      }
      TAMIS_ASSIGN_OR_RETURN(const std::unique_ptr<RandomAccessFile> file, directory.OpenRandomAccess(name));
      char bytes[kFooterBytes];
      TAMIS_RETURN_IF_ERROR(file->Read(meta.size - kFooterBytes, absl::MakeSpan(bytes)));
      TAMIS_ASSIGN_OR_RETURN(const Footer footer, DecodeFooter({bytes, kFooterBytes}, meta.size, file->path()));
      if (footer.table_id != meta.id) {
        return absl::DataLossError(Concat(file->path(), " is another table than the one the manifest lists"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status AddToMemtable(Memtable* memtable, SequenceNumber sequence, uint64_t count, std::string_view operations) {
  if (!memtable->Reserve(count, operations.size())) return absl::Status(absl::StatusCode::kResourceExhausted, "");
  BatchReader reader(operations);
  EntryKind kind;
  std::string_view key, value;
  while (reader.Next(&kind, &key, &value)) memtable->Add(sequence++, kind, key, value);
  return absl::OkStatus();
}

uint32_t LevelsFor(const Options& options, const ManifestState& state) {
  uint32_t levels = options.compaction.levels;
  for (uint32_t level = 0; level < state.levels.size(); ++level) {
    if (!state.levels[level].empty()) levels = std::max(levels, level + 1);
  }
  return levels;
}

class Opener {
 public:
  Opener(const Options& options, const std::string& path, const Environment& environment)
      : environment_(environment), options_(options), path_(path) {
    Begin();
  }

  absl::StatusOr<std::shared_ptr<DbImpl>> OpenForWriting() {
    const Options& options = opened_.options;
    TAMIS_RETURN_IF_ERROR(OpenAndLock());
    TAMIS_ASSIGN_OR_RETURN(ManifestContents contents, ReadManifest(*opened_.directory));
    ManifestState& state = contents.state;
    TAMIS_RETURN_IF_ERROR(CheckSeed(state));
    opened_.logger = options.logger ? options.logger : NewInfoLogger(opened_.directory);
    MakeContext(/*keep_open=*/false);
    TAMIS_RETURN_IF_ERROR(FindTables(*opened_.directory, state));
    TAMIS_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, opened_.directory->List());
    TAMIS_RETURN_IF_ERROR(CheckUnlistedLogs(entries, state));
    next_number_ = std::max(state.next_file_number, NumberAboveAll(entries));
    if (const absl::Status recovered = Recover(&state); !recovered.ok()) {
      RemoveRecovered();
      return recovered;
    }
    opened_.recovery.bytes_dropped += contents.bytes_dropped;
    if (!contents.drop_reason.empty() && opened_.recovery.reason.empty()) opened_.recovery.reason = contents.drop_reason;
    const uint64_t manifest_number = next_number_++;
    const uint64_t temporary = next_number_++;
    state.next_file_number = next_number_;
    absl::StatusOr<std::unique_ptr<Manifest>> manifest =
        Manifest::Create(opened_.directory.get(), manifest_number, temporary, state, environment_.random);
    // After another error CURRENT may name the new manifest, which lists them.
    if (absl::IsResourceExhausted(manifest.status())) RemoveRecovered();
    TAMIS_RETURN_IF_ERROR(manifest.status());
    recovered_.clear();
    tables_ = MakeTableFiles(state, LevelsFor(options, state), opened_.context);
    RemoveOrphans(entries, state, /*keep_tables=*/contents.bytes_dropped != 0);
    return Finish(std::move(state), *std::move(manifest));
  }

  // The state at this moment, beside a writer that may change everything meanwhile: what looks like damage, or like an end of the history
  // before that of the logs, is believed only if the manifest and the fault are the same at a second look.
  absl::StatusOr<std::shared_ptr<DbImpl>> OpenForReading() {
    const uint64_t deadline = environment_.clock->NowMicros() + kReadOnlyPatienceMicros;
    std::string last_fault;
    for (uint64_t pause = 1000;; pause = std::min<uint64_t>(pause * 2, 100'000)) {
      Begin();  // an attempt that opened but stopped short has given opened_ away
      ManifestContents seen;
      absl::StatusOr<std::shared_ptr<DbImpl>> result = TryOpenForReading(&seen);
      if (result.ok() && stopped_short_.empty()) return result;
      if (absl::IsUnimplemented(result.status()) || absl::IsInvalidArgument(result.status()) ||
          absl::IsFailedPrecondition(result.status())) {
        return result;
      }
      std::string fault = Concat(seen.manifest_number, " ", seen.last_record_end, " ", stopped_short_, result.status().ToString());
      if (fault == last_fault) return result;
      if (environment_.clock->NowMicros() >= deadline) {
        return absl::UnavailableError(Concat(path_, ": its writer changes it faster than it can be opened for reading (last seen: ",
                                             result.status().ToString(), ")"));
      }
      last_fault = std::move(fault);
      environment_.clock->SleepMicros(pause);
    }
  }

 private:
  void Begin() {
    opened_ = OpenedDatabase();
    opened_.options = options_;
    opened_.path = path_;
    opened_.environment = environment_;
    opened_.filters_refused = std::make_shared<std::atomic<uint64_t>>(0);
    stopped_short_.clear();
  }

  absl::Status OpenAndLock() {
    const Options& options = opened_.options;
    const auto mode = options.create_if_missing ? FileSystem::OpenMode::kCreate : FileSystem::OpenMode::kExisting;
    TAMIS_ASSIGN_OR_RETURN(opened_.directory, environment_.files->OpenDirectory(opened_.path, mode, options.file_mode));
    TAMIS_ASSIGN_OR_RETURN(DirectoryState found, Examine(*opened_.directory));
    TAMIS_RETURN_IF_ERROR(CheckWanted(found));
    TAMIS_ASSIGN_OR_RETURN(opened_.lock, opened_.directory->Lock(kLockName));
    // Again, now that nobody else changes it.
    TAMIS_ASSIGN_OR_RETURN(found, Examine(*opened_.directory));
    TAMIS_RETURN_IF_ERROR(CheckWanted(found));
    if (found == DirectoryState::kDatabase) return absl::OkStatus();
    return CreateDatabase(opened_.directory.get(), options, environment_);
  }

  absl::Status CheckWanted(DirectoryState found) const {
    if (found == DirectoryState::kDatabase && opened_.options.error_if_exists) {
      return absl::FailedPreconditionError(Concat(opened_.path, " exists (error_if_exists is set)"));
    }
    if (found == DirectoryState::kNoDatabase && !opened_.options.create_if_missing) {
      return absl::FailedPreconditionError(Concat(opened_.path, " holds no database (create_if_missing is not set)"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckSeed(const ManifestState& state) const {
    const std::optional<uint64_t>& wanted = opened_.options.filter.hash_seed;
    if (!wanted || *wanted == state.identity.hash_seed) return absl::OkStatus();
    return absl::FailedPreconditionError(Concat("filter.hash_seed is ", *wanted, ", but the database was created with ",
                                                state.identity.hash_seed, ": the seed cannot be changed"));
  }

  void MakeContext(bool keep_open) {
    const Options& options = opened_.options;
    auto context = std::make_shared<TableFileContext>();
    context->directory = opened_.directory;
    context->descriptors = std::make_shared<DescriptorCache>(opened_.directory, options.max_open_files);
    context->keep_open = keep_open;
    context->kept_bytes = std::make_shared<std::atomic<uint64_t>>(0);
    if (options.block_cache != nullptr) {
      context->block_cache = options.block_cache->cache;
    } else if (options.block_cache_bytes != 0) {
      context->block_cache = std::make_shared<BlockCache>(options.block_cache_bytes);
    }
    waker_ = std::make_shared<std::weak_ptr<DbImpl>>();
    opened_.obsolete = std::make_shared<ObsoleteFiles>([waker = waker_] {
      if (const std::shared_ptr<DbImpl> alive = waker->lock()) alive->WakeBackground();
    });
    context->on_obsolete = [obsolete = opened_.obsolete](const std::string& name, uint64_t bytes) { obsolete->Add(name, bytes); };
    context->on_loaded = [refused = opened_.filters_refused, logger = opened_.logger](const TableFile& table) {
      if (table.filter_refusal().ok()) return;
      refused->fetch_add(1, std::memory_order_relaxed);
      if (!logger) return;
      const std::string_view instead = table.filter().has_filter() ? " is read with its own filter: " : " is read without its filter: ";
      logger(LogLevel::kWarning, Concat(TableName(table.meta().number), instead, table.filter_refusal().ToString()));
    };
    context->on_opened = [refused = opened_.filters_refused, logger = opened_.logger](uint64_t number, const TableReader& reader) {
      if (reader.prefix_filter_refusal().ok()) return;
      refused->fetch_add(1, std::memory_order_relaxed);
      if (!logger) return;
      logger(LogLevel::kWarning,
             Concat(TableName(number), " is read without its prefix filter: ", reader.prefix_filter_refusal().ToString()));
    };
    opened_.context = std::move(context);
  }

  // A log takes its first record only when the manifest lists it (write/log_set.h, G1): one that holds records but is not listed shows
  // that the manifest has lost its end, even where what is left looks whole.
  absl::Status CheckUnlistedLogs(const std::vector<DirectoryEntry>& entries, const ManifestState& state) const {
    for (const DirectoryEntry& entry : entries) {
      const std::optional<FileName> name = ParseFileName(entry.name);
      if (!name || name->kind != FileKind::kLog || name->number < state.oldest_log || state.logs.count(name->number) != 0) continue;
      absl::StatusOr<std::unique_ptr<RandomAccessFile>> file = opened_.directory->OpenRandomAccess(entry.name);
      if (!file.ok()) return file.status();
      const absl::StatusOr<std::unique_ptr<LogReader>> log =
          LogReader::Open(std::shared_ptr<const RandomAccessFile>(*std::move(file)), LogKind::kWriteAheadLog, std::nullopt);
      if (!log.ok() || (*log)->identity().database_id != state.identity.database_id) continue;  // never finished, or not ours
      LogRecord record;
      if ((*log)->Next(&record)) {
        return absl::DataLossError(Concat((*log)->path(), " holds records, but the manifest does not list it: the manifest has lost its end"));
      }
      TAMIS_RETURN_IF_ERROR((*log)->status());
    }
    return absl::OkStatus();
  }

  // What a failed opening wrote: nothing lists it, and a full disk must not get fuller at each try.
  void RemoveRecovered() {
    recovered_.clear();
    for (const uint64_t number : recovered_numbers_) opened_.directory->Remove(TableName(number)).IgnoreError();
  }

  // Step 4. The tables made are listed in *state and kept open in recovered_.
  absl::Status Recover(ManifestState* state) {
    auto memtable = std::make_shared<Memtable>();
    const ReplaySink sink = [&](SequenceNumber first, uint64_t count, std::string_view operations) -> absl::Status {
      if (memtable->used_bytes() >= opened_.options.memtable_bytes) {
        TAMIS_RETURN_IF_ERROR(WriteRecovered(*state, memtable));
        memtable = std::make_shared<Memtable>();
      }
      return AddToMemtable(memtable.get(), first, count, operations);
    };
    TAMIS_ASSIGN_OR_RETURN(const ReplayResult replayed, ReplayLogs(*opened_.directory, *state, sink));
    if (memtable->entries() != 0) TAMIS_RETURN_IF_ERROR(WriteRecovered(*state, memtable));
    for (const auto& table : recovered_) state->levels[0].emplace(table->meta().number, table->meta());
    state->flushed_sequence = replayed.last_sequence;
    state->logs.clear();
    state->oldest_log = next_number_;
    state->proven = {};
    opened_.last_sequence = replayed.last_sequence;
    opened_.recovery = replayed.stats;
    return absl::OkStatus();
  }

  absl::Status WriteRecovered(const ManifestState& state, const std::shared_ptr<Memtable>& memtable) {
    MergeJob job;
    job.memtables.push_back(memtable);
    job.entries_expected = memtable->entries();
    job.may_exist_below = [](std::string_view) { return true; };
    const TableOptions& table = opened_.options.table;
    job.output.table.block_bytes = table.block_bytes;
    job.output.table.compression = table.first_compressed_level > 0 ? Compression::kNone : table.compression;
    job.output.table.filter_kind = KindOfTables(opened_.options.filter, /*last_level=*/false);
    job.output.table.prefix_rule = opened_.options.filter.prefix_rule;
    job.output.table.prefix_bits_per_key = opened_.options.filter.prefix_bits_per_key;
    const std::vector<RunSize> runs = RunsAfter(state, recovered_, memtable->entries());
    job.output.filter_bits = AllocateFilterBits(opened_.options.filter, runs, state.lookups).back();
    job.output.table.hash_seed = state.identity.hash_seed;
    job.output.random = environment_.random;
    job.output.new_file_number = [this] { return next_number_++; };
    job.output.context = opened_.context;
    TAMIS_ASSIGN_OR_RETURN(MergeResult merged, RunMergeJob(job));
    for (auto& made : merged.tables) {
      recovered_numbers_.push_back(made->meta().number);
      recovered_.push_back(std::move(made));
    }
    return absl::OkStatus();
  }

  // Step 6. With `keep_tables` (the manifest's tail was dropped) tables and filters that nobody lists may be what the lost edit listed:
  // they stay.
  void RemoveOrphans(const std::vector<DirectoryEntry>& entries, const ManifestState& state, bool keep_tables) {
    std::set<uint64_t> tables;
    std::set<uint64_t> filters;
    for (const auto& level : state.levels) {
      for (const auto& [number, meta] : level) {
        tables.insert(number);
        if (meta.filter_file) filters.insert(meta.filter_file->number);
      }
    }
    for (const DirectoryEntry& entry : entries) {
      const std::optional<FileName> name = ParseFileName(entry.name);
      if (!name) continue;
      bool orphan = false;
      switch (name->kind) {
        case FileKind::kLog: orphan = true; break;
        case FileKind::kManifest: orphan = true; break;  // listed before the new one was made
        case FileKind::kTemporary: orphan = true; break;
        case FileKind::kTable: orphan = !keep_tables && tables.count(name->number) == 0; break;
        case FileKind::kFilter: orphan = !keep_tables && filters.count(name->number) == 0; break;
        case FileKind::kCurrent:
        case FileKind::kLock:
        case FileKind::kInfoLog: break;
      }
      if (!orphan) continue;
      const absl::Status status = opened_.directory->Remove(entry.name);
      if (!status.ok() && opened_.logger) {
        opened_.logger(LogLevel::kWarning, Concat("an orphan stays until the next open: ", status.ToString()));
      }
    }
  }

  absl::StatusOr<std::shared_ptr<DbImpl>> TryOpenForReading(ManifestContents* seen) {
    TAMIS_ASSIGN_OR_RETURN(opened_.directory,
                           environment_.files->OpenDirectory(opened_.path, FileSystem::OpenMode::kExisting, opened_.options.file_mode));
    TAMIS_ASSIGN_OR_RETURN(const DirectoryState found, Examine(*opened_.directory));
    if (found == DirectoryState::kNoDatabase) {
      return absl::FailedPreconditionError(Concat(opened_.path, " holds no database"));
    }
    TAMIS_ASSIGN_OR_RETURN(*seen, ReadManifest(*opened_.directory));
    ManifestState state = seen->state;
    TAMIS_RETURN_IF_ERROR(CheckSeed(state));
    opened_.logger = opened_.options.logger;
    MakeContext(/*keep_open=*/true);
    TAMIS_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, opened_.directory->List());
    TAMIS_RETURN_IF_ERROR(CheckUnlistedLogs(entries, state));
    // All tables are open before the logs are read: what the writer deletes from now on is still there for us.
    tables_ = MakeTableFiles(state, LevelsFor(opened_.options, state), opened_.context);
    for (const auto& level : tables_) {
      for (const auto& file : level) TAMIS_RETURN_IF_ERROR(file->OpenFile());
    }
    auto memtable = std::make_shared<Memtable>();
    TAMIS_ASSIGN_OR_RETURN(const ReplayResult replayed,
                           ReplayLogs(*opened_.directory, state, [&](SequenceNumber first, uint64_t count, std::string_view operations) {
                             return AddToMemtable(memtable.get(), first, count, operations);
                           }));
    // Last, since it takes longest and needs only what is open by now.
    std::string filters_refused;
    for (const auto& level : tables_) {
      for (const auto& file : level) {
        TAMIS_RETURN_IF_ERROR(file->Reader().status());
        if (file->meta().filter_file && !file->filter_refusal().ok()) filters_refused += file->filter_refusal().ToString() + " ";
      }
    }
    opened_.last_sequence = replayed.last_sequence;
    opened_.recovery = replayed.stats;
    // A filter file that is missing has perhaps just been replaced: looked at again, too.
    stopped_short_ = std::move(filters_refused);
    // (Bytes behind the end of the newest log are the record that the writer is just storing.)
    if (replayed.later_logs_hold_records) stopped_short_ += Concat(replayed.stats.bytes_dropped, " ", replayed.stats.reason, " ");
    opened_.memtable = std::move(memtable);
    return Finish(std::move(state), nullptr);
  }

  absl::StatusOr<std::shared_ptr<DbImpl>> Finish(ManifestState state, std::unique_ptr<Manifest> manifest) {
    opened_.versions = std::make_unique<VersionSet>(opened_.context, environment_, LevelsFor(opened_.options, state));
    opened_.versions->Start(std::move(state), std::move(manifest), std::move(tables_));
    if (opened_.memtable == nullptr) opened_.memtable = std::make_shared<Memtable>();
    if (!opened_.options.read_only && opened_.logger) {
      const RecoveryStats& recovery = opened_.recovery;
      opened_.logger(LogLevel::kInfo, Concat("opened ", opened_.path, ": ", recovery.logs, " logs, ", recovery.records,
                                             " records replayed, ", recovery.bytes_dropped, " bytes dropped",
                                             recovery.reason.empty() ? "" : ": ", recovery.reason));
    }
    auto database = std::make_shared<DbImpl>(std::move(opened_));
    *waker_ = database;
    const absl::Status started = database->Start();
    if (started.ok()) return database;
    database->Close().IgnoreError();  // here, and not wherever the last reference goes
    return started;
  }

  const Environment environment_;
  const Options options_;
  const std::string path_;
  OpenedDatabase opened_;
  std::shared_ptr<std::weak_ptr<DbImpl>> waker_;
  std::vector<std::shared_ptr<TableFile>> recovered_;
  std::vector<uint64_t> recovered_numbers_;
  std::string stopped_short_;  // read-only: what must look the same twice to be believed: an early end, a filter file that is not good
  std::vector<std::vector<std::shared_ptr<TableFile>>> tables_;  // by level, of the state that is opened
  uint64_t next_number_ = 1;
};

}  // namespace

absl::StatusOr<std::shared_ptr<DbImpl>> OpenDatabase(const Options& options, const std::string& path, const Environment& environment) {
  TAMIS_RETURN_IF_ERROR(CheckOptions(options));
  Opener opener(options, path, environment);
  return options.read_only ? opener.OpenForReading() : opener.OpenForWriting();
}

absl::Status DbImpl::Start() {
  {
    const std::vector<LevelMisses> saved = versions_->lookups();
    MutexLock lock(mutex_);
    lookup_history_.Restore(saved);
  }
  if (!read_only_) {
    versions_->SetLookupSource([this] {
      MutexLock lock(mutex_);
      std::vector<LevelMisses> levels = FoldLookups();
      lookup_history_.MarkSaved();
      return levels;
    });
    LogSetContext context;
    context.directory = directory_;
    context.random = environment_.random;
    context.database_id = versions_->identity().database_id;
    context.new_file_number = [this] { return versions_->NewFileNumber(); };
    context.register_log = [this](const LogMeta& log) {
      VersionEdit edit;
      edit.new_logs.push_back(log);
      return versions_->Install(std::move(edit), {}, [this](std::shared_ptr<const Version> version) { PublishVersion(std::move(version)); });
    };
    logs_ = std::make_unique<LogSet>(std::move(context));
    TAMIS_RETURN_IF_ERROR(logs_->Start());
  }
  LoadTables();
  if (read_only_) return absl::OkStatus();
  for (uint32_t i = 0; i < options_.background_threads; ++i) {
    threads_.push_back(environment_.executor->Start(Concat("tamis-bg-", i), [this, i] { BackgroundLoop(i); }));
    if (threads_.back() == nullptr) {
      return absl::ResourceExhaustedError(Concat("the system gives no background thread number ", i + 1));
    }
  }
  return absl::OkStatus();
}

void DbImpl::LoadTables() {
  struct Queue {
    std::vector<std::shared_ptr<TableFile>> files;
    std::atomic<size_t> next{0};
    std::atomic<size_t> done{0};
  };
  auto queue = std::make_shared<Queue>();
  for (const LevelFiles& level : versions_->current()->levels()) {
    for (const auto& file : level.files()) queue->files.push_back(file);
  }
  if (queue->files.empty()) return;
  const auto load = [this, queue] {
    for (size_t i = queue->next.fetch_add(1); i < queue->files.size() && !stopping_.load(); i = queue->next.fetch_add(1)) {
      absl::Status status;
      try {
        status = queue->files[i]->Reader().status();
      } catch (const std::bad_alloc&) {
        status = absl::Status(absl::StatusCode::kResourceExhausted, "");  // opened when it is read
      }
      if (!status.ok()) Log(LogLevel::kError, Concat("a table cannot be opened, reads of it will fail: ", status.ToString()));
      if (queue->done.fetch_add(1) + 1 != queue->files.size()) continue;
      versions_->Refresh([this](std::shared_ptr<const Version> version) { PublishVersion(std::move(version)); });
      MutexLock lock(mutex_);
      background_wake_.SignalAll();  // filters can be compared with their targets now
      background_done_.SignalAll();
    }
  };
  if (options_.background_threads == 0 || read_only_) {
    load();
    return;
  }
  const size_t threads = std::min<size_t>(options_.background_threads, queue->files.size());
  for (size_t i = 0; i < threads; ++i) threads_.push_back(environment_.executor->Start("tamis-load", load));
  // A thread that the system did not give: its share is done here, before the wait.
  if (std::find(threads_.begin(), threads_.end(), nullptr) != threads_.end()) load();
  const uint64_t deadline = environment_.clock->NowMicros() + kLoadPatienceMicros;
  MutexLock lock(mutex_);
  for (uint64_t now = environment_.clock->NowMicros(); now < deadline && queue->done.load() < queue->files.size();
       now = environment_.clock->NowMicros()) {
    background_done_.WaitFor(mutex_, deadline - now);
  }
}

}  // namespace tamis::internal
