// study: what negative lookups cost, and what filters save.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/command.h"
#include "tools/progress.h"
#include "tools/study/report.h"
#include "tools/study/results_json.h"
#include "tools/study/study.h"

namespace tamis::tools {
namespace {

struct StudyArgs {
  std::vector<std::string> axes{std::vector<std::string>(kAxes)};  // as given; empty: not given
  bool by_level = false;
  bool quick = false;
  std::optional<uint64_t> keys;
  std::optional<uint64_t> lookups;
  std::optional<uint32_t> ratio;
  std::optional<uint32_t> repeats;
  uint64_t seed = 1;
  std::string shard = "1/1";
  std::string directory;
  std::vector<std::string> merge;
  bool csv = false;
  bool json = false;
};

volatile std::sig_atomic_t g_stopped = 0;

// While it lives, the first SIGINT or SIGTERM asks for an orderly end, which removes the databases; a second one ends the program.
class StopOnSignals {
 public:
  StopOnSignals() {
    struct sigaction action = {};
    action.sa_handler = [](int) { g_stopped = 1; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, &before_int_);
    sigaction(SIGTERM, &action, &before_term_);
  }
  ~StopOnSignals() {
    sigaction(SIGINT, &before_int_, nullptr);
    sigaction(SIGTERM, &before_term_, nullptr);
  }
  StopOnSignals(const StopOnSignals&) = delete;
  StopOnSignals& operator=(const StopOnSignals&) = delete;

