// One open table. Immutable and thread-safe; index, filter, properties and footer are in memory for its whole life, data blocks come
// through the block cache.
//
// Open reads and checks footer, meta index, properties and index (checksums before parsing, every handle against the file size before
// anything is allocated, index order and handles ascending and inside the file): any fault is DataLoss naming path and offset, or
// Unimplemented for a newer format. A filter that is damaged, of unknown parameters or of another table is refused: the table opens
// without one and filter_refusal() says why; the same for the filter over prefixes and prefix_filter_refusal().
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/aligned_buffer.h"
#include "table/block_cache.h"
#include "table/block_io.h"
#include "table/cursor.h"
#include "table/internal_key.h"
#include "table/table_format.h"
#include "table/table_properties.h"
#include "tamis/file_system.h"
#include "tamis/filter.h"

namespace tamis::internal {

struct TableReadOptions {
  bool fill_cache = true;
  bool verify_checksums = true;
};

struct TableOpenOptions {
  Id128 table_id{};                   // must be the footer's, else DataLoss
  uint64_t file_size = 0;             // must be the file's
  std::shared_ptr<BlockCache> cache;  // may be null
  bool load_filter = true;            // the one over keys; a prefix filter is always loaded
};

// Where a point read ended. `value` points into `block`'s bytes if that is set, else into a cached block that is good while the
// caller's EpochGuard is held.
struct TableLookup {
  LookupState state = LookupState::kAbsent;
  SequenceNumber sequence = 0;
  std::string_view value;
  CachedBlock* cached = nullptr;  // the block, when it came from the cache: BlockRef::Share it to keep it beyond the guard
  BlockRef block;                 // the block, when it was read for this lookup
  bool block_read = false;        // from the file, not the cache
};

// A filter and the bytes that it points into.
struct LoadedFilter {
  AlignedBuffer bytes;  // 64-byte aligned, as FilterView wants it
  FilterView view;      // kind none if there is no filter
};

// What a table's prefix filter says of a range of keys.
enum class PrefixAnswer : uint8_t {
  kNotAsked,      // there is none, or some key that the range can hold has another prefix than the others, or none
  kMaybe,         // keys of that prefix may be in the table
  kCertainlyNot,  // no key of the range is in the table
};

class TableReader {
 public:
  static absl::StatusOr<std::shared_ptr<TableReader>> Open(std::shared_ptr<const RandomAccessFile> file, const TableOpenOptions& options);
  ~TableReader();

  // The newest entry of key.user_key at or below key.sequence. Does not ask the filter. REQUIRES: the caller holds an EpochGuard.
  absl::Status Get(const TableReadOptions& options, const LookupKey& key, TableLookup* result) const;

  // The cursor may outlive neither this reader (keep a shared_ptr) nor needs a guard: it pins its block. `read_ahead`: for compaction;
  // reads the file in pieces of up to 256 KiB, past the cache.
  std::unique_ptr<Cursor> NewCursor(const TableReadOptions& options, bool read_ahead = false) const;

  // Kind none if there is none, it was refused, or TableOpenOptions::load_filter was false.
  const FilterView& filter() const { return loaded_filter_.view; }
  const absl::Status& filter_refusal() const { return filter_refusal_; }
  // The same for the filter over prefixes: no filter file takes its place, so it is loaded whatever load_filter was.
  const FilterView& prefix_filter() const { return prefix_filter_.view; }
  const absl::Status& prefix_filter_refusal() const { return prefix_filter_refusal_; }
  uint64_t prefix_filter_bytes() const { return prefix_filter_.bytes.size(); }  // in memory
  // About the keys of [lower, upper), under the rule that the filter was written with. Reads no file.
  PrefixAnswer AskPrefixFilter(std::string_view lower, std::string_view upper) const;
  const TableProperties& properties() const { return properties_; }
  const Footer& footer() const { return footer_; }
  const std::string& path() const;
  uint64_t ResidentBytes() const;  // index, filters, slots and properties in memory
  // Reads the table's filter block anew, for a caller that keeps it (or not) by itself. Kind none if the table has none. ResourceExhausted
  // (no descriptor or memory) says nothing of the filter; any other error is why it must not be used.
  absl::StatusOr<LoadedFilter> ReadOwnFilter() const;

  // Reads every byte: all checksums, order of all keys, index against blocks, properties against entries, filters against every key
  // (no false negative), padding. The first fault is returned. `progress` (may be empty) gets (bytes done, bytes in all) and returns
  // false to cancel (Cancelled). `other_filter` (may be null): a filter from elsewhere that must not deny any key of the table either.
  absl::Status Verify(uint64_t hash_seed, const std::function<bool(uint64_t, uint64_t)>& progress,
                      const FilterView* other_filter = nullptr) const;

  // Bytes of data blocks before the first entry at or after `user_key`, about; from the index alone.
  uint64_t ApproximateOffsetOf(std::string_view user_key) const;

 private:
  friend class TableCursor;
  friend class TableVerifier;

  TableReader() = default;
  // Parts of Open.
  absl::Status Load(const TableOpenOptions& options);
  absl::Status LoadProperties();
  absl::Status LoadIndex();
  // The filter block of that type; kind none if the table has none.
  absl::StatusOr<LoadedFilter> LoadFilter(MetaBlockType type) const;
  const MetaBlock* FindMeta(MetaBlockType type) const;

  BlockSource source() const { return {file_.get(), footer_.table_id, footer_.file_size - kFooterBytes}; }
  BlockHandle DataHandle(uint32_t ordinal) const {
    return {data_offsets_[ordinal], data_offsets_[ordinal + 1] - data_offsets_[ordinal] - kBlockTrailerBytes};
  }
  // The number of the data block that holds the first entry at or after the pair, if any does; else the number of data blocks.
  uint32_t FindDataBlock(std::string_view user_key, SequenceNumber sequence) const {
    return index_.LowerBound(user_key, sequence, index_buckets_);
  }
  // The data block number `ordinal`, pinned; from the cache or the file.
  absl::StatusOr<BlockRef> LoadBlock(uint32_t ordinal, const TableReadOptions& options) const;
  // From the file; offered to the cache if wanted.
  absl::StatusOr<BlockRef> ReadDataBlock(uint32_t ordinal, const TableReadOptions& options) const;

  std::shared_ptr<const RandomAccessFile> file_;
  Footer footer_;
  std::vector<MetaBlock> meta_blocks_;
  TableProperties properties_;
  LoadedFilter loaded_filter_;
  absl::Status filter_refusal_;
  LoadedFilter prefix_filter_;
  FilterPrefixRule prefix_rule_;  // of it; kNone without one
  absl::Status prefix_filter_refusal_;
  AlignedBuffer index_bytes_;
  Block index_;
  BucketIndex index_buckets_;  // of index_: of a large one, halving would touch six cold lines
  // Where data block i begins; one more for where the last ends. Data blocks stand side by side from offset 0 (checked by Open), all of
  // them before any other block: so a handle made from this needs no further check.
  std::vector<uint64_t> data_offsets_;
  std::unique_ptr<BlockSlots> slots_;
};

}  // namespace tamis::internal
