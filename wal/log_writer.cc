#include "wal/log_writer.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/coding.h"
#include "base/status_util.h"

namespace tamis::internal {
namespace {

constexpr uint64_t kFirstStep = 256 * 1024;
constexpr uint64_t kLastStep = 8 * 1024 * 1024;

// Two blocks: a group commit that crosses one block edge is still one system call.
constexpr size_t kScratchBytes = 2 * kLogBlockBytes;

// What an end mark or a proof takes at most, padding before it included.
constexpr uint64_t kMarkRoom = kMinFragmentRoom - 1 + kMinFragmentRoom;
// Reserved behind each record: an end mark and some proofs. One proof is the rule; two happen when a sync that began before the record
// is noted after it.
constexpr uint64_t kTailRoom = kMarkRoom + 4 * kMarkRoom;

// No file is larger: off_t is signed 64 bits.
constexpr uint64_t kMaxLogBytes = uint64_t{1} << 62;

// Behind a record of `bytes` (its head included) that is stored at `offset` or behind the padding there.
uint64_t RecordEnd(uint64_t offset, uint64_t bytes) {
  offset = FragmentStart(offset);
  const uint64_t room = kLogBlockBytes - offset % kLogBlockBytes - kFragmentHeaderBytes;
  if (bytes <= room) return offset + kFragmentHeaderBytes + bytes;
  bytes -= room;
  offset += kFragmentHeaderBytes + room;
  const uint64_t rest = bytes % kMaxFragmentPayload;
  return offset + bytes / kMaxFragmentPayload * kLogBlockBytes + (rest > 0 ? kFragmentHeaderBytes + rest : 0);
}

// Moves the first `length` bytes of `pieces` to `to`.
void Gather(std::string_view (&pieces)[3], char* to, size_t length) {
  for (std::string_view& piece : pieces) {
    const size_t part = std::min(length, piece.size());
    if (part == 0) continue;
    std::memcpy(to, piece.data(), part);
    piece.remove_prefix(part);
    to += part;
    length -= part;
  }
}

}  // namespace

LogWriter::LogWriter(std::unique_ptr<LogFile> file, const LogIdentity& identity)
    : file_(std::move(file)), identity_(identity), next_step_(kFirstStep), scratch_(new char[kScratchBytes]) {
  proven_.log_number = identity.log_number;
}

LogWriter::~LogWriter() = default;

absl::StatusOr<std::unique_ptr<LogWriter>> LogWriter::Create(std::unique_ptr<LogFile> file, const LogIdentity& identity) {
  std::unique_ptr<LogWriter> writer(new LogWriter(std::move(file), identity));
  TAMIS_RETURN_IF_ERROR(writer->Extend(kFirstStep));
  TAMIS_RETURN_IF_ERROR(writer->WriteHeader());
  return writer;
}

absl::Status LogWriter::WriteHeader() {
  char header[kLogHeaderBytes] = {};
  std::memcpy(header, kLogMagic, sizeof kLogMagic);
  StoreLittle<uint32_t>(header + 8, kLogFormatVersion);
  StoreLittle<uint32_t>(header + 12, static_cast<uint32_t>(identity_.kind));
  StoreLittle<uint64_t>(header + 16, identity_.log_number);
  StoreLittle<uint64_t>(header + 24, identity_.log_id);
  std::memcpy(header + 32, identity_.database_id.data(), identity_.database_id.size());
  StoreLittle<uint64_t>(header + 56, Checksum64(std::string_view(header, 56)));
  TAMIS_RETURN_IF_ERROR(file_->WriteThrough(0, std::string_view(header, sizeof header)));
  TAMIS_RETURN_IF_ERROR(file_->Sync());
  offset_ = kLogHeaderBytes;
  return absl::OkStatus();
}

absl::Status LogWriter::status() const {
  if (!status_.ok() || !sync_failed_.load(std::memory_order_acquire)) return status_;
  MutexLock lock(sync_mutex_);
  return sync_error_;
}

absl::Status LogWriter::Fail(absl::Status error) {
  if (error.code() == absl::StatusCode::kResourceExhausted) error = absl::Status(absl::StatusCode::kUnknown, error.message());
  status_ = std::move(error);
  return status_;
}

absl::Status LogWriter::Usable() {
  TAMIS_RETURN_IF_ERROR(status());
  if (finished_) return absl::FailedPreconditionError(Concat(file_->path(), ": the log was finished"));
  return absl::OkStatus();
}

// Allocates up to `end` or, if there is room, a step.
absl::Status LogWriter::Extend(uint64_t end) {
  const uint64_t least = (end + kLogBlockBytes - 1) / kLogBlockBytes * kLogBlockBytes;
  const uint64_t wanted = std::max(least, reserved_ + next_step_);
  uint64_t given = wanted;
  absl::Status status = file_->Reserve(wanted);
  if (status.code() == absl::StatusCode::kResourceExhausted && least < wanted) {
    given = least;
    status = file_->Reserve(least);
  }
  if (status.code() == absl::StatusCode::kResourceExhausted) return status;
  if (!status.ok()) return Fail(std::move(status));
  reserved_ = given;
  if (given == wanted) next_step_ = std::min(2 * next_step_, kLastStep);
  return absl::OkStatus();
}

absl::Status LogWriter::Reserve(uint64_t payload_bytes) {
  TAMIS_RETURN_IF_ERROR(Usable());
  if (payload_bytes > kMaxLogBytes / 2 || offset_ > kMaxLogBytes / 2) {
    return absl::InvalidArgumentError(Concat(file_->path(), ": a record of ", payload_bytes, " bytes is more than a log can hold"));
  }
  const uint64_t end = RecordEnd(offset_, kMaxRecordHeadBytes + payload_bytes) + kTailRoom;
  if (end <= reserved_) return absl::OkStatus();
  return Extend(end);
}

absl::Status LogWriter::Emit(Path path, FragmentType single, ProvenPoint proven, uint64_t first_sequence, uint32_t count,
                             std::string_view head, std::string_view body) {
  uint64_t at = FragmentStart(offset_);
  // What these checks refuse would be read back as damage.
  TAMIS_CHECK((proven <= ProvenPoint{identity_.log_number, at}));
  TAMIS_CHECK(first_sequence <= std::numeric_limits<uint64_t>::max() - count);

  char record_head[kMaxRecordHeadBytes];
  char* end = EncodeVarint64(record_head, identity_.log_number - proven.log_number);
  end = EncodeVarint64(end, proven.offset);
  end = EncodeVarint64(end, first_sequence);
  end = EncodeVarint32(end, count);
  std::string_view pieces[3] = {std::string_view(record_head, static_cast<size_t>(end - record_head)), head, body};
  uint64_t left = uint64_t{pieces[0].size()} + head.size() + body.size();
  TAMIS_CHECK(RecordEnd(offset_, left) + (single == FragmentType::kEndMark ? 0 : kMarkRoom) <= reserved_);  // L1

  uint64_t write_at = at;
  size_t filled = 0;
  bool first = true;
  while (first || left > 0) {
    const size_t room = kLogBlockBytes - at % kLogBlockBytes - kFragmentHeaderBytes;
    const size_t length = static_cast<size_t>(std::min<uint64_t>(left, room));
    left -= length;
    const FragmentType type =
        first ? (left == 0 ? single : FragmentType::kFirst) : (left == 0 ? FragmentType::kLast : FragmentType::kMiddle);
    char* fragment = scratch_.get() + filled;
    StoreLittle<uint16_t>(fragment + 4, static_cast<uint16_t>(length));
    fragment[6] = static_cast<char>(type);
    fragment[7] = 0;
    Gather(pieces, fragment + kFragmentHeaderBytes, length);
    StoreLittle<uint32_t>(fragment, Checksum32(std::string_view(fragment + 4, length + 4), ChecksumSeed(identity_.log_id, at)));
    at += kFragmentHeaderBytes + length;
    filled += kFragmentHeaderBytes + length;
    if (left == 0 || filled + kLogBlockBytes > kScratchBytes) {
      const std::string_view bytes(scratch_.get(), filled);
      absl::Status status = path == Path::kMapping ? file_->Write(write_at, bytes) : file_->WriteThrough(write_at, bytes);
      if (!status.ok()) return Fail(std::move(status));
      write_at = at;
      filled = 0;
    }
    first = false;
  }
  offset_ = at;
  if (proven.log_number == identity_.log_number) proof_stored_ = std::max(proof_stored_, proven.offset);
  return absl::OkStatus();
}

absl::Status LogWriter::EmitRecord(Path path, ProvenPoint proven, uint64_t first_sequence, uint32_t count, std::string_view head,
                                   std::string_view body) {
  TAMIS_RETURN_IF_ERROR(Usable());
  TAMIS_RETURN_IF_ERROR(Emit(path, FragmentType::kWhole, proven, first_sequence, count, head, body));
  record_end_ = offset_;
  return absl::OkStatus();
}

absl::Status LogWriter::Append(ProvenPoint proven, uint64_t first_sequence, uint32_t count, std::string_view head, std::string_view body) {
  return EmitRecord(Path::kMapping, proven, first_sequence, count, head, body);
}

absl::Status LogWriter::AppendDurable(ProvenPoint proven, uint64_t first_sequence, uint32_t count, std::string_view head,
                                      std::string_view body) {
  TAMIS_RETURN_IF_ERROR(EmitRecord(Path::kSystemCall, proven, first_sequence, count, head, body));
  return Sync();
}

absl::Status LogWriter::Sync() {
  TAMIS_RETURN_IF_ERROR(Usable());
  const uint64_t end = offset_;
  TAMIS_RETURN_IF_ERROR(SyncData());
  return NoteSynced(end);
}

absl::Status LogWriter::SyncData() {
  if (sync_failed_.load(std::memory_order_acquire)) {
    MutexLock lock(sync_mutex_);
    return sync_error_;
  }
  absl::Status status = file_->Sync();
  if (status.ok()) return status;
  if (status.code() == absl::StatusCode::kResourceExhausted) status = absl::Status(absl::StatusCode::kUnknown, status.message());
  MutexLock lock(sync_mutex_);
  if (sync_error_.ok()) sync_error_ = status;
  sync_failed_.store(true, std::memory_order_release);
  return sync_error_;
}

absl::Status LogWriter::NoteSynced(uint64_t offset) {
  TAMIS_CHECK(offset <= offset_);
  TAMIS_RETURN_IF_ERROR(status());
  proven_.offset = std::max(proven_.offset, offset);
  if (finished_) return absl::OkStatus();
  const bool covers_a_record = std::min(offset, record_end_) > proof_stored_;
  if (!covers_a_record || offset_ + 2 * kMarkRoom > reserved_) return absl::OkStatus();
  return Emit(Path::kMapping, FragmentType::kProof, proven_, 0, 0, {}, {});
}

absl::Status LogWriter::Finish(FinishMode mode, ProvenPoint proven) {
  TAMIS_RETURN_IF_ERROR(Usable());
  const bool synced = mode == FinishMode::kSynced;
  if (synced) {
    TAMIS_RETURN_IF_ERROR(SyncData());
    proven_.offset = FragmentStart(offset_);
    proven = proven_;
  }
  TAMIS_RETURN_IF_ERROR(Emit(synced ? Path::kSystemCall : Path::kMapping, FragmentType::kEndMark, proven, 0, 0, {}, {}));
  finished_ = true;
  if (absl::Status status = file_->Truncate(offset_); !status.ok()) return Fail(std::move(status));
  reserved_ = offset_;
  if (!synced) return absl::OkStatus();
  TAMIS_RETURN_IF_ERROR(SyncData());
  proven_.offset = offset_;
  if (absl::Status status = file_->Close(); !status.ok()) return Fail(std::move(status));
  return absl::OkStatus();
}

}  // namespace tamis::internal
