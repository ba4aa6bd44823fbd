// A live table: its record in the manifest, its reader and filter once loaded, and what becomes of its files when nobody uses them any
// more.
//
// A table never changes, but its filter may be replaced (WithFilter). Invariants.
//   F1  All TableFile objects of one table share one core: one reader with its descriptor and its slots in the block cache, one set of
//       marks. So a change of filter neither opens the table again nor loses its cached blocks, and marks made through one object are
//       seen through all.
//   F2  A TableFile is immutable, but for what it loads; a table gets another filter by another TableFile in a new version. A version
//       in use keeps its filters, and their files, until it is released.
//   F3  The table's file is deleted when its drop is durable and the last TableFile of it is gone; a filter file when the drop of its
//       table, or the edit that gives the table another filter, is durable and the TableFile that names it is gone.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "engine/version/descriptor_cache.h"
#include "engine/version/version_edit.h"
#include "table/table_reader.h"
#include "tamis/filter_observed.h"

namespace tamis::internal {

class TableFile;

// What all tables of a database share. Outlives them (they hold a shared_ptr).
struct TableFileContext {
  std::shared_ptr<Directory> directory;
  std::shared_ptr<DescriptorCache> descriptors;
  std::shared_ptr<BlockCache> block_cache;          // may be null
  std::function<void(const TableFile&)> on_loaded;  // for logging a refused filter; may be empty; thread-safe
  // Once for each table, when it has been opened: for logging a refused prefix filter; may be empty; thread-safe. Under internal locks.
  std::function<void(uint64_t number, const TableReader&)> on_opened;
  bool keep_open = false;                             // read-only database: descriptors are kept (descriptor_cache.h)
  std::shared_ptr<std::atomic<uint64_t>> kept_bytes;  // of obsolete files that a reader still holds; may be null
  // Called once for a file that was marked obsolete, from whatever thread drops the last reference: it may be deleted now.
  std::function<void(const std::string& name, uint64_t bytes)> on_obsolete;
};

// Of a table, whatever its filter. Set and read under the engine's mutex only.
struct TableMarks {
  bool busy = false;     // part of a running compaction, or its filter is being rebuilt
  bool blocked = false;  // taken out of compaction because of damage
  // The bits per key of the last attempt to rebuild its filter in this process, good or bad.
  double rebuilt_for_bits = std::numeric_limits<double>::infinity();
};

// Shared by all versions in which the table has this filter. Thread-safe.
class TableFile {
 public:
  TableFile(TableMeta meta, std::shared_ptr<const TableFileContext> context);
  ~TableFile();
  TableFile(const TableFile&) = delete;
  TableFile& operator=(const TableFile&) = delete;

  // The same table with another filter (F1, F2). No file and `own_filter_unused` false: the table's own filter block.
  std::shared_ptr<TableFile> WithFilter(std::optional<FilterFileMeta> filter_file, bool own_filter_unused) const;

  const TableMeta& meta() const { return meta_; }
  // The reader; opened by the first caller (others wait), which checks id, size, footer and index, and loads the filter. An error is
  // returned and not remembered: a later call tries again. The pointer lives as long as this object.
  absl::StatusOr<const TableReader*> Reader() const;
  // Opens the file and checks its size, without reading it: for a read-only open, which wants all descriptors before a writer beside it
  // deletes anything. Reader() then uses that descriptor. With keep_open false the descriptor may be given up again.
  absl::Status OpenFile() const;
  // The reader if it and the filter are loaded, else nullptr. One load.
  const TableReader* LoadedReader() const { return loaded_.load(std::memory_order_acquire); }

  // The filter in use: that of the filter file that the manifest names or, if there is none or it was refused, of the table's own block.
  // Kind none if the table has no filter, or it is refused, too. REQUIRES: LoadedReader() != nullptr, as for the next three.
  const FilterView& filter() const { return filter_.view; }
  const FilterInfo& filter_info() const { return filter_info_; }
  // The highest false-positive rate that it may have by chance, which keys it holds being chance (fpr_model::RateDeviation).
  double filter_rate_limit() const { return filter_rate_limit_; }
  // Why a filter that the table should have is not used.
  const absl::Status& filter_refusal() const { return filter_refusal_; }

  // The manifest edit that drops the table is durable: delete its files when the last references go.
  void MarkObsolete();
  // The manifest edit that gives the table another filter than this one's is durable. No effect without a filter file.
  void MarkFilterObsolete();

  TableMarks& marks() const;
  // The same, for as long as the pointer lives.
  std::shared_ptr<TableMarks> SharedMarks() const;

 private:
  class Core;
  TableFile(TableMeta meta, std::shared_ptr<Core> core);
  absl::Status LoadFilter(const TableReader& reader) const TAMIS_REQUIRES(mutex_);
  absl::StatusOr<LoadedFilter> LoadFilterFile() const TAMIS_REQUIRES(mutex_);

  const TableMeta meta_;
  const std::shared_ptr<Core> core_;
  std::atomic<bool> filter_obsolete_{false};
  mutable Mutex mutex_;
  mutable std::shared_ptr<const RandomAccessFile> filter_file_ TAMIS_GUARDED_BY(mutex_);  // opened by OpenFile, until Reader takes it
  // Written once, under mutex_, before loaded_ is set; not changed any more after that.
  mutable LoadedFilter filter_;
  mutable FilterInfo filter_info_;
  mutable double filter_rate_limit_ = 1;
  mutable absl::Status filter_refusal_;
  mutable std::atomic<const TableReader*> loaded_{nullptr};
};

}  // namespace tamis::internal
