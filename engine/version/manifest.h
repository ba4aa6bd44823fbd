// The manifest: which files make up the database, as a log of edits (version_edit.h), and CURRENT, which names the manifest in use.
//
// FORMAT of CURRENT: one line of ASCII, "tamis 1 MANIFEST-NNNNNN " + 16 lower-case hex digits of XXH3-64 (seed 0) of everything before
// them + "\n". Exactly that: anything else is DataLoss. A larger number after "tamis" is Unimplemented.
//
// Order on disk when a manifest is made (also at every writable open and at roll-over): the manifest is written and synced, the
// directory is synced, CURRENT.NNNNNN.tmp is written and synced, renamed to CURRENT, the directory is synced; only then may the old
// manifest be deleted.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/environment.h"
#include "engine/version/version_edit.h"
#include "tamis/file_system.h"
#include "wal/log_writer.h"

namespace tamis::internal {

// Appends edits to a manifest of its own making. Not thread-safe (the engine appends under its manifest lock).
class Manifest {
 public:
  // Makes MANIFEST-`number` holding `state` and points CURRENT at it (with a temporary of number `temporary_number`). On an error
  // CURRENT may name either manifest: nothing may be deleted until a reopen. Except ResourceExhausted: CURRENT is as it was, what was
  // made is removed again, and it may be tried again with other numbers. REQUIRES: the state has an identity.
  static absl::StatusOr<std::unique_ptr<Manifest>> Create(Directory* directory, uint64_t number, uint64_t temporary_number,
                                                          const ManifestState& state, RandomSource* random);
  // Appends and syncs one edit: durable when OK. ResourceExhausted from reserving space changed nothing and may be tried again; any
  // other error is sticky: nothing is appended to this file again (failed() is then true) and nothing may be deleted.
  absl::Status Append(const VersionEdit& edit);
  bool failed() const { return !log_->status().ok(); }
  uint64_t number() const { return number_; }
  uint64_t bytes() const { return log_->offset(); }
  // Ends the log with an end mark; for Close.
  absl::Status Finish();

 private:
  Manifest(uint64_t number, std::unique_ptr<LogWriter> log) : number_(number), log_(std::move(log)) {}
  uint64_t number_;
  std::unique_ptr<LogWriter> log_;
  uint64_t edits_ = 0;
};

struct ManifestContents {
  ManifestState state;
  uint64_t manifest_number = 0;
  uint64_t edits = 0;
  uint64_t last_record_end = 0;  // offset behind the last valid record: tells whether a second read saw the same
  uint64_t bytes_dropped = 0;    // a torn, unproven tail
  std::string drop_reason;
};

// Reads CURRENT (at most 4 KiB; a directory or symbolic link of that name is damage). DataLoss names the file and says that `tamis repair`
// is the tool; a missing CURRENT is FailedPrecondition here (the opener decides what that means).
absl::StatusOr<std::string> ReadCurrent(const Directory& directory);  // the manifest's name, checked
// Reads CURRENT and its manifest. DataLoss for damage (a stop that a proof in the same manifest shows to have been durable, a bad edit,
// a missing manifest), with file and offset. A torn tail without proof is dropped and reported.
absl::StatusOr<ManifestContents> ReadManifest(const Directory& directory);

}  // namespace tamis::internal
