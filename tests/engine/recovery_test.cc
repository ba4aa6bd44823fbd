// What a crash leaves is opened without help: a prefix of the history, whole batches, no altered value; and what had been durable is
// never dropped in silence.
#include "engine/recovery.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "engine/version/file_names.h"
#include "tests/support/database_test_util.h"
#include "tests/support/hooked_file_system.h"

namespace tamis {
namespace {

using internal::FileKind;
using internal::Random;
using ::testing::HasSubstr;
using testing_support::Contents;
using testing_support::CopyDatabase;
using testing_support::FilesIn;
using testing_support::FilesOfKind;
using testing_support::GetOr;
using testing_support::Key;
using testing_support::ReadAll;
using testing_support::ReadBytes;
using testing_support::SmallOptions;
using testing_support::WriteBytes;
namespace fs = std::filesystem;

class RecoveryTest : public ::testing::Test {
 protected:
  RecoveryTest() : path_(directory_.path() + "/db"), crashed_(directory_.path() + "/crashed"), copy_(directory_.path() + "/copy") {
    options_.memtable_bytes = 1 << 20;  // tests say when to flush
  }

  void Open() {
    db_.reset();
    ASSERT_OK_AND_ASSIGN(db_, DB::Open(options_, path_));
  }
  // The directory as the death of the process now would leave it.
  void Crash() {
    CopyDatabase(path_, crashed_);
    db_.reset();
  }
  std::string LastLog(const std::string& path) { return path + "/" + FilesOfKind(path, FileKind::kLog).back(); }
  std::string ManifestOf(const std::string& path) { return path + "/" + FilesOfKind(path, FileKind::kManifest).back(); }
  static uint64_t UsedBytes(std::string_view bytes) { return bytes.find_last_not_of('\0') + 1; }

  // Opens the copy writable; expects exactly the first n of the keys Key(0).., and returns n.
  std::optional<uint64_t> OpenCopyAndCountPrefix(RecoveryStats* stats = nullptr) {
    absl::StatusOr<std::unique_ptr<DB>> db = DB::Open(options_, copy_);
    EXPECT_OK(db);
    if (!db.ok()) return std::nullopt;
    const Contents all = ReadAll(**db);
    uint64_t next = 0;
    for (const auto& [key, value] : all) {
      EXPECT_EQ(key, Key(next)) << "not a prefix";
      EXPECT_EQ(value, ValueOf(next));
      ++next;
    }
    if (stats != nullptr) {
      const absl::StatusOr<Stats> all_stats = (*db)->GetStats();
      EXPECT_OK(all_stats);
      *stats = all_stats->recovery;
    }
    EXPECT_OK((*db)->Close());
    return next;
  }
  static std::string ValueOf(uint64_t i) { return "value " + std::to_string(i * 7919) + std::string(i % 50, '.'); }
  void PutKeys(uint64_t from, uint64_t to, bool sync = false) {
    for (uint64_t i = from; i < to; ++i) ASSERT_OK(db_->Put({.sync = sync}, Key(i), ValueOf(i)));
  }
  // A reader sees what a writer would.
  void ExpectReaderSees(uint64_t keys) {
    Options reading = options_;
    reading.read_only = true;
    absl::StatusOr<std::unique_ptr<DB>> db = DB::Open(reading, copy_);
    ASSERT_OK(db);
    EXPECT_EQ(ReadAll(**db).size(), keys);
  }

