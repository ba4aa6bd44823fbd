#include "engine/version/version_edit.h"

#include <algorithm>
#include <bit>

#include "absl/strings/escaping.h"
#include "base/coding.h"
#include "base/status_util.h"
#include "engine/version/file_names.h"

namespace tamis::internal {
namespace {

// Field numbers; on disk (see the head of version_edit.h).
enum EditField : uint32_t {
  kIdentity = 1,
  kFeatures = 2,
  kNextFileNumber = 3,
  kFlushedSequence = 4,
  kNewLog = 5,
  kOldestLog = 6,
  kNewTable = 7,
  kDroppedTable = 8,
  kProven = 9,
  kLookups = 10,  // optional
};
constexpr uint32_t kLookupsTag = kLookups * 2;
enum TableField : uint32_t {
  kNumber = 1,
  kTableId = 2,
  kFileSize = 3,
  kSmallestKey = 4,
  kLargestKey = 5,
  kSequences = 6,
  kCounts = 7,
  kFilterFile = 8,
  kKeyspace = 9,
  kSequenceOverride = 10,
  kBoundFlags = 11,
  kOwnFilterUnused = 12,  // optional
};
constexpr uint32_t kOwnFilterUnusedTag = kOwnFilterUnused * 2;
constexpr uint32_t kTableFieldsRequired = (1u << kNumber) | (1u << kTableId) | (1u << kFileSize) | (1u << kSmallestKey) |
                                          (1u << kLargestKey) | (1u << kSequences) | (1u << kCounts);

absl::Status Malformed(std::string_view what) { return absl::DataLossError(Concat("malformed version edit: ", what)); }

// ---- Encoding.

void PutField(std::string* to, uint32_t number, std::string_view bytes) {
  PutVarint32(to, number * 2 + 1);
  PutLengthPrefixed(to, bytes);
}

void PutUnknown(std::string* to, const UnknownFields& fields) {
  for (const auto& [tag, bytes] : fields) {
    PutVarint32(to, tag);
    PutLengthPrefixed(to, bytes);
  }
}

template <typename... Values>
std::string Varints(Values... values) {
  std::string bytes;
  (PutVarint64(&bytes, values), ...);
  return bytes;
}

std::string_view IdBytes(const Id128& id) { return {reinterpret_cast<const char*>(id.data()), id.size()}; }

std::string EncodeTable(uint32_t level, const TableMeta& table) {
  std::string bytes;
  PutVarint32(&bytes, level);
  PutField(&bytes, kNumber, Varints(table.number));
  PutField(&bytes, kTableId, IdBytes(table.id));
  PutField(&bytes, kFileSize, Varints(table.size));
  PutField(&bytes, kSmallestKey, table.smallest);
  PutField(&bytes, kLargestKey, table.largest);
  PutField(&bytes, kSequences, Varints(table.smallest_sequence, table.largest_sequence));
  PutField(&bytes, kCounts, Varints(table.entries, table.deletes, table.distinct_keys));
  if (table.filter_file) {
    std::string filter = Varints(table.filter_file->number, table.filter_file->size);
    PutFixed64(&filter, table.filter_file->checksum);
    PutField(&bytes, kFilterFile, filter);
  }
  if (table.own_filter_unused) {
    PutVarint32(&bytes, kOwnFilterUnusedTag);
    PutLengthPrefixed(&bytes, {});
  }
  PutUnknown(&bytes, table.unknown);
  return bytes;
}

// ---- Decoding. Each Read* below is false unless `bytes` is exactly the field.

bool ReadId(Reader* from, Id128* id) {
  std::string_view bytes;
  if (!from->Bytes(id->size(), &bytes)) return false;
  std::copy(bytes.begin(), bytes.end(), id->begin());
  return true;
}

bool ReadFileNumber(Reader* from, uint64_t* number) { return from->Varint64(number) && *number != 0 && *number <= kMaxFileNumber; }
bool ReadFileNumber(std::string_view bytes, uint64_t* number) {
  Reader from(bytes);
  return ReadFileNumber(&from, number) && from.empty();
}

bool ReadSequences(std::string_view bytes, TableMeta* table) {
  Reader from(bytes);
  return from.Varint64(&table->smallest_sequence) && from.Varint64(&table->largest_sequence) && from.empty() &&
         table->smallest_sequence <= table->largest_sequence && table->largest_sequence <= kMaxSequence;
}

bool ReadCounts(std::string_view bytes, TableMeta* table) {
  Reader from(bytes);
  return from.Varint64(&table->entries) && from.Varint64(&table->deletes) && from.Varint64(&table->distinct_keys) && from.empty() &&
         table->deletes <= table->entries && table->distinct_keys <= table->entries;
}

bool ReadFilterFile(std::string_view bytes, std::optional<FilterFileMeta>* filter) {
  Reader from(bytes);
  FilterFileMeta meta;
  if (!ReadFileNumber(&from, &meta.number) || !from.Varint64(&meta.size) || !from.Fixed64(&meta.checksum) || !from.empty()) return false;
  *filter = meta;
  return true;
}

bool ReadKey(std::string_view bytes, std::string* key) {
  if (bytes.size() > kMaxKeyBytes) return false;
  *key = bytes;
  return true;
}

// Takes an unknown field (optional, or it is refused), or a known number under the wrong tag.
absl::Status ReadUnknown(std::string_view owner, uint32_t tag, std::string_view bytes, uint32_t known, UnknownFields* fields) {
  const uint32_t number = tag / 2;
  if (tag % 2 != 0) {
    if (number == 0) return Malformed("field number 0");
    return absl::UnimplementedError(Concat(owner, " field ", number, " needs a newer version"));
  }
  if (number <= known) return Malformed(Concat(owner, " field ", number, " without its must-understand bit"));
  if (!KeepLatest(fields, tag, bytes)) return Malformed(Concat("more than ", kMaxUnknownFields, " unknown fields"));
  return absl::OkStatus();
}

// Fields of a table that are reserved: only the value that means "not used" is understood.
absl::Status ReadReserved(uint32_t number, std::string_view bytes) {
  if (number == kSequenceOverride) return absl::UnimplementedError("a table with a sequence override needs a newer version");
  Reader from(bytes);
  uint32_t value;
  if (!from.Varint32(&value) || !from.empty()) return Malformed(Concat("table field ", number));
  if (value == 0) return absl::OkStatus();
  if (number == kKeyspace) return absl::UnimplementedError(Concat("a table of keyspace ", value, " needs a newer version"));
  return absl::UnimplementedError(Concat("a table with bound flags ", value, " needs a newer version"));
}

absl::Status ReadTableField(uint32_t number, std::string_view bytes, TableMeta* table) {
  bool good = false;
  switch (number) {
    case kNumber:
      good = ReadFileNumber(bytes, &table->number);
      break;
    case kTableId: {
      Reader from(bytes);
      good = ReadId(&from, &table->id) && from.empty();
      break;
    }
    case kFileSize: {
      Reader from(bytes);
      good = from.Varint64(&table->size) && from.empty();
      break;
    }
    case kSmallestKey:
      good = ReadKey(bytes, &table->smallest);
      break;
    case kLargestKey:
      good = ReadKey(bytes, &table->largest);
      break;
    case kSequences:
      good = ReadSequences(bytes, table);
      break;
    case kCounts:
      good = ReadCounts(bytes, table);
      break;
    case kFilterFile:
      good = ReadFilterFile(bytes, &table->filter_file);
      break;
    default:
      return ReadReserved(number, bytes);
  }
  return good ? absl::OkStatus() : Malformed(Concat("table field ", number));
}

absl::Status ReadTable(std::string_view bytes, std::vector<std::pair<uint32_t, TableMeta>>* added) {
  Reader from(bytes);
  uint32_t level;
  if (!from.Varint32(&level) || level >= kMaxLevels) return Malformed("level of a new table");
  TableMeta table;
  uint32_t seen = 0;
  while (!from.empty()) {
    uint32_t tag;
    std::string_view field;
    if (!from.Varint32(&tag) || !from.LengthPrefixed(&field)) return Malformed("a table field runs over its end");
    const uint32_t number = tag / 2;
    if (tag == kOwnFilterUnusedTag) {
      if (table.own_filter_unused || !field.empty()) return Malformed(Concat("table field ", number));
      table.own_filter_unused = true;
      continue;
    }
    if (tag % 2 == 0 || number == 0 || number > kBoundFlags) {
      TAMIS_RETURN_IF_ERROR(ReadUnknown("table", tag, field, kBoundFlags, &table.unknown));
      continue;
    }
    if ((seen & (1u << number)) != 0) return Malformed(Concat("table field ", number, " twice"));
    seen |= 1u << number;
    TAMIS_RETURN_IF_ERROR(ReadTableField(number, field, &table));
  }
  if ((seen & kTableFieldsRequired) != kTableFieldsRequired) return Malformed("a table without all of its fields");
  added->emplace_back(level, std::move(table));
  return absl::OkStatus();
}

bool ReadIdentity(std::string_view bytes, std::optional<DatabaseIdentity>* identity) {
  Reader from(bytes);
  DatabaseIdentity read;
  // The id of all zeros stands for "none" in ManifestState.
  if (!ReadId(&from, &read.database_id) || read.database_id == Id128{} || !from.Fixed64(&read.hash_seed) || !from.empty()) return false;
  *identity = read;
  return true;
}

absl::Status ReadFeatures(std::string_view bytes, VersionEdit* edit) {
  Reader from(bytes);
  uint64_t required, optional;
  if (!from.Fixed64(&required) || !from.Fixed64(&optional) || !from.empty()) return Malformed("features");
  const uint64_t unknown = required & ~kKnownRequiredFeatures;
  if (unknown != 0) return absl::UnimplementedError(Concat("required feature bit ", std::countr_zero(unknown), " needs a newer version"));
  edit->required_features |= required;
  edit->optional_features |= optional;
  return absl::OkStatus();
}

bool ReadNewLog(std::string_view bytes, std::vector<LogMeta>* logs) {
  Reader from(bytes);
  LogMeta log;
  if (!ReadFileNumber(&from, &log.number) || !from.Fixed64(&log.id) || !from.empty()) return false;
  logs->push_back(log);
  return true;
}

bool ReadDropped(std::string_view bytes, std::vector<std::pair<uint32_t, uint64_t>>* dropped) {
  Reader from(bytes);
  uint32_t level;
  uint64_t number;
  if (!from.Varint32(&level) || level >= kMaxLevels || !ReadFileNumber(&from, &number) || !from.empty()) return false;
  dropped->emplace_back(level, number);
  return true;
}

bool ReadProven(std::string_view bytes, std::optional<ProvenPoint>* proven) {
  Reader from(bytes);
  ProvenPoint point;
  if (!ReadFileNumber(&from, &point.log_number) || !from.Varint64(&point.offset) || !from.empty()) return false;
  *proven = point;
  return true;
}

bool ReadLookups(std::string_view bytes, std::optional<std::vector<LevelMisses>>* lookups) {
  Reader from(bytes);
  std::vector<LevelMisses> levels;
  while (!from.empty()) {
    LevelMisses level;
    if (levels.size() == kMaxLevels || !from.Varint64(&level.lookups) || !from.Varint64(&level.probes) || !from.Varint64(&level.misses)) {
      return false;
    }
    levels.push_back(level);
  }
  *lookups = std::move(levels);
  return true;
}

absl::Status ReadField(uint32_t number, std::string_view bytes, VersionEdit* edit) {
  bool good = false;
  uint64_t value;
  switch (number) {
    case kIdentity:
      good = !edit->identity && ReadIdentity(bytes, &edit->identity);
      break;
    case kFeatures:
      return ReadFeatures(bytes, edit);
    case kNextFileNumber:
      good = !edit->next_file_number && ReadFileNumber(bytes, &value);
      if (good) edit->next_file_number = value;
      break;
    case kFlushedSequence: {
      Reader from(bytes);
      good = !edit->flushed_sequence && from.Varint64(&value) && from.empty() && value <= kMaxSequence;
      if (good) edit->flushed_sequence = value;
      break;
    }
    case kNewLog:
      good = ReadNewLog(bytes, &edit->new_logs);
      break;
    case kOldestLog:
      good = !edit->oldest_log && ReadFileNumber(bytes, &value);
      if (good) edit->oldest_log = value;
      break;
    case kNewTable:
      return ReadTable(bytes, &edit->added);
    case kDroppedTable:
      good = ReadDropped(bytes, &edit->dropped);
      break;
    case kProven:
      good = !edit->proven && ReadProven(bytes, &edit->proven);
      break;
  }
  return good ? absl::OkStatus() : Malformed(Concat("field ", number));
}

// ---- Text.

std::string Hex(std::string_view bytes) { return absl::BytesToHexString(ToAbsl(bytes)); }
std::string Escaped(std::string_view bytes) { return absl::CHexEscape(ToAbsl(bytes)); }

std::string TableText(uint32_t level, const TableMeta& table) {
  std::string text =
      Concat("add: level ", level, " table ", table.number, " size ", table.size, " id ", Hex(IdBytes(table.id)), " keys [\"",
             Escaped(table.smallest), "\", \"", Escaped(table.largest), "\"] sequences [", table.smallest_sequence, ", ",
             table.largest_sequence, "] entries ", table.entries, " deletes ", table.deletes, " distinct ", table.distinct_keys);
  if (table.filter_file) {
    text += Concat(" filter ", table.filter_file->number, " size ", table.filter_file->size, " checksum ",
                   absl::StrCat(absl::Hex(table.filter_file->checksum, absl::kZeroPad16)));
  }
  if (table.own_filter_unused) text += " own filter unused";
  for (const auto& [tag, bytes] : table.unknown) text += Concat(" unknown field ", tag / 2, ": ", Hex(bytes));
  text += "\n";
  return text;
}

}  // namespace

bool KeepLatest(UnknownFields* fields, uint32_t tag, std::string_view bytes) {
  const auto at = std::lower_bound(fields->begin(), fields->end(), tag, [](const auto& field, uint32_t t) { return field.first < t; });
  if (at != fields->end() && at->first == tag) {
    at->second = bytes;
    return true;
  }
  if (fields->size() >= kMaxUnknownFields) return false;
  fields->emplace(at, tag, std::string(bytes));
  return true;
}

std::string VersionEdit::Encode() const {
  std::string to;
  if (identity) {
    std::string bytes(IdBytes(identity->database_id));
    PutFixed64(&bytes, identity->hash_seed);
    PutField(&to, kIdentity, bytes);
  }
  if (required_features != 0 || optional_features != 0) {
    std::string bytes;
    PutFixed64(&bytes, required_features);
    PutFixed64(&bytes, optional_features);
    PutField(&to, kFeatures, bytes);
  }
  if (next_file_number) PutField(&to, kNextFileNumber, Varints(*next_file_number));
  if (flushed_sequence) PutField(&to, kFlushedSequence, Varints(*flushed_sequence));
  for (const LogMeta& log : new_logs) {
    std::string bytes = Varints(log.number);
    PutFixed64(&bytes, log.id);
    PutField(&to, kNewLog, bytes);
  }
  if (oldest_log) PutField(&to, kOldestLog, Varints(*oldest_log));
  for (const auto& [level, number] : dropped) PutField(&to, kDroppedTable, Varints(uint64_t{level}, number));
  for (const auto& [level, table] : added) PutField(&to, kNewTable, EncodeTable(level, table));
  if (proven) PutField(&to, kProven, Varints(proven->log_number, proven->offset));
  if (lookups) {
    std::string bytes;
    for (const LevelMisses& level : *lookups) bytes += Varints(level.lookups, level.probes, level.misses);
    PutVarint32(&to, kLookupsTag);
    PutLengthPrefixed(&to, bytes);
  }
  PutUnknown(&to, unknown);
  return to;
}

absl::StatusOr<VersionEdit> VersionEdit::Decode(std::string_view bytes) {
  VersionEdit edit;
  Reader from(bytes);
  while (!from.empty()) {
    uint32_t tag;
    std::string_view field;
    if (!from.Varint32(&tag) || !from.LengthPrefixed(&field)) return Malformed("a field runs over its end");
    if (tag == kLookupsTag) {
      if (edit.lookups || !ReadLookups(field, &edit.lookups)) return Malformed(Concat("field ", kLookupsTag / 2));
      continue;
    }
    const uint32_t number = tag / 2;
    if (tag % 2 == 0 || number == 0 || number > kProven) {
      TAMIS_RETURN_IF_ERROR(ReadUnknown("version edit", tag, field, kProven, &edit.unknown));
      continue;
    }
    TAMIS_RETURN_IF_ERROR(ReadField(number, field, &edit));
  }
  return edit;
}

std::string VersionEdit::DebugString() const {
  std::string text;
  if (identity) {
    text += Concat("identity: database ", Hex(IdBytes(identity->database_id)), " hash seed ",
                   absl::StrCat(absl::Hex(identity->hash_seed, absl::kZeroPad16)), "\n");
  }
  if (required_features != 0 || optional_features != 0) {
    text += Concat("features: required ", required_features, " optional ", optional_features, "\n");
  }
  if (next_file_number) text += Concat("next file number: ", *next_file_number, "\n");
  if (flushed_sequence) text += Concat("flushed sequence: ", *flushed_sequence, "\n");
  for (const LogMeta& log : new_logs) {
    text += Concat("new log: ", log.number, " id ", absl::StrCat(absl::Hex(log.id, absl::kZeroPad16)), "\n");
  }
  if (oldest_log) text += Concat("oldest log: ", *oldest_log, "\n");
  for (const auto& [level, number] : dropped) text += Concat("drop: level ", level, " table ", number, "\n");
  for (const auto& [level, table] : added) text += TableText(level, table);
  if (proven) text += Concat("proven: log ", proven->log_number, " offset ", proven->offset, "\n");
  if (lookups) {
    for (size_t level = 0; level < lookups->size(); ++level) {
      const LevelMisses& at = (*lookups)[level];
      text += Concat("lookups: level ", level, " of ", at.lookups, " probes ", at.probes, " misses ", at.misses, "\n");
    }
  }
  for (const auto& [tag, bytes] : unknown) text += Concat("unknown field ", tag / 2, ": ", Hex(bytes), "\n");
  return text;
}

}  // namespace tamis::internal
