// FORMAT: one manifest record. On disk, never renumber. Little-endian.
//
// A manifest is a log (wal/log_format.h, kind 2) of edits; its first record is a whole state, each later one a change. The payload of a
// record is a sequence of fields:
//
//   tag varint32 | length-prefixed bytes        tag = number * 2 + must-understand bit
//
//   number  bit  field                       bytes
//      1     1   identity                    database id (16), hash seed u64         first record only
//      2     1   features                    required u64, optional u64              accumulate by OR
//      3     1   next file number            varint64                                no smaller than before
//      4     1   flushed sequence            varint64: every entry up to it is in tables or was dropped rightly
//      5     1   new log                     varint64 number, log id u64
//      6     1   oldest log                  varint64: logs with smaller numbers are retired
//      7     1   new table                   varint32 level, then the table (below)
//      8     1   dropped table               varint32 level, varint64 number
//      9     1   proven                      varint64 log number, varint64 offset: known durable when this was written
//     10     0   lookups                     by level from L0, at most 12: lookups, probes, misses, varint64 each; replaces what was before
//   An unknown field with the must-understand bit is Unimplemented with its number; without it, it is kept (the latest of each tag, at
//   most 1,024 tags) and written again at the next roll-over. Fields 2, 5, 7 and 8 may stand more than once in a record, the others may
//   not; a table moves, or is given another filter file, by being dropped and added in one record (drops apply first). File and log
//   numbers are 1 to 2^62 - 1.
//
//   table = fields again (tag varint32 | length-prefixed bytes), all must-understand unless said:
//      1 number varint64   2 table id (16)   3 file size varint64   4 smallest user key   5 largest user key
//      6 sequences: smallest varint64, largest varint64   7 counts: entries, deletes, distinct keys, varint64 each
//      8 filter file: number varint64, size varint64, checksum u64 (absent: the table's own filter)
//      9 keyspace varint32 (absent: 0; another value is Unimplemented)   10 sequence override varint64 (reserved: Unimplemented)
//      11 bound flags varint32: bit 0 largest key is exclusive (reserved: Unimplemented if set)
//      12 optional (no must-understand bit): own filter unused, no bytes. The table is read without filter although it has a filter
//         block: its filter was rebuilt when none was wanted. Who does not know the field uses the block, and answers the same.
//   Unknown optional table fields are kept with the table.
//
// Record head (log_format.h): first sequence = ordinal of the edit in its manifest, from 1; count = 1.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/checksum.h"
#include "table/internal_key.h"
#include "tamis/filter_allocation.h"
#include "wal/log_format.h"

namespace tamis::internal {

using UnknownFields = std::vector<std::pair<uint32_t, std::string>>;  // (tag with bit, bytes), by ascending tag, each tag once
inline constexpr size_t kMaxUnknownFields = 1024;                     // so that a hostile manifest costs neither memory nor quadratic time
// Sets the field `tag`. False, and nothing changed, if that would be one field too many.
[[nodiscard]] bool KeepLatest(UnknownFields* fields, uint32_t tag, std::string_view bytes);

struct FilterFileMeta {
  uint64_t number = 0;
  uint64_t size = 0;
  uint64_t checksum = 0;
};

// A table as the manifest records it. Keys are user keys, both inclusive.
struct TableMeta {
  uint64_t number = 0;
  Id128 id{};
  uint64_t size = 0;
  std::string smallest;
  std::string largest;
  SequenceNumber smallest_sequence = 0;
  SequenceNumber largest_sequence = 0;
  uint64_t entries = 0;
  uint64_t deletes = 0;
  uint64_t distinct_keys = 0;
  std::optional<FilterFileMeta> filter_file;
  bool own_filter_unused = false;  // without a filter_file: no filter at all
  UnknownFields unknown;
};

struct LogMeta {
  uint64_t number = 0;
  uint64_t id = 0;
};

struct DatabaseIdentity {
  Id128 database_id{};
  uint64_t hash_seed = 0;
};

inline constexpr uint64_t kKnownRequiredFeatures = 0;
inline constexpr uint32_t kMaxLevels = 12;

struct VersionEdit {
  std::optional<DatabaseIdentity> identity;
  uint64_t required_features = 0;
  uint64_t optional_features = 0;
  std::optional<uint64_t> next_file_number;
  std::optional<SequenceNumber> flushed_sequence;
  std::vector<LogMeta> new_logs;
  std::optional<uint64_t> oldest_log;
  std::vector<std::pair<uint32_t, TableMeta>> added;   // (level, table)
  std::vector<std::pair<uint32_t, uint64_t>> dropped;  // (level, number)
  std::optional<ProvenPoint> proven;
  std::optional<std::vector<LevelMisses>> lookups;     // by level; counts of what lookups found
  UnknownFields unknown;

  std::string Encode() const;
  // DataLoss for malformed bytes, Unimplemented as above.
  static absl::StatusOr<VersionEdit> Decode(std::string_view bytes);
  std::string DebugString() const;  // one field a line, for `tamis dump`
};

// What all edits of a manifest add up to.
struct ManifestState {
  DatabaseIdentity identity;
  uint64_t required_features = 0;
  uint64_t optional_features = 0;
  uint64_t next_file_number = 1;
  SequenceNumber flushed_sequence = 0;
  uint64_t oldest_log = 0;
  std::map<uint64_t, uint64_t> logs;                  // unretired: number -> id
  std::vector<std::map<uint64_t, TableMeta>> levels;  // [level][number]; kMaxLevels of them
  ProvenPoint proven;                                 // greatest
  std::vector<LevelMisses> lookups;                   // latest; empty if none were saved
  UnknownFields unknown;

  ManifestState();
  // DataLoss, with nothing said about the state afterwards, for an edit that contradicts the state: a table added twice or in two
  // places, or dropped where it is not, a file number at or above next_file_number, smallest > largest, a level beyond kMaxLevels, an
  // identity after the first record, numbers or sequences that go back. Overlap within a level below L0 is checked by Check().
  absl::Status Apply(const VersionEdit& edit);
  // Order and overlap: below L0, tables of a level have disjoint user-key ranges.
  absl::Status Check() const;
  // True once an identity was applied or set (no database has an id of all zeros).
  bool has_identity() const { return identity.database_id != Id128{}; }
  // An edit that makes this state from nothing.
  VersionEdit Snapshot() const;
};

}  // namespace tamis::internal
