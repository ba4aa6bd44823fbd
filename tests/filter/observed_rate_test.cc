#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>

#include "tamis/filter.h"
#include "tamis/filter_observed.h"

namespace tamis {
namespace {

// Lookups of `keys` distinct absent keys, `times` each, of a filter that errs with the given rate.
void Ask(std::mt19937_64* random, uint64_t keys, uint64_t times, double rate, FilterOutcomes* outcomes) {
  std::bernoulli_distribution errs(rate);
  for (uint64_t i = 0; i < keys; ++i) {
    const uint32_t group = HashGroup((*random)());
    (errs(*random) ? outcomes->false_positives : outcomes->skipped)[group] += times;
  }
}

TEST(ObservedRate, OfNothingAllIsPossible) {
  const ObservedRate none = ObserveRate({});
  EXPECT_EQ(none.asked, 0U);
  EXPECT_EQ(none.rate, 0);
  EXPECT_EQ(none.lower, 0);
  EXPECT_EQ(none.upper, 1);
  EXPECT_FALSE(AbovePrediction({}, 0));
}

TEST(ObservedRate, GroupsAreBits32To37OfTheHash) {
  for (uint32_t group = 0; group < kHashGroups; ++group) {
    EXPECT_EQ(HashGroup((uint64_t{group} << 32) | 0xffffffc0ffffffffULL), group);
  }
  EXPECT_EQ(HashGroup(0xffffffff), 0U);
  EXPECT_EQ(HashGroup(uint64_t{64} << 32), 0U);
}

TEST(ObservedRate, IntervalHoldsTheRateIn95OutOf100) {
  std::mt19937_64 random(7);
  for (const double rate : {.0005, .01, .2}) {
    for (const uint64_t times : {1, 20}) {
      int held = 0;
      double width = 0;
      constexpr int kRounds = 400;
      for (int round = 0; round < kRounds; ++round) {
        FilterOutcomes outcomes;
        Ask(&random, 20000, times, rate, &outcomes);
        const ObservedRate observed = ObserveRate(outcomes);
        EXPECT_EQ(observed.asked, 20000 * times);
        EXPECT_LE(observed.lower, observed.rate);
        EXPECT_GE(observed.upper, observed.rate);
        held += observed.lower <= rate && rate <= observed.upper ? 1 : 0;
        width += (observed.upper - observed.lower) / kRounds;
      }
      EXPECT_GE(held, kRounds * .92) << rate << " x " << times;
      // Not by being wide: at most 1.6 times the binomial interval of the distinct keys (at 10 errors the Poisson limits are that).
      EXPECT_LE(width, 1.6 * 2 * 1.96 * std::sqrt(rate * (1 - rate) / 20000)) << rate << " x " << times;
    }
  }
}

TEST(ObservedRate, AHotKeyWidensTheInterval) {
  std::mt19937_64 random(8);
  FilterOutcomes outcomes;
  Ask(&random, 100000, 1, .01, &outcomes);
  const ObservedRate before = ObserveRate(outcomes);
  outcomes.false_positives[17] += 100000;  // one key, again and again
  const ObservedRate hot = ObserveRate(outcomes);
  EXPECT_GT(hot.rate, .5);
  EXPECT_LT(hot.lower, .03);  // the binomial interval would begin at .502
  EXPECT_GT(hot.upper, .9);
  EXPECT_GT(hot.upper - hot.lower, 100 * (before.upper - before.lower));
  EXPECT_FALSE(AbovePrediction(outcomes, .0115));
  // One that is denied hides how many of the others are not.
  FilterOutcomes denied;
  Ask(&random, 1000, 1, .1, &denied);
  denied.skipped[3] += 1000000;
  EXPECT_GT(ObserveRate(denied).upper, .01);
}

TEST(ObservedRate, OneKeyAloneSaysNearlyNothing) {
  FilterOutcomes outcomes;
  outcomes.false_positives[63] = 1000000;
  const ObservedRate observed = ObserveRate(outcomes);
  EXPECT_EQ(observed.rate, 1);
  EXPECT_LT(observed.lower, .05);
  EXPECT_FALSE(AbovePrediction(outcomes, .01));
}

TEST(ObservedRate, ChanceIsNotMarkedAndAHalfMoreIs) {
  std::mt19937_64 random(9);
  int marked = 0;
  for (int round = 0; round < 3000; ++round) {
    FilterOutcomes outcomes;
    Ask(&random, 3000, 1 + static_cast<uint64_t>(round % 5), .01, &outcomes);
    marked += AbovePrediction(outcomes, .01) ? 1 : 0;
  }
  EXPECT_EQ(marked, 0);  // 0.03 expected
  for (int round = 0; round < 50; ++round) {
    FilterOutcomes outcomes;
    Ask(&random, 100000, 1, .015, &outcomes);
    EXPECT_TRUE(AbovePrediction(outcomes, .01));
  }
}

TEST(ObservedRate, FewKeysAskedOftenAreNotMarked) {
  std::mt19937_64 random(10);
  for (const uint64_t keys : {2, 10, 50, 200}) {
    int marked = 0;
    for (int round = 0; round < 2000; ++round) {
      FilterOutcomes outcomes;
      Ask(&random, keys, 10000, .01, &outcomes);
      marked += AbovePrediction(outcomes, .01) ? 1 : 0;
    }
    EXPECT_LE(marked, 1) << keys;
  }
}

TEST(ObservedRate, RatesNearOneStayInside) {
  std::mt19937_64 random(11);
  FilterOutcomes outcomes;
  Ask(&random, 10000, 1, 1, &outcomes);
  const ObservedRate observed = ObserveRate(outcomes);
  EXPECT_EQ(observed.rate, 1);
  EXPECT_GT(observed.lower, .9);
  EXPECT_EQ(observed.upper, 1);
  EXPECT_TRUE(AbovePrediction(outcomes, .5));
}

}  // namespace
}  // namespace tamis
