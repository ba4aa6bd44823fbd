// Writes one log file (see log_format.h). Not thread-safe, except where said.
//
// Life: Create -> (Reserve, Append | AppendDurable, Sync)* -> Finish. A writer that is destroyed without Finish leaves the log without
// an end mark, as a crash would.
//
// Errors: ResourceExhausted from Create or Reserve wrote nothing and may be tried again. Any other failure is sticky: every later call
// returns the first error, nothing more is written, a failed sync is never retried. A failed write, sync or truncate is never
// ResourceExhausted here (it becomes Unknown), since that code means that nothing was written.
//
// Invariants.
// L1. Until Finish, the space behind offset() that is reserved holds at least an end mark.
// L2. No proof in the log goes beyond what a sync that had returned OK covered.
// L3. After Create nothing allocates but Reserve (in the file).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/checksum.h"
#include "base/mutex.h"
#include "tamis/file_system.h"
#include "wal/log_format.h"

namespace tamis::internal {

struct LogIdentity {
  LogKind kind = LogKind::kWriteAheadLog;
  uint64_t log_number = 0;
  uint64_t log_id = 0;
  Id128 database_id{};
};

class LogWriter {
 public:
  // Takes a new, empty file; writes the header and syncs the file (the caller syncs the directory). Allocates the first step, 256 KiB.
  static absl::StatusOr<std::unique_ptr<LogWriter>> Create(std::unique_ptr<LogFile> file, const LogIdentity& identity);
  ~LogWriter();

  // Makes room for one record with `payload_bytes` of payload, and for an end mark and a proof after it, so that what follows cannot
  // run out of space. Space is allocated in steps that double from 256 KiB to 8 MiB (more for a larger record); if the disk has no room
  // for the step, just what is needed is asked for. A record that no file could hold is InvalidArgument (not sticky).
  absl::Status Reserve(uint64_t payload_bytes);

  // Appends a record made of two pieces. REQUIRES: Reserve for its size. Append stores through the mapping: the record survives the
  // death of the process. AppendDurable writes by a system call and syncs: it and everything before it in this log survive power loss,
  // and proven() has moved behind it. `proven` is stored in the record; it must be a point known durable now (normally proven()).
  absl::Status Append(ProvenPoint proven, uint64_t first_sequence, uint32_t count, std::string_view head, std::string_view body);
  absl::Status AppendDurable(ProvenPoint proven, uint64_t first_sequence, uint32_t count, std::string_view head, std::string_view body);

  // Makes everything appended so far durable, moves proven() there and stores a proof. May be called by another thread beside Append
  // only through the two halves: SyncData (any one thread at a time, not beside Finish), then NoteSynced(offset() before SyncData) by
  // the owner. SyncData touches only the file and a failure flag of its own; a failure of it is seen by the owner's next call, which
  // then fails with that error, whether or not anybody hands it over, and a later SyncData returns it without syncing.
  // NoteSynced stores a proof only if a record ended since the last one (and, after many calls without a Reserve, only if L1 allows);
  // after Finish it only moves proven().
  absl::Status Sync();
  absl::Status SyncData();
  absl::Status NoteSynced(uint64_t offset);  // stores the proof

  // Ends the log. kUnsynced (rotation): stores an end mark that proves no more than any record, and truncates to it; the caller syncs
  // later through SyncData on this still open writer. kSynced (Close): syncs, stores an end mark whose proof is its own offset,
  // truncates, syncs again, closes the file. Only SyncData (kUnsynced only), NoteSynced and the accessors may follow.
  // `proven`, for kUnsynced, as for Append: what is known durable now. (This log's own proven() would claim that every older log is.)
  enum class FinishMode { kUnsynced, kSynced };
  absl::Status Finish(FinishMode mode, ProvenPoint proven = {});

  uint64_t offset() const { return offset_; }      // where the next record goes; bytes of the log so far
  uint64_t reserved() const { return reserved_; }  // bytes allocated on disk
  ProvenPoint proven() const { return proven_; }   // of this log; offset 0 right after Create
  const LogIdentity& identity() const { return identity_; }
  absl::Status status() const;  // the sticky error (a failed SyncData included), or OK

 private:
  enum class Path { kMapping, kSystemCall };

  LogWriter(std::unique_ptr<LogFile> file, const LogIdentity& identity);
  absl::Status WriteHeader();
  absl::Status Usable();  // the sticky error; else an error, not sticky, if the log is finished
  absl::Status Fail(absl::Status error);
  absl::Status Extend(uint64_t end);
  // Stores one record, end mark or proof: `single` is its type if it fits one fragment.
  absl::Status Emit(Path path, FragmentType single, ProvenPoint proven, uint64_t first_sequence, uint32_t count, std::string_view head,
                    std::string_view body);
  absl::Status EmitRecord(Path path, ProvenPoint proven, uint64_t first_sequence, uint32_t count, std::string_view head,
                          std::string_view body);

  std::unique_ptr<LogFile> file_;
  const LogIdentity identity_;
  uint64_t offset_ = 0;
  uint64_t reserved_ = 0;
  uint64_t next_step_;
  uint64_t record_end_ = 0;    // behind the last record (proofs do not count)
  uint64_t proof_stored_ = 0;  // the greatest offset of this log that a stored proof or record covers
  ProvenPoint proven_;
  absl::Status status_;  // the sticky error of all but SyncData
  bool finished_ = false;
  std::unique_ptr<char[]> scratch_;  // fragments being made, kScratchBytes

  // What SyncData leaves for the owner.
  std::atomic<bool> sync_failed_{false};  // set after sync_error_
  mutable Mutex sync_mutex_;
  absl::Status sync_error_ TAMIS_GUARDED_BY(sync_mutex_);
};

}  // namespace tamis::internal
