// Filters rebuilt without a compaction: of all tables on request, and of single ones that have too many bits for their level.
//
// Order on disk: the filter file is synced, then the directory, it is read back, then one manifest edit drops the table and adds it with
// the new filter_file. Only after that edit is the file of the old filter deleted, once no version uses it (version/table_file.h, F3). So
// a crash at any point leaves the table with its old filter or its new one, and at most an orphan that the next open removes.
//
// A table whose filter is being rebuilt is marked busy like a compaction's input: it is neither compacted nor moved meanwhile, so that
// level and filter are still right when the edit is made.
#include <algorithm>
#include <new>

#include "base/status_util.h"
#include "engine/compact/filter_runs.h"
#include "engine/db_impl.h"
#include "engine/version/file_names.h"
#include "engine/version/filter_file.h"

namespace tamis::internal {
namespace {

constexpr uint64_t kBreathBytes = uint64_t{1} << 20;
// A filter with more than this many times the bits that its level would get is rebuilt by itself.
constexpr double kMostExcess = 1.25;
constexpr uint64_t kBusyWaitMicros = 100'000;

bool Stands(const Version& version, const std::shared_ptr<TableFile>& file, uint32_t level) {
  const auto& files = version.levels()[level].files();
  return std::find(files.begin(), files.end(), file) != files.end();
}

}  // namespace

std::vector<DbImpl::LiveTable> DbImpl::LiveTables(const Version& version) {
  std::vector<LevelMisses> lookups;
  {
    MutexLock lock(mutex_);
    lookups = FoldLookups();
  }
  const std::vector<std::vector<double>> wanted = TableTargets(options_.filter, version, lookups);
  std::vector<LiveTable> tables;
  for (uint32_t level = 0; level < wanted.size(); ++level) {
    const auto& files = version.levels()[level].files();
    const FilterKind kind = KindOfTables(options_.filter, level + 1 == wanted.size());
    for (size_t i = 0; i < files.size(); ++i) {
      tables.push_back({.file = files[i], .level = level, .wanted_kind = kind, .wanted_bits = wanted[level][i]});
    }
  }
  return tables;
}

bool DbImpl::HasWantedFilter(const LiveTable& table, const TableFile& file) const {
  if (!file.filter_refusal().ok()) return false;
  const FilterInfo& info = file.filter_info();
  if (table.wanted_bits == 0) return !file.filter().has_filter();
  if (info.kind != fpr_model::BuiltKind(table.wanted_kind, info.keys, table.wanted_bits) || info.seed != hash_seed_) return false;
  const absl::StatusOr<uint64_t> bytes = fpr_model::SizeBytes(table.wanted_kind, info.keys, table.wanted_bits);
  return bytes.ok() && *bytes == info.size_bytes;
}

// Compared as bytes for the keys that the filter says it holds: a small table's filter, rounded up to whole lines, is never too large by
// the rounding, and whatever the manifest says of the number of keys, a filter just built for these bits is not too large for them.
bool DbImpl::HasTooManyBits(const LiveTable& table) const {
  if (table.wanted_bits == 0 || !table.file->filter().has_filter()) return false;
  const FilterInfo& info = table.file->filter_info();
  const absl::StatusOr<uint64_t> bytes = fpr_model::SizeBytes(table.wanted_kind, info.keys, table.wanted_bits);
  return bytes.ok() && static_cast<double>(info.size_bytes) > kMostExcess * static_cast<double>(*bytes);
}

// ---- By itself ----------------------------------------------------------------------------------------------------------------------

bool DbImpl::FilterCheckDue(CompactionLane lane) const {
  return filter_check_due_ && rebuilds_running_ == 0 && lane != CompactionLane::kL0Only && background_error_.ok();
}

bool DbImpl::TakeFilterCheck(CompactionLane lane) {
  if (!FilterCheckDue(lane)) return false;
  filter_check_due_ = false;
  ++rebuilds_running_;
  return true;
}

bool DbImpl::TakeForRebuild(const LiveTable& table) {
  if (!Stands(*view_owner_->version, table.file, table.level) || table.file->marks().busy) return false;
  table.file->marks().busy = true;
  return true;
}

std::optional<DbImpl::LiveTable> DbImpl::TakeOverfull() {
  const std::shared_ptr<const ReadView> view = PinView();
  if (view == nullptr) return std::nullopt;
  for (LiveTable& table : LiveTables(*view->version)) {
    const TableReader* const reader = table.file->LoadedReader();
    // Of tables that were moved only: others got what the settings of their time said, and opening a database with other settings, as a
    // tool with its defaults does, is no reason to throw that away.
    if (reader == nullptr || reader->properties().level_at_creation == table.level) continue;
    if (!HasTooManyBits(table)) continue;
    MutexLock lock(mutex_);
    // Not again for about the same bits, however that attempt ended: only for clearly fewer.
    if (kMostExcess * table.wanted_bits < table.file->marks().rebuilt_for_bits && TakeForRebuild(table)) return std::move(table);
  }
  return std::nullopt;
}

void DbImpl::RebuildOneFilter() {
  std::optional<LiveTable> table;
  try {
    table = TakeOverfull();
  } catch (const std::bad_alloc&) {
    Log(LogLevel::kWarning, "no memory to look for filters that are too large");  // looked for again when the tree changes
  }
  if (table) {
    RunRebuild(*std::exchange(table, std::nullopt), {}).IgnoreError();  // logged; not tried again (rebuilt_for_bits)
    return;
  }
  MutexLock lock(mutex_);
  --rebuilds_running_;
  background_wake_.SignalAll();
  background_done_.SignalAll();
}

// ---- On request ---------------------------------------------------------------------------------------------------------------------

absl::Status DbImpl::RebuildAllFilters(const Progress& progress) {
  std::vector<std::pair<uint64_t, uint64_t>> tables;  // number, bytes; those that come later are written with the right filter anyway
  uint64_t total = 0;
  if (const std::shared_ptr<const ReadView> view = PinView()) {
    for (const LevelFiles& level : view->version->levels()) {
      for (const auto& file : level.files()) tables.emplace_back(file->meta().number, file->meta().size);
    }
    total = view->version->TotalBytes();
  }
  uint64_t before = 0;
  absl::Status damage;
  for (const auto& [number, bytes] : tables) {
    const RebuildProgress report = [&, before](uint64_t done) -> absl::Status {
      if (stopping_.load(std::memory_order_acquire)) return absl::CancelledError("the database is being closed");
      if (progress && !progress(before + done, total)) return absl::CancelledError("cancelled by the progress callback");
      return absl::OkStatus();
    };
    absl::Status status = RebuildByNumber(number, report);
    if (absl::IsDataLoss(status) || absl::IsUnimplemented(status)) {
      if (damage.ok()) damage = status;
      status = absl::OkStatus();
    }
    if (status.ok()) status = report(bytes);
    if (absl::IsCancelled(status) && stopping_.load()) return absl::FailedPreconditionError("the database is being closed");
    TAMIS_RETURN_IF_ERROR(status);
    before += bytes;
  }
  return damage;
}

absl::Status DbImpl::RebuildByNumber(uint64_t number, const RebuildProgress& progress) {
  for (;;) {
    LiveTable table;
    {
      const std::shared_ptr<const ReadView> view = PinView();
      if (view == nullptr) return handle_->Check();
      for (LiveTable& live : LiveTables(*view->version)) {
        if (live.file->meta().number == number) table = std::move(live);
      }
    }
    if (table.file == nullptr) return absl::OkStatus();  // compacted meanwhile: its successors have their filters
    TAMIS_RETURN_IF_ERROR(table.file->Reader().status());
    if (HasWantedFilter(table, *table.file)) return absl::OkStatus();
    bool taken;
    {
      MutexLock lock(mutex_);
      if (!background_error_.ok()) return absl::FailedPreconditionError(background_error_.message());
      taken = TakeForRebuild(table);
      if (taken) {
        ++rebuilds_running_;
      } else if (Stands(*view_owner_->version, table.file, table.level)) {
        // Busy. If it is being compacted it is gone afterwards, if it moves its target may be another.
        background_done_.WaitFor(mutex_, kBusyWaitMicros);
      }
    }
    if (taken) return RunRebuild(std::move(table), progress);
    TAMIS_RETURN_IF_ERROR(progress(0));
  }
}

// ---- The work -----------------------------------------------------------------------------------------------------------------------

absl::Status DbImpl::RunRebuild(LiveTable table, const RebuildProgress& progress) {
  const std::shared_ptr<TableMarks> marks = table.file->SharedMarks();
  const double bits = table.wanted_bits;
  absl::StatusOr<uint64_t> written = absl::Status(absl::StatusCode::kResourceExhausted, "");
  try {
    written = RebuildFilter(table, progress);
    if (!written.ok() && !absl::IsCancelled(written.status())) {
      Log(LogLevel::kWarning,
          Concat("the filter of ", TableName(table.file->meta().number), " was not rebuilt: ", written.status().ToString()));
    }
  } catch (const std::bad_alloc&) {
    written = absl::Status(absl::StatusCode::kResourceExhausted, "");
  }
  // After anything that leaves the manifest in doubt no later edit can be made.
  const absl::Status manifest = written.ok() ? absl::OkStatus() : versions_->failure();
  if (!manifest.ok()) RecordBackgroundError(manifest);
  table.file.reset();  // before the job counts as ended: whoever waits for that finds the old filter's memory and file given back
  MutexLock lock(mutex_);
  marks->busy = false;
  if (!absl::IsCancelled(written.status())) marks->rebuilt_for_bits = bits;
  --rebuilds_running_;
  filter_check_due_ = true;  // there may be more
  if (written.ok()) {
    ++filters_rebuilt_;
    filter_file_bytes_ += *written;
  }
  background_wake_.SignalAll();
  background_done_.SignalAll();
  return written.status();
}

absl::StatusOr<uint64_t> DbImpl::RebuildFilter(const LiveTable& table, const RebuildProgress& progress) {
  const TableFile& file = *table.file;
  std::shared_ptr<TableFile> next;
  if (table.wanted_bits == 0) {
    next = file.WithFilter(std::nullopt, /*own_filter_unused=*/true);
    TAMIS_RETURN_IF_ERROR(next->Reader().status());
  } else {
    TAMIS_ASSIGN_OR_RETURN(next, OwnFilterIfWanted(table));
    if (next == nullptr) {
      TAMIS_ASSIGN_OR_RETURN(const FilterBytes bytes, BuildFilter(table, progress));
      TAMIS_ASSIGN_OR_RETURN(next, WriteFilterOf(file, bytes));
    }
  }
  VersionEdit edit;
  edit.dropped.emplace_back(table.level, file.meta().number);
  edit.added.emplace_back(table.level, next->meta());
  const absl::Status status = versions_->Install(
      std::move(edit), {next}, [this](std::shared_ptr<const Version> installed) { PublishVersion(std::move(installed)); });
  const std::optional<FilterFileMeta>& made = next->meta().filter_file;
  if (absl::IsResourceExhausted(status) && made) directory_->Remove(FilterName(made->number)).IgnoreError();
  TAMIS_RETURN_IF_ERROR(status);
  return made ? made->size : 0;
}

// The table with its own filter, if that is the wanted one; else nullptr.
absl::StatusOr<std::shared_ptr<TableFile>> DbImpl::OwnFilterIfWanted(const LiveTable& table) const {
  TAMIS_ASSIGN_OR_RETURN(const TableReader* reader, table.file->Reader());
  const TableProperties& own = reader->properties();
  if (own.filter_kind != fpr_model::BuiltKind(table.wanted_kind, own.distinct_keys, table.wanted_bits)) {
    return std::shared_ptr<TableFile>();
  }
  const absl::StatusOr<uint64_t> bytes = fpr_model::SizeBytes(table.wanted_kind, own.distinct_keys, table.wanted_bits);
  if (!bytes.ok() || *bytes != own.filter_bytes) return std::shared_ptr<TableFile>();  // not worth a look
  std::shared_ptr<TableFile> next = table.file->WithFilter(std::nullopt, /*own_filter_unused=*/false);
  TAMIS_RETURN_IF_ERROR(next->Reader().status());
  if (!HasWantedFilter(table, *next)) next.reset();
  return next;
}

absl::StatusOr<FilterBytes> DbImpl::BuildFilter(const LiveTable& table, const RebuildProgress& progress) {
  const TableMeta& meta = table.file->meta();
  TAMIS_ASSIGN_OR_RETURN(const TableReader* reader, table.file->Reader());
  TAMIS_ASSIGN_OR_RETURN(
      const std::unique_ptr<FilterBuilder> builder,
      FilterBuilder::Create({.kind = table.wanted_kind, .bits_per_key = table.wanted_bits, .seed = hash_seed_, .owner = meta.id}));
  const std::unique_ptr<Cursor> cursor = reader->NewCursor({.fill_cache = false, .verify_checksums = true}, /*read_ahead=*/true);
  std::string last_key;
  uint64_t entries = 0;
  uint64_t keys = 0;
  uint64_t unreported = 0;
  const auto breathe = [&]() -> absl::Status {
    const double share = std::min(1.0, static_cast<double>(entries) / static_cast<double>(reader->properties().entries));
    if (progress) TAMIS_RETURN_IF_ERROR(progress(static_cast<uint64_t>(share * static_cast<double>(meta.size))));
    return Breathe(std::exchange(unreported, 0));
  };
  for (cursor->SeekToFirst(); cursor->Valid(); cursor->Next()) {
    const EntryView& entry = cursor->entry();
    if (entries == 0 || entry.key != last_key) {
      builder->AddHash(FilterKeyHash(entry.key, hash_seed_));
      last_key.assign(entry.key);
      ++keys;
    }
    ++entries;
    unreported += entry.key.size() + entry.value.size();
    if (unreported >= kBreathBytes) TAMIS_RETURN_IF_ERROR(breathe());
  }
  TAMIS_RETURN_IF_ERROR(cursor->status());
  TAMIS_RETURN_IF_ERROR(breathe());
  // A key that was not met would be denied from now on.
  const TableProperties& properties = reader->properties();
  if (entries != properties.entries || keys != properties.distinct_keys) {
    return absl::DataLossError(Concat(reader->path(), ": ", entries, " entries of ", keys, " keys were met, its properties say ",
                                      properties.entries, " of ", properties.distinct_keys));
  }
  return builder->Finish();
}

absl::StatusOr<std::shared_ptr<TableFile>> DbImpl::WriteFilterOf(const TableFile& file, const FilterBytes& bytes) {
  TAMIS_ASSIGN_OR_RETURN(const FilterFileMeta made, WriteFilterFile(directory_.get(), versions_->NewFileNumber(), bytes.view()));
  std::shared_ptr<TableFile> next = file.WithFilter(made, /*own_filter_unused=*/false);
  absl::Status read_back = next->Reader().status();
  if (read_back.ok()) read_back = Annotate(next->filter_refusal(), "a filter file just written");
  if (!read_back.ok()) {
    directory_->Remove(FilterName(made.number)).IgnoreError();
    return read_back;
  }
  return next;
}

}  // namespace tamis::internal
