// advise: which filters a workload should have, and what they save.
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/advice.h"
#include "tools/command.h"
#include "tools/filter_workload.h"
#include "tools/stats_json.h"
#include "tools/text_table.h"

namespace tamis::tools {
namespace {

// Wasted reads a lookup, or lookups for absent keys, that words call hardly any.
constexpr double kHardlyAny = .05;

struct AdviseArgs {
  std::string database;  // empty: flags alone
  bool json = false;
  WorkloadFlags flags;
  std::optional<double> negative_percent;
  LookupCosts costs;
};

std::string Percent(double share) { return absl::StrFormat("%.4g %%", 100 * share); }

std::string Source(const Workload& workload, const WorkloadFlags& flags) {
  if (workload.counted) return absl::StrCat("remembered of ", workload.lookups, " lookups");
  if (flags.negative_share) return "as given";
  return "assumed: no lookups are remembered, --negative-share says what they will be";
}

std::string MicrosText(double micros) { return absl::StrFormat("%.4f us", micros); }

// "saves 1.2 wasted reads and 2.4 us a lookup; 3.00 MiB of memory more"
std::string Difference(const FilterOutcome& advised, const FilterOutcome& other) {
  const double micros = other.micros - advised.micros;
  const double reads = other.wasted_reads - advised.wasted_reads;
  const double bytes = advised.bytes - other.bytes;
  const char* const second = (reads >= 0) == (micros >= 0) ? "" : micros >= 0 ? "saves " : "adds ";
  return absl::StrFormat("%s %.4f wasted reads and %s%s a lookup; %s of memory %s", reads >= 0 ? "saves" : "adds", std::abs(reads), second,
                         MicrosText(std::abs(micros)), Mebibytes(std::abs(bytes)), bytes > 0 ? "more" : "less");
}

std::string NoFiltersText(const Advice& advice, const Workload& workload, const LookupCosts& costs) {
  const double reads = advice.none.wasted_reads;
  const std::string why =
      reads <= kHardlyAny
          ? absl::StrFormat("nearly every lookup is for a key that is in the first table asked (%s of lookups are for absent keys). ",
                            Percent(workload.runs.back().absent))
          : "a wasted read costs hardly more than asking a filter. ";
  return absl::StrFormat(
      "Filters save nothing to speak of: %sWithout any filter a lookup has %.5f wasted reads, which take %s; asking "
      "filters would take about as long, or longer.",
      why, reads, MicrosText(reads * costs.read_us));
}

std::string UpperLevelsText(const Advice& advice, const Workload& workload) {
  const WorkloadRun& last = workload.runs.back();
  const std::string why = last.absent <= kHardlyAny
                              ? absl::StrFormat("Nearly every lookup is for a present key (%s are for absent keys). ", Percent(last.absent))
                              : "A wasted read costs hardly more than asking a filter. ";
  return absl::StrFormat(
      "%sOn the last level, which holds %s of the keys, a filter would save at most %.5f wasted reads a lookup, nothing to speak of: it "
      "gets no memory. But a present key of the last level is asked for in vain in the levels above: filters there save %.4f wasted reads "
      "a lookup.",
      why, Percent(static_cast<double>(last.keys) / static_cast<double>(workload.keys())), last.absent,
      advice.none.wasted_reads - advice.advised.wasted_reads);
}

// The case in words; also in JSON.
std::string CaseText(const Advice& advice, const Workload& workload, const LookupCosts& costs) {
  switch (advice.which) {
    case AdviceCase::kNoKeys:
      return "There are no keys in tables: nothing to advise on. With --keys and --negative-share it can be reckoned beforehand.";
    case AdviceCase::kNoFilters:
      return NoFiltersText(advice, workload, costs);
    case AdviceCase::kUpperLevels:
      return UpperLevelsText(advice, workload);
    case AdviceCase::kAllLevels:
      return absl::StrFormat("Filters pay: %s of lookups ask the last level in vain, and without filters a lookup has %.4f wasted reads.",
                             Percent(workload.runs.back().absent), advice.none.wasted_reads);
  }
  return "";
}

std::string KindText(const Advice& advice, size_t run) {
  if (FilteredShare(advice.runs[run]) == 0) return "-";
  const bool last = run + 1 == advice.runs.size();
  return std::string(FilterKindName(last ? advice.options.last_level_kind.value_or(advice.options.kind) : advice.options.kind));
}

std::vector<std::string> OutcomeRow(const std::string& name, const FilterOutcome& outcome) {
  return {name, absl::StrFormat("%.3f", outcome.bits_per_key), absl::StrFormat("%.2f", outcome.bytes / (1 << 20)),
          absl::StrFormat("%.5f", outcome.wasted_reads), absl::StrFormat("%.4f", outcome.micros)};
}

void PrintOutcomes(const Advice& advice) {
  TextTable table({"filters", "bits/key", "MiB", "wasted reads a lookup", "us a lookup"});
  table.Add(OutcomeRow("none", advice.none));
  table.Add(OutcomeRow("as they are", advice.now));
  table.Add(OutcomeRow("the same memory, divided best", advice.same_memory));
  if (advice.ribbon && !advice.options.last_level_kind) table.Add(OutcomeRow("ribbon on the last level", *advice.ribbon));
  if (advice.blocked && advice.options.last_level_kind) table.Add(OutcomeRow("blocked Bloom on the last level too", *advice.blocked));
  table.Add(OutcomeRow("advised", advice.advised));
  table.Print();
}

void PrintLevels(const Advice& advice, const Workload& workload) {
  TextTable table({"level", "keys", "asked %", "in vain %", "kind", "bits/key", "FPR %"});
  for (size_t i = 0; i < workload.runs.size(); ++i) {
    const WorkloadRun& run = workload.runs[i];
    const FilterTarget& target = advice.runs[i];
    table.Add({absl::StrCat("L", run.level), absl::StrCat(run.keys), absl::StrFormat("%.3f", 100 * run.asked),
               absl::StrFormat("%.3f", 100 * run.absent), KindText(advice, i), absl::StrFormat("%.3f", target.bits_per_key()),
               absl::StrFormat("%.4f", 100 * target.rate())});
  }
  table.Print();
}

void PrintOptions(const FilterOptions& options) {
  if (options.kind == FilterKind::kNone) {
    std::puts("advice: Options::filter.kind = kNone");
    return;
  }
  std::string text = absl::StrFormat(
      "advice: Options::filter.kind = kBlockedBloom, .allocation = kOptimal, .bits_per_key = %.3f (at most), .wasted_reads_goal = %.2g",
      options.bits_per_key, options.wasted_reads_goal);
  if (options.last_level_kind) text += ", .last_level_kind = kRibbon";
  std::puts(text.c_str());
}

void PrintAdvice(const Advice& advice, const Workload& workload, const AdviseArgs& args) {
  if (advice.which != AdviceCase::kNoKeys) {
    std::printf("workload: %llu keys in %zu run%s; %s of lookups are for absent keys (%s)\n",
                static_cast<unsigned long long>(workload.keys()), workload.runs.size(), workload.runs.size() == 1 ? "" : "s",
                Percent(workload.runs.back().absent).c_str(), Source(workload, args.flags).c_str());
    std::printf("costs: %.4g us a wasted read, %.4g ns a filter asked\n\n", args.costs.read_us, args.costs.probe_ns);
    PrintOutcomes(advice);
    std::puts("");
    PrintLevels(advice, workload);
    std::puts("");
  }
  std::puts(CaseText(advice, workload, args.costs).c_str());
  if (advice.which == AdviceCase::kNoKeys) return;
  PrintOptions(advice.options);
  std::printf("  against no filters: %s\n", Difference(advice.advised, advice.none).c_str());
  std::printf("  against those there are now: %s\n", Difference(advice.advised, advice.now).c_str());
  if (advice.same_memory.bytes > advice.advised.bytes && advice.same_memory.micros < .9 * advice.advised.micros) {
    std::printf("  with more memory, but no more than now (.bits_per_key = %.3f, .wasted_reads_goal = 0): %s a lookup instead of %s\n",
                advice.same_memory.bits_per_key, MicrosText(advice.same_memory.micros).c_str(), MicrosText(advice.advised.micros).c_str());
  }
  if (advice.keep) std::puts("What there is now is about as good: there is no need for a change.");
  if (workload.counted && !MayDropLastFilter(workload.lookups)) {
    std::printf("Only %llu lookups are remembered, and the last level keeps a filter until there are %llu: ask again then.\n",
                static_cast<unsigned long long>(workload.lookups), static_cast<unsigned long long>(kLookupsBeforeDropping));
  }
}

const char* CaseName(AdviceCase which) {
  switch (which) {
    case AdviceCase::kNoKeys:
      return "no_keys";
    case AdviceCase::kNoFilters:
      return "no_filters";
    case AdviceCase::kUpperLevels:
      return "upper_levels";
    case AdviceCase::kAllLevels:
      return "all_levels";
  }
  return "";
}

Json OutcomeJson(const FilterOutcome& outcome) {
  return Json{{"filter_bytes", outcome.bytes},
              {"bits_per_key", outcome.bits_per_key},
              {"wasted_reads", outcome.wasted_reads},
              {"micros", outcome.micros}};
}

Json SavingJson(const FilterOutcome& advised, const FilterOutcome& other) {
  return Json{{"wasted_reads", other.wasted_reads - advised.wasted_reads},
              {"micros", other.micros - advised.micros},
              {"filter_bytes", other.bytes - advised.bytes}};
}

Json OptionsJson(const FilterOptions& options) {
  Json json{{"kind", std::string(FilterKindName(options.kind))}};
  if (options.kind == FilterKind::kNone) return json;
  if (options.last_level_kind) json["last_level_kind"] = std::string(FilterKindName(*options.last_level_kind));
  json["allocation"] = "optimal";
  json["bits_per_key"] = options.bits_per_key;
  json["wasted_reads_goal"] = options.wasted_reads_goal;
  return json;
}

Json AdviceJson(const Advice& advice, const Workload& workload, const AdviseArgs& args) {
  Json json{{"case", CaseName(advice.which)},
            {"text", CaseText(advice, workload, args.costs)},
            {"keys", workload.keys()},
            {"lookups_remembered", workload.lookups},
            {"read_cost_us", args.costs.read_us},
            {"probe_ns", args.costs.probe_ns}};
  if (advice.which == AdviceCase::kNoKeys) return json;
  json["negative_share"] = workload.runs.back().absent;
  json["options"] = OptionsJson(advice.options);
  json["keep"] = advice.keep;
  json["none"] = OutcomeJson(advice.none);
  json["now"] = OutcomeJson(advice.now);
  json["same_memory"] = OutcomeJson(advice.same_memory);
  json["advised"] = OutcomeJson(advice.advised);
  if (advice.ribbon) json["ribbon_on_last_level"] = OutcomeJson(*advice.ribbon);
  if (advice.blocked) json["blocked_on_last_level"] = OutcomeJson(*advice.blocked);
  json["saved_against_none"] = SavingJson(advice.advised, advice.none);
  json["saved_against_now"] = SavingJson(advice.advised, advice.now);
  Json runs = Json::array();
  for (size_t i = 0; i < workload.runs.size(); ++i) {
    const WorkloadRun& run = workload.runs[i];
    runs.push_back(Json{{"level", run.level},
                        {"keys", run.keys},
                        {"asked", run.asked},
                        {"absent_probability", run.absent},
                        {"bits_per_key", advice.runs[i].bits_per_key()},
                        {"rate", advice.runs[i].rate()}});
  }
  json["runs"] = runs;
  return json;
}

absl::Status RunAdvise(AdviseArgs args) {
  if (args.negative_percent) args.flags.negative_share = *args.negative_percent / 100;
  std::optional<Workload> counted;
  if (!args.database.empty()) {
    auto db = OpenForReading(args.database);
    if (!db.ok()) return db.status();
    auto stats = (*db)->GetStats();
    if (!stats.ok()) return stats.status();
    counted = WorkloadOf(*stats);
  }
  const absl::StatusOr<Workload> workload = Described(counted, args.flags);
  if (!workload.ok()) return workload.status();
  const absl::StatusOr<Advice> advice = Advise(*workload, args.costs);
  if (!advice.ok()) return advice.status();
  if (args.json) {
    std::puts(AdviceJson(*advice, *workload, args).dump(2).c_str());
  } else {
    PrintAdvice(*advice, *workload, args);
  }
  return absl::OkStatus();
}

}  // namespace

void RegisterAdviseCommand(CLI::App* app, int* exit_code) {
  auto args = std::make_shared<AdviseArgs>();
  CLI::App* advise = app->add_subcommand("advise", "Advises on filters for a database, or for a workload that flags describe");
  advise->add_option("database", args->database, "Directory of the database; without it --keys and --negative-share are needed")
      ->type_name("DIR");
  advise->add_flag("--json", args->json, "Print JSON");
  advise->add_option("--keys", args->flags.keys, "Distinct keys in all");
  advise->add_option("--levels", args->flags.levels, "Levels with keys, 1 to 12 (4)");
  advise->add_option("--size-ratio", args->flags.size_ratio, "Of neighbouring levels, 1 to 100 (10)");
  advise->add_option("--negative-share", args->negative_percent, "Lookups for absent keys, percent")->type_name("PCT");
  advise->add_option("--bits-per-key", args->flags.bits_per_key, "Of the filters as they are, the same in all levels, 0 to 24 (10)");
  advise->add_option("--read-cost-us", args->costs.read_us,
                     "A wasted read, microseconds (2: a block in the page cache; some 100: a cold one on flash)");
  advise->add_option("--probe-ns", args->costs.probe_ns, "Asking a blocked Bloom filter, nanoseconds (10); ribbon: four times that");
  advise->footer(
      "Of a database: tree, filters and lookups as the manifest remembers them; flags say otherwise. --levels and --size-ratio describe\n"
      "another tree. All figures are the model's. us a lookup: wasted reads and filters asked, without the read that finds the key.\n"
      "Bits are spent until the wasted reads that remain take less time than asking all filters.");
  advise->callback([args, exit_code] { *exit_code = Report(RunAdvise(*args)); });
}

}  // namespace tamis::tools
