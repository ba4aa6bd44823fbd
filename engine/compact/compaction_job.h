// The work of a compaction (and of a flush): merges inputs, decides what stays, writes output tables. Knows nothing of the database: what
// it needs is in its arguments, what it did is in its result. Installing the result is the caller's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/compact/output_writer.h"
#include "engine/memtable/memtable.h"
#include "engine/version/table_file.h"

namespace tamis::internal {

struct MergeJob {
  // Sources, newest first where their keys overlap. Memtables for a flush; runs of tables for a compaction (each run disjoint, by key).
  std::vector<std::shared_ptr<const Memtable>> memtables;
  std::vector<std::vector<std::shared_ptr<TableFile>>> runs;
  uint64_t entries_expected = 0;             // the sum over the sources, checked at the end
  std::vector<SequenceNumber> snapshots;     // ascending
  std::function<bool(std::string_view)> may_exist_below;
  OutputOptions output;
  // Called about every MiB of input with the bytes read since the last call; an error ends the job with it.
  std::function<absl::Status(uint64_t bytes)> breathe;
};

struct MergeResult {
  std::vector<std::shared_ptr<TableFile>> tables;
  uint64_t entries_in = 0;
  uint64_t entries_out = 0;
  uint64_t dropped_hidden = 0;
  uint64_t dropped_deletes = 0;
  uint64_t bytes_written = 0;
  double filter_carry = 0;  // for the next job that writes to the same level
};

// DataLoss from a source is returned as it is (the text names the file); on any error nothing of the output remains.
absl::StatusOr<MergeResult> RunMergeJob(const MergeJob& job);

}  // namespace tamis::internal
