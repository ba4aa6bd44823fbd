// DB::GetProperty: the stats as text.
#include <cinttypes>
#include <cstdio>

#include "absl/strings/escaping.h"
#include "base/status_util.h"
#include "engine/db_impl.h"
#include "engine/version/file_names.h"

namespace tamis::internal {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

template <typename... Arguments>
void AppendFormat(std::string* to, const char* format, Arguments... arguments) {
  char line[512];
  const int length = std::snprintf(line, sizeof line, format, arguments...);
  to->append(line, static_cast<size_t>(std::min<int>(length, sizeof line - 1)));
}

std::string LevelsText(const Stats& stats) {
  std::string text = "level  files    size MiB  target MiB  score        keys     deletes   read MiB  written MiB  moved MiB\n";
  for (const LevelStats& level : stats.levels) {
    AppendFormat(&text, "%5u %6" PRIu64 " %11.1f %11.1f %6.2f %11" PRIu64 " %11" PRIu64 " %10.1f %12.1f %10.1f\n", level.level, level.files,
                 static_cast<double>(level.bytes) / kMiB, static_cast<double>(level.target_bytes) / kMiB, level.score, level.keys,
                 level.deletes, static_cast<double>(level.bytes_read) / kMiB, static_cast<double>(level.bytes_written) / kMiB,
                 static_cast<double>(level.moved_bytes) / kMiB);
  }
  return text;
}

std::string FiltersText(const Stats& stats) {
  std::string text = "level  files        keys  filter KiB  bits/key  predicted FPR  observed FPR      probes     skipped  false pos.\n";
  for (const LevelStats& level : stats.levels) {
    if (level.files == 0) continue;
    AppendFormat(&text, "%5u %6" PRIu64 " %11" PRIu64 " %11.1f %9.2f %13.4f%% %12.4f%% %11" PRIu64 " %11" PRIu64 " %11" PRIu64 "\n",
                 level.level, level.files, level.keys, static_cast<double>(level.filter_bytes) / 1024.0, level.bits_per_key,
                 100 * level.predicted_fpr, 100 * level.observed_fpr, level.probes, level.skipped, level.false_positives);
  }
  if (stats.prefix_filter_bytes != 0) {
    AppendFormat(&text, "prefix filters: %.1f KiB, asked %" PRIu64 ", tables skipped %" PRIu64 "\n",
                 static_cast<double>(stats.prefix_filter_bytes) / 1024.0, stats.prefix_probes, stats.prefix_skipped);
  }
  return text;
}

std::string StatsText(const Stats& stats) {
  std::string text = LevelsText(stats);
  text.append("\n").append(FiltersText(stats)).append("\n");
  AppendFormat(&text, "writes: %" PRIu64 " puts, %" PRIu64 " deletes, %.1f MiB of keys and values\n", stats.puts, stats.deletes,
               static_cast<double>(stats.user_bytes_written) / kMiB);
  AppendFormat(&text, "written: log %.1f MiB, flushes %.1f MiB, compactions %.1f MiB, manifest %.1f MiB; write amplification %.2f\n",
               static_cast<double>(stats.log_bytes_written) / kMiB, static_cast<double>(stats.flush_bytes_written) / kMiB,
               static_cast<double>(stats.compaction_bytes_written) / kMiB, static_cast<double>(stats.manifest_bytes_written) / kMiB,
               stats.write_amplification);
  AppendFormat(&text, "on disk: tables %.1f MiB, logs %.1f MiB, waiting for readers %.1f MiB; space amplification %.2f\n",
               static_cast<double>(stats.table_bytes) / kMiB, static_cast<double>(stats.log_bytes) / kMiB,
               static_cast<double>(stats.obsolete_bytes) / kMiB, stats.space_amplification);
  AppendFormat(&text,
               "in memory: memtables %.1f MiB, block cache %.1f of %.1f MiB, filters %.1f MiB, prefix filters %.1f MiB, indexes %.1f MiB\n",
               static_cast<double>(stats.memtable_bytes) / kMiB, static_cast<double>(stats.block_cache_bytes) / kMiB,
               static_cast<double>(stats.block_cache_capacity) / kMiB, static_cast<double>(stats.filter_bytes) / kMiB,
               static_cast<double>(stats.prefix_filter_bytes) / kMiB, static_cast<double>(stats.index_bytes) / kMiB);
  AppendFormat(&text, "point reads: %" PRIu64 ", found %" PRIu64 "; files considered %" PRIu64 ", skipped %" PRIu64 ", blocks read %" PRIu64
               "; predicted wasted reads an absent key %.5f\n",
               stats.gets, stats.gets_found, stats.files_considered, stats.files_skipped, stats.blocks_read, stats.predicted_wasted_reads_absent);
  AppendFormat(&text, "background: %" PRIu64 " flushes, %" PRIu64 " compactions, %" PRIu64 " moves, %" PRIu64 " errors\n", stats.flushes,
               stats.compactions, stats.trivial_moves, stats.background_errors);
  AppendFormat(&text, "stalls: %" PRIu64 " slowed, %" PRIu64 " stopped, %.3f s (memtables %.3f, L0 %.3f, debt %.3f)\n",
               stats.stalls.slowdowns, stats.stalls.stops, static_cast<double>(stats.stalls.micros) / 1e6,
               static_cast<double>(stats.stalls.micros_memtables) / 1e6, static_cast<double>(stats.stalls.micros_l0) / 1e6,
               static_cast<double>(stats.stalls.micros_debt) / 1e6);
  AppendFormat(&text, "recovery: %" PRIu64 " logs, %" PRIu64 " records, %" PRIu64 " bytes dropped\n", stats.recovery.logs,
               stats.recovery.records, stats.recovery.bytes_dropped);
  if (!stats.recovery.reason.empty()) text.append("recovery ended: ").append(stats.recovery.reason).append("\n");
  if (!stats.background_error.empty()) text.append("background error: ").append(stats.background_error).append("\n");
  return text;
}

std::string FilesText(const Version& version) {
  std::string text;
  for (size_t level = 0; level < version.levels().size(); ++level) {
    for (const auto& file : version.levels()[level].files()) {
      const TableMeta& meta = file->meta();
      text += Concat("L", level, " ", TableName(meta.number), " ", meta.size, " bytes, ", meta.entries, " entries, [",
                     absl::CHexEscape(meta.smallest), " .. ", absl::CHexEscape(meta.largest), "]");
      if (meta.filter_file) text += Concat(", filter ", FilterName(meta.filter_file->number));
      text += "\n";
    }
  }
  return text;
}

}  // namespace

std::optional<std::string> DbImpl::GetProperty(std::string_view name) {
  const std::shared_ptr<const ReadView> view = PinView();
  if (view == nullptr) return std::nullopt;
  const DatabaseIdentity identity = versions_->identity();
  if (name == "tamis.id") {
    return absl::BytesToHexString(
        absl::string_view(reinterpret_cast<const char*>(identity.database_id.data()), identity.database_id.size()));
  }
  if (name == "tamis.hash-seed") return Concat(identity.hash_seed);
  if (name == "tamis.format") return Concat("log ", kLogFormatVersion, ", table ", kTableFormatVersion, ", manifest 1");
  if (name == "tamis.files") return FilesText(*view->version);
  const bool wanted = name == "tamis.stats" || name == "tamis.levels" || name == "tamis.filters";
  if (!wanted) return std::nullopt;
  const absl::StatusOr<Stats> stats = GetStats();
  if (!stats.ok()) return std::nullopt;
  if (name == "tamis.levels") return LevelsText(*stats);
  if (name == "tamis.filters") return FiltersText(*stats);
  return StatsText(*stats);
}

}  // namespace tamis::internal
