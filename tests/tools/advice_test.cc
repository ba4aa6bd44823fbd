// What is advised, and the workloads that it is advised for.
#include "tools/advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/status_matchers.h"
#include "tools/filter_workload.h"

namespace tamis::tools {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Workload Tree(uint64_t keys, double negative_share, uint32_t levels = 4) {
  return Described(std::nullopt, {.keys = keys, .levels = levels, .negative_share = negative_share}).value();
}

Advice Advised(const Workload& workload, const LookupCosts& costs = {}) { return Advise(workload, costs).value(); }

// Two files in L0, an empty level, the last level with ribbon and one of four files without a filter.
Stats CountedStats() {
  Stats stats;
  LevelStats l0;
  l0.files = 2;
  l0.keys = 101;
  l0.filter_bytes = 200;
  l0.predicted_fpr = .01;
  l0.filter_kind = FilterKind::kBlockedBloom;
  l0.learned = {.lookups = 100'000, .probes = 150'000, .misses = 149'000};
  l0.absent_probability = .99;
  LevelStats last;
  last.level = 6;
  last.files = 4;
  last.keys = 100'000;
  last.filter_bytes = 90'000;
  last.files_without_filter = 1;
  last.predicted_fpr = .26;
  last.filter_kind = FilterKind::kRibbon;
  last.learned = {.lookups = 100'000, .probes = 90'000, .misses = 20'000};
  last.absent_probability = .2;
  stats.levels = {l0, LevelStats(), last};
  return stats;
}

TEST(WorkloadOf, TellsHowOftenEachRunIsAskedAndWhatHasAFilter) {
  const Workload workload = WorkloadOf(CountedStats());
  ASSERT_EQ(workload.runs.size(), 3U);
  EXPECT_EQ(workload.runs[0].keys + workload.runs[1].keys, 101U);
  EXPECT_DOUBLE_EQ(workload.runs[0].asked, 1);
  EXPECT_DOUBLE_EQ(workload.runs[0].filtered, 1);
  EXPECT_DOUBLE_EQ(workload.runs[2].asked, .9);
  EXPECT_DOUBLE_EQ(workload.runs[2].absent, .2);
  EXPECT_DOUBLE_EQ(workload.runs[2].filtered, .75);
  EXPECT_EQ(workload.runs[2].kind, FilterKind::kRibbon);
  EXPECT_TRUE(workload.counted);
  EXPECT_EQ(workload.lookups, 100'000U);
}

TEST(Described, IsATreeWhosePresentKeysAreAskedForInVainAboveTheirLevel) {
  const Workload workload = Tree(1'111'000, 0);
  ASSERT_EQ(workload.runs.size(), 4U);
  EXPECT_EQ(workload.keys(), 1'111'000U);
  EXPECT_EQ(workload.runs[0].level, 1U);
  EXPECT_EQ(workload.runs[0].keys, 1000U);
  EXPECT_EQ(workload.runs[3].keys, 1'000'000U);
  EXPECT_DOUBLE_EQ(workload.runs[0].asked, 1);
  EXPECT_DOUBLE_EQ(workload.runs[0].absent, 1'110'000 / 1'111'000.0);
  EXPECT_DOUBLE_EQ(workload.runs[3].asked, 1'000'000 / 1'111'000.0);
  EXPECT_DOUBLE_EQ(workload.runs[3].absent, 0);
  // Uniform blocked Bloom of 10 bits as it is.
  EXPECT_DOUBLE_EQ(workload.filter_bytes(), 1'111'000 * 10 / 8.0);
  EXPECT_NEAR(workload.runs[3].rate, .0097, .0001);
  const Workload tenth = Tree(1'111'000, .1);
  EXPECT_NEAR(tenth.runs[3].absent, .1, 1e-12);
  EXPECT_NEAR(tenth.runs[3].asked, .1 + .9 * 1'000'000 / 1'111'000, 1e-12);
}

TEST(Described, OverridesADatabaseOnlyWhereTheFlagsSaySo) {
  const Workload counted = WorkloadOf(CountedStats());
  ASSERT_OK_AND_ASSIGN(const Workload same, Described(counted, {}));
  EXPECT_EQ(same.runs.size(), 3U);
  EXPECT_DOUBLE_EQ(same.wasted_reads(), counted.wasted_reads());
  ASSERT_OK_AND_ASSIGN(const Workload grown, Described(counted, {.keys = 10'010'100}));
  EXPECT_EQ(grown.runs[2].keys, 10'000'000U);
  EXPECT_DOUBLE_EQ(grown.runs[2].filter_bytes, 9'000'000);
  EXPECT_DOUBLE_EQ(grown.wasted_reads(), counted.wasted_reads());
  EXPECT_TRUE(grown.counted);
  ASSERT_OK_AND_ASSIGN(const Workload negative, Described(counted, {.negative_share = 1}));
  EXPECT_DOUBLE_EQ(negative.runs[2].absent, 1);
  EXPECT_FALSE(negative.counted);
  EXPECT_DOUBLE_EQ(negative.filter_bytes(), counted.filter_bytes());
  ASSERT_OK_AND_ASSIGN(const Workload bare, Described(counted, {.bits_per_key = 0}));
  EXPECT_DOUBLE_EQ(bare.filter_bytes(), 0);
  EXPECT_DOUBLE_EQ(bare.runs[2].filtered, 0);
  EXPECT_DOUBLE_EQ(bare.runs[2].rate, 1);
  // Another tree: as many lookups for absent keys, as much memory.
  ASSERT_OK_AND_ASSIGN(const Workload tree, Described(counted, {.levels = 5}));
  EXPECT_EQ(tree.runs.size(), 5U);
  EXPECT_EQ(tree.keys(), counted.keys());
  EXPECT_NEAR(tree.runs[4].absent, .2, 1e-12);
  EXPECT_NEAR(tree.filter_bytes(), counted.filter_bytes(), counted.filter_bytes() / 1000);
}

TEST(Described, RefusesWhatIsOutOfRangeAndTooLittle) {
  const Workload counted = WorkloadOf(CountedStats());
  EXPECT_CODE(Described(std::nullopt, {}), absl::StatusCode::kInvalidArgument);
  EXPECT_CODE(Described(std::nullopt, {.keys = 100}), absl::StatusCode::kInvalidArgument);
  EXPECT_CODE(Described(std::nullopt, {.negative_share = .5}), absl::StatusCode::kInvalidArgument);
  for (const WorkloadFlags& flags :
       {WorkloadFlags{.keys = 0}, WorkloadFlags{.keys = kMaxRunKeys + 1}, WorkloadFlags{.levels = 0}, WorkloadFlags{.levels = 13},
        WorkloadFlags{.size_ratio = .5}, WorkloadFlags{.size_ratio = kNan}, WorkloadFlags{.negative_share = -.01},
        WorkloadFlags{.negative_share = 1.01}, WorkloadFlags{.negative_share = kNan}, WorkloadFlags{.bits_per_key = 25},
        WorkloadFlags{.bits_per_key = kNan}}) {
    EXPECT_CODE(Described(counted, flags), absl::StatusCode::kInvalidArgument);
  }
}

TEST(Described, LeavesOutLevelsOfLessThanAKey) {
  const Workload tiny = Tree(3, .5, 12);
  ASSERT_EQ(tiny.runs.size(), 1U);
  EXPECT_EQ(tiny.runs[0].level, 12U);
  EXPECT_EQ(tiny.runs[0].keys, 3U);
}

TEST(Advise, RefusesCostsThatAreNone) {
  for (const double bad : {0.0, -1.0, kNan, std::numeric_limits<double>::infinity()}) {
    EXPECT_CODE(Advise(Tree(1000, 1), {.read_us = bad}), absl::StatusCode::kInvalidArgument);
    EXPECT_CODE(Advise(Tree(1000, 1), {.probe_ns = bad}), absl::StatusCode::kInvalidArgument);
  }
}

TEST(Advise, HasNothingToSayWithoutKeys) {
  const Advice advice = Advised(Workload());
  EXPECT_EQ(advice.which, AdviceCase::kNoKeys);
  EXPECT_TRUE(advice.runs.empty());
}

TEST(Advise, GivesEachLevelAFilterIfAllLookupsAreForAbsentKeys) {
  const Advice advice = Advised(Tree(1'000'000, 1));
  EXPECT_EQ(advice.which, AdviceCase::kAllLevels);
  EXPECT_EQ(advice.options.kind, FilterKind::kBlockedBloom);
  EXPECT_EQ(advice.options.allocation, FilterAllocation::kOptimal);
  EXPECT_FALSE(advice.options.last_level_kind);
  EXPECT_DOUBLE_EQ(advice.none.wasted_reads, 4);
  EXPECT_DOUBLE_EQ(advice.none.micros, 8);
  EXPECT_NEAR(advice.now.wasted_reads, 4 * .0097, .0004);
  // Four filters of 10 ns are 40 ns, a fiftieth of a read.
  EXPECT_DOUBLE_EQ(advice.options.wasted_reads_goal, .02);
  EXPECT_LE(advice.advised.wasted_reads, .02 * (1 + 1e-9));
  EXPECT_NEAR(advice.advised.micros, .02 * 2 + .04, 1e-3);
  EXPECT_LT(advice.advised.bytes, advice.now.bytes);
  EXPECT_LT(advice.same_memory.wasted_reads, advice.now.wasted_reads);
  EXPECT_NEAR(advice.same_memory.bytes, advice.now.bytes, 16);
  // The smaller, the more bits.
  for (size_t i = 1; i < advice.runs.size(); ++i) EXPECT_LT(advice.runs[i].bits_per_key(), advice.runs[i - 1].bits_per_key());
  EXPECT_GE(advice.options.bits_per_key, advice.advised.bits_per_key);
  EXPECT_LT(advice.options.bits_per_key, advice.advised.bits_per_key + kBitsPerKeyStep);
}

TEST(Advise, SpendsMoreIfReadsAreDearAndStopsAtTheGoal) {
  const Workload workload = Tree(1'000'000, 1);
  const Advice cached = Advised(workload);
  const Advice cold = Advised(workload, {.read_us = 100});
  EXPECT_DOUBLE_EQ(cold.options.wasted_reads_goal, .0004);
  EXPECT_LE(cold.advised.wasted_reads, .0004 * (1 + 1e-9));
  EXPECT_GT(cold.advised.bytes, 1.4 * cached.advised.bytes);
  EXPECT_LT(cold.advised.micros, cold.now.micros / 10);
}

TEST(Advise, AtOneLookupInTenForAbsentKeysTheLastLevelGetsFew) {
  const Advice all = Advised(Tree(1'000'000, 1));
  const Advice tenth = Advised(Tree(1'000'000, .1));
  EXPECT_EQ(tenth.which, AdviceCase::kAllLevels);
  EXPECT_LT(tenth.runs[3].bits_per_key(), all.runs[3].bits_per_key() - 3);
  EXPECT_GT(tenth.runs[3].bits_per_key(), 0);
  EXPECT_LT(tenth.advised.micros, tenth.now.micros);
  EXPECT_LT(tenth.advised.bytes, .7 * tenth.now.bytes);
}

TEST(Advise, SaysThatTheLastLevelNeedsNoneIfNoLookupIsForAnAbsentKey) {
  const Advice advice = Advised(Tree(1'000'000, 0));
  EXPECT_EQ(advice.which, AdviceCase::kUpperLevels);
  EXPECT_EQ(advice.options.kind, FilterKind::kBlockedBloom);
  EXPECT_DOUBLE_EQ(advice.runs[3].bits_per_key(), 0);
  EXPECT_GT(advice.runs[2].bits_per_key(), 5);
  EXPECT_LT(advice.advised.bytes, .2 * advice.now.bytes);
  // A key of the last level, one of 90 %, is asked for in vain in the three above.
  EXPECT_NEAR(advice.none.wasted_reads, .999 + .99 + .9, 1e-3);
  EXPECT_LE(advice.advised.wasted_reads, advice.now.wasted_reads);
  EXPECT_LT(advice.advised.micros, advice.now.micros);
  EXPECT_FALSE(advice.ribbon);
}

TEST(Advise, SaysThatFiltersSaveNothingInOneLevelOfPresentKeys) {
  for (const double share : {0.0, .001, .004}) {
    const Advice advice = Advised(Tree(1'000'000, share, 1));
    EXPECT_EQ(advice.which, AdviceCase::kNoFilters) << share;
    EXPECT_EQ(advice.options.kind, FilterKind::kNone);
    EXPECT_DOUBLE_EQ(advice.advised.bytes, 0);
    EXPECT_LE(advice.advised.micros, advice.now.micros);
    EXPECT_FALSE(advice.keep);
  }
  EXPECT_EQ(Advised(Tree(1'000'000, .05, 1)).which, AdviceCase::kAllLevels);
  // It is a matter of the costs.
  EXPECT_EQ(Advised(Tree(1'000'000, .004, 1), {.read_us = 100}).which, AdviceCase::kAllLevels);
}

TEST(Advise, NeverTakesMoreTimeThanTheFiltersThereAreButForATenthOfProbes) {
  for (const double share : {0.0, .0001, .001, .01, .1, .5, 1.0}) {
    for (const double bits : {0.0, 2.0, 5.0, 10.0, 16.0, 24.0}) {
      for (const double read_us : {.1, 2.0, 100.0, 10000.0}) {
        for (const uint32_t levels : {1U, 2U, 5U}) {
          ASSERT_OK_AND_ASSIGN(
              const Workload workload,
              Described(std::nullopt, {.keys = 1'000'000, .levels = levels, .negative_share = share, .bits_per_key = bits}));
          const Advice advice = Advised(workload, {.read_us = read_us});
          EXPECT_LE(advice.advised.micros, advice.none.micros + 1e-12);
          EXPECT_LE(advice.advised.micros, advice.now.micros + .1 * .01 * levels + 1e-9)
              << share << " " << bits << " " << read_us << " " << levels;
        }
      }
    }
  }
}

TEST(Advise, AdvisesRibbonOnALargeLastLevelThatIsRarelyAskedInVain) {
  const LookupCosts cold{.read_us = 100};
  const Advice large = Advised(Tree(1'000'000'000, .2), cold);
  ASSERT_TRUE(large.options.last_level_kind);
  EXPECT_EQ(*large.options.last_level_kind, FilterKind::kRibbon);
  EXPECT_DOUBLE_EQ(large.advised.bytes, large.ribbon->bytes);
  EXPECT_LT(large.advised.bytes, .75 * large.blocked->bytes);
  EXPECT_LE(large.advised.wasted_reads, large.options.wasted_reads_goal * (1 + 1e-9));
  // Little memory; nearly all in vain; reads so cheap that slower filters would eat a good part of what they save.
  const Advice small = Advised(Tree(1'000'000, .2), cold);
  EXPECT_FALSE(small.options.last_level_kind);
  ASSERT_TRUE(small.ribbon);
  EXPECT_LT(small.ribbon->bytes, small.advised.bytes);
  EXPECT_FALSE(Advised(Tree(1'000'000'000, .9), cold).options.last_level_kind);
  EXPECT_FALSE(Advised(Tree(1'000'000'000, .2), {.read_us = .1}).options.last_level_kind);
}

TEST(Advise, TakesATinyDatabase) {
  for (const double share : {0.0, .5, 1.0}) {
    for (const uint64_t keys : {1, 2, 3, 40}) {
      const Advice advice = Advised(Tree(keys, share));
      EXPECT_NE(advice.which, AdviceCase::kNoKeys);
      EXPECT_TRUE(std::isfinite(advice.advised.micros));
      EXPECT_LE(advice.advised.micros, advice.none.micros);
    }
  }
}

TEST(Advise, KeepsWhatIsAsGood) {
  Workload workload = Tree(1'000'000, 1);
  const Advice first = Advised(workload);
  EXPECT_FALSE(first.keep);
  for (size_t i = 0; i < workload.runs.size(); ++i) {
    workload.runs[i].rate = first.runs[i].rate();
    workload.runs[i].filter_bytes = first.runs[i].bits_per_key() * static_cast<double>(workload.runs[i].keys) / 8;
  }
  EXPECT_TRUE(Advised(workload).keep);
}

}  // namespace
}  // namespace tamis::tools
