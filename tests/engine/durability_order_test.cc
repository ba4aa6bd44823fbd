// The order in which the disk changes: what a crash between any two operations could break, seen in a journal of them. And what happens
// when one of them fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "tests/support/database_test_util.h"
#include "tests/support/hooked_file_system.h"

namespace tamis {
namespace {

using testing_support::FileOperation;
using testing_support::GetOr;
using testing_support::Key;
using testing_support::ReadAll;
using testing_support::SmallOptions;
using Kind = FileOperation::Kind;

bool IsLog(const FileOperation& operation) { return operation.name.ends_with(".log"); }
bool IsTable(const FileOperation& operation) { return operation.name.ends_with(".table"); }
bool IsFilter(const FileOperation& operation) { return operation.name.ends_with(".filter"); }
bool IsManifest(const FileOperation& operation) { return operation.name.starts_with("MANIFEST"); }

// A fragment header and a record head: 8 bytes, three small varints and the offset.
constexpr uint64_t kMostProofBytes = 20;

class DurabilityOrderTest : public ::testing::Test {
 protected:
  DurabilityOrderTest() : files_(FileSystem::Posix()), path_(directory_.path() + "/db") { options_.file_system = &files_; }
  void Open() {
    db_.reset();
    ASSERT_OK_AND_ASSIGN(db_, DB::Open(options_, path_));
  }
  // Index of the first operation from `from` on that `match` accepts; the size of the journal if there is none.
  template <typename Match>
  static size_t Find(const std::vector<FileOperation>& journal, size_t from, const Match& match) {
    for (size_t i = from; i < journal.size(); ++i) {
      if (match(journal[i])) return i;
    }
    return journal.size();
  }
  static void FailWith(testing_support::HookedFileSystem* files, absl::Status status, std::function<bool(const FileOperation&)> which) {
    files->SetHook([=](const FileOperation& operation) { return which(operation) ? status : absl::OkStatus(); });
  }

