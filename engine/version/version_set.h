// The current tree and its manifest: the one place where the set of files changes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/environment.h"
#include "base/mutex.h"
#include "engine/version/manifest.h"
#include "engine/version/version.h"

namespace tamis::internal {

// Thread-safe. Installs are one after the other; the version and the manifest always agree.
class VersionSet {
 public:
  VersionSet(std::shared_ptr<const TableFileContext> context, const Environment& environment, uint32_t levels);

  // Takes the recovered state, its manifest (null when read-only) and the objects of its tables. Call once, before anything else.
  void Start(ManifestState state, std::unique_ptr<Manifest> manifest, std::vector<std::vector<std::shared_ptr<TableFile>>> tables);

  // What lookups have found (VersionEdit::lookups), as the manifest holds it.
  std::vector<LevelMisses> lookups() const;
  // Asked, with the install lock held, by each Install for what lookups have found since, to be saved with its edit. Before the first Install.
  void SetLookupSource(std::function<std::vector<LevelMisses>()> source);

  uint64_t NewFileNumber() { return next_file_number_.fetch_add(1, std::memory_order_relaxed); }
  void ReserveFileNumbersBelow(uint64_t number);

  std::shared_ptr<const Version> current() const;

  // Makes `edit` durable, then current. `tables`: objects for the tables that the edit adds anew or with another filter
  // (TableFile::WithFilter); moved ones are taken from the current version. `publish` is called with the new version before Install
  // returns and before another Install begins; files that the edit drops, filter files included, become obsolete only after that.
  // ResourceExhausted: nothing changed, may be tried again. Any other error: what the disk holds is not known, every later Install fails,
  // nothing is deleted any more.
  absl::Status Install(VersionEdit edit, absl::Span<const std::shared_ptr<TableFile>> tables,
                       const std::function<void(std::shared_ptr<const Version>)>& publish);

  // Gives the version anew with the readers that are open now, and publishes it.
  void Refresh(const std::function<void(std::shared_ptr<const Version>)>& publish);

  // OK, or the error after which every Install fails.
  absl::Status failure() const;
  // Ends the manifest with an end mark; with `save_lookups`, after an edit with what lookups have found.
  absl::Status Finish(bool save_lookups);

  // Text and numbers for the stats.
  uint64_t manifest_bytes_written() const { return manifest_bytes_written_.load(std::memory_order_relaxed); }
  DatabaseIdentity identity() const { return identity_; }
  uint64_t manifest_number() const;
  SequenceNumber flushed_sequence() const;

 private:
  using LevelLists = std::vector<std::vector<std::shared_ptr<TableFile>>>;
  void AddLookups(VersionEdit* edit) TAMIS_REQUIRES(install_mutex_);
  absl::Status Append(const VersionEdit& edit, const ManifestState& next) TAMIS_REQUIRES(install_mutex_);
  std::shared_ptr<const Version> BuildVersion(const VersionEdit& edit, absl::Span<const std::shared_ptr<TableFile>> tables)
      TAMIS_REQUIRES(install_mutex_);

  const std::shared_ptr<const TableFileContext> context_;
  const Environment environment_;
  const uint32_t levels_;
  DatabaseIdentity identity_;
  std::atomic<uint64_t> next_file_number_{1};
  std::atomic<uint64_t> manifest_bytes_written_{0};

  mutable Mutex install_mutex_;  // held over the manifest's I/O; taken before current_mutex_
  ManifestState state_ TAMIS_GUARDED_BY(install_mutex_);
  std::unique_ptr<Manifest> manifest_ TAMIS_GUARDED_BY(install_mutex_);
  uint64_t snapshot_bytes_ TAMIS_GUARDED_BY(install_mutex_) = 0;  // size of the manifest when it was made
  absl::Status failure_ TAMIS_GUARDED_BY(install_mutex_);
  std::function<std::vector<LevelMisses>()> lookup_source_ TAMIS_GUARDED_BY(install_mutex_);

  mutable Mutex current_mutex_;
  std::shared_ptr<const Version> current_ TAMIS_GUARDED_BY(current_mutex_);
};

// Versions from a manifest state: one TableFile a table.
std::vector<std::vector<std::shared_ptr<TableFile>>> MakeTableFiles(const ManifestState& state, uint32_t levels,
                                                                    const std::shared_ptr<const TableFileContext>& context);

}  // namespace tamis::internal
