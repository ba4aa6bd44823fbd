// Rebuilt filters when things go wrong: damaged and missing filter files, crashes and failures at any moment of a rebuild.
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
using testing_support::CopyDatabase;
using testing_support::FileOperation;
using testing_support::FilesOfKind;
using testing_support::GetOr;
using testing_support::Key;
using testing_support::ReadBytes;
using testing_support::WriteBytes;
using Code = absl::StatusCode;
using Kind = FileOperation::Kind;
using testing_support::RebuildFiltersTest;

// ---- Damage -------------------------------------------------------------------------------------------------------------------------

TEST_F(RebuildFiltersTest, ADamagedOrMissingFileIsCountedAndTheTablesOwnFilterAnswers) {
  Open(4);
  Fill(6000);
  const uint64_t own_bytes = GetStats().filter_bytes;
  Open(12);
  ASSERT_OK(db_->RebuildFilters());
  db_.reset();
  const size_t count = FilterFiles();
  ASSERT_GE(count, 6u);
  std::string bytes = ReadBytes(FilterPath(0));
  bytes[bytes.size() / 2] ^= 1;
  WriteBytes(FilterPath(0), bytes);
  fs::resize_file(FilterPath(1), fs::file_size(FilterPath(1)) - 64);
  fs::resize_file(FilterPath(2), 0);
  const std::string third = ReadBytes(FilterPath(3));  // another table's
  WriteBytes(FilterPath(3), ReadBytes(FilterPath(4)));
  WriteBytes(FilterPath(4), third);
  fs::remove(FilterPath(5));
  for (const bool read_only : {true, false}) {
    options_.read_only = read_only;
    Open();
    const Stats stats = GetStats();
    EXPECT_EQ(stats.filters_refused, 6u);
    uint64_t without = 0;
    for (const LevelStats& level : stats.levels) without += level.files_without_filter;
    EXPECT_EQ(without, 0u);
    EXPECT_GT(stats.filter_bytes, own_bytes);
    ExpectContents(*db_);
    EXPECT_CODE(db_->VerifyChecksums(), Code::kDataLoss);
  }
  // Whatever is wrong with a filter, a rebuild puts it right.
  ASSERT_OK(db_->RebuildFilters());
  EXPECT_EQ(GetStats().filters_rebuilt, 6u);
  ASSERT_OK(db_->VerifyChecksums());
  ASSERT_OK(db_->WaitForBackgroundWork());
  EXPECT_EQ(FilterFiles(), count);
  Open();
  EXPECT_EQ(GetStats().filters_refused, 0u);
  ExpectContents(*db_);
}

TEST_F(RebuildFiltersTest, EveryFlippedByteOfAFileIsRefused) {
  Open(4);
  for (uint64_t i = 0; i < 100; ++i) contents_[Key(i)] = "v";
  for (const auto& [key, value] : contents_) ASSERT_OK(db_->Put(key, value));
  ASSERT_OK(db_->Flush());
  Open(12);
  ASSERT_OK(db_->RebuildFilters());
  db_.reset();
  ASSERT_EQ(FilterFiles(), 1u);
  const std::string good = ReadBytes(FilterPath(0));
  const std::string path = FilterPath(0);
  options_.read_only = true;
  for (size_t i = 0; i < good.size(); i += 3) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ (1 << i % 8));
    WriteBytes(path, bad);
    Open();
    ASSERT_EQ(GetStats().filters_refused, 1u) << i;
    for (const auto& [key, value] : contents_) ASSERT_EQ(GetOr(*db_, key), value) << i;
  }
}

TEST_F(RebuildFiltersTest, ATableThatCannotBeReadKeepsItsFilterAndIsNotTriedAgainAndAgain) {
  Open(12);
  FillInOrder(6000);
  const size_t moved = MovedTables();
  db_.reset();
  const std::string table = path_ + "/" + FilesOfKind(path_, FileKind::kTable).at(1);
  std::string bytes = ReadBytes(table);
  bytes[100] ^= 1;  // in its first data block
  WriteBytes(table, bytes);
  options_.filter.bits_per_key = 4;
  std::atomic<uint64_t> reads{0};
  std::atomic<int> warnings{0};
  options_.logger = [&](LogLevel, std::string_view text) { warnings += text.find("was not rebuilt") != text.npos; };
  files_.SetHook([&](const FileOperation& o) {
    if (o.kind == Kind::kRead && table.ends_with(o.name) && !o.name.empty()) ++reads;
    return absl::OkStatus();
  });
  Open();
  ASSERT_OK(db_->WaitForBackgroundWork());
  EXPECT_EQ(GetStats().filters_rebuilt, moved - 1);
  const uint64_t after_first = reads;
  for (int i = 0; i < 3; ++i) ASSERT_OK(db_->WaitForBackgroundWork());
  EXPECT_EQ(reads, after_first);
  // A new tree is looked through anew; the damaged table has had its try.
  ASSERT_OK(db_->Put("zzz", "a new tree"));
  ASSERT_OK(db_->Flush());
  ASSERT_OK(db_->WaitForBackgroundWork());
  EXPECT_EQ(warnings, 1);
  // On request it is tried, named, and the others are done.
  Open(8);
  EXPECT_CODE(db_->RebuildFilters(), Code::kDataLoss);
  EXPECT_EQ(GetStats().filters_rebuilt, Tables() - 2);  // nor that of "zzz", which needs one line for any bits
  db_.reset();
  files_.SetHook({});
}

// ---- Crashes and failures -----------------------------------------------------------------------------------------------------------

