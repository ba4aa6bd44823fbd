#include "tools/study/report.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/text_table.h"

namespace tamis::tools {
namespace {

double Ratio(double a, double b) { return b == 0 ? 0 : a / b; }

double Ratio(uint64_t a, uint64_t b) { return Ratio(static_cast<double>(a), static_cast<double>(b)); }

void Widen(double value, bool first, Spread* spread) {
  spread->least = first ? value : std::min(spread->least, value);
  spread->greatest = first ? value : std::max(spread->greatest, value);
}

double Micros(const LatencyHistogram& latency, double quantile) { return latency.Quantile(quantile) / 1000; }

// Enough digits to compare: .0483 rather than .05, 12.3 rather than 12.3456.
std::string Figure(double value) {
  if (value >= 100) return absl::StrFormat("%.0f", value);
  if (value >= 10) return absl::StrFormat("%.1f", value);
  if (value >= 1) return absl::StrFormat("%.2f", value);
  return absl::StrFormat("%.4f", value);
}

std::string Figure(const Spread& spread, bool several) {
  if (!several) return Figure(spread.value);
  return absl::StrFormat("%s [%s, %s]", Figure(spread.value), Figure(spread.least), Figure(spread.greatest));
}

std::string MicrosFigure(double value) { return value < 10 ? absl::StrFormat("%.2f", value) : Figure(value); }

std::string MicrosFigure(const Spread& spread, bool several) {
  if (!several) return MicrosFigure(spread.value);
  return absl::StrFormat("%s [%s, %s]", MicrosFigure(spread.value), MicrosFigure(spread.least), MicrosFigure(spread.greatest));
}

// Axes on which the section's cells differ; the first if they do not at all.
std::vector<size_t> VaryingAxes(const StudyResult& result, size_t section) {
  std::vector<size_t> axes;
  for (size_t axis = 0; axis < kAxes; ++axis) {
    std::set<std::string> values;
    for (const CellResult& cell : result.cells) {
      if (cell.cell.section == section) values.insert(AxisText(cell.cell, axis));
    }
    if (values.size() > 1) axes.push_back(axis);
  }
  if (axes.empty()) axes.push_back(0);
  return axes;
}

std::string NameOf(const StudyCell& cell, const std::vector<size_t>& axes) {
  std::string name;
  for (const size_t axis : axes) name += absl::StrCat(name.empty() ? "" : ", ", kAxisNames[axis], " ", AxisText(cell, axis));
  return name;
}

void PrintLevels(const CellResult& cell, const std::vector<size_t>& axes) {
  std::printf("\n%s, by level:\n", NameOf(cell.cell, axes).c_str());
  TextTable table(
      {"level", "keys", "bits/key", "asked for nothing", "rate predicted", "rate observed", "reads saved", "reads for nothing"});
  const StudyRun& first = cell.runs[0];
  uint64_t lookups = 0;
  for (const StudyRun& run : cell.runs) lookups += run.lookups;
  for (size_t i = 0; i < first.levels.size(); ++i) {
    const StudyLevel& level = first.levels[i];
    uint64_t skipped = 0;
    uint64_t false_positives = 0;
    for (const StudyRun& run : cell.runs) {
      if (i >= run.levels.size()) continue;
      skipped += run.levels[i].skipped;
      false_positives += run.levels[i].false_positives;
    }
    table.Add({absl::StrCat("L", level.level), absl::StrCat(level.keys), absl::StrFormat("%.2f", 8 * Ratio(level.filter_bytes, level.keys)),
               Figure(Ratio(skipped + false_positives, lookups)), absl::StrFormat("%.4f %%", 100 * level.predicted_fpr),
               absl::StrFormat("%.4f %%", 100 * Ratio(false_positives, skipped + false_positives)), Figure(Ratio(skipped, lookups)),
               Figure(Ratio(false_positives, lookups))});
  }
  table.Print();
}

void PrintSection(const StudyResult& result, size_t section) {
  const std::vector<size_t> axes = VaryingAxes(result, section);
  std::vector<std::string> head;
  for (const size_t axis : axes) head.push_back(kAxisNames[axis]);
  for (const char* name : {"wasted reads predicted", "observed", "saved", "bits/key", "filter KiB", "considered", "skipped", "blocks read",
                           "us median", "us p99", "build ns/key"}) {
    head.push_back(name);
  }
  TextTable table(head);
  bool any = false;
  for (const CellResult& cell : result.cells) {
    if (cell.cell.section != section || cell.runs.empty()) continue;
    any = true;
    const CellSummary sum = Summarise(cell);
    const bool several = sum.runs > 1;
    std::vector<std::string> row;
    for (const size_t axis : axes) row.push_back(AxisText(cell.cell, axis));
    for (const std::string& figure :
         {Figure(sum.predicted_wasted), Figure(sum.observed_wasted, several), absl::StrFormat("%.1f %%", 100 * sum.saved),
          absl::StrFormat("%.2f", sum.bits_per_key), absl::StrFormat("%.0f", sum.filter_bytes / 1024), Figure(sum.considered),
          Figure(sum.skipped), Figure(sum.blocks_read), MicrosFigure(sum.median_micros, several), MicrosFigure(sum.p99_micros.value),
          absl::StrFormat("%.0f", sum.build_nanos_per_key)}) {
      row.push_back(figure);
    }
    table.Add(row);
  }
  if (!any) return;
  const std::string flags = FlagsOfSection(result.plan, section);
  std::printf("\n%s\n    tamis study%s%s\n\n", result.plan.sections[section].title.c_str(), flags.empty() ? "" : " ", flags.c_str());
  table.Print();
  if (!result.plan.sections[section].by_level) return;
  for (const CellResult& cell : result.cells) {
    if (cell.cell.section == section && !cell.runs.empty()) PrintLevels(cell, axes);
  }
}

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

}  // namespace

CellSummary Summarise(const CellResult& cell) {
  CellSummary sum;
  LatencyHistogram latency;
  uint64_t considered = 0;
  uint64_t skipped = 0;
  uint64_t blocks = 0;
  uint64_t keys = 0;
  uint64_t filter_bytes = 0;
  double predicted = 0;
  for (const StudyRun& run : cell.runs) {
    Widen(Ratio(run.wasted, run.lookups), sum.runs == 0, &sum.observed_wasted);
    Widen(Micros(run.latency, .5), sum.runs == 0, &sum.median_micros);
    Widen(Micros(run.latency, .99), sum.runs == 0, &sum.p99_micros);
    ++sum.runs;
    sum.lookups += run.lookups;
    sum.wasted += run.wasted;
    considered += run.considered;
    skipped += run.skipped;
    blocks += run.blocks_read;
    keys += run.tree_keys;
    filter_bytes += run.filter_bytes;
    predicted += run.predicted_wasted;
    sum.build_nanos_per_key += run.build_nanos_per_key;
    latency.Merge(run.latency);
  }
  const double lookups = static_cast<double>(sum.lookups);
  const double runs = static_cast<double>(sum.runs);
  sum.predicted_wasted = Ratio(predicted, lookups);
  sum.observed_wasted.value = Ratio(sum.wasted, sum.lookups);
  sum.considered = Ratio(considered, sum.lookups);
  sum.skipped = Ratio(skipped, sum.lookups);
  sum.blocks_read = Ratio(blocks, sum.lookups);
  sum.saved = Ratio(skipped, skipped + sum.wasted);
  sum.filter_bytes = Ratio(static_cast<double>(filter_bytes), runs);
  sum.bits_per_key = 8 * Ratio(filter_bytes, keys);
  sum.build_nanos_per_key = Ratio(sum.build_nanos_per_key, runs);
  sum.median_micros.value = Micros(latency, .5);
  sum.p99_micros.value = Micros(latency, .99);
  return sum;
}

std::string FlagsOfSection(const StudyPlan& plan, size_t section) {
  const StudyPlan defaults;
  std::string flags;
  const auto add = [&flags](const std::string& text) { flags += (flags.empty() || text.empty() ? "" : " ") + text; };
  if (plan.keys != defaults.keys) add(absl::StrCat("--keys ", plan.keys));
  if (plan.lookups != defaults.lookups) add(absl::StrCat("--lookups ", plan.lookups));
  if (plan.ratio != defaults.ratio) add(absl::StrCat("--ratio ", plan.ratio));
  add(FlagsOf(plan.sections[section]));
  return flags;
}

void PrintTables(const StudyResult& result) {
  std::printf(
      "%llu keys of 16 bytes with values of 100, size ratio %u, %llu lookups a run; figures for each lookup; brackets: least and "
      "greatest run\n",
      static_cast<unsigned long long>(result.plan.keys), result.plan.ratio, static_cast<unsigned long long>(result.plan.lookups));
  for (size_t section = 0; section < result.plan.sections.size(); ++section) PrintSection(result, section);
}

std::string CsvText(const StudyResult& result) {
  std::string text = "section";
  for (const char* axis : kAxisNames) absl::StrAppend(&text, ",", axis);
  text +=
      ",runs,lookups,predicted_wasted_reads,wasted_reads,wasted_reads_least,wasted_reads_greatest,saved_share,filter_bytes,bits_per_key,"
      "files_considered,files_skipped,blocks_read,median_us,median_us_least,median_us_greatest,p99_us,p99_us_least,p99_us_greatest,"
      "build_ns_per_key\n";
  for (const CellResult& cell : result.cells) {
    if (cell.runs.empty()) continue;
    const CellSummary sum = Summarise(cell);
    text += CsvField(result.plan.sections[cell.cell.section].title);
    for (size_t axis = 0; axis < kAxes; ++axis) absl::StrAppend(&text, ",", CsvField(AxisText(cell.cell, axis)));
    absl::StrAppend(&text, ",", sum.runs, ",", sum.lookups);
    for (const double figure : {sum.predicted_wasted, sum.observed_wasted.value, sum.observed_wasted.least, sum.observed_wasted.greatest,
                                sum.saved, sum.filter_bytes, sum.bits_per_key, sum.considered, sum.skipped, sum.blocks_read,
                                sum.median_micros.value, sum.median_micros.least, sum.median_micros.greatest, sum.p99_micros.value,
                                sum.p99_micros.least, sum.p99_micros.greatest, sum.build_nanos_per_key}) {
      absl::StrAppendFormat(&text, ",%.6g", figure);
    }
    text += '\n';
  }
  return text;
}

}  // namespace tamis::tools