  testing_support::TempDir directory_{testing_support::TempDir::MemoryBase()};
  Options options_ = SmallOptions();
  const std::string path_, crashed_, copy_;
  std::unique_ptr<DB> db_;
};

TEST_F(RecoveryTest, WritesWithoutSyncSurviveTheDeathOfTheProcess) {
  Open();
  PutKeys(0, 100);
  Crash();
  CopyDatabase(crashed_, copy_);
  ExpectReaderSees(100);
  RecoveryStats stats;
  EXPECT_EQ(OpenCopyAndCountPrefix(&stats), 100u);
  EXPECT_EQ(stats.records, 100u);
  EXPECT_EQ(stats.bytes_dropped, 0u);
  EXPECT_EQ(stats.reason, "");
  // And the next open replays nothing.
  EXPECT_EQ(OpenCopyAndCountPrefix(&stats), 100u);
  EXPECT_EQ(stats.records, 0u);
}

TEST_F(RecoveryTest, ALogCutAnywhereInItsLastRecordsGivesAPrefix) {
  Open();
  PutKeys(0, 5);
  const uint64_t from = UsedBytes(ReadBytes(LastLog(path_)));
  PutKeys(5, 9);
  Crash();
  const std::string log = ReadBytes(LastLog(crashed_));
  const uint64_t end = UsedBytes(log);
  uint64_t last = 5;
  for (uint64_t length = from; length <= end; ++length) {
    CopyDatabase(crashed_, copy_);
    fs::resize_file(LastLog(copy_), length);
    const auto keys = OpenCopyAndCountPrefix();
    ASSERT_TRUE(keys.has_value()) << length;
    ASSERT_GE(*keys, last) << length;
    ASSERT_LE(*keys, 9u);
    last = *keys;
  }
  EXPECT_EQ(last, 9u);
}

TEST_F(RecoveryTest, AZeroedOrGarbledTailGivesAnExactPrefix) {
  Open();
  PutKeys(0, 100);
  Crash();
  const std::string log = ReadBytes(LastLog(crashed_));
  const uint64_t end = UsedBytes(log);
  Random random(11);
  uint64_t last = 0;
  for (uint64_t from = 512; from < end; from += 512) {
    for (const bool garble : {false, true}) {
      CopyDatabase(crashed_, copy_);
      std::string bytes = log;
      for (uint64_t i = from; i < (garble ? bytes.size() : end); ++i) bytes[i] = garble ? static_cast<char>(random.Next()) : '\0';
      WriteBytes(LastLog(copy_), bytes);
      RecoveryStats stats;
      const auto keys = OpenCopyAndCountPrefix(&stats);
      ASSERT_TRUE(keys.has_value()) << from;
      ASSERT_GE(*keys, last);
      ASSERT_LT(*keys, 100u);
      if (garble) {
        EXPECT_NE(stats.reason, "");
        EXPECT_GT(stats.bytes_dropped, 0u);
      }
      last = *keys;
    }
  }
  EXPECT_GT(last, 80u);
}

TEST_F(RecoveryTest, MorePreallocatedZerosLoseNothing) {
  Open();
  PutKeys(0, 100);
  Crash();
  CopyDatabase(crashed_, copy_);
  WriteBytes(LastLog(copy_), ReadBytes(LastLog(copy_)) + std::string(64 << 10, '\0'));
  RecoveryStats stats;
  EXPECT_EQ(OpenCopyAndCountPrefix(&stats), 100u);
  EXPECT_EQ(stats.bytes_dropped, 0u);
}

TEST_F(RecoveryTest, AfterATornTailNewWritesAreReadAtEveryLaterOpen) {
  Open();
  PutKeys(0, 10, /*sync=*/true);
  Crash();
  const uint64_t end = UsedBytes(ReadBytes(LastLog(crashed_)));
  for (uint64_t cut = 1; cut <= 12; ++cut) {
    CopyDatabase(crashed_, copy_);
    fs::resize_file(LastLog(copy_), end - cut);
    uint64_t kept = 0;
    for (int round = 0; round < 3; ++round) {
      absl::StatusOr<std::unique_ptr<DB>> db = DB::Open(options_, copy_);
      ASSERT_OK(db);
      const Contents all = ReadAll(**db);
      if (round == 0) {
        kept = all.size();
        ASSERT_GE(kept, 9u);
        for (int i = 0; i < 10; ++i) ASSERT_OK((*db)->Put({.sync = true}, "new" + std::to_string(i), "n"));
      } else {
        ASSERT_EQ(all.size(), kept + 10) << "cut " << cut;
      }
      ASSERT_OK((*db)->Close());
    }
  }
}

TEST_F(RecoveryTest, AFlippedByteBelowAProvenPointIsDataLossThatNamesThePlace) {
  Open();
  PutKeys(0, 20);
  const uint64_t unsafe = UsedBytes(ReadBytes(LastLog(path_)));
  ASSERT_OK(db_->SyncLog());
  PutKeys(20, 30);
  Crash();
  const std::string log = ReadBytes(LastLog(crashed_));
  const std::string name = FilesOfKind(crashed_, FileKind::kLog).back();
  for (uint64_t at = 64; at < unsafe; at += 37) {
    CopyDatabase(crashed_, copy_);
    std::string bytes = log;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    WriteBytes(LastLog(copy_), bytes);
    const Contents before = FilesIn(copy_);
    const absl::Status status = DB::Open(options_, copy_).status();
    ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss) << at << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
    EXPECT_THAT(std::string(status.message()), HasSubstr("offset"));
    Contents after = FilesIn(copy_);
    EXPECT_EQ(after[name] == before.at(name), true);
    EXPECT_EQ(after["CURRENT"], before.at("CURRENT"));
  }
}

TEST_F(RecoveryTest, AFlippedByteThatNothingProvesIsDroppedAndReported) {
  Open();
  PutKeys(0, 20, /*sync=*/true);
  const uint64_t safe = UsedBytes(ReadBytes(LastLog(path_)));
  PutKeys(20, 40);
  Crash();
  const std::string log = ReadBytes(LastLog(crashed_));
  const uint64_t end = UsedBytes(log);
  for (uint64_t at = safe + 1; at < end; at += 29) {
    CopyDatabase(crashed_, copy_);
    std::string bytes = log;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    WriteBytes(LastLog(copy_), bytes);
    RecoveryStats stats;
    const auto keys = OpenCopyAndCountPrefix(&stats);
    ASSERT_TRUE(keys.has_value());
    ASSERT_GE(*keys, 20u) << at;
    ASSERT_LT(*keys, 40u) << at;
    EXPECT_GT(stats.bytes_dropped, 0u);
    EXPECT_THAT(stats.reason, HasSubstr(FilesOfKind(crashed_, FileKind::kLog).back()));
    // The second open of the same directory tells the same and finds a clean one.
    EXPECT_EQ(OpenCopyAndCountPrefix(&stats), keys);
    EXPECT_EQ(stats.bytes_dropped, 0u);
    EXPECT_EQ(stats.reason, "");
  }
}

// Two logs with records: the memtable of the first is never flushed.
class RecoveryTwoLogsTest : public RecoveryTest {
 protected:
  void MakeTwoLogs() {
    files_ = std::make_unique<testing_support::HookedFileSystem>(FileSystem::Posix());
    options_.file_system = files_.get();
    Open();
    PutKeys(0, 10);
    // Tables cannot be made from here on: the flush fails, its log stays.
    files_->SetHook([](const testing_support::FileOperation& operation) {
      const bool table = operation.name.find(".table") != std::string::npos;
      return table && operation.kind == testing_support::FileOperation::Kind::kCreate ? absl::ResourceExhaustedError("disk full")
                                                                                      : absl::OkStatus();
    });
    EXPECT_CODE(db_->Flush(), absl::StatusCode::kResourceExhausted);
    ASSERT_EQ(FilesOfKind(path_, FileKind::kLog).size(), 2u);
    // Writes are refused until the flush succeeds; let it be due no more often than asked.
    files_->SetHook({});
  }
  std::unique_ptr<testing_support::HookedFileSystem> files_;
};

TEST_F(RecoveryTwoLogsTest, AListedLogThatIsMissingIsDataLossAndChangesNothing) {
  MakeTwoLogs();
  Crash();
  const std::vector<std::string> logs = FilesOfKind(crashed_, FileKind::kLog);
  for (const std::string& log : logs) {
    CopyDatabase(crashed_, copy_);
    fs::remove(copy_ + "/" + log);
    const absl::Status status = DB::Open(options_, copy_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(log));
    EXPECT_EQ(FilesOfKind(copy_, FileKind::kLog).size(), 1u);
  }
}

TEST_F(RecoveryTwoLogsTest, AFlushThatFailedIsReplayedFromItsLog) {
  MakeTwoLogs();
  EXPECT_EQ(ReadAll(*db_).size(), 10u);
  ASSERT_OK(db_->Put(Key(10), ValueOf(10)));  // the flush succeeds now
  ASSERT_OK(db_->Flush());
  EXPECT_EQ(FilesOfKind(path_, FileKind::kLog).size(), 1u);
  Crash();
  CopyDatabase(crashed_, copy_);
  EXPECT_EQ(OpenCopyAndCountPrefix(), 11u);
}

TEST_F(RecoveryTest, AMissingOrShortTableIsDataLossAtOpenAndChangesNothing) {
  Open();
  PutKeys(0, 200);
  ASSERT_OK(db_->Flush());
  PutKeys(200, 210);
  Crash();
  const std::string table = FilesOfKind(crashed_, FileKind::kTable).back();
  for (const uint64_t bytes : {-1, 0, 1, 100, 1000}) {
    CopyDatabase(crashed_, copy_);
    if (bytes == uint64_t(-1)) {
      fs::remove(copy_ + "/" + table);
    } else {
      fs::resize_file(copy_ + "/" + table, bytes);
    }
    for (const bool read_only : {true, false}) {
      Options options = options_;
      options.read_only = read_only;
      const absl::Status status = DB::Open(options, copy_).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(table));
    }
    EXPECT_EQ(FilesOfKind(copy_, FileKind::kLog), FilesOfKind(crashed_, FileKind::kLog));
    EXPECT_EQ(FilesOfKind(copy_, FileKind::kManifest), FilesOfKind(crashed_, FileKind::kManifest));
  }
}

