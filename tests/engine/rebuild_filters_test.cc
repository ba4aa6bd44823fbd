// DB::RebuildFilters: what it changes and what it leaves, and filters that are brought back to their budget by themselves.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/engine/rebuild_filters_test_util.h"

namespace tamis {
namespace {

namespace fs = std::filesystem;
using internal::FileKind;
using testing_support::Contents;
using testing_support::FileOperation;
using testing_support::FilesOfKind;
using testing_support::Key;
using testing_support::ReadAll;
using Code = absl::StatusCode;
using Kind = FileOperation::Kind;
using testing_support::RebuildFiltersTest;

TEST_F(RebuildFiltersTest, BringsTheObservedRateToTheNewPredictionWithoutACompaction) {
  constexpr uint64_t kKeys = 60'000;
  options_.compaction.target_file_bytes = 128 << 10;
  Open(4);
  Fill(kKeys);
  const Rates before = Measure(20'000, kKeys);
  EXPECT_NEAR(before.observed, before.expected, 5 * std::sqrt(before.variance));
  EXPECT_GT(before.observed, 0.1 * before.negatives);
  Open(12);
  const std::vector<std::string> tables = FilesOfKind(path_, FileKind::kTable);
  ASSERT_OK(db_->RebuildFilters());
  EXPECT_EQ(FilesOfKind(path_, FileKind::kTable), tables);
  const Stats stats = GetStats();
  EXPECT_EQ(stats.compactions + stats.trivial_moves, 0u);
  EXPECT_EQ(stats.filters_rebuilt, tables.size());
  uint64_t bytes = 0;
  for (const std::string& name : FilesOfKind(path_, FileKind::kFilter)) bytes += fs::file_size(path_ + "/" + name);
  EXPECT_EQ(stats.filter_bytes_written, bytes);
  EXPECT_EQ(stats.filter_bytes, bytes) << "the tables' own filters must not stay in memory";
  const Rates after = Measure(100'000, kKeys);
  EXPECT_NEAR(after.observed, after.expected, 5 * std::sqrt(after.variance)) << after.negatives << " negative probes";
  EXPECT_LT(after.observed / after.negatives, 0.006);
  ExpectContents(*db_);
  ASSERT_OK(db_->VerifyChecksums());
}

TEST_F(RebuildFiltersTest, TheFilesAreUsedAfterAReopenAndASecondRebuildDoesNothing) {
  Open(4);
  Fill(6000);
  Open(12);
  ASSERT_OK(db_->RebuildFilters());
  const Stats before = GetStats();
  Open(12);
  const Stats after = GetStats();
  EXPECT_EQ(after.filter_bytes, before.filter_bytes);
  EXPECT_EQ(after.filters_refused, 0u);
  EXPECT_EQ(FilterFiles(), Tables());
  ASSERT_OK(db_->RebuildFilters());
  ASSERT_OK(db_->WaitForBackgroundWork());
  EXPECT_EQ(GetStats().filters_rebuilt, 0u);
  ExpectNoOrphans(*db_, path_);
  ExpectContents(*db_);
}

TEST_F(RebuildFiltersTest, ReturnsToTheTablesOwnFiltersWithoutFiles) {
  Open(4);
  Fill(6000);
  const uint64_t own_bytes = GetStats().filter_bytes;
  Open(12);
  ASSERT_OK(db_->RebuildFilters());
  EXPECT_GT(GetStats().filter_bytes, 2 * own_bytes);
  Open(4);
  ASSERT_OK(db_->RebuildFilters());
  EXPECT_EQ(GetStats().filter_bytes, own_bytes);
  EXPECT_EQ(GetStats().filter_bytes_written, 0u);
  ASSERT_OK(db_->WaitForBackgroundWork());
  EXPECT_EQ(FilterFiles(), 0u);
  ExpectContents(*db_);
  Open(4);
  EXPECT_EQ(GetStats().filter_bytes, own_bytes);
}

TEST_F(RebuildFiltersTest, WhereNoFilterIsWantedItIsDroppedAndComesBackOnlyOnRequest) {
  Open(4);
  Fill(6000);
  const uint64_t own_bytes = GetStats().filter_bytes;
  options_.filter.kind = FilterKind::kNone;
  Open();
  ASSERT_OK(db_->WaitForBackgroundWork());
  EXPECT_EQ(GetStats().filter_bytes, own_bytes) << "dropped without being asked";
  ASSERT_OK(db_->RebuildFilters());
  EXPECT_EQ(GetStats().filter_bytes, 0u);
  ExpectContents(*db_);
  ASSERT_OK(db_->VerifyChecksums());
  options_.filter.kind = FilterKind::kBlockedBloom;
  Open();
  ASSERT_OK(db_->WaitForBackgroundWork());
  EXPECT_EQ(GetStats().filter_bytes, 0u);
  EXPECT_EQ(GetStats().filters_refused, 0u);
  ASSERT_OK(db_->RebuildFilters());
  EXPECT_EQ(GetStats().filter_bytes, own_bytes);
  EXPECT_EQ(FilterFiles(), 0u);
  ExpectContents(*db_);
}

// The bits that the allocation gives to each level, shares of a level included, and nothing more to do afterwards.
TEST_F(RebuildFiltersTest, ADatabaseGoesFromUniformToOptimal) {
  Open(10);
  Fill(20'000);
  options_.filter.allocation = FilterAllocation::kOptimal;
  options_.filter.wasted_reads_goal = 0;
  Open(10);
  ASSERT_OK(db_->RebuildFilters());
  const Stats stats = GetStats();
  EXPECT_GT(stats.filters_rebuilt, 0u);
  EXPECT_EQ(stats.compactions, 0u);
  double bits = 0;
  double keys = 0;
  uint32_t filled = 0;
  for (const LevelStats& level : stats.levels) {
    if (level.files == 0) continue;
    ++filled;
    // A table more or less at the next setting, and whole lines.
    const double rounding = 1.0 + 1024.0 * static_cast<double>(level.files) / static_cast<double>(level.keys);
    EXPECT_NEAR(level.bits_per_key, level.bits_per_key_target, rounding) << "level " << level.level;
    bits += level.bits_per_key_target * static_cast<double>(level.keys);
    keys += static_cast<double>(level.keys);
  }
  EXPECT_GE(filled, 2u);
  EXPECT_NEAR(bits / keys, 10, 0.2);
  ASSERT_OK(db_->RebuildFilters());
  EXPECT_EQ(GetStats().filters_rebuilt, stats.filters_rebuilt);
  ExpectContents(*db_);
  ASSERT_OK(db_->VerifyChecksums());
}

TEST_F(RebuildFiltersTest, EachLevelGetsItsOwnBits) {
  options_.compaction.target_file_bytes = 64 << 10;
  Open(10);
  Fill(30'000);
  options_.filter.allocation = FilterAllocation::kPerLevel;
  options_.filter.bits_per_level = {20, 18, 16, 14, 6};
  Open();
  ASSERT_OK(db_->RebuildFilters());
  size_t levels = 0;
  for (const LevelStats& level : GetStats().levels) {
    if (level.files == 0) continue;
    ++levels;
    // Each filter is rounded up to a line of 512 bits, and has a header of 64 bytes.
    const double rounding = 1024.0 * static_cast<double>(level.files) / static_cast<double>(level.keys);
    EXPECT_GE(level.bits_per_key, level.bits_per_key_target) << level.level;
    EXPECT_LE(level.bits_per_key, level.bits_per_key_target + rounding) << level.level;
  }
  EXPECT_GE(levels, 3u);
  ExpectContents(*db_);
}

// ---- Readers ------------------------------------------------------------------------------------------------------------------------

TEST_F(RebuildFiltersTest, ReadersFromBeforeGoOnAndTheTablesAreNotOpenedAgain) {
  Open(4);
  Fill(6000);
  Open(12);
  ASSERT_OK(db_->RebuildFilters());
  Open(20);
  ExpectContents(*db_);  // all blocks are in the cache now
  const uint64_t blocks_read = GetStats().blocks_read;
  const size_t tables = Tables();
  ASSERT_OK_AND_ASSIGN(Snapshot snapshot, db_->GetSnapshot());
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Iterator> iterator, db_->NewIterator());
  iterator->SeekToFirst();
  std::atomic<int> table_opens{0};
  files_.SetHook([&](const FileOperation& o) {
    table_opens += o.kind == Kind::kOpen && o.name.ends_with(".table");
    return absl::OkStatus();
  });
  ASSERT_OK(db_->RebuildFilters());
  ASSERT_OK(db_->WaitForBackgroundWork());
  files_.SetHook({});
  EXPECT_EQ(table_opens, 0);
  EXPECT_EQ(FilterFiles(), 2 * tables) << "the iterator's view holds the old ones";
  EXPECT_GT(GetStats().obsolete_bytes, 0u);
  ExpectContents(*db_);
  EXPECT_EQ(GetStats().blocks_read, blocks_read) << "cached blocks were lost";
  ReadOptions as_of;
  as_of.snapshot = &snapshot;
  EXPECT_TRUE(ReadAll(*db_, as_of) == contents_);
  size_t seen = 0;
  for (; iterator->Valid(); iterator->Next()) ++seen;
  EXPECT_OK(iterator->status());
  EXPECT_EQ(seen, contents_.size());
  iterator.reset();
  ASSERT_OK(db_->WaitForBackgroundWork());
  EXPECT_EQ(FilterFiles(), tables);
  EXPECT_EQ(Tables(), tables);
  EXPECT_EQ(GetStats().obsolete_bytes, 0u);
}

TEST_F(RebuildFiltersTest, AReadOnlyHandleRefusesAndOutlivesTheFiles) {
  Open(4);
  Fill(1500);
  Open(12);
  ASSERT_OK(db_->RebuildFilters());
  Options reading = options_;
  reading.read_only = true;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<DB> reader, DB::Open(reading, path_));
  EXPECT_CODE(reader->RebuildFilters(), Code::kFailedPrecondition);
  Open(20);
  ASSERT_OK(db_->RebuildFilters());
  ASSERT_OK(db_->WaitForBackgroundWork());
  ExpectContents(*reader);
  ASSERT_OK(reader->VerifyChecksums());
  EXPECT_EQ(reader->GetStats()->filters_refused, 0u);
}

// ---- Progress -----------------------------------------------------------------------------------------------------------------------

TEST_F(RebuildFiltersTest, ACancelledRebuildKeepsWhatWasDone) {
  Open(4);
  Fill(6000);
  Open(12);
  const uint64_t total = GetStats().table_bytes;
  uint64_t last = 0;
  const absl::Status cancelled = db_->RebuildFilters([&](uint64_t done, uint64_t all) {
    EXPECT_EQ(all, total);
    EXPECT_GE(done, last);
    last = done;
    return done < total / 2;
  });
  EXPECT_CODE(cancelled, Code::kCancelled);
  const uint64_t rebuilt = GetStats().filters_rebuilt;
  EXPECT_GT(rebuilt, 0u);
  EXPECT_LT(rebuilt, Tables());
  EXPECT_EQ(FilterFiles(), rebuilt);
  Open();
  EXPECT_EQ(FilterFiles(), rebuilt);
  ASSERT_OK(db_->RebuildFilters([&](uint64_t done, uint64_t) {
    last = done;
    return true;
  }));
  EXPECT_EQ(last, total);
  EXPECT_EQ(GetStats().filters_rebuilt, Tables() - rebuilt);
  ExpectContents(*db_);
}

// ---- By itself ----------------------------------------------------------------------------------------------------------------------

// A sequential load reaches the last level by moves alone, so its tables are written for L0.
TEST_F(RebuildFiltersTest, MovedTablesComeBackToTheirBudgetAndNoFurther) {
  options_.filter.allocation = FilterAllocation::kPerLevel;
  options_.filter.bits_per_level = {16, 14, 12, 10, 8, 6, 4};
  for (const uint32_t threads : {0u, 1u, 2u}) {
    path_ = directory_.path() + "/db" + std::to_string(threads);
    options_.background_threads = threads;
    Open();
    contents_.clear();
    for (uint64_t i = 0; i < 20'000; ++i) ASSERT_OK(db_->Put(Key(i), contents_[Key(i)] = std::string(20, 'v')));
    ASSERT_OK(db_->Flush());
    ASSERT_OK(db_->WaitForBackgroundWork());
    const Stats stats = GetStats();
    EXPECT_GT(stats.trivial_moves, 10u);
    EXPECT_GT(stats.filters_rebuilt, 0u);
    for (const LevelStats& level : stats.levels) {
      if (level.files == 0) continue;
      const double rounding = 1024.0 * static_cast<double>(level.files) / static_cast<double>(level.keys);
      EXPECT_LE(level.bits_per_key, 1.25 * (level.bits_per_key_target + rounding)) << "level " << level.level;
    }
    for (int i = 0; i < 3; ++i) ASSERT_OK(db_->WaitForBackgroundWork());
    EXPECT_EQ(GetStats().filters_rebuilt, stats.filters_rebuilt) << "it goes on for ever";
    ExpectContents(*db_);
    ASSERT_OK(db_->VerifyChecksums());
    ASSERT_OK(db_->Close());
  }
}

TEST_F(RebuildFiltersTest, OnlyMoreThanAQuarterTooManyIsTooMany) {
  Open(10);
  FillInOrder(6000);
  const size_t moved = MovedTables();
  Open(8.125);
  ASSERT_OK(db_->WaitForBackgroundWork());
  EXPECT_EQ(GetStats().filters_rebuilt, 0u);
  Open(24);
  ASSERT_OK(db_->WaitForBackgroundWork());
  EXPECT_EQ(GetStats().filters_rebuilt, 0u) << "bits are added on request only";
  Open(4);  // the tables are small: header and whole lines are part of what is compared
  ASSERT_OK(db_->WaitForBackgroundWork());
  EXPECT_EQ(GetStats().filters_rebuilt, moved);
}

TEST_F(RebuildFiltersTest, TablesInTheLevelTheyWereWrittenForAreLeftAlone) {
  Open(16);
  Fill(6000);
  ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt));
  Open(4);  // as a tool with other defaults does
  ASSERT_OK(db_->WaitForBackgroundWork());
  EXPECT_EQ(GetStats().filters_rebuilt, 0u);
  EXPECT_EQ(FilterFiles(), 0u);
}

// ---- At the same time ---------------------------------------------------------------------------------------------------------------

class RebuildFiltersThreadsTest : public RebuildFiltersTest {};

TEST_F(RebuildFiltersThreadsTest, CloseEndsIt) {
  options_.background_threads = 2;
  Open(4);
  Fill(6000);
  Open(12);
  std::atomic<bool> began{false};
  std::atomic<bool> closing{false};
  absl::Status rebuilt;
  std::thread rebuilder([&] {
    rebuilt = db_->RebuildFilters([&](uint64_t, uint64_t) {
      began = true;
      while (!closing) std::this_thread::yield();
      return true;
    });
  });
  while (!began) std::this_thread::yield();
  std::thread closer([&] { EXPECT_OK(db_->Close()); });
  while (db_->Flush().code() != Code::kFailedPrecondition) std::this_thread::yield();
  closing = true;
  closer.join();
  rebuilder.join();
  EXPECT_CODE(rebuilt, Code::kFailedPrecondition);
  Open(12);
  ExpectContents(*db_);
  ASSERT_OK(db_->VerifyChecksums());
}

TEST_F(RebuildFiltersThreadsTest, RunsBesideWritesReadsAndCompactions) {
  options_.background_threads = 3;
  options_.block_cache_bytes = 64 << 10;
  for (const double bits : {4.0, 16.0, 6.0, 10.0}) {
    Open(bits);
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    threads.emplace_back([&] {
      internal::Random random(static_cast<uint64_t>(bits));
      for (int i = 0; i < 8000; ++i) {
        const std::string key = Key(2 * random.Uniform(5000));
        contents_[key] = std::string(30, static_cast<char>('a' + i % 26));
        EXPECT_OK(db_->Put(key, contents_[key]));
        if (i % 3000 == 0) EXPECT_OK(db_->CompactRange(std::nullopt, std::nullopt));
      }
      stop = true;
    });
    threads.emplace_back([&] {
      internal::Random random(9);
      std::string value;
      while (!stop) {
        const absl::Status status = db_->Get(Key(random.Uniform(10'000)), &value);
        if (!absl::IsNotFound(status)) EXPECT_OK(status);
      }
    });
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&] {
        while (!stop) EXPECT_OK(db_->RebuildFilters());
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_OK(db_->RebuildFilters());
    ASSERT_OK(db_->WaitForBackgroundWork());
    ExpectContents(*db_);
    ASSERT_OK(db_->VerifyChecksums());
    const Stats stats = GetStats();
    EXPECT_EQ(stats.background_errors, 0u) << stats.background_error;
    EXPECT_EQ(stats.filters_refused, 0u);
    ASSERT_OK(db_->Close());
  }
  Open();
  ExpectNoOrphans(*db_, path_);
  ExpectContents(*db_);
}

// A reader that opens while filter files come and go sees good filters, or falls back without a word of damage.
TEST_F(RebuildFiltersThreadsTest, ReadOnlyOpensBesideTheWriterFindWhatTheyNeed) {
  Open(4);
  Fill(3000);
  db_.reset();
  std::atomic<bool> stop{false};
  Options reading = options_;
  reading.read_only = true;
  reading.file_system = nullptr;
  std::thread reader([&] {
    while (!stop) {
      auto db = DB::Open(reading, path_);
      EXPECT_OK(db);
      if (!db.ok()) break;
      EXPECT_EQ((*db)->GetStats()->filters_refused, 0u);
      EXPECT_TRUE(ReadAll(**db) == contents_);
    }
  });
  for (int i = 0; i < 12; ++i) {
    Open(i % 2 == 0 ? 12 : 20);
    ASSERT_OK(db_->RebuildFilters());
    ASSERT_OK(db_->WaitForBackgroundWork());
  }
  stop = true;
  reader.join();
}

}  // namespace
}  // namespace tamis
