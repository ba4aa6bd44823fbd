// stats: what a database says of itself.
#include <cstdio>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "tools/command.h"
#include "tools/stats_json.h"

namespace tamis::tools {
namespace {

Json StallsJson(const StallStats& stalls) {
  return Json{{"slowdowns", stalls.slowdowns},
              {"stops", stalls.stops},
              {"micros", stalls.micros},
              {"micros_memtables", stalls.micros_memtables},
              {"micros_l0", stalls.micros_l0},
              {"micros_debt", stalls.micros_debt},
              {"current_reason", stalls.current_reason}};
}

Json StatsJson(const DB& db, const Stats& stats) {
  return Json{{"id", db.GetProperty("tamis.id").value_or("")},
              {"format", db.GetProperty("tamis.format").value_or("")},
              {"last_sequence", stats.last_sequence},
              {"memtable_bytes", stats.memtable_bytes},
              {"memtable_entries", stats.memtable_entries},
              {"immutable_memtables", stats.immutable_memtables},
              {"block_cache_capacity", stats.block_cache_capacity},
              {"block_cache_bytes", stats.block_cache_bytes},
              {"filter_bytes", stats.filter_bytes},
              {"prefix_filter_bytes", stats.prefix_filter_bytes},
              {"index_bytes", stats.index_bytes},
              {"table_bytes", stats.table_bytes},
              {"log_bytes", stats.log_bytes},
              {"obsolete_bytes", stats.obsolete_bytes},
              {"snapshots", stats.snapshots},
              {"oldest_snapshot_sequence", stats.oldest_snapshot_sequence},
              {"puts", stats.puts},
              {"deletes", stats.deletes},
              {"user_bytes_written", stats.user_bytes_written},
              {"log_bytes_written", stats.log_bytes_written},
              {"flush_bytes_written", stats.flush_bytes_written},
              {"compaction_bytes_read", stats.compaction_bytes_read},
              {"compaction_bytes_written", stats.compaction_bytes_written},
              {"manifest_bytes_written", stats.manifest_bytes_written},
              {"write_amplification", stats.write_amplification},
              {"space_amplification", stats.space_amplification},
              {"gets", stats.gets},
              {"gets_found", stats.gets_found},
              {"files_considered", stats.files_considered},
              {"files_skipped", stats.files_skipped},
              {"blocks_read", stats.blocks_read},
              {"prefix_probes", stats.prefix_probes},
              {"prefix_skipped", stats.prefix_skipped},
              {"negative_share", stats.negative_share},
              {"predicted_wasted_reads", stats.predicted_wasted_reads},
              {"predicted_wasted_reads_absent", stats.predicted_wasted_reads_absent},
              {"observed_wasted_reads", stats.observed_wasted_reads},
              {"levels_above_prediction", stats.levels_above_prediction},
              {"flushes", stats.flushes},
              {"compactions", stats.compactions},
              {"trivial_moves", stats.trivial_moves},
              {"background_errors", stats.background_errors},
              {"background_error", stats.background_error},
              {"blocked_files", stats.blocked_files},
              {"filters_refused", stats.filters_refused},
              {"filters_rebuilt", stats.filters_rebuilt},
              {"filter_bytes_written", stats.filter_bytes_written},
              {"stalls", StallsJson(stats.stalls)},
              {"recovery",
               {{"logs", stats.recovery.logs},
                {"records", stats.recovery.records},
                {"bytes_dropped", stats.recovery.bytes_dropped},
                {"reason", stats.recovery.reason}}},
              {"levels", LevelsJson(stats)}};
}

absl::Status RunStats(const CommonArgs& args) {
  auto db = OpenForReading(args.database);
  if (!db.ok()) return db.status();
  if (args.json) {
    auto stats = (*db)->GetStats();
    if (!stats.ok()) return stats.status();
    std::puts(StatsJson(**db, *stats).dump(2).c_str());
    return absl::OkStatus();
  }
  std::printf("id: %s\nformat: %s\n", (*db)->GetProperty("tamis.id").value_or("").c_str(),
              (*db)->GetProperty("tamis.format").value_or("").c_str());
  std::fputs((*db)->GetProperty("tamis.stats").value_or("").c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

void RegisterStatsCommand(CLI::App* app, int* exit_code) {
  auto stats_args = std::make_shared<CommonArgs>();
  CLI::App* stats = app->add_subcommand("stats", "Prints sizes, levels and counters");
  stats->footer("Counters (reads, writes, compactions) belong to the process that has the database open and are zero here.");
  AddDatabase(stats, stats_args.get());
  AddJson(stats, stats_args.get());
  stats->callback([stats_args, exit_code] { *exit_code = Report(RunStats(*stats_args)); });
}

}  // namespace tamis::tools