TEST_F(RecoveryTest, AnotherTableUnderTheSameNameIsNoticed) {
  Open();
  PutKeys(0, 200);
  ASSERT_OK(db_->Flush());
  PutKeys(0, 200);
  ASSERT_OK(db_->Flush());
  Crash();
  const std::vector<std::string> tables = FilesOfKind(crashed_, FileKind::kTable);
  ASSERT_GE(tables.size(), 2u);
  CopyDatabase(crashed_, copy_);
  WriteBytes(copy_ + "/" + tables[0], ReadBytes(copy_ + "/" + tables[1]));
  EXPECT_CODE(DB::Open(options_, copy_), absl::StatusCode::kDataLoss);
}

TEST_F(RecoveryTest, OrphansAndTemporariesAreRemovedAndStrangersKept) {
  Open();
  PutKeys(0, 200);
  ASSERT_OK(db_->Flush());
  Crash();
  CopyDatabase(crashed_, copy_);
  const std::string table = ReadBytes(copy_ + "/" + FilesOfKind(copy_, FileKind::kTable).back());
  for (const char* name : {"900001.table", "900002.log", "900003.filter", "MANIFEST-900004", "CURRENT.900005.tmp"}) {
    WriteBytes(copy_ + "/" + name, table);
  }
  WriteBytes(copy_ + "/notes.txt", "mine");
  WriteBytes(copy_ + "/00900001.table", "no name of ours");
  EXPECT_EQ(OpenCopyAndCountPrefix(), 200u);
  for (const char* name : {"900001.table", "900002.log", "900003.filter", "MANIFEST-900004", "CURRENT.900005.tmp"}) {
    EXPECT_FALSE(fs::exists(copy_ + "/" + name)) << name;
  }
  EXPECT_EQ(ReadBytes(copy_ + "/notes.txt"), "mine");
  EXPECT_EQ(ReadBytes(copy_ + "/00900001.table"), "no name of ours");
  // Numbers that were on disk are not given again.
  for (const std::string& log : FilesOfKind(copy_, FileKind::kLog)) EXPECT_GT(internal::ParseFileName(log)->number, 900005u);
}

