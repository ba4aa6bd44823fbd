#include "tools/study/results_json.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "tools/study/report.h"

namespace tamis::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kForm = 1;

Json LevelJson(const StudyLevel& level) {
  return Json{{"level", level.level},
              {"keys", level.keys},
              {"filter_bytes", level.filter_bytes},
              {"predicted_fpr", level.predicted_fpr},
              {"skipped", level.skipped},
              {"false_positives", level.false_positives},
              {"true_positives", level.true_positives}};
}

StudyLevel LevelOf(const Json& json) {
  StudyLevel level;
  json.at("level").get_to(level.level);
  json.at("keys").get_to(level.keys);
  json.at("filter_bytes").get_to(level.filter_bytes);
  json.at("predicted_fpr").get_to(level.predicted_fpr);
  json.at("skipped").get_to(level.skipped);
  json.at("false_positives").get_to(level.false_positives);
  json.at("true_positives").get_to(level.true_positives);
  return level;
}

Json RunJson(const StudyRun& run) {
  Json levels = Json::array();
  for (const StudyLevel& level : run.levels) levels.push_back(LevelJson(level));
  Json latency = Json::array();
  for (const auto& [bucket, count] : run.latency.buckets()) latency.push_back(Json::array({bucket, count}));
  return Json{{"seed", run.seed},
              {"repeat", run.repeat},
              {"tree_keys", run.tree_keys},
              {"filter_bytes", run.filter_bytes},
              {"build_ns_per_key", run.build_nanos_per_key},
              {"lookups", run.lookups},
              {"found", run.found},
              {"files_considered", run.considered},
              {"files_skipped", run.skipped},
              {"wasted_reads", run.wasted},
              {"blocks_read", run.blocks_read},
              {"predicted_wasted_reads", run.predicted_wasted},
              {"levels", levels},
              {"latency_ns", latency}};
}

StudyRun RunOf(const Json& json) {
  StudyRun run;
  json.at("seed").get_to(run.seed);
  json.at("repeat").get_to(run.repeat);
  json.at("tree_keys").get_to(run.tree_keys);
  json.at("filter_bytes").get_to(run.filter_bytes);
  json.at("build_ns_per_key").get_to(run.build_nanos_per_key);
  json.at("lookups").get_to(run.lookups);
  json.at("found").get_to(run.found);
  json.at("files_considered").get_to(run.considered);
  json.at("files_skipped").get_to(run.skipped);
  json.at("wasted_reads").get_to(run.wasted);
  json.at("blocks_read").get_to(run.blocks_read);
  json.at("predicted_wasted_reads").get_to(run.predicted_wasted);
  for (const Json& level : json.at("levels")) run.levels.push_back(LevelOf(level));
  for (const Json& entry : json.at("latency_ns")) {
    run.latency.AddToBucket(std::min(entry.at(0).get<uint32_t>(), LatencyHistogram::kBuckets - 1), entry.at(1).get<uint64_t>());
  }
  return run;
}

Json SpreadJson(const Spread& spread) { return Json{{"value", spread.value}, {"least", spread.least}, {"greatest", spread.greatest}}; }

// For each lookup, if not said otherwise.
Json SummaryJson(const CellSummary& sum) {
  return Json{{"runs", sum.runs},
              {"lookups", sum.lookups},
              {"predicted_wasted_reads", sum.predicted_wasted},
              {"wasted_reads", SpreadJson(sum.observed_wasted)},
              {"saved_share", sum.saved},
              {"filter_bytes", sum.filter_bytes},
              {"bits_per_key", sum.bits_per_key},
              {"files_considered", sum.considered},
              {"files_skipped", sum.skipped},
              {"blocks_read", sum.blocks_read},
              {"median_us", SpreadJson(sum.median_micros)},
              {"p99_us", SpreadJson(sum.p99_micros)},
              {"build_ns_per_key", sum.build_nanos_per_key}};
}

StudyPlan PlanOf(const Json& json) {
  StudyPlan plan;
  json.at("keys").get_to(plan.keys);
  json.at("lookups").get_to(plan.lookups);
  json.at("ratio").get_to(plan.ratio);
  for (const Json& section_json : json.at("sections")) {
    StudySection section;
    section_json.at("title").get_to(section.title);
    section_json.at("by_level").get_to(section.by_level);
    for (const char* axis : kAxisNames) section.axes.push_back(section_json.at("axes").at(axis).get<std::vector<std::string>>());
    plan.sections.push_back(std::move(section));
  }
  return plan;
}

absl::Status AddRuns(const Json& json, StudyResult* result) {
  std::vector<std::string> texts;
  for (const char* axis : kAxisNames) texts.push_back(json.at(axis).get<std::string>());
  absl::StatusOr<StudyCell> cell = CellFromTexts(texts);
  if (!cell.ok()) return cell.status();
  json.at("section").get_to(cell->section);
  const auto to = std::find_if(result->cells.begin(), result->cells.end(), [&](const CellResult& its) { return its.cell == *cell; });
  if (to == result->cells.end()) return absl::InvalidArgumentError("a cell is not of its section");
  for (const Json& run : json.at("runs")) to->runs.push_back(RunOf(run));
  return absl::OkStatus();
}

absl::StatusOr<StudyResult> ResultsOf(const Json& json) {
  if (const int form = json.at("tamis_study").get<int>(); form != kForm) {
    return absl::InvalidArgumentError(absl::StrCat("results of form ", form, "; this program knows form ", kForm));
  }
  const StudyPlan plan = PlanOf(json);
  for (const StudySection& section : plan.sections) {
    for (const auto& values : section.axes) {
      if (values.empty()) return absl::InvalidArgumentError("an axis without values");
    }
  }
  absl::StatusOr<StudyResult> result = EmptyResult(plan);
  if (!result.ok()) return result.status();
  for (const Json& cell : json.at("cells")) {
    if (absl::Status s = AddRuns(cell, &*result); !s.ok()) return s;
  }
  return result;
}

}  // namespace

std::string JsonText(const StudyResult& result) {
  Json sections = Json::array();
  for (const StudySection& section : result.plan.sections) {
    Json axes = Json::object();
    for (size_t axis = 0; axis < kAxes; ++axis) axes[kAxisNames[axis]] = section.axes[axis];
    sections.push_back(Json{{"title", section.title}, {"by_level", section.by_level}, {"axes", axes}});
  }
  Json cells = Json::array();
  for (const CellResult& cell : result.cells) {
    if (cell.runs.empty()) continue;
    Json its{{"section", cell.cell.section}};
    for (size_t axis = 0; axis < kAxes; ++axis) its[kAxisNames[axis]] = AxisText(cell.cell, axis);
    its["summary"] = SummaryJson(Summarise(cell));
    its["runs"] = Json::array();
    for (const StudyRun& run : cell.runs) its["runs"].push_back(RunJson(run));
    cells.push_back(std::move(its));
  }
  return Json{{"tamis_study", kForm},       {"keys", result.plan.keys}, {"lookups", result.plan.lookups},
              {"ratio", result.plan.ratio}, {"sections", sections},     {"cells", cells}}
      .dump();
}

absl::StatusOr<StudyResult> ParseResults(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return absl::InvalidArgumentError("not JSON");
  try {
    return ResultsOf(json);
  } catch (const Json::exception& error) {  // a member that is missing or of another type
    return absl::InvalidArgumentError(absl::StrCat("not the results of a study: ", error.what()));
  }
}

}  // namespace tamis::tools
