// The study: cells and shards, keys and skews, trees of a wanted shape, and that joined parts are what one run would have given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_split.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/run_command.h"
#include "tools/study/cells.h"
#include "tools/study/latency.h"
#include "tools/study/measure.h"
#include "tools/study/report.h"
#include "tools/study/results_json.h"
#include "tools/study/study.h"
#include "tools/study/tree.h"
#include "tools/study/workload.h"

namespace tamis::tools {
namespace {

using testing_support::TempDir;

StudySection SectionOf(std::map<std::string, std::string> values) {
  StudySection section{.title = "test", .axes = DefaultAxes()};
  for (size_t axis = 0; axis < kAxes; ++axis) {
    const auto found = values.find(kAxisNames[axis]);
    if (found != values.end()) section.axes[axis] = absl::StrSplit(found->second, ',');
  }
  return section;
}

// ---- Cells ----------------------------------------------------------------------------------------------------------------------------

TEST(StudyCellsTest, EveryCellOfTheDefaultSurvivesItsText) {
  ASSERT_OK_AND_ASSIGN(const std::vector<StudyCell> cells, CellsOf(DefaultSections()));
  EXPECT_GT(cells.size(), 40U);
  for (const StudyCell& cell : cells) {
    std::vector<std::string> texts;
    for (size_t axis = 0; axis < kAxes; ++axis) texts.push_back(AxisText(cell, axis));
    ASSERT_OK_AND_ASSIGN(StudyCell again, CellFromTexts(texts));
    again.section = cell.section;
    EXPECT_EQ(again, cell);
  }
}

TEST(StudyCellsTest, ACombinationThatIsTheSameCellIsMeasuredOnce) {
  ASSERT_OK_AND_ASSIGN(const std::vector<StudyCell> cells, CellsOf({SectionOf({{"kind", "none,ribbon"}, {"bits", "4,8,10"}})}));
  EXPECT_EQ(cells.size(), 4U);  // none has no bits
}

TEST(StudyCellsTest, WrongValuesAreRefusedWithAxisAndValue) {
  const std::pair<const char*, const char*> wrong[] = {
      {"kind", "bloom"}, {"bits", "1"},   {"bits", "25"},    {"allocation", "levels:"}, {"allocation", "best"},
      {"levels", "0"},   {"levels", "8"}, {"absent", "101"}, {"absent-kind", "x"},      {"skew", "zipf:0"},
      {"skew", "zipf"},  {"cache", "1X"}, {"cache", ""},     {"blocks", "tepid"}};
  for (const auto& [axis, value] : wrong) {
    const auto cells = CellsOf({SectionOf({{axis, value}})});
    SCOPED_TRACE(std::string(axis) + " " + value);
    EXPECT_CODE(cells, absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(cells.status().message()), ::testing::HasSubstr(std::string("--") + axis));
  }
}

TEST(StudyCellsTest, ShardsDealOutEachCellOnceAndEvenly) {
  ASSERT_OK_AND_ASSIGN(const std::vector<StudyCell> cells, CellsOf(DefaultSections()));
  for (const uint32_t shards : {1U, 2U, 3U, 7U, 200U}) {
    std::vector<size_t> dealt;
    for (uint32_t shard = 1; shard <= shards; ++shard) {
      size_t mine = 0;
      for (const StudyGroup& group : GroupsOf(cells, shard, shards)) {
        for (const size_t cell : group.cells) {
          EXPECT_EQ(DatabaseOf(cells[cell]), group.database);
          dealt.push_back(cell);
          ++mine;
        }
      }
      EXPECT_LE(mine, cells.size() / shards + 1);
    }
    std::sort(dealt.begin(), dealt.end());
    ASSERT_EQ(dealt.size(), cells.size()) << shards;
    for (size_t i = 0; i < dealt.size(); ++i) EXPECT_EQ(dealt[i], i);
  }
}

TEST(StudyCellsTest, FlagsOfASectionGiveTheSection) {
  const StudySection section = SectionOf({{"kind", "none,ribbon"}, {"absent", "10"}});
  EXPECT_EQ(FlagsOf(section), "--kind none,ribbon --absent 10");
  EXPECT_EQ(FlagsOf(SectionOf({})), "");
}

// ---- Histogram ------------------------------------------------------------------------------------------------------------------------

TEST(LatencyHistogramTest, BucketsAreNarrowAndAscend) {
  uint32_t last = 0;
  for (uint64_t nanos = 1; nanos < uint64_t{1} << 62; nanos += 1 + nanos / 100) {
    const uint32_t bucket = LatencyHistogram::BucketOf(nanos);
    EXPECT_GE(bucket, last);
    EXPECT_NEAR(LatencyHistogram::MiddleOf(bucket) / static_cast<double>(nanos), 1, 1.0 / 32);
    last = bucket;
  }
  EXPECT_LT(LatencyHistogram::BucketOf(~uint64_t{0}), LatencyHistogram::kBuckets);
}

TEST(LatencyHistogramTest, MergedHistogramsAreTheOneOfAllCounts) {
  LatencyHistogram all;
  LatencyHistogram halves[2];
  Random random(1);
  for (int i = 0; i < 10000; ++i) {
    const uint64_t nanos = random.Uniform(100000);
    all.Add(nanos);
    halves[i % 2].Add(nanos);
  }
  halves[0].Merge(halves[1]);
  EXPECT_EQ(halves[0], all);
  EXPECT_NEAR(all.Quantile(.5), 50000, 3000);
  EXPECT_NEAR(all.Quantile(.99), 99000, 3500);
}

// ---- Workload -------------------------------------------------------------------------------------------------------------------------

TEST(ZipfRanksTest, FrequenciesFollowTheLaw) {
  for (const double theta : {0.0, 0.5, 0.99, 1.0, 1.5}) {
    constexpr uint64_t kN = 1000;
    constexpr int kDraws = 400000;
    const ZipfRanks ranks(kN, theta);
    Random random(3);
    std::vector<int> counts(kN);
    for (int i = 0; i < kDraws; ++i) ++counts.at(ranks.Next(&random));
    double sum = 0;
    for (uint64_t i = 1; i <= kN; ++i) sum += std::pow(static_cast<double>(i), -theta);
    for (const uint64_t rank : {0U, 1U, 2U, 9U, 99U, 999U}) {
      const double expected = kDraws * std::pow(static_cast<double>(rank + 1), -theta) / sum;
      EXPECT_NEAR(counts[rank], expected, 5 * std::sqrt(expected) + 1) << theta << " rank " << rank;
    }
  }
}

TEST(LookupStreamTest, AbsentKeysAreOfTheirKind) {
  constexpr uint64_t kKeys = 1000;
  std::set<std::string> present;
  std::set<std::string> deleted;
  std::string key;
  for (uint64_t i = 0; i < kKeys + 20; ++i) {
    StudyKey(7, i, &key);
    (i < kKeys ? present : deleted).insert(key);
  }
  ASSERT_EQ(present.size(), kKeys);
  const std::vector<std::string> against = {"chosen"};
  for (const double theta : {0.0, 0.99}) {
    for (const AbsentKind kind :
         {AbsentKind::kFar, AbsentKind::kBetween, AbsentKind::kPrefix, AbsentKind::kDeleted, AbsentKind::kAgainst}) {
      LookupStream stream(
          {.keys = kKeys, .deleted_keys = 20, .absent_percent = 60, .absent_kind = kind, .zipf_theta = theta, .against = &against}, 7, 1);
      int absent = 0;
      std::set<std::string> seen;
      for (int i = 0; i < 2000; ++i) {
        const bool exists = stream.Next(&key);
        EXPECT_EQ(present.count(key), exists ? 1U : 0U);
        if (exists) continue;
        ++absent;
        seen.insert(key);
        EXPECT_TRUE(kind != AbsentKind::kFar || key > *present.rbegin());
        EXPECT_TRUE(kind != AbsentKind::kBetween || key[0] == 'k');
        EXPECT_TRUE(kind != AbsentKind::kPrefix || present.count(key.substr(0, kStudyKeyBytes)) == 1);
        EXPECT_TRUE(kind != AbsentKind::kDeleted || deleted.count(key) == 1);
        EXPECT_TRUE(kind != AbsentKind::kAgainst || key == "chosen");
      }
      EXPECT_NEAR(absent, 1200, 110);
      if (theta == 0 && (kind == AbsentKind::kFar || kind == AbsentKind::kBetween)) {
        EXPECT_EQ(seen.size(), static_cast<size_t>(absent)) << "uniform absent keys repeat";
      }
    }
  }
}

// ---- Trees ----------------------------------------------------------------------------------------------------------------------------

TEST(StudyTreeTest, HasTheLevelsThatWereAskedFor) {
  for (const uint32_t levels : {1U, 2U, 4U, 5U}) {
    TempDir folder(TempDir::MemoryBase());
    const TreeShape shape{.keys = 8000, .levels = levels, .ratio = 3, .seed = 5};
    ASSERT_OK(CheckShape(shape));
    ASSERT_OK_AND_ASSIGN(const BuiltTree built, BuildTree(shape, {.allocation = FilterAllocation::kUniform}, folder.path() + "/db"));
    ASSERT_OK_AND_ASSIGN(const Stats stats, built.db->GetStats());
    for (const LevelStats& level : stats.levels) EXPECT_EQ(level.files != 0, level.level >= kTreeLevels - levels) << level.level;
    EXPECT_GT(built.nanos_per_key, 0);
  }
}

TEST(StudyTreeTest, TooFewKeysForTheLevelsAreRefused) {
  EXPECT_CODE(CheckShape({.keys = 1000, .levels = 5, .ratio = 10}), absl::StatusCode::kInvalidArgument);
  EXPECT_CODE(CheckShape({.keys = 1000, .levels = 8, .ratio = 2}), absl::StatusCode::kInvalidArgument);
  EXPECT_OK(CheckShape({.keys = 300000, .levels = 5, .ratio = 10}));
}

// ---- Measuring ------------------------------------------------------------------------------------------------------------------------

class StudyRunTest : public ::testing::Test {
 protected:
  StudyPart Part(uint64_t seed, uint32_t shard = 1, uint32_t shards = 1) {
    return {.seed = seed, .repeats = 2, .shard = shard, .shards = shards, .parent_directory = folder_.path()};
  }
  StudyPlan Plan(const StudySection& section, uint64_t lookups = 2000) {
    return {.sections = {section}, .keys = 8000, .lookups = lookups, .ratio = 3};
  }
  static const StudyRun& RunOf(const StudyResult& result, size_t cell) { return result.cells.at(cell).runs.at(0); }