  testing_support::TempDir directory_{testing_support::TempDir::MemoryBase()};
  testing_support::HookedFileSystem files_;
  Options options_ = SmallOptions();
  std::string path_;
  std::unique_ptr<DB> db_;
};

// Every table is synced before a manifest edit follows it, and the directory between; every unlink of a table, log or manifest follows a
// synced manifest.
void CheckJournal(const std::vector<FileOperation>& journal) {
  std::set<std::string> not_synced;  // files written since their last sync
  bool directory_stale = false;      // names made or renamed since the last sync of the directory
  bool filter_unlisted = false;      // a filter file made since the last sync of the directory
  bool manifest_stale = false;       // manifest written but not synced
  for (const FileOperation& operation : journal) {
    switch (operation.kind) {
      case Kind::kCreate:
        if (IsTable(operation) || IsFilter(operation) || IsLog(operation) || IsManifest(operation)) directory_stale = true;
        if (IsFilter(operation)) filter_unlisted = true;
        break;
      case Kind::kAppend:
      case Kind::kWrite:
        // A proof, stored behind a sync that has already happened, is smaller than any edit; nothing depends on it.
        if (IsManifest(operation) && operation.bytes <= kMostProofBytes) break;
        not_synced.insert(operation.name);
        if (IsManifest(operation)) {
          for (const std::string& name : not_synced) {
            EXPECT_FALSE(name.ends_with(".table") || name.ends_with(".filter")) << name << " is listed before it is durable";
          }
          EXPECT_FALSE(filter_unlisted) << "a filter file is listed before its name is durable";
          manifest_stale = true;
        }
        break;
      case Kind::kSync:
        not_synced.erase(operation.name);
        if (IsManifest(operation)) manifest_stale = false;
        break;
      case Kind::kSyncDirectory:
        directory_stale = false;
        filter_unlisted = false;
        break;
      case Kind::kRename:
        if (operation.new_name != "CURRENT") break;
        EXPECT_FALSE(manifest_stale) << "CURRENT names a manifest that is not durable";
        EXPECT_EQ(not_synced.count(operation.name), 0u) << "CURRENT is renamed before its bytes are durable";
        EXPECT_FALSE(directory_stale) << "CURRENT names a manifest whose name is not durable";
        directory_stale = true;
        break;
      case Kind::kRemove:
        if (!IsTable(operation) && !IsFilter(operation) && !IsLog(operation) && !IsManifest(operation)) break;
        EXPECT_FALSE(manifest_stale) << operation.name << " is removed before the edit that drops it is durable";
        break;
      default:
        break;
    }
  }
}

TEST_F(DurabilityOrderTest, ALongLifeKeepsTheOrder) {
  Open();
  for (uint64_t i = 0; i < 20'000; ++i) ASSERT_OK(db_->Put({.sync = i % 500 == 0}, Key(i * 7919 % 4000), std::string(40, 'v')));
  ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt));
  ASSERT_OK(db_->Close());
  Open();
  ASSERT_OK(db_->Put("after", "reopen"));
  // Filter files are made, replaced and dropped again.
  for (const double bits : {16.0, 20.0, 10.0}) {
    options_.filter.bits_per_key = bits;
    Open();
    ASSERT_OK(db_->RebuildFilters());
    ASSERT_OK(db_->WaitForBackgroundWork());
  }
  db_.reset();
  const std::vector<FileOperation> journal = files_.journal();
  EXPECT_GT(journal.size(), 1000u);
  EXPECT_GT(std::count_if(journal.begin(), journal.end(), [](const auto& o) { return o.kind == Kind::kRemove && IsFilter(o); }), 1);
  CheckJournal(journal);
}

TEST_F(DurabilityOrderTest, CurrentIsSwitchedOnlyToADurableManifestAndMadeDurable) {
  Open();
  const std::vector<FileOperation> journal = files_.journal();
  const size_t made = Find(journal, 0, [](const auto& o) { return o.kind == Kind::kCreate && IsManifest(o); });
  const size_t synced = Find(journal, made, [](const auto& o) { return o.kind == Kind::kSync && IsManifest(o); });
  const size_t listed = Find(journal, synced, [](const auto& o) { return o.kind == Kind::kSyncDirectory; });
  const size_t temporary = Find(journal, listed, [](const auto& o) { return o.kind == Kind::kSync && o.name.ends_with(".tmp"); });
  const size_t renamed = Find(journal, temporary, [](const auto& o) { return o.kind == Kind::kRename && o.new_name == "CURRENT"; });
  const size_t durable = Find(journal, renamed, [](const auto& o) { return o.kind == Kind::kSyncDirectory; });
  EXPECT_LT(durable, journal.size());
}

TEST_F(DurabilityOrderTest, ALogIsDurableAndListedBeforeItsFirstRecord) {
  Open();
  const std::vector<FileOperation> before = files_.journal();
  const size_t made = Find(before, 0, [](const auto& o) { return o.kind == Kind::kCreate && IsLog(o); });
  const size_t synced = Find(before, made, [](const auto& o) { return o.kind == Kind::kSync && IsLog(o); });
  const size_t directory = Find(before, synced, [](const auto& o) { return o.kind == Kind::kSyncDirectory; });
  const size_t listed = Find(before, directory, [](const auto& o) { return o.kind == Kind::kSync && IsManifest(o); });
  ASSERT_LT(listed, before.size()) << "the first log is not listed before Open returns";
  files_.ClearJournal();
  ASSERT_OK(db_->Put({.sync = true}, "k", "v"));
  const std::vector<FileOperation> journal = files_.journal();
  const size_t written = Find(journal, 0, [](const auto& o) { return o.kind == Kind::kWrite && IsLog(o); });
  EXPECT_LT(Find(journal, written, [](const auto& o) { return o.kind == Kind::kSync && IsLog(o); }), journal.size())
      << "acknowledged without a sync";
}

TEST_F(DurabilityOrderTest, TheClosedLogIsDurableBeforeASyncedWriteToTheNewOneReturns) {
  Open();
  ASSERT_OK(db_->Put("unsynced", "in the first log"));
  // No table can be made: the first log stays the only place of its record.
  FailWith(&files_, absl::ResourceExhaustedError("disk full"), [](const auto& o) { return o.kind == Kind::kCreate && IsTable(o); });
  EXPECT_CODE(db_->Flush(), absl::StatusCode::kResourceExhausted);
  files_.ClearJournal();
  // Either it is refused (the flush is still due) or the closed log was synced first.
  const absl::Status status = db_->SyncLog();
  ASSERT_OK(status);
  const std::vector<FileOperation> journal = files_.journal();
  std::set<std::string> synced;
  for (const auto& o : journal) {
    if (o.kind == Kind::kSync && IsLog(o)) synced.insert(o.name);
  }
  EXPECT_EQ(synced.size(), 2u) << "both logs must be durable when SyncLog returns";
}

TEST_F(DurabilityOrderTest, AFullDiskRefusesWritesAndLosesNothing) {
  options_.memtable_bytes = 8 << 10;
  Open();
  testing_support::Contents acknowledged;
  for (uint64_t i = 0; i < 300; ++i) {
    if (i == 100) {
      FailWith(&files_, absl::ResourceExhaustedError("No space left on device"),
               [](const auto& o) { return o.kind == Kind::kReserve || o.kind == Kind::kAppend || o.kind == Kind::kCreate; });
    }
    if (i == 250) files_.SetHook({});
    const std::string value(200, static_cast<char>('a' + i % 26));
    const absl::Status status = db_->Put(Key(i), value);
    if (status.ok()) {
      acknowledged[Key(i)] = value;
    } else {
      ASSERT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
      ASSERT_EQ(GetOr(*db_, Key(i)), std::nullopt) << "refused, but written";
    }
    if (i >= 250) ASSERT_OK(status);
  }
  EXPECT_LT(acknowledged.size(), 300u);
  EXPECT_EQ(ReadAll(*db_), acknowledged);
  ASSERT_OK(db_->Close());
  Open();
  EXPECT_EQ(ReadAll(*db_), acknowledged);
}

TEST_F(DurabilityOrderTest, AFailedLogSyncStopsWritesUntilReopenAndReadsGoOn) {
  Open();
  ASSERT_OK(db_->Put({.sync = true}, "safe", "1"));
  FailWith(&files_, absl::UnknownError("fsync: Input/output error"), [](const auto& o) { return o.kind == Kind::kSync && IsLog(o); });
  EXPECT_CODE(db_->Put({.sync = true}, "unsure", "2"), absl::StatusCode::kUnknown);
  files_.SetHook({});
  for (int i = 0; i < 3; ++i) {
    const absl::Status status = db_->Put("later", "3");
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("Input/output error"));
  }
  EXPECT_CODE(db_->Put({.sync = true}, "later", "3"), absl::StatusCode::kFailedPrecondition);
  EXPECT_CODE(db_->Flush(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(GetOr(*db_, "safe"), "1");
  EXPECT_EQ(GetOr(*db_, "later"), std::nullopt);
  ASSERT_OK_AND_ASSIGN(const Stats stats, db_->GetStats());
  EXPECT_THAT(stats.background_error, ::testing::HasSubstr("Input/output error"));
  db_->Close().IgnoreError();
  Open();
  EXPECT_EQ(GetOr(*db_, "safe"), "1");
  EXPECT_EQ(GetOr(*db_, "later"), std::nullopt);
  ASSERT_OK(db_->Put("later", "3"));
}

TEST_F(DurabilityOrderTest, AFailedManifestWriteStopsWritesAndDeletesNothing) {
  Open();
  for (uint64_t i = 0; i < 100; ++i) ASSERT_OK(db_->Put(Key(i), "v"));
  ASSERT_OK(db_->SyncLog());
  files_.ClearJournal();
  FailWith(&files_, absl::UnknownError("Input/output error"), [](const auto& o) { return o.kind == Kind::kSync && IsManifest(o); });
  EXPECT_FALSE(db_->Flush().ok());
  files_.SetHook({});
  EXPECT_CODE(db_->Put("later", "v"), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReadAll(*db_).size(), 100u);
  db_->Close().IgnoreError();
  for (const FileOperation& operation : files_.journal()) {
    EXPECT_FALSE(operation.kind == Kind::kRemove && (IsLog(operation) || IsTable(operation))) << operation.name << " was removed";
  }
  Open();
  EXPECT_EQ(ReadAll(*db_).size(), 100u);
}

// An operation of any kind fails once, anywhere in a busy life: what was acknowledged as synced is there after a reopen.
TEST_F(DurabilityOrderTest, OneFailureAnywhereLosesNoSyncedWrite) {
  options_.memtable_bytes = 4 << 10;
  int total = 1 << 30;
  for (int fail_at = 0; fail_at < total; fail_at += 3) {
    path_ = directory_.path() + "/db" + std::to_string(fail_at);
    std::atomic<int> count{0};
    const bool exhausted = fail_at % 2 == 0;
    files_.SetHook([&](const FileOperation& o) {
      if (o.kind == Kind::kOpen || o.kind == Kind::kRead || count.fetch_add(1) != fail_at) return absl::OkStatus();
      return exhausted && (o.kind == Kind::kReserve || o.kind == Kind::kCreate) ? absl::ResourceExhaustedError("full")
                                                                                : absl::UnknownError("broken");
    });
    testing_support::Contents synced;
    {
      absl::StatusOr<std::unique_ptr<DB>> db = DB::Open(options_, path_);
      if (db.ok()) {
        for (uint64_t i = 0; i < 60; ++i) {
          const std::string value(150, static_cast<char>('a' + i % 26));
          if ((*db)->Put({.sync = true}, Key(i % 40), value).ok()) {
            synced[Key(i % 40)] = value;
          } else {
            synced.erase(Key(i % 40));  // may or may not be there
          }
        }
      }
      if (fail_at == 0) total = 1 << 20;
      if (count.load() <= fail_at) total = 0;
    }
    files_.SetHook({});
    absl::StatusOr<std::unique_ptr<DB>> db = DB::Open(options_, path_);
    ASSERT_OK(db);
    for (const auto& [key, value] : synced) ASSERT_EQ(GetOr(**db, key), value) << "failed at operation " << fail_at;
    ASSERT_OK((*db)->VerifyChecksums());
    ASSERT_OK((*db)->Close());
    ASSERT_OK(DestroyDB(options_, path_));
  }
}

}  // namespace
}  // namespace tamis
