// Reads one log file front to back and says why it stopped (see log_format.h). Treats the file as hostile: every length is checked
// against the file before anything is allocated. Not thread-safe.
//
// An I/O error is an error (status), never an end. Whether a stop is a legal end or damage is not for one log alone to say: the caller
// takes the stop of each log and the greatest proof found anywhere (in records read, in ScanForProof of this and later logs, in the
// manifest); a stop at (log, offset) is damage if some proof is greater than it. See ProvesLossOf below.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tamis/file_system.h"
#include "wal/log_format.h"
#include "wal/log_writer.h"

namespace tamis::internal {

struct LogRecord {
  uint64_t offset = 0;      // of its first fragment
  uint64_t end_offset = 0;  // behind its last fragment
  ProvenPoint proven;
  uint64_t first_sequence = 0;
  uint32_t count = 0;
  std::string_view payload;  // valid until the next call of Next
};

enum class LogStop {
  kNone,     // Next has not returned false yet
  kEndMark,  // an end mark, and the file ends there (or only zeros follow, which were not cut off yet): the log was closed
  kZeros,    // only zeros (perhaps none) up to the end of the file: in use when its process ended
  kDamaged,  // anything else: a torn, garbled or missing fragment, or other bytes after an end mark
};

class LogReader {
 public:
  // Reads and checks the header. A wrong magic, checksum, or kind is DataLoss; a newer format version is Unimplemented naming both; a
  // file of all zeros or shorter than the header is DataLoss. `expected`, where given, must match in every member, else DataLoss
  // (another file in its place).
  static absl::StatusOr<std::unique_ptr<LogReader>> Open(std::shared_ptr<const RandomAccessFile> file, LogKind kind,
                                                         const std::optional<LogIdentity>& expected);

  // True and the next record; false at the stop (see stop()) or after an I/O error (see status()). End marks and proofs are not
  // returned; their proofs count for greatest_proof().
  bool Next(LogRecord* record);

  const absl::Status& status() const { return status_; }  // I/O errors only
  LogStop stop() const { return stop_; }
  // Behind the last good record, proof or end mark; for a record whose first fragment is good but not the rest: where it starts.
  uint64_t stop_offset() const { return stop_offset_; }
  const std::string& stop_reason() const { return stop_reason_; }  // for people: what was found there
  bool end_mark_seen() const { return stop_ == LogStop::kEndMark; }

  // The greatest proof in anything valid read so far, ScanForProof included.
  ProvenPoint greatest_proof() const { return greatest_proof_; }

  // After the stop: looks for valid fragments that begin a record, end mark or proof, up to the end of the file, and notes their proofs.
  // It starts at the stop, goes on from each valid fragment, and where there is none tries the next byte: in a log of one block there
  // is no other place to find its footing again. (Checksums of a hostile file could make that slow: after 1 GiB of them, only block
  // boundaries are tried.) A valid fragment by itself proves nothing: it may have reached the disk unsynced. I/O errors are returned.
  absl::Status ScanForProof();

  const LogIdentity& identity() const { return identity_; }
  uint64_t file_size() const { return size_; }
  const std::string& path() const { return file_->path(); }

 private:
  // A fragment whose checksum is right, in block_.
  struct Fragment {
    FragmentType type;
    std::string_view payload;
    uint64_t end;
  };
  // What begins the payload of a fragment of type 1, 2, 5 or 6.
  struct RecordHead {
    ProvenPoint proven;
    uint64_t first_sequence;
    uint32_t count;
    std::string_view rest;
  };

  explicit LogReader(std::shared_ptr<const RandomAccessFile> file);
  absl::Status ReadHeader(LogKind kind, const std::optional<LogIdentity>& expected);
  absl::Status LoadBlock(uint64_t offset);
  // The fragment at `offset` of the block in memory, or nullptr and a reason. `checked`, where given, grows by the bytes checksummed.
  const char* ParseFragment(uint64_t offset, Fragment* fragment, uint64_t* checked) const;
  const char* ParseHead(uint64_t offset, const Fragment& fragment, RecordHead* head) const;
  // False with *reason (nullptr: I/O error in status_).
  bool SkipPadding(uint64_t* offset, const char** reason);
  bool ReadUnit(uint64_t offset, Fragment* fragment, const char** reason);
  bool ReadRest(uint64_t begin, uint64_t offset, LogRecord* record);
  bool Stop(LogStop stop, uint64_t offset, std::string reason);
  bool StopAtBadUnit(uint64_t at, const char* reason);
  absl::StatusOr<bool> OnlyZerosFrom(uint64_t offset);
  void NoteProof(const ProvenPoint& proof);

  std::shared_ptr<const RandomAccessFile> file_;
  const uint64_t size_;
  LogIdentity identity_;
  absl::Status status_;
  LogStop stop_ = LogStop::kNone;
  uint64_t offset_ = 0;  // behind the last good unit
  uint64_t stop_offset_ = 0;
  std::string stop_reason_;
  ProvenPoint greatest_proof_;
  std::vector<char> block_;  // one block
  uint64_t block_offset_ = 0;
  size_t block_bytes_ = 0;  // of it that the file holds; 0: none is loaded
  std::string assembled_;   // payload of a record of several fragments
};

// True if `proof` shows that bytes of log `log_number` at or after `offset` had been durable: a stop there is then damage.
inline bool ProvesLossOf(const ProvenPoint& proof, uint64_t log_number, uint64_t offset) {
  return proof.log_number > log_number || (proof.log_number == log_number && proof.offset > offset);
}

}  // namespace tamis::internal
