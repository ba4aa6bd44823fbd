// filters: memory, rates and effect of the filters of each level.
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/command.h"
#include "tools/filter_workload.h"
#include "tools/progress.h"
#include "tools/stats_json.h"
#include "tools/text_table.h"

namespace tamis::tools {
namespace {

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

std::string Percent(double rate) { return absl::StrFormat("%.4f %%", 100 * rate); }

// For the total: what the levels are on average, weighted by keys or probes.
LevelStats Total(const Stats& stats) {
  LevelStats total;
  double targets = 0;
  double errors = 0;
  double filtered_keys = 0;
  for (const LevelStats& level : stats.levels) {
    total.files += level.files;
    total.keys += level.keys;
    total.filter_bytes += level.filter_bytes;
    total.files_without_filter += level.files_without_filter;
    total.probes += level.probes;
    total.skipped += level.skipped;
    total.false_positives += level.false_positives;
    total.true_positives += level.true_positives;
    targets += level.bits_per_key_target * static_cast<double>(level.keys);
    errors += level.predicted_fpr * static_cast<double>(level.keys);
    if (level.bits_per_key > 0) filtered_keys += 8.0 * static_cast<double>(level.filter_bytes) / level.bits_per_key;
  }
  if (total.keys != 0) {
    total.bits_per_key_target = targets / static_cast<double>(total.keys);
    total.predicted_fpr = errors / static_cast<double>(total.keys);
  }
  if (filtered_keys > 0) total.bits_per_key = 8.0 * static_cast<double>(total.filter_bytes) / filtered_keys;
  return total;
}

std::string KindOf(const LevelStats& level) {
  if (level.filter_bytes == 0) return "-";
  return std::string(FilterKindName(level.filter_kind)) + (level.files_of_other_kinds == 0 ? "" : " +");
}

std::vector<std::string> FilterRow(const LevelStats& level, bool is_total) {
  const uint64_t absent = level.skipped + level.false_positives;
  const bool filtered = level.filter_bytes != 0;
  const bool per_level = !is_total && absent != 0;  // levels have different rates: no interval of the sum
  return {is_total ? "all" : absl::StrCat("L", level.level),
          absl::StrCat(level.files),
          absl::StrCat(level.keys),
          absl::StrFormat("%.2f", static_cast<double>(level.filter_bytes) / (1 << 20)),
          absl::StrFormat("%.3f", level.bits_per_key_target),
          filtered ? absl::StrFormat("%.3f", level.bits_per_key) : "-",
          is_total ? "" : KindOf(level),
          is_total ? "" : Percent(level.predicted_fpr),
          per_level  ? Percent(level.observed_fpr)
          : is_total ? ""
                     : "-",
          per_level  ? absl::StrFormat("%.4f-%.4f%s", 100 * level.observed_fpr_lower, 100 * level.observed_fpr_upper,
                                      level.fpr_above_prediction ? " !" : "")
          : is_total ? ""
                     : "-",
          absl::StrCat(level.probes),
          absl::StrCat(level.skipped),
          absl::StrCat(level.false_positives),
          is_total   ? ""
          : filtered ? absl::StrFormat("%.2f/%.2f", 100 * level.filter_fill, 100 * level.predicted_filter_fill)
                     : "-",
          is_total                     ? ""
          : level.learned.lookups == 0 ? "-"
                                       : absl::StrFormat("%.4f", level.absent_probability),
          absl::StrCat(level.files_without_filter)};
}

void PrintTable(const Stats& stats) {
  TextTable table({"level", "files", "keys", "MiB", "bits/key set", "real", "kind", "FPR predicted", "observed", "95 %", "probes",
                   "skipped", "false pos.", "fill/expected %", "f", "no filter"});
  for (const LevelStats& level : stats.levels) {
    if (level.files > 0) table.Add(FilterRow(level, /*is_total=*/false));
  }
  table.Add(FilterRow(Total(stats), /*is_total=*/true));
  table.Print();
}

// The kind of most keys that have a filter.
FilterKind MainKind(const Stats& stats) {
  FilterKind kind = FilterKind::kNone;
  uint64_t most = 0;
  for (const LevelStats& level : stats.levels) {
    if (level.filter_kind == FilterKind::kNone || level.keys < most) continue;
    kind = level.filter_kind;
    most = level.keys;
  }
  return kind;
}

// The share of lookups that the last level with keys was asked for in vain: that of absent keys, but for those outside its range.
const LevelStats* LastLevel(const Stats& stats) {
  const LevelStats* last = nullptr;
  for (const LevelStats& level : stats.levels) {
    if (level.keys != 0) last = &level;
  }
  return last;
}

void PrintLookups(const Stats& stats, const Workload& workload) {
  std::printf("\nfilters in memory: %s; wasted reads: %.5f a lookup of an absent key (predicted)\n",
              Mebibytes(static_cast<double>(stats.filter_bytes)).c_str(), stats.predicted_wasted_reads_absent);
  const LevelStats* const last = LastLevel(stats);
  if (workload.counted && last != nullptr) {
    std::printf("lookups remembered: %llu, of which about %s were for absent keys; wasted reads a lookup at that: %.5f (predicted)\n",
                static_cast<unsigned long long>(last->learned.lookups), Percent(last->absent_probability).c_str(),
                stats.predicted_wasted_reads);
  } else {
    std::puts("no lookups are remembered in the manifest: every lookup is taken for one of an absent key");
  }
  if (stats.gets != 0) {
    std::printf("lookups since opening: %llu, %s for absent keys; wasted reads a lookup: %.5f (observed)\n",
                static_cast<unsigned long long>(stats.gets), Percent(stats.negative_share).c_str(), stats.observed_wasted_reads);
  } else {
    std::puts("probes and observed rates are counted in the process that reads (its stats have them), and are empty here");
  }
  if (stats.levels_above_prediction > 0) {
    std::printf("! %u levels err more often than predicted, by more than chance: keys chosen against the filters, or a fault\n",
                stats.levels_above_prediction);
  }
  if (stats.filters_refused > 0) {
    std::printf("%llu filters are not used, because they are damaged, missing or unknown: see tamis verify\n",
                static_cast<unsigned long long>(stats.filters_refused));
  }
}

void PrintVerdict(const Workload& workload, const absl::StatusOr<FilterVerdict>& verdict) {
  if (workload.keys() == 0 || !verdict.ok()) return;
  const double bytes = workload.filter_bytes();
  const double reads = workload.wasted_reads();
  const auto bits_per_key = [&](double bits) { return bits / static_cast<double>(workload.keys()); };
  std::printf("verdict: the same memory, %s (%.2f bits per key), divided best has %.5f wasted reads a lookup instead of %.5f\n",
              Mebibytes(bytes).c_str(), bits_per_key(8 * bytes), verdict->same_memory.wasted_reads, reads);
  std::printf("         the same %.5f wasted reads take %s (%.2f bits per key) divided best\n", reads,
              Mebibytes(verdict->same_reads.bits / 8).c_str(), bits_per_key(verdict->same_reads.bits));
}

Json PlanJson(const FilterPlan& plan, const Workload& workload) {
  Json runs = Json::array();
  for (size_t i = 0; i < plan.runs.size(); ++i) {
    runs.push_back(Json{{"level", workload.runs[i].level}, {"keys", workload.runs[i].keys}, {"bits_per_key", plan.runs[i].bits_per_key()}});
  }
  return Json{{"filter_bytes", plan.bits / 8}, {"wasted_reads", plan.wasted_reads}, {"runs", runs}};
}

void PrintPrefixFilters(const Stats& stats) {
  if (stats.prefix_filter_bytes == 0) return;
  uint64_t files = 0;
  for (const LevelStats& level : stats.levels) files += level.files_with_prefix_filter;
  std::printf("prefix filters in memory: %s, of %llu files; asked %llu times, %llu times a file was skipped\n",
              Mebibytes(static_cast<double>(stats.prefix_filter_bytes)).c_str(), static_cast<unsigned long long>(files),
              static_cast<unsigned long long>(stats.prefix_probes), static_cast<unsigned long long>(stats.prefix_skipped));
}

Json FiltersJson(const Stats& stats, const Workload& workload, const absl::StatusOr<FilterVerdict>& verdict) {
  Json json{{"filter_bytes", stats.filter_bytes},
            {"prefix_filter_bytes", stats.prefix_filter_bytes},
            {"prefix_probes", stats.prefix_probes},
            {"prefix_skipped", stats.prefix_skipped},
            {"lookups_remembered", workload.counted},
            {"gets", stats.gets},
            {"negative_share", stats.negative_share},
            {"predicted_wasted_reads", stats.predicted_wasted_reads},
            {"predicted_wasted_reads_absent", stats.predicted_wasted_reads_absent},
            {"observed_wasted_reads", stats.observed_wasted_reads},
            {"levels_above_prediction", stats.levels_above_prediction},
            {"filters_refused", stats.filters_refused},
            {"levels", LevelsJson(stats)}};
  if (verdict.ok()) {
    json["verdict"] = Json{{"wasted_reads", workload.wasted_reads()},
                           {"same_memory", PlanJson(verdict->same_memory, workload)},
                           {"same_wasted_reads", PlanJson(verdict->same_reads, workload)}};
  }
  return json;
}

absl::Status RunFilters(const FiltersArgs& args) {
  if (args.bits_per_key && !args.rebuild) return absl::InvalidArgumentError("--bits-per-key needs --rebuild");
  if (args.rebuild) {
    if (absl::Status s = Rebuild(args); !s.ok()) return s;
  }
  auto db = OpenForReading(args.database);
  if (!db.ok()) return db.status();
  auto stats = (*db)->GetStats({.filter_fill = true});
  if (!stats.ok()) return stats.status();
  const Workload workload = WorkloadOf(*stats);
  const absl::StatusOr<FilterVerdict> verdict = Judge(workload, MainKind(*stats));
  if (args.json) {
    std::puts(FiltersJson(*stats, workload, verdict).dump(2).c_str());
    return absl::OkStatus();
  }
  PrintTable(*stats);
  PrintLookups(*stats, workload);
  PrintVerdict(workload, verdict);
  PrintPrefixFilters(*stats);
  return absl::OkStatus();
}

}  // namespace

void RegisterFiltersCommand(CLI::App* app, int* exit_code) {
  auto args = std::make_shared<FiltersArgs>();
  CLI::App* filters =
      app->add_subcommand("filters", "Prints the filters of each level: memory, bits per key, rates, and what the best would be");
  AddDatabase(filters, args.get());
  AddJson(filters, args.get());
  filters->add_flag("--rebuild", args->rebuild,
                    "First give each table the filter that it would get if it were written now, without rewriting it");
  filters->add_option("--bits-per-key", args->bits_per_key, "With --rebuild: 2 to 24, or 0 for no filters (default 10)");
  filters->footer(
      "f: share of lookups that ask the level in vain, as remembered in the manifest. kind +: some files have another.\n"
      "!: the observed rate lies above the predicted one by more than chance. no filter: files without one.");
  filters->callback([args, exit_code] { *exit_code = Report(RunFilters(*args)); });
}

}  // namespace tamis::tools
