#include <gtest/gtest.h>

#include <limits>

#include "tamis/filter_allocation.h"

namespace tamis {
namespace {

TEST(AbsentProbability, StartsAtAllMissesAndFollowsTheCounts) {
  EXPECT_EQ(AbsentProbability({}), 1);
  EXPECT_EQ(AbsentProbability({.lookups = 64, .probes = 64, .misses = 0}), .5);
  EXPECT_EQ(AbsentProbability({.lookups = 64, .probes = 64, .misses = 64}), 1);
  EXPECT_NEAR(AbsentProbability({.lookups = 1'000'000, .probes = 500'000, .misses = 100'000}), .1, 1e-4);
  // Several tables of L0 may miss in one lookup.
  EXPECT_EQ(AbsentProbability({.lookups = 1000, .probes = 4000, .misses = 4000}), 1);
}

TEST(AbsentProbability, TakesCountersOfAnySize) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(AbsentProbability({.lookups = kMost, .probes = kMost, .misses = kMost}), 1);
  EXPECT_GT(AbsentProbability({.lookups = kMost, .probes = 0, .misses = 0}), 0);
}

TEST(Aged, HalvesAllCountersOncePastTwoToTheTwentyProbes) {
  const LevelMisses at{.lookups = 3'000'001, .probes = 1U << 20, .misses = 70'001};
  EXPECT_EQ(Aged(at), at);
  EXPECT_EQ(Aged({.lookups = 3'000'001, .probes = (1U << 20) + 1, .misses = 70'001}),
            (LevelMisses{.lookups = 1'500'000, .probes = 1U << 19, .misses = 35'000}));
  // Lookups that do not ask the level age nothing.
  const LevelMisses rarely{.lookups = uint64_t{1} << 40, .probes = 10, .misses = 9};
  EXPECT_EQ(Aged(rarely), rarely);
}

TEST(Aged, BringsCountersOfAnySizeBelowTheBound) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  const LevelMisses aged = Aged({.lookups = kMost, .probes = kMost, .misses = kMost / 2});
  EXPECT_LE(aged.probes, kProbesBeforeHalving);
  EXPECT_GT(aged.probes, kProbesBeforeHalving / 2 - 1);
  EXPECT_NEAR(AbsentProbability(aged), .5, 1e-4);
}

TEST(Aged, FollowsAWorkloadThatChanges) {
  LevelMisses level;
  const auto run = [&level](int batches, uint64_t misses_of_1024) {
    for (int i = 0; i < batches; ++i) {
      level.lookups += 1024;
      level.probes += 1024;
      level.misses += misses_of_1024;
      level = Aged(level);
    }
  };
  run(10'000, 1024);
  EXPECT_EQ(AbsentProbability(level), 1);
  // After 2^20 lookups of another kind at least half of what counts is new, after 2^22 fifteen sixteenths.
  run(1024, 0);
  EXPECT_LT(AbsentProbability(level), .51);
  run(3072, 0);
  EXPECT_LT(AbsentProbability(level), .07);
}

TEST(MayDropLastFilter, AfterTwoToTheSixteenLookups) {
  EXPECT_FALSE(MayDropLastFilter(0));
  EXPECT_FALSE(MayDropLastFilter(65535));
  EXPECT_TRUE(MayDropLastFilter(65536));
  // From there on a level that nothing missed costs less than the default goal of .001 without any filter.
  EXPECT_LT(AbsentProbability({.lookups = kLookupsBeforeDropping, .probes = kLookupsBeforeDropping, .misses = 0}), .001);
}

}  // namespace
}  // namespace tamis
