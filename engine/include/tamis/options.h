// Settings of a database: plain values, grouped by the part that uses them. Sizes are in bytes. A value out of range is InvalidArgument
// from DB::Open, naming the setting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tamis/file_system.h"
#include "tamis/filter_options.h"
#include "tamis/table_options.h"

namespace tamis {

class Snapshot;

// Memory for uncompressed data blocks that several databases may share (Options::block_cache).
class SharedBlockCache;
std::shared_ptr<SharedBlockCache> NewSharedBlockCache(uint64_t capacity_bytes);

struct CompactionOptions {
  // Number of levels, L0 included; 2 to 12.
  uint32_t levels = 7;
  // A level below L0 is opened above the ones in use when these would leave it more than this, at least 4 KiB. Level targets are computed
  // from the bottom up: the size of the last level, divided by size_ratio for each level above it, until that is at most this.
  uint64_t level_base_bytes = uint64_t{256} << 20;
  // Each level is this many times larger than the one above; 2 to 100. Larger: fewer levels, more rewriting in each.
  uint32_t size_ratio = 10;
  // A compaction cuts its output at about this size; at least 4 KiB.
  uint64_t target_file_bytes = uint64_t{64} << 20;
  // L0 files that start a compaction; from l0_slowdown on writes are slowed, at l0_stop they wait. 1 <= trigger <= slowdown <= stop.
  uint32_t l0_trigger = 4;
  uint32_t l0_slowdown = 20;
  uint32_t l0_stop = 36;
};

enum class LogLevel : uint8_t { kInfo = 0, kWarning = 1, kError = 2 };
// Receives one line of text without line end. Called from any thread, with internal locks possibly held: it must not call the database.
using Logger = std::function<void(LogLevel, std::string_view)>;

struct Options {
  // Create the directory (its parent must exist) and the database if missing. False: a missing database is FailedPrecondition.
  bool create_if_missing = true;
  // An existing database is FailedPrecondition.
  bool error_if_exists = false;
  // Open for reading the state at this moment: no lock, nothing is written, a writer may be at work beside it. Writes fail with
  // FailedPrecondition.
  bool read_only = false;

  // A memtable of this size is made immutable and flushed; at least 4 KiB, at most 4 GiB. More memory: fewer, larger flushes.
  uint64_t memtable_bytes = uint64_t{64} << 20;
  // Immutable memtables that may wait for their flush before writes wait; at least 1.
  uint32_t max_immutable_memtables = 2;
  // Uncompressed data blocks kept in memory; 0: none. Not used if block_cache is set.
  uint64_t block_cache_bytes = uint64_t{64} << 20;
  std::shared_ptr<SharedBlockCache> block_cache{};
  // Threads for flushes and compactions. 0: due work runs inside the writing call before its log record is written, in a fixed order:
  // no stalls, no sleeps, no clock; a run is reproducible call by call. 1: one does both, flushes first. From 2 on one is kept for
  // flushes and L0. At most 64.
  uint32_t background_threads = 2;
  // Bytes a second that compactions may write; 0: no limit. Flushes are never limited.
  uint64_t background_bytes_per_second = 0;
  // Table files held open at once, at least 8; further ones are opened when they are read. Indexes and filters stay in memory whatever
  // this is.
  uint32_t max_open_files = 1000;
  // Permission bits of new files; the directory gets x wherever this has r.
  uint32_t file_mode = 0600;
  // Default: a LOG file in the directory, at most 2 x 1 MiB (none when read-only).
  Logger logger{};
  // Default: FileSystem::Posix(). Not owned; outlives the database and everything obtained from it.
  FileSystem* file_system = nullptr;

  FilterOptions filter{};
  TableOptions table{};
  CompactionOptions compaction{};
};

struct ReadOptions {
  // Read as of this snapshot; of another database: InvalidArgument. Default: the newest state at the call.
  const Snapshot* snapshot = nullptr;
  // For iterators: only keys >= lower_bound and < upper_bound. Copied by NewIterator. An empty key is an ordinary key.
  std::optional<std::string_view> lower_bound{};
  std::optional<std::string_view> upper_bound{};
  // For iterators: only keys that begin with this, that is, both bounds at once: lower_bound = prefix, upper_bound = the least string above
  // all that begin with it (none if it is empty or 0xff only). With lower_bound or upper_bound: InvalidArgument. Copied by NewIterator.
  // Tables whose prefix filter (FilterOptions::prefix_rule) denies it are not read.
  std::optional<std::string_view> prefix{};
  // Keep blocks that are read in the block cache.
  bool fill_cache = true;
  // Check the checksum of data blocks read from files (index and filter blocks are always checked).
  bool verify_checksums = true;
  // False: read every file that may hold the key (or the range) without asking its filters (for study and proof).
  bool use_filters = true;
};

struct WriteOptions {
  // Return only once this write and every earlier one survive power loss. False: they survive the death of the process.
  bool sync = false;
};

// Reports (done, total) of a long call, in units that the call names; returns false to cancel it (the call then returns Cancelled).
using Progress = std::function<bool(uint64_t done, uint64_t total)>;

}  // namespace tamis
