#include "wal/log_reader.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/types/span.h"
#include "base/checksum.h"
#include "base/coding.h"
#include "base/status_util.h"

namespace tamis::internal {
namespace {

// Bytes that ScanForProof may checksum before it tries only block boundaries: a tenth of a second.
constexpr uint64_t kScanBudgetBytes = uint64_t{1} << 30;

// A buffer of an earlier record that is larger than this is given back.
constexpr size_t kKeptBufferBytes = 1024 * 1024;

bool IsZero(std::string_view bytes) {
  // All equal to the first, which is zero.
  return bytes.empty() || (bytes[0] == 0 && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

bool HasRecordHead(FragmentType type) { return type != FragmentType::kMiddle && type != FragmentType::kLast; }

}  // namespace

LogReader::LogReader(std::shared_ptr<const RandomAccessFile> file) : file_(std::move(file)), size_(file_->size()), block_(kLogBlockBytes) {}

absl::StatusOr<std::unique_ptr<LogReader>> LogReader::Open(std::shared_ptr<const RandomAccessFile> file, LogKind kind,
                                                           const std::optional<LogIdentity>& expected) {
  std::unique_ptr<LogReader> reader(new LogReader(std::move(file)));
  TAMIS_RETURN_IF_ERROR(reader->ReadHeader(kind, expected));
  return reader;
}

absl::Status LogReader::ReadHeader(LogKind kind, const std::optional<LogIdentity>& expected) {
  const auto damaged = [this](std::string_view what) { return absl::DataLossError(Concat(path(), ": ", what)); };
  if (size_ < kLogHeaderBytes) return damaged(Concat("a log of ", size_, " bytes is shorter than its header"));
  TAMIS_RETURN_IF_ERROR(LoadBlock(0));
  const std::string_view header(block_.data(), kLogHeaderBytes);
  if (IsZero(header)) return damaged("the header of the log is zero");
  if (std::memcmp(header.data(), kLogMagic, sizeof kLogMagic) != 0) return damaged("not a log (bad magic)");
  if (LoadLittle<uint64_t>(header.data() + 56) != Checksum64(header.substr(0, 56))) return damaged("bad checksum of the log's header");
  const uint32_t version = LoadLittle<uint32_t>(header.data() + 8);
  if (version > kLogFormatVersion) {
    return absl::UnimplementedError(
        Concat(path(), ": log format version ", version, " is newer than ", kLogFormatVersion, ", the newest this program reads"));
  }
  if (version != kLogFormatVersion) return damaged(Concat("log format version ", version, " does not exist"));
  const uint32_t found_kind = LoadLittle<uint32_t>(header.data() + 12);
  if (found_kind != static_cast<uint32_t>(kind)) {
    return damaged(Concat("a log of kind ", found_kind, " where kind ", static_cast<uint32_t>(kind), " belongs"));
  }
  if (!IsZero(header.substr(48, 8))) return damaged("reserved bytes of the log's header are not zero");
  identity_.kind = kind;
  identity_.log_number = LoadLittle<uint64_t>(header.data() + 16);
  identity_.log_id = LoadLittle<uint64_t>(header.data() + 24);
  std::memcpy(identity_.database_id.data(), header.data() + 32, identity_.database_id.size());
  if (expected.has_value()) {
    if (identity_.log_number != expected->log_number) {
      return damaged(Concat("another log in its place: number ", identity_.log_number, " instead of ", expected->log_number));
    }
    if (identity_.log_id != expected->log_id) return damaged("another log in its place: the log id differs");
    if (identity_.database_id != expected->database_id) return damaged("a log of another database in its place");
    if (expected->kind != kind) return damaged("another log in its place: the kind differs");
  }
  offset_ = stop_offset_ = kLogHeaderBytes;
  return absl::OkStatus();
}

// Brings the block that holds `offset` (below size_) into memory.
absl::Status LogReader::LoadBlock(uint64_t offset) {
  const uint64_t start = offset - offset % kLogBlockBytes;
  if (block_bytes_ > 0 && block_offset_ == start) return absl::OkStatus();
  const size_t bytes = static_cast<size_t>(std::min<uint64_t>(kLogBlockBytes, size_ - start));
  block_bytes_ = 0;
  TAMIS_RETURN_IF_ERROR(file_->Read(start, absl::MakeSpan(block_.data(), bytes)));
  block_offset_ = start;
  block_bytes_ = bytes;
  return absl::OkStatus();
}

const char* LogReader::ParseFragment(uint64_t offset, Fragment* fragment, uint64_t* checked) const {
  const size_t in_block = static_cast<size_t>(offset - block_offset_);
  if (block_bytes_ - in_block < kFragmentHeaderBytes) return "the file ends within a fragment header";
  const char* header = block_.data() + in_block;
  const size_t length = LoadLittle<uint16_t>(header + 4);
  const uint8_t type = static_cast<uint8_t>(header[6]);
  if (type < static_cast<uint8_t>(FragmentType::kWhole) || type > static_cast<uint8_t>(FragmentType::kProof)) return "bad fragment type";
  if (header[7] != 0) return "the reserved byte of a fragment is not zero";
  if (length > kLogBlockBytes - in_block - kFragmentHeaderBytes) return "a fragment longer than its block";
  if (length > block_bytes_ - in_block - kFragmentHeaderBytes) return "the file ends within a fragment";
  if (checked != nullptr) *checked += length + kFragmentHeaderBytes;
  const uint32_t sum = Checksum32(std::string_view(header + 4, length + 4), ChecksumSeed(identity_.log_id, offset));
  if (LoadLittle<uint32_t>(header) != sum) return "bad checksum of a fragment";
  fragment->type = static_cast<FragmentType>(type);
  fragment->payload = std::string_view(header + kFragmentHeaderBytes, length);
  fragment->end = offset + kFragmentHeaderBytes + length;
  return nullptr;
}

const char* LogReader::ParseHead(uint64_t offset, const Fragment& fragment, RecordHead* head) const {
  Reader reader(fragment.payload);
  uint64_t delta = 0;
  if (!reader.Varint64(&delta) || !reader.Varint64(&head->proven.offset) || !reader.Varint64(&head->first_sequence) ||
      !reader.Varint32(&head->count)) {
    return "a record head that does not parse";
  }
  if (delta > identity_.log_number) return "a record head that proves a log with a negative number";
  if (delta == 0 && head->proven.offset > offset) return "a record head that proves what follows it";
  if (head->first_sequence > std::numeric_limits<uint64_t>::max() - head->count) return "a record head whose sequences overflow";
  head->proven.log_number = identity_.log_number - delta;
  head->rest = reader.rest();
  const bool mark = fragment.type == FragmentType::kEndMark || fragment.type == FragmentType::kProof;
  if (mark && (head->count != 0 || !head->rest.empty())) return "an end mark or proof that carries something";
  return nullptr;
}

void LogReader::NoteProof(const ProvenPoint& proof) { greatest_proof_ = std::max(greatest_proof_, proof); }

// Moves *offset over padding to where a fragment may start.
bool LogReader::SkipPadding(uint64_t* offset, const char** reason) {
  const uint64_t start = FragmentStart(*offset);
  if (start == *offset) return true;
  *reason = nullptr;
  if (*offset >= size_) return true;
  status_ = LoadBlock(*offset);
  if (!status_.ok()) return false;
  const size_t in_block = static_cast<size_t>(*offset - block_offset_);
  if (!IsZero(std::string_view(block_.data() + in_block, block_bytes_ - in_block))) {
    *reason = "padding at the end of a block that is not zero";
    return false;
  }
  *offset = start;
  return true;
}

bool LogReader::ReadUnit(uint64_t offset, Fragment* fragment, const char** reason) {
  if (offset >= size_) {
    *reason = "the file ends";
    return false;
  }
  *reason = nullptr;
  status_ = LoadBlock(offset);
  if (!status_.ok()) return false;
  *reason = ParseFragment(offset, fragment, nullptr);
  return *reason == nullptr;
}

bool LogReader::Stop(LogStop stop, uint64_t offset, std::string reason) {
  stop_ = stop;
  stop_offset_ = offset;
  stop_reason_ = std::move(reason);
  return false;
}

absl::StatusOr<bool> LogReader::OnlyZerosFrom(uint64_t offset) {
  while (offset < size_) {
    TAMIS_RETURN_IF_ERROR(LoadBlock(offset));
    const size_t in_block = static_cast<size_t>(offset - block_offset_);
    if (!IsZero(std::string_view(block_.data() + in_block, block_bytes_ - in_block))) return false;
    offset = block_offset_ + kLogBlockBytes;
  }
  return true;
}

// Nothing valid begins behind the last good unit: at `at` is what `reason` says.
bool LogReader::StopAtBadUnit(uint64_t at, const char* reason) {
  if (reason == nullptr) return false;  // I/O error
  absl::StatusOr<bool> zeros = OnlyZerosFrom(offset_);
  if (!zeros.ok()) {
    status_ = std::move(zeros).status();
    return false;
  }
  if (*zeros) {
    return Stop(LogStop::kZeros, offset_,
                size_ <= offset_ ? std::string("the file ends here without an end mark")
                                 : Concat("zeros up to the end of the file at ", size_, ", no end mark"));
  }
  return Stop(LogStop::kDamaged, offset_, Concat(reason, " at ", at));
}

// Reads on from `offset` the record whose first fragment stood at `begin`.
bool LogReader::ReadRest(uint64_t begin, uint64_t offset, LogRecord* record) {
  for (;;) {
    const char* reason = nullptr;
    Fragment fragment;
    if (offset % kLogBlockBytes != 0) {
      reason = "a fragment that does not fill its block, though its record goes on,";
    } else if (!ReadUnit(offset, &fragment, &reason)) {
      if (reason == nullptr) return false;
    } else if (HasRecordHead(fragment.type)) {
      reason = "the beginning of another record";
    }
    if (reason != nullptr) {
      return Stop(LogStop::kDamaged, begin, Concat("the record at ", begin, " is torn: ", reason, " at ", offset));
    }
    if (const size_t need = assembled_.size() + fragment.payload.size(); need > assembled_.capacity()) {
      // Doubles, but never beyond what the file can still hold: that matters for a record of 1 GiB.
      assembled_.reserve(std::max<size_t>(need, std::min<uint64_t>(2 * need, need + (size_ - fragment.end))));
    }
    assembled_.append(fragment.payload);
    offset = fragment.end;
    if (fragment.type == FragmentType::kLast) break;
  }
  record->end_offset = offset;
  record->payload = assembled_;
  offset_ = offset;
  return true;
}

bool LogReader::Next(LogRecord* record) {
  if (stop_ != LogStop::kNone || !status_.ok()) return false;
  if (assembled_.capacity() > kKeptBufferBytes) assembled_ = std::string();
  for (;;) {
    uint64_t at = offset_;
    const char* reason = nullptr;
    if (!SkipPadding(&at, &reason)) return StopAtBadUnit(at, reason);
    Fragment fragment;
    if (!ReadUnit(at, &fragment, &reason)) return StopAtBadUnit(at, reason);
    if (!HasRecordHead(fragment.type)) return StopAtBadUnit(at, "the continuation of a record without its beginning");
    RecordHead head;
    if (reason = ParseHead(at, fragment, &head); reason != nullptr) return StopAtBadUnit(at, reason);
    NoteProof(head.proven);
    if (fragment.type == FragmentType::kProof) {
      offset_ = fragment.end;
      continue;
    }
    if (fragment.type == FragmentType::kEndMark) {
      offset_ = fragment.end;
      if (offset_ == size_) return Stop(LogStop::kEndMark, offset_, "end mark");
      // The process may have ended between the end mark and the truncation to it.
      const absl::StatusOr<bool> zeros = OnlyZerosFrom(offset_);
      if (!zeros.ok()) {
        status_ = zeros.status();
        return false;
      }
      if (*zeros) return Stop(LogStop::kEndMark, offset_, "end mark, and preallocated zeros");
      return Stop(LogStop::kDamaged, offset_, Concat("an end mark at ", at, " with ", size_ - offset_, " bytes behind it"));
    }
    record->offset = at;
    record->proven = head.proven;
    record->first_sequence = head.first_sequence;
    record->count = head.count;
    if (fragment.type == FragmentType::kFirst) {
      assembled_.assign(head.rest);
      return ReadRest(at, fragment.end, record);
    }
    record->end_offset = offset_ = fragment.end;
    record->payload = head.rest;
    return true;
  }
}

absl::Status LogReader::ScanForProof() {
  uint64_t checked = 0;
  uint64_t at = stop_offset_;
  while (at < size_) {
    TAMIS_RETURN_IF_ERROR(LoadBlock(at));
    const uint64_t block_end = block_offset_ + block_bytes_;
    while (block_end - at >= kFragmentHeaderBytes) {
      Fragment fragment;
      RecordHead head;
      if (ParseFragment(at, &fragment, &checked) == nullptr) {
        if (HasRecordHead(fragment.type) && ParseHead(at, fragment, &head) == nullptr) NoteProof(head.proven);
        at = fragment.end;
      } else if (checked > kScanBudgetBytes) {
        break;
      } else {
        ++at;
      }
    }
    at = block_offset_ + kLogBlockBytes;
  }
  return absl::OkStatus();
}

}  // namespace tamis::internal
