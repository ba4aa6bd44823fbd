// Replays the write-ahead logs that the manifest lists.
//
// The history that counts is the longest valid, sequence-contiguous prefix over all logs in number order. Zeros, a bad record, a missing
// end mark (unless nothing follows) and a gap in the sequence all end it. What lies behind the end is then scanned for proofs, in this and all later logs: if
// a valid record or the manifest proves that something past the end had been durable, that is DataLoss (file, offset, proof); otherwise
// everything after the end was never promised, and is dropped, counted and reported. (After a power cut page 0 of a mapped, never synced
// log may be zero and page 5 valid: a legal state, not damage.) A listed log that is missing is DataLoss.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/version/version_edit.h"
#include "tamis/file_system.h"
#include "tamis/stats.h"

namespace tamis::internal {

struct ReplayResult {
  RecoveryStats stats;
  SequenceNumber last_sequence = 0;  // the newest that counts
  bool later_logs_hold_records = false;  // the history ended before the newest log that has any
};

// Receives the records of the history, in order: operations as in batch_format.h, numbered from first_sequence.
using ReplaySink = std::function<absl::Status(SequenceNumber first_sequence, uint64_t count, std::string_view operations)>;

absl::StatusOr<ReplayResult> ReplayLogs(const Directory& directory, const ManifestState& state, const ReplaySink& sink);

}  // namespace tamis::internal