  TempDir folder_{TempDir::MemoryBase()};
};

// Times are the only part of a result that the seed does not decide.
StudyResult WithoutTimes(StudyResult result) {
  for (CellResult& cell : result.cells) {
    for (StudyRun& run : cell.runs) {
      run.build_nanos_per_key = 0;
      run.latency = LatencyHistogram();
    }
  }
  return result;
}

TEST_F(StudyRunTest, MergedShardsEqualTheWholeRun) {
  const StudyPlan plan = Plan(SectionOf(
      {{"kind", "none,blocked_bloom"}, {"allocation", "uniform,optimal:0"}, {"absent", "10,100"}, {"absent-kind", "between,deleted"}}));
  ASSERT_OK_AND_ASSIGN(const StudyResult whole, RunStudy(plan, Part(3), {}));
  std::vector<StudyResult> parts;
  for (uint32_t shard = 3; shard >= 1; --shard) {
    ASSERT_OK_AND_ASSIGN(const StudyResult part, RunStudy(plan, Part(3, shard, 3), {}));
    ASSERT_OK_AND_ASSIGN(const StudyResult read, ParseResults(JsonText(part)));
    EXPECT_EQ(read.cells, part.cells);
    parts.push_back(read);
  }
  ASSERT_OK_AND_ASSIGN(const StudyResult merged, MergeResults(parts));
  EXPECT_EQ(WithoutTimes(merged).cells, WithoutTimes(whole).cells);
  for (const CellResult& cell : merged.cells) EXPECT_EQ(cell.runs.size(), 2U);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << "databases were left";
}

TEST_F(StudyRunTest, SeedsAddUpAndQuantilesComeFromMergedHistograms) {
  const StudyPlan plan = Plan(SectionOf({{"levels", "2"}}), 500);
  ASSERT_OK_AND_ASSIGN(const StudyResult one, RunStudy(plan, Part(1), {}));
  ASSERT_OK_AND_ASSIGN(const StudyResult two, RunStudy(plan, Part(2), {}));
  ASSERT_OK_AND_ASSIGN(const StudyResult both, MergeResults({two, one}));
  ASSERT_EQ(both.cells[0].runs.size(), 4U);
  LatencyHistogram all;
  uint64_t wasted = 0;
  for (const StudyResult* result : {&one, &two}) {
    for (const StudyRun& run : result->cells[0].runs) {
      all.Merge(run.latency);
      wasted += run.wasted;
    }
  }
  const CellSummary sum = Summarise(both.cells[0]);
  EXPECT_EQ(sum.lookups, 2000U);
  EXPECT_EQ(sum.wasted, wasted);
  EXPECT_EQ(sum.median_micros.value, all.Quantile(.5) / 1000);
  EXPECT_EQ(sum.p99_micros.value, all.Quantile(.99) / 1000);
  EXPECT_LE(sum.median_micros.least, sum.median_micros.value);
  EXPECT_GE(sum.median_micros.greatest, sum.median_micros.value);
}

TEST_F(StudyRunTest, PartsThatDoNotBelongTogetherAreRefused) {
  const StudyPlan plan = Plan(SectionOf({{"levels", "1"}}), 100);
  ASSERT_OK_AND_ASSIGN(const StudyResult one, RunStudy(plan, Part(1), {}));
  EXPECT_CODE(MergeResults({one, one}), absl::StatusCode::kInvalidArgument);
  StudyResult other = one;
  ++other.plan.lookups;
  EXPECT_CODE(MergeResults({one, other}), absl::StatusCode::kInvalidArgument);
  EXPECT_CODE(MergeResults({}), absl::StatusCode::kInvalidArgument);
  for (const char* text : {"", "[]", "{}", "{\"tamis_study\":2}", "{\"tamis_study\":1,\"keys\":\"x\"}"}) {
    SCOPED_TRACE(text);
    EXPECT_CODE(ParseResults(text), absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(StudyRunTest, CountersAreWhatTheTreeMustGive) {
  const StudyPlan plan = Plan(SectionOf({{"kind", "none,blocked_bloom"}, {"levels", "3"}, {"absent", "0,100"}}), 20000);
  ASSERT_OK_AND_ASSIGN(const StudyResult result, RunStudy(plan, Part(1), {}));
  // In the order of the axes: none 0 %, none 100 %, blocked 0 %, blocked 100 %.
  const StudyRun& none_absent = RunOf(result, 1);
  // Each level is asked, but for keys beside its range: a level may have given a table, and with it a range, to the next one.
  EXPECT_GT(none_absent.wasted, 50000U);
  EXPECT_LE(none_absent.wasted, 60000U);
  EXPECT_EQ(none_absent.wasted, none_absent.considered);
  EXPECT_EQ(static_cast<double>(none_absent.wasted), none_absent.predicted_wasted);
  EXPECT_EQ(none_absent.filter_bytes, 0U);
  const StudyRun& none_present = RunOf(result, 0);
  EXPECT_EQ(none_present.found, 20000U);
  EXPECT_EQ(none_present.wasted, none_present.considered - 20000);
  for (const size_t cell : {2U, 3U}) {
    const StudyRun& run = RunOf(result, cell);
    uint64_t false_positives = 0;
    for (const StudyLevel& level : run.levels) false_positives += level.false_positives;
    EXPECT_EQ(run.wasted, false_positives);
    EXPECT_NEAR(static_cast<double>(run.wasted), run.predicted_wasted, 5 * std::sqrt(run.predicted_wasted) + 0.1 * run.predicted_wasted);
    EXPECT_EQ(run.latency.count(), 20000U);
  }
  // The same lookups of the same keys, whatever the filters; the trees differ by what filters take of a table.
  EXPECT_NEAR(static_cast<double>(RunOf(result, 3).considered), static_cast<double>(none_absent.considered), 3000);
}

TEST_F(StudyRunTest, KindsOfAbsentKeyCostWhatTheyMust) {
  const StudyPlan plan = Plan(SectionOf({{"levels", "3"}, {"absent-kind", "far,between,prefix,deleted,against"}}), 10000);
  ASSERT_OK_AND_ASSIGN(const StudyResult result, RunStudy(plan, Part(1), {}));
  EXPECT_EQ(RunOf(result, 0).considered, 0U);
  const StudyRun& between = RunOf(result, 1);
  const StudyRun& prefix = RunOf(result, 2);
  EXPECT_NEAR(static_cast<double>(prefix.wasted), static_cast<double>(between.wasted), 6 * std::sqrt(between.wasted + 1.0));
  uint64_t deletes_met = 0;
  uint64_t false_positives = 0;
  for (const StudyLevel& level : RunOf(result, 3).levels) {
    deletes_met += level.true_positives;
    false_positives += level.false_positives;
  }
  EXPECT_GT(deletes_met, 3000U);
  EXPECT_EQ(RunOf(result, 3).wasted, false_positives) << "a delete that was met was no read for nothing";
  EXPECT_GE(RunOf(result, 4).wasted, 10000U) << "keys that the filters are wrong about did not cost a read each";
}

TEST_F(StudyRunTest, DeletesAreMetWithoutFiltersAsOftenAsWithThem) {
  const StudyPlan plan = Plan(SectionOf({{"kind", "none,blocked_bloom"}, {"levels", "3"}, {"absent-kind", "deleted"}}), 10000);
  ASSERT_OK_AND_ASSIGN(const StudyResult result, RunStudy(plan, Part(1), {}));
  const StudyRun& none = RunOf(result, 0);
  const StudyRun& blocked = RunOf(result, 1);
  const auto met = [](const StudyRun& run) { return static_cast<double>(run.considered - run.skipped - run.wasted); };
  EXPECT_NEAR(met(none), met(blocked), 1500);  // none: by the share of deletes that there still are
}

TEST_F(StudyRunTest, OptimalAllocationSavesReadsForTheSameMemory) {
  const StudyPlan plan = Plan(SectionOf({{"allocation", "uniform,optimal:0"}, {"bits", "8"}}), 50000);
  ASSERT_OK_AND_ASSIGN(const StudyResult result, RunStudy(plan, Part(1), {}));
  const StudyRun& uniform = RunOf(result, 0);
  const StudyRun& optimal = RunOf(result, 1);
  EXPECT_LE(static_cast<double>(optimal.filter_bytes), 1.05 * static_cast<double>(uniform.filter_bytes));
  EXPECT_LT(optimal.predicted_wasted, .8 * uniform.predicted_wasted);
  EXPECT_LT(static_cast<double>(optimal.wasted), .8 * static_cast<double>(uniform.wasted));
}

TEST_F(StudyRunTest, PerLevelListsNameThePopulatedLevelsFromTheTop) {
  const StudyPlan plan = Plan(SectionOf({{"allocation", "levels:0/16/4"}, {"levels", "3"}}), 500);
  ASSERT_OK_AND_ASSIGN(const StudyResult result, RunStudy(plan, Part(1), {}));
  const std::vector<StudyLevel>& levels = RunOf(result, 0).levels;
  ASSERT_EQ(levels.size(), 3U);
  EXPECT_EQ(levels[0].filter_bytes, 0U);
  EXPECT_NEAR(8.0 * static_cast<double>(levels[1].filter_bytes) / static_cast<double>(levels[1].keys), 16, 2.5);
  EXPECT_NEAR(8.0 * static_cast<double>(levels[2].filter_bytes) / static_cast<double>(levels[2].keys), 4, 1.5);
}

TEST_F(StudyRunTest, ColdReadsKeepNothingAndDoFewerLookups) {
  const StudyPlan plan = Plan(SectionOf({{"levels", "2"}, {"absent", "0"}, {"blocks", "cold"}}), 5000);
  ASSERT_OK_AND_ASSIGN(const StudyResult result, RunStudy(plan, Part(1), {}));
  EXPECT_EQ(RunOf(result, 0).lookups, 100U);
  EXPECT_GE(RunOf(result, 0).blocks_read, 100U);
}

TEST_F(StudyRunTest, StopsWhenToldAndLeavesNothing) {
  const StudyPlan plan = Plan(SectionOf({{"levels", "2"}}));
  for (const int calls : {0, 3, 12, 20}) {
    int left = calls;
    const auto stopped = RunStudy(plan, Part(1), [&](uint64_t done, uint64_t total) {
      EXPECT_LE(done, total);
      return left-- > 0;
    });
    SCOPED_TRACE(calls);
    EXPECT_CODE(stopped, absl::StatusCode::kCancelled);
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << calls;
  }
}

TEST_F(StudyRunTest, ImpossiblePlansAreRefusedBeforeAnythingIsMade) {
  EXPECT_CODE(RunStudy(Plan(SectionOf({{"levels", "7"}})), Part(1), {}), absl::StatusCode::kInvalidArgument);
  EXPECT_CODE(RunStudy(Plan(SectionOf({})), Part(1, 3, 2), {}), absl::StatusCode::kInvalidArgument);
  EXPECT_CODE(RunStudy(Plan(SectionOf({})), Part(1, 0, 2), {}), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

// ---- The command ----------------------------------------------------------------------------------------------------------------------

class StudyCommandTest : public ::testing::Test {
 protected:
  testing_support::Ran Study(const std::string& arguments) {
    return testing_support::RunShell("TMPDIR='" + folder_.path() + "' '" TAMIS_COMMAND "' study " + arguments);
  }
  std::string File(const std::string& name) const { return folder_.path() + "/" + name; }

  TempDir folder_{TempDir::MemoryBase()};
};

TEST_F(StudyCommandTest, PrintsATableUnderTheCommandThatGivesIt) {
  const auto ran = Study("--quick --levels 1,2 --kind none,blocked_bloom 2>/dev/null");
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.output,
              ::testing::HasSubstr("tamis study --keys 8000 --lookups 2000 --ratio 3 --kind none,blocked_bloom --levels 1,2\n"));
  EXPECT_THAT(ran.output, ::testing::HasSubstr("blocked_bloom"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(StudyCommandTest, MergedShardsAsCsvHaveALineForEachCell) {
  const std::string flags = "--quick --lookups 200 --levels 1,2,3 --json 2>/dev/null --shard ";
  ASSERT_EQ(Study(flags + "1/2 > " + File("a.json")).exit_code, 0);
  ASSERT_EQ(Study(flags + "2/2 > " + File("b.json")).exit_code, 0);
  const auto merged = Study("--csv --merge " + File("a.json") + " " + File("b.json"));
  EXPECT_EQ(merged.exit_code, 0);
  const std::vector<std::string> lines = absl::StrSplit(merged.output, '\n');
  ASSERT_EQ(lines.size(), 5U) << merged.output;  // head, three cells, nothing
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(std::count(lines[i].begin(), lines[i].end(), ','), 28) << lines[i];
  EXPECT_EQ(Study("--merge " + File("a.json") + " " + File("a.json") + " 2>/dev/null").exit_code, 2);
  EXPECT_EQ(Study("--merge " + File("missing") + " 2>/dev/null").exit_code, 4);
}

TEST_F(StudyCommandTest, WrongUsageIsExitCodeTwo) {
  EXPECT_EQ(Study("--kind blom 2>/dev/null").exit_code, 2);
  EXPECT_EQ(Study("--shard 2 2>/dev/null").exit_code, 2);
  EXPECT_EQ(Study("--csv --json 2>/dev/null").exit_code, 2);
  EXPECT_EQ(Study("--levels 7 2>/dev/null").exit_code, 2);
}

TEST_F(StudyCommandTest, AnInterruptRemovesTheDatabases) {
  const auto ran = testing_support::RunShell(
      "TMPDIR='" + folder_.path() + "' '" TAMIS_COMMAND "' study --levels 2 >/dev/null 2>&1 & study=$!; for i in $(seq 100); do ls '" +
      folder_.path() + "'/*/db/* >/dev/null 2>&1 && break; sleep .05; done; kill -TERM $study; wait $study");
  EXPECT_EQ(ran.exit_code, 4);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

}  // namespace
}  // namespace tamis::tools
