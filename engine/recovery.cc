#include "engine/recovery.h"

#include <memory>
#include <vector>

#include "base/status_util.h"
#include "engine/version/file_names.h"
#include "engine/write/batch_format.h"
#include "wal/log_reader.h"

namespace tamis::internal {
namespace {

// Where the history ended.
struct HistoryEnd {
  size_t log = 0;        // index; the number of logs if it ended behind the last one
  uint64_t offset = 0;
  std::string reason;    // empty: at a proper end
};

class Replay {
 public:
  Replay(const Directory& directory, const ManifestState& state, const ReplaySink& sink)
      : directory_(directory), state_(state), sink_(sink), next_sequence_(state.flushed_sequence + 1) {}

  absl::StatusOr<ReplayResult> Run() {
    TAMIS_RETURN_IF_ERROR(OpenLogs());
    HistoryEnd end;
    TAMIS_RETURN_IF_ERROR(ReadHistory(&end));
    result_.last_sequence = next_sequence_ - 1;
    if (end.log < logs_.size()) TAMIS_RETURN_IF_ERROR(JudgeRest(end));
    return std::move(result_);
  }

 private:
  // All of them before any is read: a listed log that is missing is noticed whatever the others hold.
  absl::Status OpenLogs() {
    for (const auto& [number, id] : state_.logs) {
      if (number < state_.oldest_log) continue;
      absl::StatusOr<std::unique_ptr<RandomAccessFile>> file = directory_.OpenRandomAccess(LogName(number));
      if (!file.ok()) return Annotate(file.status(), "a log that the manifest lists");
      const LogIdentity expected{LogKind::kWriteAheadLog, number, id, state_.identity.database_id};
      TAMIS_ASSIGN_OR_RETURN(std::unique_ptr<LogReader> reader,
                             LogReader::Open(std::shared_ptr<const RandomAccessFile>(*std::move(file)), LogKind::kWriteAheadLog, expected));
      logs_.push_back(std::move(reader));
    }
    return absl::OkStatus();
  }

  absl::Status ReadHistory(HistoryEnd* end) {
    for (size_t i = 0; i < logs_.size(); ++i) {
      LogReader& log = *logs_[i];
      ++result_.stats.logs;
      LogRecord record;
      while (log.Next(&record)) {
        const SequenceNumber last = record.first_sequence + record.count - 1;
        if (record.count == 0 || last <= state_.flushed_sequence) continue;
        if (record.first_sequence != next_sequence_) {
          *end = {i, record.offset,
                  Concat("sequence ", record.first_sequence, " follows ", next_sequence_ - 1, " in ", log.path(), " at offset ",
                         record.offset)};
          return absl::OkStatus();
        }
        TAMIS_RETURN_IF_ERROR(Apply(log, record));
      }
      TAMIS_RETURN_IF_ERROR(log.status());
      if (log.stop() == LogStop::kEndMark) continue;
      *end = {i, log.stop_offset(), {}};
      if (log.stop() == LogStop::kDamaged) {
        end->reason = Concat(log.path(), " at offset ", log.stop_offset(), ": ", log.stop_reason());
      }
      return absl::OkStatus();
    }
    end->log = logs_.size();
    return absl::OkStatus();
  }

  absl::Status Apply(const LogReader& log, const LogRecord& record) {
    BatchReader check(record.payload);
    EntryKind kind;
    std::string_view key, value;
    uint64_t count = 0;
    while (check.Next(&kind, &key, &value)) ++count;
    if (check.damaged()) return Annotate(check.status(), Concat(log.path(), ", record at offset ", record.offset));
    if (count != record.count) {
      return absl::DataLossError(Concat(log.path(), ": the record at offset ", record.offset, " does not hold the ", record.count,
                                        " writes it declares"));
    }
    TAMIS_RETURN_IF_ERROR(sink_(record.first_sequence, record.count, record.payload));
    next_sequence_ = record.first_sequence + record.count;
    ++result_.stats.records;
    return absl::OkStatus();
  }

  // Whether what lies behind the end had been promised.
  absl::Status JudgeRest(const HistoryEnd& end) {
    ProvenPoint proof = state_.proven;
    std::string prover = "the manifest";
    uint64_t dropped = 0;
    bool more_records = false;
    for (size_t i = end.log; i < logs_.size(); ++i) {
      LogReader& log = *logs_[i];
      const uint64_t from = i == end.log ? end.offset : kLogHeaderBytes;
      LogRecord record;
      uint64_t last_end = from;
      while (log.Next(&record)) last_end = record.end_offset;
      TAMIS_RETURN_IF_ERROR(log.status());
      TAMIS_RETURN_IF_ERROR(log.ScanForProof());
      if (log.greatest_proof() > proof) {
        proof = log.greatest_proof();
        prover = log.path();
      }
      const uint64_t log_end = log.stop() == LogStop::kDamaged ? log.file_size() : std::max(last_end, log.stop_offset());
      if (log_end > from) dropped += log_end - from;
      more_records = more_records || last_end > from;
      if (i > end.log && last_end > from) result_.later_logs_hold_records = true;
    }
    for (size_t i = 0; i < end.log; ++i) {
      if (logs_[i]->greatest_proof() > proof) proof = logs_[i]->greatest_proof();
    }
    const LogReader& stopped = *logs_[end.log];
    if (ProvesLossOf(proof, stopped.identity().log_number, end.offset)) {
      return absl::DataLossError(Concat(stopped.path(), ": the history ends at offset ", end.offset,
                                        end.reason.empty() ? "" : " (", end.reason, end.reason.empty() ? "" : ")", ", but ", prover,
                                        " proves that log ", proof.log_number, " had been durable up to offset ", proof.offset));
    }
    result_.stats.bytes_dropped = dropped;
    result_.stats.reason = end.reason;
    if (more_records && result_.stats.reason.empty()) {
      result_.stats.reason = Concat(stopped.path(), " ends at offset ", end.offset, " without an end mark");
    }
    return absl::OkStatus();
  }

  const Directory& directory_;
  const ManifestState& state_;
  const ReplaySink& sink_;
  std::vector<std::unique_ptr<LogReader>> logs_;
  SequenceNumber next_sequence_;
  ReplayResult result_;
};

}  // namespace

absl::StatusOr<ReplayResult> ReplayLogs(const Directory& directory, const ManifestState& state, const ReplaySink& sink) {
  return Replay(directory, state, sink).Run();
}

}  // namespace tamis::internal
