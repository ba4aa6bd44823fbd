// ManifestState: what the edits of a manifest add up to, and which edits contradict it.
#include <algorithm>

#include "absl/strings/escaping.h"
#include "base/status_util.h"
#include "engine/version/file_names.h"
#include "engine/version/version_edit.h"

namespace tamis::internal {
namespace {

absl::Status Contradiction(std::string_view what) {
  return absl::DataLossError(Concat("version edit contradicts the state before it: ", what));
}

std::string TableText(uint32_t level, uint64_t number) { return Concat("table ", number, " at level ", level); }

absl::Status ApplyNumbers(const VersionEdit& edit, ManifestState* state) {
  if (edit.identity) {
    if (state->has_identity()) return Contradiction("a second identity");
    state->identity = *edit.identity;
  }
  state->required_features |= edit.required_features;
  state->optional_features |= edit.optional_features;
  if (edit.next_file_number) {
    if (*edit.next_file_number < state->next_file_number) {
      return Contradiction(Concat("next file number ", *edit.next_file_number, " after ", state->next_file_number));
    }
    state->next_file_number = *edit.next_file_number;
  }
  if (edit.flushed_sequence) {
    if (*edit.flushed_sequence < state->flushed_sequence) {
      return Contradiction(Concat("flushed sequence ", *edit.flushed_sequence, " after ", state->flushed_sequence));
    }
    state->flushed_sequence = *edit.flushed_sequence;
  }
  return absl::OkStatus();
}

absl::Status ApplyLogs(const VersionEdit& edit, ManifestState* state) {
  if (edit.oldest_log) {
    if (*edit.oldest_log < state->oldest_log) return Contradiction(Concat("oldest log ", *edit.oldest_log, " after ", state->oldest_log));
    // Equal to the next number: every log there is was retired.
    if (*edit.oldest_log > state->next_file_number) {
      return Contradiction(Concat("oldest log ", *edit.oldest_log, " beyond the next file number ", state->next_file_number));
    }
    state->oldest_log = *edit.oldest_log;
    state->logs.erase(state->logs.begin(), state->logs.lower_bound(state->oldest_log));
  }
  for (const LogMeta& log : edit.new_logs) {
    if (log.number >= state->next_file_number) {
      return Contradiction(Concat("log ", log.number, " at or above the next file number ", state->next_file_number));
    }
    if (log.number < state->oldest_log)
      return Contradiction(Concat("new log ", log.number, " is older than the oldest, ", state->oldest_log));
    if (!state->logs.emplace(log.number, log.id).second) return Contradiction(Concat("log ", log.number, " a second time"));
  }
  if (edit.proven) {
    if (edit.proven->log_number >= state->next_file_number) {
      return Contradiction(Concat("proven log ", edit.proven->log_number, " at or above the next file number ", state->next_file_number));
    }
    state->proven = std::max(state->proven, *edit.proven);
  }
  return absl::OkStatus();
}

absl::Status ApplyTables(const VersionEdit& edit, ManifestState* state) {
  for (const auto& [level, number] : edit.dropped) {
    if (level >= kMaxLevels) return Contradiction(Concat("level ", level, " does not exist"));
    if (state->levels[level].erase(number) == 0) return Contradiction(Concat("dropped ", TableText(level, number), " is not there"));
  }
  for (const auto& [level, table] : edit.added) {
    if (level >= kMaxLevels) return Contradiction(Concat("level ", level, " does not exist"));
    const uint64_t filter_number = table.filter_file ? table.filter_file->number : 0;
    if (std::max(table.number, filter_number) >= state->next_file_number) {
      return Contradiction(
          Concat("a file of ", TableText(level, table.number), " is at or above the next file number ", state->next_file_number));
    }
    if (table.smallest > table.largest) return Contradiction(Concat(TableText(level, table.number), " ends before it begins"));
    for (uint32_t other = 0; other < kMaxLevels; ++other) {
      if (state->levels[other].contains(table.number)) {
        return Contradiction(Concat(TableText(level, table.number), " is already at level ", other));
      }
    }
    state->levels[level].emplace(table.number, table);
  }
  return absl::OkStatus();
}

}  // namespace

ManifestState::ManifestState() : levels(kMaxLevels) {}

absl::Status ManifestState::Apply(const VersionEdit& edit) {
  // The next file number first: the edit's own files lie below it.
  TAMIS_RETURN_IF_ERROR(ApplyNumbers(edit, this));
  TAMIS_RETURN_IF_ERROR(ApplyLogs(edit, this));
  TAMIS_RETURN_IF_ERROR(ApplyTables(edit, this));
  if (edit.lookups) lookups = *edit.lookups;
  for (const auto& [tag, bytes] : edit.unknown) {
    if (!KeepLatest(&unknown, tag, bytes)) return Contradiction(Concat("more than ", kMaxUnknownFields, " unknown fields"));
  }
  return absl::OkStatus();
}

absl::Status ManifestState::Check() const {
  for (uint32_t level = 1; level < levels.size(); ++level) {
    std::vector<const TableMeta*> tables;
    tables.reserve(levels[level].size());
    for (const auto& [number, table] : levels[level]) tables.push_back(&table);
    std::sort(tables.begin(), tables.end(), [](const TableMeta* a, const TableMeta* b) { return a->smallest < b->smallest; });
    for (size_t i = 1; i < tables.size(); ++i) {
      if (tables[i - 1]->largest < tables[i]->smallest) continue;
      return absl::DataLossError(Concat("tables ", tables[i - 1]->number, " and ", tables[i]->number, " overlap at level ", level,
                                        ", at key \"", absl::CHexEscape(tables[i]->smallest), "\""));
    }
  }
  return absl::OkStatus();
}

VersionEdit ManifestState::Snapshot() const {
  VersionEdit edit;
  if (has_identity()) edit.identity = identity;
  edit.required_features = required_features;
  edit.optional_features = optional_features;
  edit.next_file_number = next_file_number;
  edit.flushed_sequence = flushed_sequence;
  for (const auto& [number, id] : logs) edit.new_logs.push_back({number, id});
  if (oldest_log != 0) edit.oldest_log = oldest_log;
  for (uint32_t level = 0; level < levels.size(); ++level) {
    for (const auto& [number, table] : levels[level]) edit.added.emplace_back(level, table);
  }
  if (proven.log_number != 0) edit.proven = proven;
  if (!lookups.empty()) edit.lookups = lookups;
  edit.unknown = unknown;
  return edit;
}

}  // namespace tamis::internal
