#include "engine/compact/compaction_job.h"

#include "base/status_util.h"
#include "engine/compact/entry_retention.h"
#include "engine/read/merging_cursor.h"
#include "engine/read/run_cursor.h"

namespace tamis::internal {
namespace {

constexpr uint64_t kBreathBytes = uint64_t{1} << 20;

std::unique_ptr<Cursor> OpenSources(const MergeJob& job) {
  const TableReadOptions options{.fill_cache = false, .verify_checksums = true};
  std::vector<std::unique_ptr<Cursor>> sources;
  for (const auto& memtable : job.memtables) sources.push_back(memtable->NewCursor(memtable));
  for (const auto& run : job.runs) sources.push_back(NewRunCursor(run, options, /*read_ahead=*/true));
  return NewMergingCursor(std::move(sources));
}

}  // namespace

absl::StatusOr<MergeResult> RunMergeJob(const MergeJob& job) {
  MergeResult result;
  OutputWriter output(job.output);
  EntryRetention retention(job.snapshots, job.may_exist_below);
  const std::unique_ptr<Cursor> cursor = OpenSources(job);
  uint64_t unreported = 0;
  for (cursor->SeekToFirst(); cursor->Valid(); cursor->Next()) {
    const EntryView& entry = cursor->entry();
    ++result.entries_in;
    unreported += entry.key.size() + entry.value.size();
    if (retention.Keep(entry.key, entry.sequence, entry.kind)) {
      TAMIS_RETURN_IF_ERROR(output.Add(entry.key, entry.sequence, entry.kind, entry.value));
    }
    if (unreported >= kBreathBytes) {
      if (job.breathe) TAMIS_RETURN_IF_ERROR(job.breathe(unreported));
      unreported = 0;
    }
  }
  TAMIS_RETURN_IF_ERROR(cursor->status());
  // The rest too: many small jobs must not slip past the rate limit, nor past who wants to cancel.
  if (job.breathe && unreported != 0) TAMIS_RETURN_IF_ERROR(job.breathe(unreported));
  result.entries_out = output.entries();
  result.dropped_hidden = retention.dropped_hidden();
  result.dropped_deletes = retention.dropped_deletes();
  if (result.entries_in != job.entries_expected ||
      result.entries_in != result.entries_out + result.dropped_hidden + result.dropped_deletes) {
    return absl::DataLossError(Concat("a merge met ", result.entries_in, " entries of ", job.entries_expected, ", wrote ",
                                      result.entries_out, " and dropped ", result.dropped_hidden + result.dropped_deletes));
  }
  TAMIS_ASSIGN_OR_RETURN(result.tables, output.Finish());
  result.bytes_written = output.bytes_written();
  result.filter_carry = output.filter_carry();
  return result;
}

}  // namespace tamis::internal
