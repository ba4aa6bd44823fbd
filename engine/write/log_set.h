// The write-ahead logs of an open database: the one that takes records, the next one prepared ahead, and closed ones that still belong to
// memtables not yet flushed.
//
// Invariants.
//   G1  A log takes its first record only when it is created, synced, durable in its directory and listed in the manifest, and when its
//       predecessor's end mark is in place.
//   G2  A record is acknowledged as durable only when every older log is durable.
//   G3  A failed write or sync is final: failure() is set, nothing is written to any log again.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "base/environment.h"
#include "base/mutex.h"
#include "engine/version/version_edit.h"
#include "wal/log_writer.h"

namespace tamis::internal {

struct LogSetContext {
  std::shared_ptr<Directory> directory;
  RandomSource* random = nullptr;
  Id128 database_id{};
  std::function<uint64_t()> new_file_number;
  // Lists the log in the manifest, durably.
  std::function<absl::Status(const LogMeta&)> register_log;
};

class LogSet {
 public:
  explicit LogSet(LogSetContext context) : context_(std::move(context)) {}

  // Creates and registers the first log.
  absl::Status Start();

  // --- The commit leader's (one thread at a time) ---
  // Makes room for a record; ResourceExhausted changed nothing.
  absl::Status Reserve(uint64_t bytes) { return current_->Reserve(bytes); }
  // REQUIRES: Reserve for its size. sync: durable, with everything before it, when OK (G2).
  absl::Status Append(SequenceNumber first_sequence, uint32_t count, std::string_view operations, bool sync);
  // Everything appended becomes durable (G2).
  absl::Status Sync();
  // Closes the current log behind an end mark and goes on with the prepared one, preparing it now if need be. An error that is
  // ResourceExhausted changed nothing.
  absl::Status Rotate();
  uint64_t current_number() const { return current_->identity().log_number; }
  // Syncs all, ends the current log with a proven end mark.
  absl::Status Finish();

  // --- Any thread ---
  // Prepares the next log if there is none; called ahead of rotation. Waits if another thread is doing it.
  absl::Status PrepareNext();
  bool has_next() const { return has_next_.load(std::memory_order_acquire); }
  // Makes closed logs up to and including `number` durable.
  absl::Status SyncClosedThrough(uint64_t number);
  // Forgets and removes the closed logs below `oldest`, which the manifest no longer lists.
  void RemoveBelow(uint64_t oldest);
  uint64_t allocated_bytes() const;
  uint64_t bytes_written() const { return bytes_written_.load(std::memory_order_relaxed); }

 private:
  struct Closed {
    std::unique_ptr<LogWriter> log;
    bool synced = false;
  };
  absl::StatusOr<std::unique_ptr<LogWriter>> CreateLog();
  absl::Status SyncClosed(uint64_t through) TAMIS_REQUIRES(closed_mutex_);

  const LogSetContext context_;
  std::unique_ptr<LogWriter> current_;   // the leader's
  ProvenPoint proven_;                   // the leader's: what it knows to be durable
  std::atomic<uint64_t> bytes_written_{0};
  std::atomic<uint64_t> current_allocated_{0};

  Mutex next_mutex_;                     // held while the next log is made; before closed_mutex_
  std::unique_ptr<LogWriter> next_ TAMIS_GUARDED_BY(next_mutex_);
  std::atomic<bool> has_next_{false};

  mutable Mutex closed_mutex_;           // held while closed logs are synced
  std::deque<Closed> closed_ TAMIS_GUARDED_BY(closed_mutex_);
  ProvenPoint closed_proven_ TAMIS_GUARDED_BY(closed_mutex_);
  absl::Status closed_failure_ TAMIS_GUARDED_BY(closed_mutex_);  // G3
};

}  // namespace tamis::internal