 private:
  struct sigaction before_int_ = {};
  struct sigaction before_term_ = {};
};

// --quick is for trying out: the same sections, seconds instead of minutes, figures with more noise.
StudyPlan PlanOf(const StudyArgs& args) {
  StudyPlan plan;
  if (args.quick) {
    plan.keys = 8000;
    plan.lookups = 2000;
    plan.ratio = 3;
  }
  plan.keys = args.keys.value_or(plan.keys);
  plan.lookups = args.lookups.value_or(plan.lookups);
  plan.ratio = args.ratio.value_or(plan.ratio);
  StudySection own{.title = "Study", .axes = DefaultAxes(), .by_level = args.by_level};
  bool any = args.by_level;
  for (size_t axis = 0; axis < kAxes; ++axis) {
    if (args.axes[axis].empty()) continue;
    any = true;
    own.axes[axis] = absl::StrSplit(args.axes[axis], ',');
  }
  plan.sections = any ? std::vector<StudySection>{own} : DefaultSections();
  return plan;
}

absl::StatusOr<StudyPart> PartOf(const StudyArgs& args) {
  StudyPart part{.seed = args.seed, .repeats = args.repeats.value_or(args.quick ? 1 : StudyPart().repeats)};
  const std::vector<std::string> shard = absl::StrSplit(args.shard, '/');
  if (shard.size() != 2 || !absl::SimpleAtoi(shard[0], &part.shard) || !absl::SimpleAtoi(shard[1], &part.shards)) {
    return absl::InvalidArgumentError(absl::StrCat("--shard: '", args.shard, "' is not of the form 2/8"));
  }
  const char* temporary = std::getenv("TMPDIR");
  part.parent_directory = !args.directory.empty() ? args.directory : temporary != nullptr ? temporary : "/tmp";
  return part;
}

absl::StatusOr<StudyResult> Run(const StudyArgs& args) {
  const absl::StatusOr<StudyPart> part = PartOf(args);
  if (!part.ok()) return part.status();
  const StopOnSignals signals;
  ProgressReport report("study", "steps");
  return RunStudy(PlanOf(args), *part, [&report](uint64_t done, uint64_t total) {
    report.Update(done, total);
    return g_stopped == 0;
  });
}

absl::StatusOr<StudyResult> Merge(const std::vector<std::string>& paths) {
  std::vector<StudyResult> parts;
  for (const std::string& path : paths) {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (!file.good() && !file.eof()) return absl::FailedPreconditionError(absl::StrCat(path, ": cannot be read"));
    absl::StatusOr<StudyResult> part = ParseResults(text);
    if (!part.ok()) return absl::Status(part.status().code(), absl::StrCat(path, ": ", part.status().message()));
    parts.push_back(*std::move(part));
  }
  return MergeResults(parts);
}

absl::Status RunCommand(const StudyArgs& args) {
  const absl::StatusOr<StudyResult> result = args.merge.empty() ? Run(args) : Merge(args.merge);
  if (!result.ok()) return result.status();
  if (args.json) {
    std::puts(JsonText(*result).c_str());
  } else if (args.csv) {
    std::fputs(CsvText(*result).c_str(), stdout);
  } else {
    PrintTables(*result);
  }
  return absl::OkStatus();
}

constexpr char kAbsentKindHelp[] =
    "far: outside the range of all keys; between: among them; prefix: a present key and one byte; deleted; against: keys that the "
    "filters were found to be wrong about";

constexpr const char* kAxisHelp[kAxes] = {
    "none, blocked_bloom, split_block_bloom, classic_bloom, ribbon, binary_fuse",
    "Bits per key, 2 to 24 (optimal: the most, on average)",
    "uniform; optimal (up to a goal of .001 wasted reads) or optimal:GOAL, having learned from lookups; levels:24/16/10, from the top",
    "Populated levels, 1 to 7",
    "Lookups for absent keys, percent",
    kAbsentKindHelp,
    "uniform or zipf:THETA",
    "Block cache, bytes, or with suffix K, M, G",
    "warm, or cold: no cached blocks, the files' pages dropped"};

}  // namespace

void RegisterStudyCommand(CLI::App* app, int* exit_code) {
  auto args = std::make_shared<StudyArgs>();
  CLI::App* command = app->add_subcommand("study", "Builds databases and measures what lookups of absent keys cost and what filters save");
  command->footer(
      "Each axis takes a list (a,b,c); all combinations are measured. Without an axis: the default study, some minutes. The same --seed\n"
      "gives the same databases and lookups, so that only times differ. Parts, joined exactly:\n"
      "  tamis study --shard 1/2 --json > a.json; tamis study --shard 2/2 --json > b.json; tamis study --merge a.json b.json\n"
      "or, of one study with several seeds: --seed 1 and --seed 2. With GNU parallel: parallel tamis study --shard {}/8 --json '>' "
      "{}.json\n"
      "::: {1..8}; in a Slurm array: --shard $SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT (an array that begins at 1).");
  const AxisTexts defaults = DefaultAxes();
  for (size_t axis = 0; axis < kAxes; ++axis) {
    command->add_option(absl::StrCat("--", kAxisNames[axis]), args->axes[axis],
                        absl::StrCat(kAxisHelp[axis], " (", defaults[axis][0], ")"));
  }
  command->add_flag("--by-level", args->by_level, "Also print each cell's levels");
  command->add_option("--keys", args->keys, "Keys of each database (300000)");
  command->add_option("--lookups", args->lookups, "Lookups of each repeat (100000; cold: a fiftieth)");
  command->add_option("--repeats", args->repeats, "Repeats of each cell (3)");
  command->add_option("--ratio", args->ratio, "Size ratio of neighbouring levels (6)");
  command->add_flag("--quick", args->quick, "8000 keys, 2000 lookups, one repeat, ratio 3: seconds");
  command->add_option("--seed", args->seed, "Of keys, filters and lookups (1)");
  command->add_option("--shard", args->shard, "I/N: only part I of N (1/1)");
  command->add_option("--dir", args->directory, "Databases are made in a folder in here and removed at the end ($TMPDIR or /tmp)");
  CLI::Option* csv = command->add_flag("--csv", args->csv, "Print CSV, one line a cell");
  command->add_flag("--json", args->json, "Print JSON, which --merge reads")->excludes(csv);
  command->add_option("--merge", args->merge, "Instead of measuring, join the JSON of parts")->type_name("FILE ...");
  command->callback([args, exit_code] { *exit_code = Report(RunCommand(*args)); });
}

}  // namespace tamis::tools