TEST_F(RecoveryTest, AManifestCutAnywhereInItsLastRecordOpensWithEverySyncedKey) {
  Open();
  for (uint64_t flush = 0; flush < 5; ++flush) {
    PutKeys(flush * 10, flush * 10 + 10, /*sync=*/true);
    if (flush < 4) ASSERT_OK(db_->Flush());
  }
  const uint64_t from = UsedBytes(ReadBytes(ManifestOf(path_)));
  CopyDatabase(path_, crashed_);
  // The last edit lists the flushed table and retires its log; what a crash between them leaves is the old log beside it.
  const std::string old_log = FilesOfKind(path_, FileKind::kLog).back();
  const std::string log_bytes = ReadBytes(path_ + "/" + old_log);
  ASSERT_OK(db_->Flush());
  Crash();
  WriteBytes(crashed_ + "/" + old_log, log_bytes);
  const std::string manifest = ReadBytes(ManifestOf(crashed_));
  const uint64_t end = UsedBytes(manifest);
  ASSERT_GT(end, from);
  int dropped = 0;
  for (uint64_t length = from; length <= end; ++length) {
    CopyDatabase(crashed_, copy_);
    fs::resize_file(ManifestOf(copy_), length);
    const std::vector<std::string> tables = FilesOfKind(copy_, FileKind::kTable);
    absl::StatusOr<std::unique_ptr<DB>> db = DB::Open(options_, copy_);
    ASSERT_OK(db);
    ASSERT_EQ(ReadAll(**db).size(), 50u) << length;
    ASSERT_OK_AND_ASSIGN(const Stats stats, (*db)->GetStats());
    if (stats.recovery.bytes_dropped != 0) {
      ++dropped;
      // A table that the lost edit may have listed is kept.
      const std::vector<std::string> kept = FilesOfKind(copy_, FileKind::kTable);
      for (const std::string& table : tables) EXPECT_THAT(kept, ::testing::Contains(table)) << length;
    }
    ASSERT_OK((*db)->Close());
  }
  EXPECT_GT(dropped, 10);
}

