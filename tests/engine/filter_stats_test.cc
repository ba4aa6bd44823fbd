// What the statistics say of filters and lookups.
#include <gtest/gtest.h>

#include <string>

#include "engine/read/filter_ledger.h"
#include "tamis/db.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace tamis {
namespace {

std::string Key(int i) { return "key" + std::to_string(1000000 + 2 * i); }
std::string AbsentKey(int i) { return "key" + std::to_string(1000001 + 2 * i); }

class FilterStatsTest : public ::testing::Test {
 protected:
  static constexpr int kKeys = 40000;

  void Fill(double bits) {
    options_.filter.bits_per_key = bits;
    options_.filter.hash_seed = 5;
    ASSERT_OK_AND_ASSIGN(db_, DB::Open(options_, folder_.path() + "/db"));
    for (int i = 0; i < kKeys; ++i) ASSERT_OK(db_->Put({}, Key(i), "v"));
    ASSERT_OK(db_->CompactRange({}, {}));
  }
  void AskAbsent(int from, int to, int times = 1) {
    std::string value;
    for (int i = from; i < to; ++i) {
      for (int n = 0; n < times; ++n) EXPECT_TRUE(absl::IsNotFound(db_->Get({}, AbsentKey(i), &value)));
    }
  }
  LevelStats Last() {
    LevelStats last;
    const Stats stats = db_->GetStats({.filter_fill = true}).value();
    for (const LevelStats& level : stats.levels) {
      if (level.keys != 0) last = level;
    }
    return last;
  }

  testing_support::TempDir folder_;
  Options options_;
  std::unique_ptr<DB> db_;
};

TEST_F(FilterStatsTest, ObservedRateHasItsIntervalAndIsNotMarked) {
  Fill(6);
  AskAbsent(0, kKeys - 1);
  std::string value;
  for (int i = 0; i < 1000; ++i) ASSERT_OK(db_->Get({}, Key(i), &value));
  const LevelStats level = Last();
  EXPECT_EQ(level.filter_kind, FilterKind::kBlockedBloom);
  EXPECT_EQ(level.true_positives, 1000U);
  EXPECT_EQ(level.skipped + level.false_positives, kKeys - 1U);
  EXPECT_EQ(level.probes, kKeys - 1 + 1000U);
  EXPECT_LT(level.observed_fpr_lower, level.observed_fpr);
  EXPECT_GT(level.observed_fpr_upper, level.observed_fpr);
  EXPECT_NEAR(level.observed_fpr, level.predicted_fpr, .1 * level.predicted_fpr);
  EXPECT_FALSE(level.fpr_above_prediction);
  EXPECT_NEAR(level.filter_fill, level.predicted_filter_fill, .01);
  EXPECT_GT(level.predicted_filter_fill, .4);
  const Stats stats = db_->GetStats().value();
  EXPECT_EQ(stats.levels_above_prediction, 0U);
  EXPECT_EQ(stats.levels[level.level].filter_fill, 0);  // only on demand
  EXPECT_NEAR(stats.negative_share, (kKeys - 1.0) / (kKeys + 999.0), 1e-9);
  EXPECT_NEAR(stats.observed_wasted_reads, static_cast<double>(level.false_positives) / (kKeys + 999), 1e-9);
}

TEST_F(FilterStatsTest, PredictedWastedReadsFollowWhatLookupsFind) {
  Fill(10);
  Stats stats = db_->GetStats().value();
  EXPECT_EQ(stats.predicted_wasted_reads, stats.predicted_wasted_reads_absent);  // nothing learned: all absent
  EXPECT_NEAR(stats.predicted_wasted_reads_absent, .0097, .0005);
  std::string value;
  for (int i = 0; i < 20000; ++i) ASSERT_OK(db_->Get({}, Key(i), &value));
  stats = db_->GetStats().value();
  EXPECT_LT(stats.predicted_wasted_reads, .01 * stats.predicted_wasted_reads_absent);
}

TEST_F(FilterStatsTest, KeysChosenAgainstTheFilterAreMarked) {
  Fill(4);
  std::vector<int> chosen;
  for (int i = 0; i < kKeys - 1; ++i) {
    if (*db_->MayExist({}, AbsentKey(i))) chosen.push_back(i);
  }
  ASSERT_GT(chosen.size(), 1000U);
  for (const int i : chosen) AskAbsent(i, i + 1);
  EXPECT_TRUE(Last().fpr_above_prediction);
  EXPECT_EQ(db_->GetStats().value().levels_above_prediction, 1U);
}

TEST_F(FilterStatsTest, OneHotKeyIsNotMarked) {
  Fill(4);
  int hot = 0;
  while (!*db_->MayExist({}, AbsentKey(hot))) ++hot;
  AskAbsent(hot, hot + 1, 50000);
  const LevelStats level = Last();
  EXPECT_EQ(level.observed_fpr, 1);
  EXPECT_LT(level.observed_fpr_lower, .05);
  EXPECT_FALSE(level.fpr_above_prediction);
}

TEST_F(FilterStatsTest, LookupsOfEarlierFiltersDoNotMarkBetterOnes) {
  Fill(4);
  AskAbsent(0, kKeys - 1);
  ASSERT_OK(db_->Close());
  options_.filter.bits_per_key = 12;
  ASSERT_OK_AND_ASSIGN(db_, DB::Open(options_, folder_.path() + "/db"));
  AskAbsent(0, kKeys - 1);  // the old filter, 15 %
  ASSERT_OK(db_->RebuildFilters());
  AskAbsent(0, 1000);
  const LevelStats level = Last();
  EXPECT_GT(level.observed_fpr, .1);
  EXPECT_LT(level.predicted_fpr, .005);
  EXPECT_FALSE(level.fpr_above_prediction);
}

TEST(FilterLedger, WeighsEachLimitByTheLookupsOfItsTime) {
  internal::FilterLedger ledger;
  internal::LevelsLookups seen;
  internal::RateLimits limits;
  limits.fill(.2);
  EXPECT_EQ(ledger.Limit(1), 1);
  seen[1].outcomes.skipped[3] = 100;
  ledger.Settle(seen, limits);
  EXPECT_NEAR(ledger.Limit(1), .2, 1e-12);
  limits.fill(.01);
  seen[1].outcomes.false_positives[9] = 300;
  ledger.Settle(seen, limits);
  ledger.Settle(seen, limits);  // nothing new
  EXPECT_NEAR(ledger.Limit(1), (100 * .2 + 300 * .01) / 400, 1e-12);
  EXPECT_EQ(ledger.Limit(2), 1);
}

}  // namespace
}  // namespace tamis
