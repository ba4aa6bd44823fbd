#include "engine/version/manifest.h"

#include <utility>

#include "base/check.h"
#include "base/status_util.h"
#include "engine/version/file_names.h"
#include "wal/log_reader.h"

namespace tamis::internal {
namespace {

constexpr std::string_view kCurrentMagic = "tamis ";
constexpr std::string_view kCurrentVersion = "1";
constexpr uint64_t kMaxCurrentBytes = 4096;
constexpr std::string_view kRepairHint = "; `tamis repair` rebuilds it from the tables";

std::string CurrentText(uint64_t manifest_number) {
  std::string text = Concat(kCurrentMagic, kCurrentVersion, " ", ManifestName(manifest_number), " ");
  const uint64_t checksum = Checksum64(text);
  text += absl::StrCat(absl::Hex(checksum, absl::kZeroPad16), "\n");
  return text;
}

std::string PathOf(const Directory& directory, std::string_view name) { return Concat(directory.path(), "/", name); }

absl::Status BadCurrent(const Directory& directory, std::string_view what) {
  return absl::DataLossError(Concat(PathOf(directory, kCurrentName), ": ", what, kRepairHint));
}

absl::Status BadManifest(std::string_view path, uint64_t offset, std::string_view what) {
  return absl::DataLossError(Concat(path, ": at offset ", offset, ": ", what, kRepairHint));
}

// The manifest that the bytes of a CURRENT name.
absl::StatusOr<std::string> ParseCurrent(const Directory& directory, std::string_view text) {
  if (!text.starts_with(kCurrentMagic)) return BadCurrent(directory, "not the CURRENT of a Tamis database");
  std::string_view rest = text.substr(kCurrentMagic.size());
  const std::string_view version = rest.substr(0, rest.find(' '));
  const bool number = !version.empty() && version[0] != '0' && version.find_first_not_of("0123456789") == std::string_view::npos;
  if (!number || version.size() == rest.size()) return BadCurrent(directory, "malformed");
  if (version != kCurrentVersion) {
    return absl::UnimplementedError(Concat(PathOf(directory, kCurrentName), ": format version ", version.substr(0, 20),
                                           "; this version of Tamis knows up to ", kCurrentVersion));
  }
  rest.remove_prefix(version.size() + 1);
  const std::string_view name = rest.substr(0, rest.find(' '));
  const std::optional<FileName> parsed = ParseFileName(name);
  if (!parsed || parsed->kind != FileKind::kManifest) return BadCurrent(directory, "does not name a manifest");
  if (text != CurrentText(parsed->number)) return BadCurrent(directory, "its checksum does not match");
  return std::string(name);
}

// Reads records until the log stops, and adds them up.
absl::Status ReadEdits(LogReader* log, ManifestContents* contents) {
  LogRecord record;
  while (log->Next(&record)) {
    // The framing lets no record be skipped: another ordinal was written so.
    if (record.first_sequence != contents->edits + 1 || record.count != 1) {
      return BadManifest(log->path(), record.offset, Concat("edit ", record.first_sequence, " where ", contents->edits + 1, " belongs"));
    }
    absl::StatusOr<VersionEdit> edit = VersionEdit::Decode(record.payload);
    absl::Status status = edit.ok() ? contents->state.Apply(*edit) : edit.status();
    if (!status.ok()) {
      if (status.code() == absl::StatusCode::kDataLoss) return BadManifest(log->path(), record.offset, ToStd(status.message()));
      return Annotate(status, Concat(log->path(), ": at offset ", record.offset));
    }
    if (contents->edits == 0 && contents->state.identity.database_id != log->identity().database_id) {
      return BadManifest(log->path(), record.offset, "the first edit does not hold the identity that the header names");
    }
    ++contents->edits;
    contents->last_record_end = record.end_offset;
  }
  return log->status();
}

// Whether the place where the log stopped is its legal end.
absl::Status JudgeStop(LogReader* log, ManifestContents* contents) {
  if (log->stop() == LogStop::kDamaged) TAMIS_RETURN_IF_ERROR(log->ScanForProof());
  const ProvenPoint proof = log->greatest_proof();
  if (ProvesLossOf(proof, contents->manifest_number, log->stop_offset())) {
    return BadManifest(log->path(), log->stop_offset(),
                       Concat("damaged (", log->stop_reason(), "), though everything before offset ", proof.offset, " was durable"));
  }
  if (contents->edits == 0) return BadManifest(log->path(), log->stop_offset(), Concat("holds no edit: ", log->stop_reason()));
  if (log->stop() == LogStop::kDamaged) {
    contents->bytes_dropped = log->file_size() - log->stop_offset();
    contents->drop_reason = log->stop_reason();
  }
  return absl::OkStatus();
}

// Writes CURRENT.NNNNNN.tmp, durably. On an error the temporary is gone again, as far as that can be done.
absl::Status WriteTemporary(Directory* directory, const std::string& name, std::string_view text) {
  TAMIS_ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> file, directory->CreateAppend(name));
  absl::Status status = file->Append(text);
  if (status.ok()) status = file->Sync();
  if (status.ok()) status = file->Close();
  if (!status.ok()) {
    file.reset();
    directory->Remove(name).IgnoreError();
  }
  return status;
}

// After an attempt to switch, nobody knows which manifest CURRENT names: that must not look like "nothing changed, try again".
absl::Status Undecided(const absl::Status& status) {
  if (status.code() != absl::StatusCode::kResourceExhausted) return status;
  return absl::UnknownError(status.message());
}

absl::Status SwitchCurrent(Directory* directory, uint64_t number, uint64_t temporary_number) {
  const std::string temporary = TemporaryName(temporary_number);
  TAMIS_RETURN_IF_ERROR(WriteTemporary(directory, temporary, CurrentText(number)));
  absl::Status status = directory->Rename(temporary, kCurrentName);
  if (status.ok()) status = directory->Sync();
  return Undecided(status);
}

// A log that holds the whole state, synced, in a synced directory.
absl::StatusOr<std::unique_ptr<LogWriter>> WriteSnapshot(Directory* directory, std::unique_ptr<LogFile> file, uint64_t number,
                                                         const ManifestState& state, RandomSource* random) {
  const LogIdentity identity{LogKind::kManifest, number, random->Next64(), state.identity.database_id};
  TAMIS_ASSIGN_OR_RETURN(std::unique_ptr<LogWriter> log, LogWriter::Create(std::move(file), identity));
  const std::string payload = state.Snapshot().Encode();
  TAMIS_RETURN_IF_ERROR(log->Reserve(payload.size()));
  TAMIS_RETURN_IF_ERROR(log->AppendDurable(log->proven(), 1, 1, payload, {}));
  TAMIS_RETURN_IF_ERROR(directory->Sync());
  return log;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Manifest>> Manifest::Create(Directory* directory, uint64_t number, uint64_t temporary_number,
                                                           const ManifestState& state, RandomSource* random) {
  TAMIS_CHECK(state.has_identity());
  const std::string name = ManifestName(number);
  TAMIS_ASSIGN_OR_RETURN(std::unique_ptr<LogFile> file, directory->CreateLog(name));
  absl::StatusOr<std::unique_ptr<LogWriter>> log = WriteSnapshot(directory, std::move(file), number, state, random);
  absl::Status status = log.ok() ? SwitchCurrent(directory, number, temporary_number) : log.status();
  if (!status.ok()) {
    // Nothing that failed for want of space has touched CURRENT (see Undecided), so the new manifest is nobody's.
    if (status.code() == absl::StatusCode::kResourceExhausted) {
      log = status;
      directory->Remove(name).IgnoreError();
    }
    return status;
  }
  std::unique_ptr<Manifest> manifest(new Manifest(number, *std::move(log)));
  manifest->edits_ = 1;
  return manifest;
}

absl::Status Manifest::Append(const VersionEdit& edit) {
  const std::string payload = edit.Encode();
  TAMIS_RETURN_IF_ERROR(log_->Reserve(payload.size()));
  TAMIS_RETURN_IF_ERROR(log_->AppendDurable(log_->proven(), edits_ + 1, 1, payload, {}));
  ++edits_;
  return absl::OkStatus();
}

absl::Status Manifest::Finish() { return log_->Finish(LogWriter::FinishMode::kSynced); }

absl::StatusOr<std::string> ReadCurrent(const Directory& directory) {
  absl::StatusOr<std::optional<uint64_t>> size = directory.FileSize(kCurrentName);
  if (!size.ok()) {
    // FailedPrecondition is kept for "there is none".
    if (absl::IsFailedPrecondition(size.status())) return BadCurrent(directory, ToStd(size.status().message()));
    return size.status();
  }
  if (!size->has_value()) return absl::FailedPreconditionError(Concat(PathOf(directory, kCurrentName), ": there is no such file"));
  TAMIS_ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> file, directory.OpenRandomAccess(kCurrentName));
  if (file->size() == 0 || file->size() > kMaxCurrentBytes) return BadCurrent(directory, Concat("has ", file->size(), " bytes"));
  std::string text(static_cast<size_t>(file->size()), '\0');
  TAMIS_RETURN_IF_ERROR(file->Read(0, absl::MakeSpan(text)));
  return ParseCurrent(directory, text);
}

absl::StatusOr<ManifestContents> ReadManifest(const Directory& directory) {
  TAMIS_ASSIGN_OR_RETURN(const std::string name, ReadCurrent(directory));
  ManifestContents contents;
  contents.manifest_number = ParseFileName(name)->number;
  absl::StatusOr<std::unique_ptr<RandomAccessFile>> file = directory.OpenRandomAccess(name);
  if (!file.ok()) {
    const absl::Status& status = file.status();
    if (!absl::IsDataLoss(status) && !absl::IsFailedPrecondition(status)) return status;
    return absl::DataLossError(Concat("the manifest that CURRENT names: ", ToStd(status.message()), kRepairHint));
  }
  absl::StatusOr<std::unique_ptr<LogReader>> log = LogReader::Open(*std::move(file), LogKind::kManifest, std::nullopt);
  if (!log.ok()) {
    if (!absl::IsDataLoss(log.status())) return log.status();
    return absl::DataLossError(Concat(ToStd(log.status().message()), kRepairHint));
  }
  if ((*log)->identity().log_number != contents.manifest_number) {
    return BadManifest((*log)->path(), 0, Concat("is manifest ", (*log)->identity().log_number, " under another name"));
  }
  TAMIS_RETURN_IF_ERROR(ReadEdits(log->get(), &contents));
  TAMIS_RETURN_IF_ERROR(JudgeStop(log->get(), &contents));
  if (absl::Status status = contents.state.Check(); !status.ok()) {
    return BadManifest((*log)->path(), contents.last_record_end, ToStd(status.message()));
  }
  return contents;
}

}  // namespace tamis::internal