TEST_F(RecoveryTest, TwoOpensInARowAreIdentical) {
  Open();
  PutKeys(0, 50);
  Crash();
  CopyDatabase(crashed_, copy_);
  Contents first;
  for (int round = 0; round < 4; ++round) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<DB> db, DB::Open(options_, copy_));
    Contents now = ReadAll(*db);
    now["files"] = *db->GetProperty("tamis.files");
    if (round == 0) first = now;
    EXPECT_EQ(now, first);
    EXPECT_EQ(testing_support::FilesOfKind(copy_, FileKind::kTable).size(), 1u);
    EXPECT_EQ(testing_support::FilesOfKind(copy_, FileKind::kManifest).size(), 1u);
  }
}

TEST_F(RecoveryTest, ValuesOfAllLengthsComeBackFromTheLog) {
  options_.memtable_bytes = 64 << 20;
  Open();
  std::map<std::string, std::string> model;
  Random random(5);
  for (const size_t bytes : {0u, 1u, 127u, 128u, 255u, 256u, 16383u, 16384u, 32700u, 32768u, 65535u, 65536u, 65537u, 1u << 20, 16u << 20}) {
    std::string value(bytes, '\0');
    for (char& c : value) c = static_cast<char>(random.Next());
    model["v" + std::to_string(bytes)] = value;
    std::string key(std::min<size_t>(bytes, 65535), '\0');
    for (char& c : key) c = static_cast<char>(random.Next());
    model[key] = "k" + std::to_string(bytes);
  }
  for (const auto& [key, value] : model) ASSERT_OK(db_->Put(key, value));
  Crash();
  CopyDatabase(crashed_, copy_);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<DB> db, DB::Open(options_, copy_));
  EXPECT_TRUE(ReadAll(*db) == model);
}

TEST_F(RecoveryTest, RecordsThatEndAtBlockEdgesComeBackInOrder) {
  // Batches of one put whose record ends at each place from 60 bytes before a block edge to 20 behind it; each followed by an empty value.
  Open();
  uint64_t number = 0;
  for (int delta = -60; delta <= 20; ++delta) {
    const uint64_t used = UsedBytes(ReadBytes(LastLog(path_)));
    const uint64_t block = 32 << 10;
    const uint64_t target = (used / block + 1) * block + block + static_cast<uint64_t>(delta + 64) - 64;
    const uint64_t bytes = target - used > 60 ? target - used - 40 : 1;
    ASSERT_OK(db_->Put(Key(number++), std::string(bytes, 'x')));
    ASSERT_OK(db_->Put(Key(number++), ""));
    if (number % 16 == 0) {
      CopyDatabase(path_, copy_);
      ASSERT_OK_AND_ASSIGN(const std::unique_ptr<DB> db, DB::Open(options_, copy_));
      ASSERT_EQ(ReadAll(*db).size(), number);
      EXPECT_TRUE(ReadAll(*db) == ReadAll(*db_));
    }
  }
}

