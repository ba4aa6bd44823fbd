// A live table: its record in the manifest, its reader once loaded, and what becomes of the file when nobody uses it any more.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "engine/version/descriptor_cache.h"
#include "engine/version/version_edit.h"
#include "table/table_reader.h"

namespace tamis::internal {

// What all tables of a database share. Outlives them (they hold a shared_ptr).
struct TableFileContext {
  std::shared_ptr<Directory> directory;
  std::shared_ptr<DescriptorCache> descriptors;
  std::shared_ptr<BlockCache> block_cache;            // may be null
  std::function<void(const TableReader&)> on_loaded;  // for logging a refused filter; may be empty; thread-safe
  bool keep_open = false;                             // read-only database: descriptors are kept (descriptor_cache.h)
  std::shared_ptr<std::atomic<uint64_t>> kept_bytes;  // of obsolete tables that a reader still holds; may be null
  // Called once, from whatever thread drops the last reference, for a table that was marked obsolete: the file may be deleted now.
  std::function<void(const TableMeta&)> on_obsolete;
};

// Shared by all versions that contain the table. Thread-safe.
class TableFile {
 public:
  TableFile(TableMeta meta, std::shared_ptr<const TableFileContext> context) : meta_(std::move(meta)), context_(std::move(context)) {}
  ~TableFile();
  TableFile(const TableFile&) = delete;
  TableFile& operator=(const TableFile&) = delete;

  const TableMeta& meta() const { return meta_; }
  // The reader; opened by the first caller (others wait), which checks id, size, footer, index and filter. An error is returned and not
  // remembered: a later call tries again. The pointer lives as long as this object.
  absl::StatusOr<const TableReader*> Reader() const;
  // Opens the file and checks its size, without reading it: for a read-only open, which wants all descriptors before a writer beside it
  // deletes anything. Reader() then uses that descriptor. With keep_open false the descriptor may be given up again.
  absl::Status OpenFile() const;
  // The reader if it is open, else nullptr. One load.
  const TableReader* LoadedReader() const { return loaded_.load(std::memory_order_acquire); }

  // The manifest edit that drops the table is durable: delete the file when the last reference goes.
  void MarkObsolete() {
    if (obsolete_.exchange(true, std::memory_order_acq_rel) || context_->kept_bytes == nullptr) return;
    context_->kept_bytes->fetch_add(meta_.size, std::memory_order_relaxed);
  }

  // Set and read under the engine's mutex only: part of a running compaction; taken out of compaction because of damage.
  bool busy = false;
  bool blocked = false;

 private:
  absl::Status OpenFileLocked() const TAMIS_REQUIRES(mutex_);

  const TableMeta meta_;
  const std::shared_ptr<const TableFileContext> context_;
  std::atomic<bool> obsolete_{false};
  mutable Mutex mutex_;
  mutable std::shared_ptr<const RandomAccessFile> file_ TAMIS_GUARDED_BY(mutex_);  // opened by OpenFile, until Reader takes it
  mutable std::shared_ptr<TableReader> reader_ TAMIS_GUARDED_BY(mutex_);
  mutable std::atomic<const TableReader*> loaded_{nullptr};
};

}  // namespace tamis::internal
