// stats, filters: what a database says of itself.
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/command.h"
#include "tools/progress.h"
#include "tools/text_table.h"

namespace tamis::tools {
namespace {

using Json = nlohmann::ordered_json;

Json LevelJson(const LevelStats& level) {
  return Json{{"level", level.level},
              {"files", level.files},
              {"bytes", level.bytes},
              {"target_bytes", level.target_bytes},
              {"entries", level.entries},
              {"keys", level.keys},
              {"deletes", level.deletes},
              {"score", level.score},
              {"filter_bytes", level.filter_bytes},
              {"files_without_filter", level.files_without_filter},
              {"bits_per_key_target", level.bits_per_key_target},
              {"bits_per_key", level.bits_per_key},
              {"predicted_fpr", level.predicted_fpr},
              {"files_with_prefix_filter", level.files_with_prefix_filter},
              {"prefix_filter_bytes", level.prefix_filter_bytes},
              {"probes", level.probes},
              {"skipped", level.skipped},
              {"true_positives", level.true_positives},
              {"false_positives", level.false_positives},
              {"observed_fpr", level.observed_fpr},
              {"bytes_read", level.bytes_read},
              {"bytes_written", level.bytes_written},
              {"moved_bytes", level.moved_bytes},
              {"compactions", level.compactions},
              {"compaction_micros", level.compaction_micros}};
}

Json LevelsJson(const Stats& stats) {
  Json levels = Json::array();
  for (const LevelStats& level : stats.levels) levels.push_back(LevelJson(level));
  return levels;
}

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
              {"predicted_wasted_reads", stats.predicted_wasted_reads},
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

std::string Percent(double rate) { return absl::StrFormat("%.4f %%", 100 * rate); }

std::vector<std::string> FilterRow(const LevelStats& level) {
  return {absl::StrCat("L", level.level),
          absl::StrCat(level.files),
          absl::StrCat(level.keys),
          absl::StrFormat("%.2f", static_cast<double>(level.filter_bytes) / (1 << 20)),
          absl::StrFormat("%.3f", level.bits_per_key_target),
          level.filter_bytes == 0 ? "-" : absl::StrFormat("%.3f", level.bits_per_key),
          Percent(level.predicted_fpr),
          level.probes == 0 ? "-" : Percent(level.observed_fpr),
          absl::StrCat(level.probes),
          absl::StrCat(level.skipped),
          absl::StrCat(level.false_positives),
          absl::StrCat(level.files_without_filter)};
}

struct FiltersArgs : CommonArgs {
  bool rebuild = false;
  std::optional<double> bits_per_key;
};

absl::Status Rebuild(const FiltersArgs& args) {
  Options options;
  if (args.bits_per_key) options.filter.bits_per_key = *args.bits_per_key;
  if (args.bits_per_key == 0.0) options.filter.kind = FilterKind::kNone;
  auto db = OpenForWriting(options, args.database, /*create=*/false);
  if (!db.ok()) return db.status();
  absl::Status rebuilt;
  {
    ProgressReport report("rebuilding filters", "bytes");
    rebuilt = (*db)->RebuildFilters([&report](uint64_t done, uint64_t total) {
      report.Update(done, total);
      return true;
    });
  }
  if (!rebuilt.ok()) return rebuilt;
  auto stats = (*db)->GetStats();
  if (!stats.ok()) return stats.status();
  if (!args.json) {
    std::printf("rebuilt the filters of %llu tables: %.2f MiB written\n\n", static_cast<unsigned long long>(stats->filters_rebuilt),
                static_cast<double>(stats->filter_bytes_written) / (1 << 20));
  }
  return (*db)->Close();
}

void PrintPrefixFilters(const Stats& stats) {
  if (stats.prefix_filter_bytes == 0) return;
  uint64_t files = 0;
  for (const LevelStats& level : stats.levels) files += level.files_with_prefix_filter;
  std::printf("prefix filters in memory: %.2f MiB, of %llu files; asked %llu times, %llu times a file was skipped\n",
              static_cast<double>(stats.prefix_filter_bytes) / (1 << 20), static_cast<unsigned long long>(files),
              static_cast<unsigned long long>(stats.prefix_probes), static_cast<unsigned long long>(stats.prefix_skipped));
}

absl::Status RunFilters(const FiltersArgs& args) {
  if (args.bits_per_key && !args.rebuild) return absl::InvalidArgumentError("--bits-per-key needs --rebuild");
  if (args.rebuild) {
    if (absl::Status s = Rebuild(args); !s.ok()) return s;
  }
  auto db = OpenForReading(args.database);
  if (!db.ok()) return db.status();
  auto stats = (*db)->GetStats();
  if (!stats.ok()) return stats.status();
  if (args.json) {
    std::puts(Json{{"filter_bytes", stats->filter_bytes},
                   {"prefix_filter_bytes", stats->prefix_filter_bytes},
                   {"prefix_probes", stats->prefix_probes},
                   {"prefix_skipped", stats->prefix_skipped},
                   {"predicted_wasted_reads", stats->predicted_wasted_reads},
                   {"filters_refused", stats->filters_refused},
                   {"levels", LevelsJson(*stats)}}
                  .dump(2)
                  .c_str());
    return absl::OkStatus();
  }
  TextTable table({"level", "files", "keys", "MiB", "bits/key set", "real", "FPR predicted", "observed", "probes", "skipped", "false pos.",
                   "no filter"});
  for (const LevelStats& level : stats->levels) {
    if (level.files > 0) table.Add(FilterRow(level));
  }
  table.Print();
  std::printf("\nfilters in memory: %.2f MiB; a lookup of an absent key reads %.4f blocks for nothing (predicted)\n",
              static_cast<double>(stats->filter_bytes) / (1 << 20), stats->predicted_wasted_reads);
  PrintPrefixFilters(*stats);
  if (stats->filters_refused > 0) {
    std::printf("%llu filters are not used, because they are damaged, missing or unknown: see tamis verify\n",
                static_cast<unsigned long long>(stats->filters_refused));
  }
  return absl::OkStatus();
}

}  // namespace

void RegisterStatsCommands(CLI::App* app, int* exit_code) {
  auto stats_args = std::make_shared<CommonArgs>();
  CLI::App* stats = app->add_subcommand("stats", "Prints sizes, levels and counters");
  stats->footer("Counters (reads, writes, compactions) belong to the process that has the database open and are zero here.");
  AddDatabase(stats, stats_args.get());
  AddJson(stats, stats_args.get());
  stats->callback([stats_args, exit_code] { *exit_code = Report(RunStats(*stats_args)); });

  auto filters_args = std::make_shared<FiltersArgs>();
  CLI::App* filters = app->add_subcommand("filters", "Prints the filters of each level: memory, bits per key, false-positive rates");
  AddDatabase(filters, filters_args.get());
  AddJson(filters, filters_args.get());
  filters->add_flag("--rebuild", filters_args->rebuild,
                    "First give each table the filter that it would get if it were written now, without rewriting it");
  filters->add_option("--bits-per-key", filters_args->bits_per_key, "With --rebuild: 2 to 24, or 0 for no filters (default 10)");
  filters->callback([filters_args, exit_code] { *exit_code = Report(RunFilters(*filters_args)); });
}

}  // namespace tamis::tools