// The directory as it is before each operation of a rebuild is what a kill at that moment leaves.
TEST_F(RebuildFiltersTest, AKillAtAnyMomentLeavesADatabaseThatAnswersTheSame) {
  Open(4);
  Fill(1500);
  Open(12);
  ASSERT_OK(db_->RebuildFilters());
  Open(20);  // so that files are replaced, and the old ones deleted, too
  const std::string copy = directory_.path() + "/copy";
  int moments = 0;
  std::set<uint64_t> sizes_seen;
  Options options = options_;
  options.file_system = nullptr;
  bool inside = false;
  files_.SetHook([&](const FileOperation& o) {
    if (o.kind == Kind::kOpen || o.kind == Kind::kRead || inside || testing::Test::HasFailure()) return absl::OkStatus();
    inside = true;
    ++moments;
    SCOPED_TRACE("moment " + std::to_string(moments));
    for (const bool read_only : {true, false}) {
      CopyDatabase(path_, copy);
      options.read_only = read_only;
      auto db = DB::Open(options, copy);
      EXPECT_OK(db);
      if (!db.ok()) break;
      ExpectContents(**db);
      EXPECT_OK((*db)->VerifyChecksums());
      auto stats = (*db)->GetStats();
      EXPECT_EQ(stats->filters_refused, 0u);
      sizes_seen.insert(stats->filter_bytes);
      if (!read_only) ExpectNoOrphans(**db, copy);
      EXPECT_OK((*db)->Close());
    }
    inside = false;
    return absl::OkStatus();
  });
  ASSERT_OK(db_->RebuildFilters());
  ASSERT_OK(db_->WaitForBackgroundWork());
  files_.SetHook({});
  EXPECT_GT(moments, static_cast<int>(Tables()) * 6);
  EXPECT_EQ(sizes_seen.size(), Tables() + 1) << "states between which the moments lie";
  EXPECT_EQ(FilterFiles(), Tables());
}

TEST_F(RebuildFiltersTest, AFailureOfAnyOperationLosesNothingAndLeavesNoOrphan) {
  Open(4);
  Fill(1500);
  db_.reset();
  const std::string original = directory_.path() + "/original";
  CopyDatabase(path_, original);
  int failed = 0;
  for (int fail_at = 0;; ++fail_at) {
    SCOPED_TRACE("failed at operation " + std::to_string(fail_at));
    CopyDatabase(original, path_);
    Open(12);
    std::atomic<int> count{0};
    const bool exhausted = fail_at % 2 == 0;
    files_.SetHook([&](const FileOperation& o) {
      const bool counts = o.kind != Kind::kOpen && (o.kind != Kind::kRead || o.name.ends_with(".filter"));
      if (!counts || count.fetch_add(1) != fail_at) return absl::OkStatus();
      return exhausted ? absl::ResourceExhaustedError("full") : absl::UnknownError("broken");
    });
    const absl::Status status = db_->RebuildFilters();
    files_.SetHook({});
    if (count <= fail_at) {
      ASSERT_OK(status);
      break;
    }
    failed += status.ok() ? 0 : 1;
    ExpectContents(*db_);
    if (status.ok() || absl::IsResourceExhausted(status)) {
      // Nothing is in doubt: writes go on, and what failed can be done.
      if (db_->Put("after", "1").ok()) {
        ASSERT_OK(db_->Delete("after"));
        ASSERT_OK(db_->RebuildFilters());
        ASSERT_OK(db_->WaitForBackgroundWork());
        ExpectNoOrphans(*db_, path_);
        EXPECT_EQ(FilterFiles(), Tables());
      }
    }
    db_->Close().IgnoreError();
    Open(12);
    ExpectContents(*db_);
    ASSERT_OK(db_->VerifyChecksums());
    EXPECT_EQ(GetStats().filters_refused, 0u);
    ExpectNoOrphans(*db_, path_);
  }
  EXPECT_GT(failed, 10);
}

TEST_F(RebuildFiltersTest, AManifestThatFailedStopsWritesAndRebuilds) {
  Open(4);
  Fill(1500);
  Open(12);
  files_.SetHook([](const FileOperation& o) {
    return o.kind == Kind::kSync && o.name.starts_with("MANIFEST") ? absl::UnknownError("Input/output error") : absl::OkStatus();
  });
  EXPECT_FALSE(db_->RebuildFilters().ok());
  files_.SetHook({});
  EXPECT_CODE(db_->Put("k", "v"), Code::kFailedPrecondition);
  EXPECT_CODE(db_->RebuildFilters(), Code::kFailedPrecondition);
  EXPECT_EQ(FilterFiles(), 1u) << "the manifest may list it";
  ExpectContents(*db_);
  db_->Close().IgnoreError();
  Open();
  ExpectContents(*db_);
  ExpectNoOrphans(*db_, path_);
}

TEST_F(RebuildFiltersTest, AFilterFileDiesWithItsTable) {
  Open(4);
  Fill(6000);
  Open(12);
  ASSERT_OK(db_->RebuildFilters());
  EXPECT_EQ(FilterFiles(), Tables());
  ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt));
  ASSERT_OK(db_->WaitForBackgroundWork());
  ExpectNoOrphans(*db_, path_);
  ExpectContents(*db_);
}

TEST_F(RebuildFiltersTest, OrphansGoAtTheNextOpenAndListedFilesStay) {
  Open(4);
  Fill(1500);
  Open(12);
  ASSERT_OK(db_->RebuildFilters());
  db_.reset();
  const size_t listed = FilterFiles();
  WriteBytes(path_ + "/900001.filter", "an orphan");
  Open();
  EXPECT_EQ(FilterFiles(), listed);
  EXPECT_EQ(GetStats().filters_refused, 0u);
}

}  // namespace
}  // namespace tamis
