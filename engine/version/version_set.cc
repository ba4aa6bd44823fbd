#include "engine/version/version_set.h"

#include <algorithm>
#include <new>

#include "base/check.h"
#include "base/status_util.h"
#include "engine/version/file_names.h"

namespace tamis::internal {
namespace {

// A manifest is rolled over when its edits have outgrown the state it began with by this much.
constexpr uint64_t kManifestGrowthBytes = uint64_t{1} << 20;

void SortLevels(std::vector<std::vector<std::shared_ptr<TableFile>>>* levels) {
  // L0 by age (V2): flushes follow each other in sequence, so the newest has the largest sequences.
  std::sort((*levels)[0].begin(), (*levels)[0].end(), [](const auto& a, const auto& b) {
    if (a->meta().largest_sequence != b->meta().largest_sequence) return a->meta().largest_sequence > b->meta().largest_sequence;
    return a->meta().number > b->meta().number;
  });
  for (size_t level = 1; level < levels->size(); ++level) {
    std::sort((*levels)[level].begin(), (*levels)[level].end(),
              [](const auto& a, const auto& b) { return a->meta().smallest < b->meta().smallest; });
  }
}

}  // namespace

std::vector<std::vector<std::shared_ptr<TableFile>>> MakeTableFiles(const ManifestState& state, uint32_t levels,
                                                                    const std::shared_ptr<const TableFileContext>& context) {
  std::vector<std::vector<std::shared_ptr<TableFile>>> files(levels);
  for (size_t level = 0; level < state.levels.size(); ++level) {
    for (const auto& [number, meta] : state.levels[level]) {
      TAMIS_CHECK(level < levels);
      files[level].push_back(std::make_shared<TableFile>(meta, context));
    }
  }
  SortLevels(&files);
  return files;
}

VersionSet::VersionSet(std::shared_ptr<const TableFileContext> context, const Environment& environment, uint32_t levels)
    : context_(std::move(context)), environment_(environment), levels_(levels) {}

void VersionSet::Start(ManifestState state, std::unique_ptr<Manifest> manifest,
                       std::vector<std::vector<std::shared_ptr<TableFile>>> tables) {
  MutexLock install(install_mutex_);
  identity_ = state.identity;
  ReserveFileNumbersBelow(state.next_file_number);
  auto version = std::make_shared<const Version>(std::move(tables), identity_.hash_seed);
  state_ = std::move(state);
  manifest_ = std::move(manifest);
  if (manifest_ != nullptr) {
    snapshot_bytes_ = manifest_->bytes();
    manifest_bytes_written_ = snapshot_bytes_;
  }
  MutexLock lock(current_mutex_);
  current_ = std::move(version);
}

std::vector<LevelMisses> VersionSet::lookups() const {
  MutexLock install(install_mutex_);
  return state_.lookups;
}

void VersionSet::SetLookupSource(std::function<std::vector<LevelMisses>()> source) {
  MutexLock install(install_mutex_);
  lookup_source_ = std::move(source);
}

void VersionSet::AddLookups(VersionEdit* edit) {
  if (!lookup_source_) return;
  std::vector<LevelMisses> lookups = lookup_source_();
  while (!lookups.empty() && lookups.back() == LevelMisses{}) lookups.pop_back();
  if (lookups != state_.lookups) edit->lookups = std::move(lookups);
}

void VersionSet::ReserveFileNumbersBelow(uint64_t number) {
  uint64_t now = next_file_number_.load(std::memory_order_relaxed);
  while (now < number && !next_file_number_.compare_exchange_weak(now, number, std::memory_order_relaxed)) {
  }
}

std::shared_ptr<const Version> VersionSet::current() const {
  MutexLock lock(current_mutex_);
  return current_;
}

absl::Status VersionSet::Install(VersionEdit edit, absl::Span<const std::shared_ptr<TableFile>> tables,
                                 const std::function<void(std::shared_ptr<const Version>)>& publish) {
  std::vector<std::shared_ptr<TableFile>> dropped;
  std::vector<std::shared_ptr<TableFile>> replaced;  // the table stays, with another filter
  std::shared_ptr<const Version> previous;  // released after the lock
  {
    MutexLock install(install_mutex_);
    TAMIS_RETURN_IF_ERROR(failure_);
    edit.next_file_number = next_file_number_.load(std::memory_order_relaxed);
    AddLookups(&edit);
    // Applied to a copy first: an edit that contradicts the state must not reach the disk.
    ManifestState next = state_;
    TAMIS_RETURN_IF_ERROR(Annotate(next.Apply(edit), "internal error, a manifest edit was refused"));
    // All that needs memory comes before the edit is durable: from then on state and version must follow it.
    std::shared_ptr<const Version> version = BuildVersion(edit, tables);
    dropped.reserve(edit.dropped.size());
    replaced.reserve(tables.size());
    TAMIS_RETURN_IF_ERROR(Append(edit, next));
    {
      MutexLock lock(current_mutex_);
      previous = std::exchange(current_, version);
    }
    for (const auto& drop : edit.dropped) {
      const uint64_t number = drop.second;
      const bool stays = std::any_of(edit.added.begin(), edit.added.end(), [&](const auto& a) { return a.second.number == number; });
      const bool anew = std::any_of(tables.begin(), tables.end(), [&](const auto& table) { return table->meta().number == number; });
      if (!stays) dropped.push_back(previous->FindByNumber(number));
      if (stays && anew) replaced.push_back(previous->FindByNumber(number));
    }
    state_ = std::move(next);
    try {
      publish(std::move(version));
    } catch (const std::bad_alloc&) {
      failure_ = absl::UnknownError("out of memory after a manifest edit became durable");
      return failure_;
    }
  }
  for (const auto& file : dropped) file->MarkObsolete();
  for (const auto& file : replaced) file->MarkFilterObsolete();
  return absl::OkStatus();
}

absl::Status VersionSet::Append(const VersionEdit& edit, const ManifestState& next) {
  const uint64_t before = manifest_->bytes();
  if (before < 2 * snapshot_bytes_ + kManifestGrowthBytes) {
    const absl::Status status = manifest_->Append(edit);
    manifest_bytes_written_ += manifest_->bytes() - before;
    if (!status.ok() && manifest_->failed()) failure_ = status;
    return status;
  }
  ManifestState rolled = next;
  const uint64_t number = NewFileNumber();
  const uint64_t temporary = NewFileNumber();
  rolled.next_file_number = next_file_number_.load(std::memory_order_relaxed);
  absl::StatusOr<std::unique_ptr<Manifest>> created =
      Manifest::Create(context_->directory.get(), number, temporary, rolled, environment_.random);
  if (!created.ok()) {
    // ResourceExhausted means that CURRENT still names the old manifest; after anything else it may name either.
    if (!absl::IsResourceExhausted(created.status())) failure_ = created.status();
    return created.status();
  }
  const uint64_t old = manifest_->number();
  manifest_ = *std::move(created);
  snapshot_bytes_ = manifest_->bytes();
  manifest_bytes_written_ += snapshot_bytes_;
  // CURRENT names the new one durably; a failure to remove leaves an orphan for the next open.
  context_->directory->Remove(ManifestName(old)).IgnoreError();
  return absl::OkStatus();
}

std::shared_ptr<const Version> VersionSet::BuildVersion(const VersionEdit& edit, absl::Span<const std::shared_ptr<TableFile>> tables) {
  std::shared_ptr<const Version> base;
  {
    MutexLock lock(current_mutex_);
    base = current_;
  }
  LevelLists lists(levels_);
  for (size_t level = 0; level < base->levels().size(); ++level) {
    for (const auto& file : base->levels()[level].files()) {
      const bool gone = std::any_of(edit.dropped.begin(), edit.dropped.end(), [&](const auto& d) {
        return d.first == level && d.second == file->meta().number;
      });
      if (!gone) lists[level].push_back(file);
    }
  }
  for (const auto& [level, meta] : edit.added) {
    std::shared_ptr<TableFile> file = base->FindByNumber(meta.number);
    for (const auto& table : tables) {
      if (table->meta().number == meta.number) file = table;
    }
    TAMIS_CHECK(file != nullptr && level < levels_);
    lists[level].push_back(std::move(file));
  }
  SortLevels(&lists);
  return std::make_shared<const Version>(std::move(lists), identity_.hash_seed);
}

void VersionSet::Refresh(const std::function<void(std::shared_ptr<const Version>)>& publish) {
  std::shared_ptr<const Version> previous;
  MutexLock install(install_mutex_);
  std::shared_ptr<const Version> version = BuildVersion(VersionEdit(), {});
  {
    MutexLock lock(current_mutex_);
    previous = std::exchange(current_, version);
  }
  publish(std::move(version));
}

absl::Status VersionSet::failure() const {
  MutexLock install(install_mutex_);
  return failure_;
}

absl::Status VersionSet::Finish(bool save_lookups) {
  MutexLock install(install_mutex_);
  if (!failure_.ok() || manifest_ == nullptr) return absl::OkStatus();
  VersionEdit edit;
  if (save_lookups) AddLookups(&edit);
  if (edit.lookups) {
    // A full disk costs only the counts since the last edit; after any other failure there is no end mark to write either.
    failure_ = manifest_->Append(edit);
    if (!failure_.ok() && !manifest_->failed()) failure_ = absl::OkStatus();
    TAMIS_RETURN_IF_ERROR(failure_);
    state_.lookups = *std::move(edit.lookups);
  }
  const absl::Status status = manifest_->Finish();
  if (!status.ok()) failure_ = status;
  return status;
}

uint64_t VersionSet::manifest_number() const {
  MutexLock install(install_mutex_);
  return manifest_ == nullptr ? 0 : manifest_->number();
}

SequenceNumber VersionSet::flushed_sequence() const {
  MutexLock install(install_mutex_);
  return state_.flushed_sequence;
}

}  // namespace tamis::internal
