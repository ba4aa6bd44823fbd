// Tamis: an embedded, ordered, persistent key-value store.
//
//   tamis::Options options;
//   auto db = tamis::DB::Open(options, "/tmp/example");
//   if (!db.ok()) return db.status();
//   absl::Status s = (*db)->Put("key", "value");
//   std::string value;
//   s = (*db)->Get("key", &value);            // OK, or NotFound: this key has no value, nothing else
//
// Keys (0 to 65,535 bytes) and values (0 to 1 GiB) are byte strings; an empty key and an empty value are ordinary. Order is bytewise.
//
// Durability. A write with sync = true that returned OK survives power loss, and so does every earlier one. A write without sync that
// returned OK survives the death of the process; after a power loss the database equals some prefix of the order of writes. A batch is
// never split. Opening after any crash needs no flag and no repair.
//
// Errors.
//   NotFound            this key has no value (empty text). Never anything else.
//   InvalidArgument     a key, value, batch or setting beyond its limits; nothing was written.
//   ResourceExhausted   disk full, out of memory or descriptors; nothing was written; the database stays open, try again.
//   DataLoss            damage: a file that is missing, short or changed; the text names file and offset.
//   Unknown             a log write or sync failed: this write may or may not survive. Every later write is FailedPrecondition with the
//                       first error's text; reads go on; reopen to go on writing.
//   FailedPrecondition  closed, read-only, after an Unknown, or the path is not (only) a Tamis database.
//   Unavailable         another writer has it open; the text names path and process.
//   Unimplemented       written by a newer version; the text names the feature.
//   Cancelled           a Progress callback said so.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tamis/iterator.h"
#include "tamis/options.h"
#include "tamis/pinned_value.h"
#include "tamis/snapshot.h"
#include "tamis/stats.h"
#include "tamis/write_batch.h"

namespace tamis {

namespace internal {
class DbImpl;
}  // namespace internal

// Thread-safe. Every call after Close (and in a forked child) is FailedPrecondition.
class DB {
 public:
  static absl::StatusOr<std::unique_ptr<DB>> Open(const Options& options, const std::string& path);
  ~DB();  // Close()
  DB(const DB&) = delete;
  DB& operator=(const DB&) = delete;

  absl::Status Put(const WriteOptions& options, std::string_view key, std::string_view value);
  absl::Status Delete(const WriteOptions& options, std::string_view key);
  absl::Status Write(const WriteOptions& options, const WriteBatch& batch);
  // Makes every write that returned OK before this call survive power loss.
  absl::Status SyncLog();

  // NotFound leaves *value as it was.
  absl::Status Get(const ReadOptions& options, std::string_view key, std::string* value) const;
  absl::Status Get(const ReadOptions& options, std::string_view key, PinnedValue* value) const;
  // statuses[i], values[i] as by Get of keys[i], all from one state. The spans have the same length (InvalidArgument in every status
  // otherwise). Faster than Gets: filters of all keys are asked before any block is read.
  void MultiGet(const ReadOptions& options, absl::Span<const std::string_view> keys, absl::Span<PinnedValue> values,
                absl::Span<absl::Status> statuses) const;
  // False: certainly not there. True: perhaps. Looks at memtables and filters only, never at a file.
  absl::StatusOr<bool> MayExist(const ReadOptions& options, std::string_view key) const;
  absl::StatusOr<std::unique_ptr<Iterator>> NewIterator(const ReadOptions& options) const;
  absl::StatusOr<Snapshot> GetSnapshot() const;

  // Writes the memtable to a table now, and waits.
  absl::Status Flush();
  // Compacts the keys in [begin, end) (nullopt: no bound) down to the last level, and waits. Progress counts bytes.
  absl::Status CompactRange(std::optional<std::string_view> begin, std::optional<std::string_view> end, const Progress& progress = {});
  // Returns when no flush, compaction or filter rebuild is due or running.
  absl::Status WaitForBackgroundWork();
  // Gives each existing table the filter that it would get if it were written now, under Options::filter, without rewriting any: the
  // table's keys are read and its filter written to a file of its own; it is used, in memory too, instead of the one in the table. A
  // table that would get no filter drops the one it has, a table whose own filter is the wanted one returns to that. Reads, writes and
  // compactions go on meanwhile. Progress counts bytes of tables; what was done before a Cancelled (or Close: FailedPrecondition) stays.
  // A table that cannot be read keeps its filter; the others are done, then its DataLoss is returned.
  //
  // (By itself, when nothing else is due, the database does the same for a table that was moved between levels without being rewritten and
  // whose filter has more than 1.25 times the bits that its level would get: so sequential loads come back to their budget. It never drops
  // a filter altogether, nor adds bits, and leaves tables alone that are in the level they were written for.)
  absl::Status RebuildFilters(const Progress& progress = {});
  // Reads every byte of every table and checks all of it. Progress counts bytes.
  absl::Status VerifyChecksums(const Progress& progress = {}) const;

  // About how many bytes of table files, and how many entries, the keys in [begin, end) take.
  absl::StatusOr<uint64_t> ApproximateSize(std::optional<std::string_view> begin, std::optional<std::string_view> end) const;
  absl::StatusOr<uint64_t> ApproximateCount(std::optional<std::string_view> begin, std::optional<std::string_view> end) const;
  absl::StatusOr<Stats> GetStats(const StatsOptions& options = {}) const;
  // "tamis.stats", "tamis.levels", "tamis.filters" (tables as text), "tamis.id", "tamis.format", "tamis.hash-seed", "tamis.files";
  // nullopt for another name or when closed.
  std::optional<std::string> GetProperty(std::string_view name) const;

  // Waits for calls in progress, makes everything durable, releases the lock. Iterators, snapshots and pinned values may be destroyed
  // later. A second call returns what the first did.
  absl::Status Close();

  // Short forms.
  absl::Status Put(std::string_view key, std::string_view value) { return Put(WriteOptions(), key, value); }
  absl::Status Delete(std::string_view key) { return Delete(WriteOptions(), key); }
  absl::Status Write(const WriteBatch& batch) { return Write(WriteOptions(), batch); }
  absl::Status Get(std::string_view key, std::string* value) const { return Get(ReadOptions(), key, value); }
  absl::StatusOr<std::unique_ptr<Iterator>> NewIterator() const { return NewIterator(ReadOptions()); }

  // For tools that inspect a database of this build.
  internal::DbImpl* impl() const { return impl_.get(); }

  explicit DB(std::shared_ptr<internal::DbImpl> impl);

 private:
  std::shared_ptr<internal::DbImpl> impl_;
};

// Removes the database at `path`: its own files, then the directory if nothing else is in it. A missing path is OK and stays missing.
// An open database is Unavailable; a directory that holds no Tamis database is FailedPrecondition; other files are left.
absl::Status DestroyDB(const Options& options, const std::string& path);

}  // namespace tamis
