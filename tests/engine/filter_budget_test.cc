#include "engine/compact/filter_budget.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/mem_file_system.h"
#include "engine/read/lookup_history.h"
#include "engine/version/version_edit.h"
#include "tamis/db.h"
#include "tests/support/status_matchers.h"

namespace tamis::internal {
namespace {

constexpr uint64_t kMany = 1'000'000;  // lookups

FilterOptions OptimalOptions(double bits, double goal = 0) {
  return {.allocation = FilterAllocation::kOptimal, .bits_per_key = bits, .wasted_reads_goal = goal};
}

// One run a level from L1 on, ratio 10.
std::vector<RunSize> Tree(uint32_t levels, uint64_t smallest = 10'000) {
  std::vector<RunSize> runs;
  for (uint32_t level = 1; level <= levels; ++level, smallest *= 10) runs.push_back({.level = level, .keys = smallest});
  return runs;
}

// `absent` of kMany lookups find nothing, the others find keys spread by size.
std::vector<LevelMisses> Lookups(const std::vector<RunSize>& runs, double absent) {
  std::vector<LevelMisses> lookups(kMaxLevels, {.lookups = kMany});
  double all = 0;
  for (const RunSize& run : runs) all += static_cast<double>(run.keys);
  double below = all;
  for (const RunSize& run : runs) {
    const double asked = absent + (1 - absent) * below / all;
    below = std::max(0.0, below - static_cast<double>(run.keys));
    lookups[run.level] = {.lookups = kMany,
                          .probes = static_cast<uint64_t>(asked * kMany),
                          .misses = static_cast<uint64_t>((absent + (1 - absent) * below / all) * kMany)};
  }
  return lookups;
}

double Spent(const std::vector<RunSize>& runs, const std::vector<FilterBits>& bits) {
  double sum = 0;
  for (size_t i = 0; i < runs.size(); ++i) sum += static_cast<double>(runs[i].keys) * bits[i].average();
  return sum;
}

double Keys(const std::vector<RunSize>& runs) { return Spent(runs, std::vector<FilterBits>(runs.size(), {.bits_per_key = 1, .next = 1})); }

TEST(AllocateFilterBits, UniformAndPerLevelLookAtTheLevelOnly) {
  const std::vector<RunSize> runs = {{.level = 0, .keys = 10}, {.level = 2, .keys = 1'000'000}};
  for (const FilterBits& at : AllocateFilterBits({.allocation = FilterAllocation::kUniform, .bits_per_key = 12}, runs, {}))
    EXPECT_EQ(at.average(), 12);
  const FilterOptions per_level{.allocation = FilterAllocation::kPerLevel, .bits_per_level = {16, 8}};
  EXPECT_EQ(AllocateFilterBits(per_level, runs, {})[0].average(), 16);
  EXPECT_EQ(AllocateFilterBits(per_level, runs, {})[1].average(), 8);
  FilterOptions none = OptimalOptions(10);
  none.kind = FilterKind::kNone;
  EXPECT_EQ(AllocateFilterBits(none, runs, {})[1].average(), 0);
}

TEST(AllocateFilterBits, OptimalSpendsTheAverageAndFavoursSmallRuns) {
  const std::vector<RunSize> runs = Tree(5);
  const std::vector<FilterBits> bits = AllocateFilterBits(OptimalOptions(10), runs, {});
  EXPECT_NEAR(Spent(runs, bits), 10 * Keys(runs), 24);
  const double expected[] = {24, 24, 20.62, 14.75, 9.40};
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(bits[i].average(), expected[i], .02) << i;
  // The same as bytes, whatever the average.
  FilterOptions bytes = OptimalOptions(3);
  bytes.memory_budget_bytes = static_cast<uint64_t>(10 * Keys(runs) / 8);
  const std::vector<FilterBits> by_bytes = AllocateFilterBits(bytes, runs, {});
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(by_bytes[i].average(), bits[i].average(), 1e-3) << i;
}

TEST(AllocateFilterBits, ALastLevelOfAnotherKindHasItsOwnCurve) {
  const auto wasted = [](const FilterOptions& options, const std::vector<RunSize>& runs) {
    const std::vector<FilterBits> bits = AllocateFilterBits(options, runs, {});
    double sum = 0;
    for (size_t i = 0; i < runs.size(); ++i) {
      const FilterKind kind = KindOfTables(options, runs[i].last_level);
      const auto rate = [&](double at) { return at == 0 ? 1.0 : fpr_model::FalsePositiveRate(kind, at); };
      sum += (1 - bits[i].next_share) * rate(bits[i].bits_per_key) + bits[i].next_share * rate(bits[i].next);
    }
    return std::pair(sum, bits.back().average());
  };
  std::vector<RunSize> runs = Tree(4);
  runs.back().last_level = true;
  FilterOptions options = OptimalOptions(8);
  const auto [blocked, blocked_bits] = wasted(options, runs);
  options.last_level_kind = FilterKind::kRibbon;
  const auto [mixed, mixed_bits] = wasted(options, runs);
  EXPECT_LT(mixed, .5 * blocked);
  EXPECT_NE(mixed_bits, blocked_bits);
  // The same bits as of an allocator that is given the two curves.
  const FilterCurve bloom = CurveOf(FilterKind::kBlockedBloom).value();
  const FilterCurve ribbon = CurveOf(FilterKind::kRibbon).value();
  std::vector<FilterRun> filter_runs;
  for (const RunSize& run : runs) filter_runs.push_back({.keys = run.keys, .curve = run.last_level ? ribbon : bloom});
  ASSERT_OK_AND_ASSIGN(const FilterPlan plan, OptimalAllocation(filter_runs, {.bits = BudgetBits(filter_runs, 8)}));
  EXPECT_NEAR(mixed, plan.wasted_reads, 1e-9);
  EXPECT_EQ(mixed_bits, plan.runs.back().bits_per_key());
  EXPECT_EQ(KindOfTables({.kind = FilterKind::kNone, .last_level_kind = FilterKind::kRibbon}, true), FilterKind::kNone);
}

TEST(AllocateFilterBits, BinaryFuseIsNotPromisedToTablesThatCannotHaveIt) {
  FilterOptions options = OptimalOptions(11);
  options.kind = FilterKind::kBinaryFuse;
  for (const FilterBits& at : AllocateFilterBits(options, Tree(4), {})) {
    for (const double bits : {at.bits_per_key, at.next}) {
      if (bits > 9.5) {
        EXPECT_EQ(fpr_model::BuiltKind(FilterKind::kBinaryFuse, 10'000, bits), FilterKind::kBinaryFuse) << bits;
      }
    }
  }
}

TEST(AllocateFilterBits, OptimalStopsAtTheGoal) {
  const std::vector<RunSize> runs = Tree(5);
  for (const auto& [absent, average] : {std::pair{.01, 7.1}, std::pair{.001, 3.0}}) {
    const std::vector<FilterBits> bits = AllocateFilterBits(OptimalOptions(10, .001), runs, Lookups(runs, absent));
    // 64 lookups of the prior among a million: somewhat above.
    EXPECT_NEAR(Spent(runs, bits) / Keys(runs) / average, 1, .05) << absent;
  }
}

TEST(AllocateFilterBits, TheLastFilterIsDroppedOnlyAfterManyLookups) {
  const std::vector<RunSize> runs = Tree(4);
  std::vector<LevelMisses> lookups(kMaxLevels, {.lookups = kLookupsBeforeDropping - 1, .probes = 1000});
  EXPECT_GE(AllocateFilterBits(OptimalOptions(10, .01), runs, lookups)[3].bits_per_key, 2);
  for (LevelMisses& level : lookups) level.lookups = kLookupsBeforeDropping;
  EXPECT_EQ(AllocateFilterBits(OptimalOptions(10, .01), runs, lookups)[3].average(), 0);
  // Unless the budget does not hold it.
  EXPECT_EQ(AllocateFilterBits(OptimalOptions(.4), runs, {})[3].average(), 0);
}

TEST(AllocateFilterBits, TakesTreesOfAnyShape) {
  EXPECT_TRUE(AllocateFilterBits(OptimalOptions(10), {}, {}).empty());
  const std::vector<RunSize> odd = {{.level = 0, .keys = 0}, {.level = 0, .keys = 1}, {.level = 11, .keys = ~uint64_t{0}}};
  const std::vector<FilterBits> bits = AllocateFilterBits(OptimalOptions(10), odd, std::vector<LevelMisses>(2));
  EXPECT_EQ(bits[0].average(), 0);
  EXPECT_EQ(bits[1].average(), 24);
}

TEST(FilterDivider, KeepsTheShareOverTables) {
  for (double share : {0.0, .03, .25, .5, .61, .99}) {
    FilterDivider divider({.bits_per_key = 9, .next = 9.125, .next_share = share});
    uint64_t next = 0, all = 0;
    for (uint64_t i = 0; i < 1000; ++i) {
      const uint64_t keys = 1000 + i * 7919 % 500;
      all += keys;
      if (divider.Take(keys) == 9.125) next += keys;
      // Never further from the share than half a table.
      EXPECT_LE(std::abs(static_cast<double>(next) - share * static_cast<double>(all)), 1500 / 2.0 + 1) << share << ' ' << i;
    }
  }
}

TEST(FilterDivider, CarriesTheRoundingFromJobToJob) {
  double carry = 0;
  int next = 0;
  for (int job = 0; job < 100; ++job) {
    FilterDivider divider({.bits_per_key = 0, .next = 2, .next_share = .3}, carry);
    if (divider.Take(5000) == 2) ++next;
    carry = divider.carry();
  }
  EXPECT_EQ(next, 30);
}

TEST(LookupHistory, AddsWhatWasCountedSinceToWhatWasSaved) {
  LookupCounters counters;
  LookupHistory history;
  history.Restore({{}, {.lookups = 100, .probes = 90, .misses = 80}});
  LookupCounters::Stripe& mine = counters.Mine();
  for (int round = 1; round <= 2; ++round) {
    for (int i = 0; i < 10; ++i) {
      mine.Add(LookupCounters::kGets);
      const uint64_t hash = static_cast<uint64_t>(i) << 32;
      if (i < 4) {
        mine.AddSkipped(1, hash);
      } else if (i < 5) {
        mine.AddFalsePositive(1, hash);
      } else {
        mine.Add(1, LookupCounters::kTruePositive);
      }
      mine.Add(2, LookupCounters::kUnfiltered);
      if (i < 3) mine.Add(2, LookupCounters::kUnfilteredMiss);
    }
    history.Fold(counters);
    history.Fold(counters);  // nothing new
    const auto n = static_cast<uint64_t>(round);
    EXPECT_EQ(history.levels()[1], (LevelMisses{.lookups = 100 + 10 * n, .probes = 90 + 10 * n, .misses = 80 + 5 * n}));
    EXPECT_EQ(history.levels()[2], (LevelMisses{.lookups = 10 * n, .probes = 10 * n, .misses = 3 * n}));
    EXPECT_EQ(history.unsaved(), 10 * n);
  }
  history.MarkSaved();
  EXPECT_EQ(history.unsaved(), 0U);
}

TEST(LookupsField, IsOptionalForOldReadersAndReplacesWhatWasBefore) {
  VersionEdit edit;
  edit.lookups = {{.lookups = 1, .probes = 2, .misses = 3}, {.lookups = uint64_t{1} << 60, .probes = 5, .misses = 0}};
  const std::string bytes = edit.Encode();
  EXPECT_EQ(bytes[0], 20);  // number 10 without the must-understand bit
  ASSERT_OK_AND_ASSIGN(const VersionEdit back, VersionEdit::Decode(bytes));
  EXPECT_EQ(back.lookups, edit.lookups);
  EXPECT_EQ(back.DebugString(), edit.DebugString());
  ManifestState state;
  ASSERT_OK(state.Apply(edit));
  ASSERT_OK(state.Apply(VersionEdit{}));
  EXPECT_EQ(state.Snapshot().lookups, edit.lookups);
  edit.lookups->pop_back();
  ASSERT_OK(state.Apply(edit));
  EXPECT_EQ(state.lookups.size(), 1U);
}

TEST(LookupsField, MalformedIsDataLoss) {
  VersionEdit edit;
  edit.lookups = {{.lookups = 1, .probes = 2, .misses = 3}};
  const std::string good = edit.Encode();
  EXPECT_CODE(VersionEdit::Decode(good + good), absl::StatusCode::kDataLoss);
  EXPECT_CODE(VersionEdit::Decode(std::string("\x14\x02\x01\x02", 4)), absl::StatusCode::kDataLoss);  // two numbers of three
  edit.lookups = std::vector<LevelMisses>(kMaxLevels + 1);
  EXPECT_CODE(VersionEdit::Decode(edit.Encode()), absl::StatusCode::kDataLoss);
}

class OptimalDbTest : public ::testing::Test {
 protected:
  OptimalDbTest() {
    options_.file_system = files_.get();
    options_.background_threads = 0;
    options_.memtable_bytes = 64 << 10;
    options_.compaction.level_base_bytes = 64 << 10;
    options_.compaction.target_file_bytes = 16 << 10;
    options_.compaction.size_ratio = 4;
    options_.filter.allocation = FilterAllocation::kOptimal;
    options_.filter.wasted_reads_goal = 0;
  }
  void Open() {
    db_.reset();
    ASSERT_OK_AND_ASSIGN(db_, DB::Open(options_, "/db"));
  }
  void Fill(int keys) {
    for (int i = 0; i < keys; ++i) ASSERT_OK(db_->Put("key" + std::to_string(i * 7919LL % 1'000'003), std::string(50, 'v')));
    ASSERT_OK(db_->Flush());
    ASSERT_OK(db_->WaitForBackgroundWork());
  }

  const std::unique_ptr<FileSystem> files_ = NewMemFileSystem();
  Options options_;
  std::unique_ptr<DB> db_;
};

TEST_F(OptimalDbTest, SmallLevelsGetMoreAndTheAverageIsKept) {
  Open();
  Fill(60'000);
  ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt, {}));
  Fill(15'000);  // the tables above are now written beside a full last level
  ASSERT_OK_AND_ASSIGN(const Stats stats, db_->GetStats());
  double keys = 0, filter_bytes = 0, last = 0, above = 0;
  for (const LevelStats& level : stats.levels) {
    if (level.keys == 0) continue;
    keys += static_cast<double>(level.keys);
    filter_bytes += static_cast<double>(level.filter_bytes);
    above = std::max(above, last);
    last = level.bits_per_key;
  }
  EXPECT_GT(above, last + 1);
  // Tables of a few hundred keys have a header and a half line each beside their bits.
  EXPECT_LT(8 * filter_bytes / keys, 10 * 1.25);
  for (int i = 0; i < 60'000; i += 97) {
    std::string value;
    ASSERT_OK(db_->Get("key" + std::to_string(i * 7919LL % 1'000'003), &value));
  }
}

TEST_F(OptimalDbTest, WhatLookupsFindIsKeptOverReopeningAndUsed) {
  options_.filter.wasted_reads_goal = .01;
  Open();
  Fill(20'000);
  ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt, {}));
  const auto filter_bytes = [&] {
    uint64_t sum = 0;
    const Stats stats = db_->GetStats().value();
    for (const LevelStats& level : stats.levels) sum += level.filter_bytes;
    return sum;
  };
  const uint64_t before = filter_bytes();
  EXPECT_GT(before, 20'000U);
  std::string value;
  for (int i = 0; i < 70'000; ++i) ASSERT_OK(db_->Get("key" + std::to_string(i % 20'000 * 7919LL % 1'000'003), &value));
  ASSERT_OK(db_->Close());
  Open();
  // Nothing was looked for in vain: rewritten, the only level needs no filter.
  Fill(20'000);
  ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt, {}));
  EXPECT_EQ(filter_bytes(), 0U);
  ASSERT_OK_AND_ASSIGN(const Stats stats, db_->GetStats());
  for (const LevelStats& level : stats.levels) {
    if (level.keys == 0) continue;
    EXPECT_EQ(level.bits_per_key_target, 0) << level.level;
  }
  // And once it is, it gets one again.
  for (int i = 0; i < 20'000; ++i) db_->Get("key" + std::to_string(i) + "x", &value).IgnoreError();
  Fill(20'000);
  ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt, {}));
  EXPECT_GT(filter_bytes(), before / 2);
}

TEST_F(OptimalDbTest, OddSettingsAreRefused) {
  const auto refused = [&](const FilterOptions& filter) {
    options_.filter = filter;
    EXPECT_CODE(DB::Open(options_, "/odd"), absl::StatusCode::kInvalidArgument);
  };
  refused(OptimalOptions(-1));
  refused(OptimalOptions(25));
  refused(OptimalOptions(std::nan("")));
  refused(OptimalOptions(10, -1));
  refused(OptimalOptions(10, std::nan("")));
  refused(OptimalOptions(10, HUGE_VAL));
  options_.filter = OptimalOptions(.5);
  EXPECT_OK(DB::Open(options_, "/db"));
}

}  // namespace
}  // namespace tamis::internal
