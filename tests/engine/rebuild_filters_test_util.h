// A database with rebuilt filters: settings, contents, and what must hold of its files.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>

#include "base/random.h"
#include "tests/support/database_test_util.h"
#include "tests/support/hooked_file_system.h"

namespace tamis::testing_support {

class RebuildFiltersTest : public ::testing::Test {
 protected:
  RebuildFiltersTest() : files_(FileSystem::Posix()), path_(directory_.path() + "/db") {
    options_.file_system = &files_;
    options_.filter.hash_seed = 7;
    options_.filter.allocation = FilterAllocation::kUniform;
    options_.filter.bits_per_key = 4;
    options_.logger = [](LogLevel, std::string_view) {};
  }
  void Open(double bits) {
    options_.filter.bits_per_key = bits;
    Open();
  }
  void Open() {
    db_.reset();
    ASSERT_OK_AND_ASSIGN(db_, DB::Open(options_, path_));
  }
  // Even numbers, in an order that fills all levels. Odd ones are absent, and between keys of every level.
  void Fill(uint64_t count) {
    ASSERT_EQ(std::gcd(count, uint64_t{7919}), 1u);
    for (uint64_t i = 0; i < count; ++i) {
      const std::string key = Key(2 * (i * 7919 % count));
      contents_[key] = "value of " + key;
      ASSERT_OK(db_->Put(key, contents_[key]));
    }
    for (uint64_t i = 0; i < count; i += 50) {
      ASSERT_OK(db_->Delete(Key(2 * i)));
      contents_.erase(Key(2 * i));
    }
    ASSERT_OK(db_->Flush());
    ASSERT_OK(db_->WaitForBackgroundWork());
  }
  // Even numbers in ascending order: the tables reach their level by being moved, and those that did are the ones whose filters are
  // corrected without being asked.
  void FillInOrder(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      const std::string key = Key(2 * i);
      contents_[key] = "value of " + key;
      ASSERT_OK(db_->Put(key, contents_[key]));
    }
    ASSERT_OK(db_->Flush());
    ASSERT_OK(db_->WaitForBackgroundWork());
    ASSERT_GT(MovedTables(), 1u);
  }
  // Moved since they were written: those below L0 that no compaction made.
  size_t MovedTables() {
    const Stats stats = GetStats();
    EXPECT_EQ(stats.compactions, 0u);
    return Tables() - stats.levels[0].files;
  }
  Stats GetStats() {
    auto stats = db_->GetStats();
    EXPECT_OK(stats);
    return *stats;
  }
  size_t Tables() const { return FilesOfKind(path_, internal::FileKind::kTable).size(); }
  size_t FilterFiles() const { return FilesOfKind(path_, internal::FileKind::kFilter).size(); }
  std::string FilterPath(size_t i) const { return path_ + "/" + FilesOfKind(path_, internal::FileKind::kFilter).at(i); }
  // Every file of the kind is one that the database lists.
  void ExpectNoOrphans(const DB& db, const std::string& path) {
    const std::string listed = db.GetProperty("tamis.files").value_or("");
    for (const internal::FileKind kind : {internal::FileKind::kTable, internal::FileKind::kFilter}) {
      for (const std::string& name : FilesOfKind(path, kind)) EXPECT_NE(listed.find(name), std::string::npos) << name << " is an orphan";
    }
  }
  void ExpectContents(const DB& db) {
    EXPECT_TRUE(ReadAll(db) == contents_);
    for (const auto& [key, value] : contents_) ASSERT_EQ(GetOr(db, key), value) << key;
  }
  // All levels together: false positives and what the filters' own rates predict for as many negative probes.
  struct Rates {
    double negatives = 0;
    double observed = 0;
    double expected = 0;
    double variance = 0;
  };
  Rates Measure(uint64_t absent_keys, uint64_t present_keys) {
    const Stats before = GetStats();
    internal::Random random(1);
    std::string value;
    for (uint64_t i = 0; i < absent_keys; ++i) {
      EXPECT_CODE(db_->Get(Key(2 * random.Uniform(present_keys) + 1, "key") + Key(i, "/"), &value), absl::StatusCode::kNotFound);
    }
    const Stats after = GetStats();
    Rates rates;
    for (size_t i = 0; i < after.levels.size(); ++i) {
      const LevelStats& level = after.levels[i];
      const double positives = static_cast<double>(level.false_positives - before.levels[i].false_positives);
      const double negatives = static_cast<double>(level.skipped - before.levels[i].skipped) + positives;
      rates.negatives += negatives;
      rates.observed += positives;
      rates.expected += level.predicted_fpr * negatives;
      rates.variance += level.predicted_fpr * (1 - level.predicted_fpr) * negatives;
    }
    return rates;
  }

  const TempDir directory_{TempDir::MemoryBase()};
  HookedFileSystem files_;
  Options options_ = SmallOptions();
  std::string path_;
  std::unique_ptr<DB> db_;
  Contents contents_;
};

}  // namespace tamis::testing_support