TEST_F(RecoveryTest, OpeningAndClosingLeavesNothingBehind) {
  Open();
  PutKeys(0, 10);
  Open();
  const uint64_t files = FilesIn(path_).size();
  uint64_t bytes = 0;
  for (int i = 0; i < 60; ++i) {
    Open();
    ASSERT_OK(db_->Close());
    if (i == 5) bytes = testing_support::BytesIn(path_);
  }
  EXPECT_LE(FilesIn(path_).size(), files + 1);  // LOG.old
  EXPECT_LE(testing_support::BytesIn(path_), bytes + 1024);
  // With a write each time: bounded, since compaction merges what each open flushes.
  for (int i = 0; i < 60; ++i) {
    Open();
    ASSERT_OK(db_->Put(Key(static_cast<uint64_t>(i % 5)), "again"));
    ASSERT_OK(db_->WaitForBackgroundWork());
    ASSERT_OK(db_->Close());
  }
  EXPECT_LE(FilesIn(path_).size(), files + options_.compaction.l0_trigger + 2);
}

TEST_F(RecoveryTest, AnOpenThatDiesAtAnyChangeLosesNothing) {
  Open();
  PutKeys(0, 300);
  ASSERT_OK(db_->Flush());
  PutKeys(300, 320, /*sync=*/true);
  Crash();
  using Kind = testing_support::FileOperation::Kind;
  for (int survive = 0;; ++survive) {
    CopyDatabase(crashed_, copy_);
    int changes = 0;
    bool died = false;
    {
      testing_support::HookedFileSystem dying(FileSystem::Posix());
      dying.SetHook([&](const testing_support::FileOperation& operation) {
        if (operation.kind == Kind::kOpen || operation.kind == Kind::kRead) return absl::OkStatus();
        if (changes++ < survive) return absl::OkStatus();
        died = true;
        return absl::UnknownError("the machine is gone");
      });
      Options options = options_;
      options.file_system = &dying;
      DB::Open(options, copy_).status().IgnoreError();
    }
    ASSERT_EQ(OpenCopyAndCountPrefix(), 320u) << "died after " << survive << " changes";
    EXPECT_EQ(FilesOfKind(copy_, FileKind::kManifest).size(), 1u);
    EXPECT_EQ(FilesOfKind(copy_, FileKind::kTemporary).size(), 0u);
    if (!died) break;
    ASSERT_LT(survive, 500);
  }
}

TEST_F(RecoveryTest, ManyDeathsInTheMiddleOfTheReplayKeepTheDirectorySmall) {
  options_.memtable_bytes = 64 << 10;
  Open();
  PutKeys(0, 300);
  Crash();
  const uint64_t before = testing_support::BytesIn(crashed_);
  CopyDatabase(crashed_, copy_);
  for (int round = 0; round < 30; ++round) {
    testing_support::HookedFileSystem dying(FileSystem::Posix());
    int changes = 0;
    dying.SetHook([&](const testing_support::FileOperation& operation) {
      using Kind = testing_support::FileOperation::Kind;
      if (operation.kind == Kind::kOpen || operation.kind == Kind::kRead) return absl::OkStatus();
      return changes++ < round ? absl::OkStatus() : absl::UnknownError("the machine is gone");
    });
    Options options = options_;
    options.file_system = &dying;
    DB::Open(options, copy_).status().IgnoreError();
  }
  EXPECT_EQ(OpenCopyAndCountPrefix(), 300u);
  EXPECT_LE(testing_support::BytesIn(copy_), before + (300 << 10));
}

}  // namespace
}  // namespace tamis
