// A flipped bit on disk gives the right value or an error: never a wrong value, never a key that seems absent, also backward and under
// snapshots; and the check of the whole database sees what reads would meet.
#include <gtest/gtest.h>

#include "table/table_format.h"
#include "tests/support/build_kind.h"
#include "tests/support/database_test_util.h"

namespace tamis {
namespace {

using internal::FileKind;
using ::testing::HasSubstr;
using testing_support::Contents;
using testing_support::CopyDatabase;
using testing_support::FilesOfKind;
using testing_support::Key;
using testing_support::ReadBytes;
using testing_support::SmallOptions;
using testing_support::WriteBytes;

class DamageTest : public ::testing::Test {
 protected:
  DamageTest() : path_(directory_.path() + "/db"), copy_(directory_.path() + "/copy") {}

  void Make(int keys) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<DB> db, DB::Open(options_, path_));
    for (int i = 0; i < keys; ++i) {
      const std::string key = Key(static_cast<uint64_t>(i) * 3);
      model_[key] = "value-" + std::to_string(i * 77);
      ASSERT_OK(db->Put(key, model_[key]));
    }
    ASSERT_OK(db->Flush());
    ASSERT_OK(db->Close());
    table_ = FilesOfKind(path_, FileKind::kTable).back();
  }
  // Reads everything in every way. False if any read failed; the test fails at a wrong answer.
  bool ReadsAreRightOrFail(const DB& db) {
    bool clean = true;
    for (const auto& [key, value] : model_) {
      std::string found;
      const absl::Status status = db.Get(key, &found);
      EXPECT_FALSE(absl::IsNotFound(status)) << key << " seems absent";
      if (status.ok()) {
        EXPECT_EQ(found, value);
      } else {
        EXPECT_THAT(std::string(status.message()), HasSubstr(table_));
        clean = false;
      }
      const absl::StatusOr<bool> may_exist = db.MayExist(ReadOptions(), key);
      EXPECT_TRUE(!may_exist.ok() || *may_exist) << key;
    }
    for (const bool forward : {true, false}) {
      const absl::StatusOr<std::unique_ptr<Iterator>> it = db.NewIterator();
      if (!it.ok()) {
        clean = false;
        continue;
      }
      size_t count = 0;
      for (forward ? (*it)->SeekToFirst() : (*it)->SeekToLast(); (*it)->Valid(); forward ? (*it)->Next() : (*it)->Prev()) {
        const auto expected = model_.find(std::string((*it)->key()));
        EXPECT_TRUE(expected != model_.end() && expected->second == (*it)->value());
        ++count;
      }
      EXPECT_TRUE(!(*it)->status().ok() || count == model_.size()) << "a scan ended early without an error";
      clean = clean && (*it)->status().ok();
    }
    return clean;
  }

  testing_support::TempDir directory_{testing_support::TempDir::MemoryBase()};
  Options options_ = SmallOptions();
  const std::string path_, copy_;
  Contents model_;
  std::string table_;
};

TEST_F(DamageTest, AnyFlippedByteOfATableGivesTheRightValueOrAnError) {
  Make(60);
  CopyDatabase(path_, copy_);
  const std::string bytes = ReadBytes(path_ + "/" + table_);
  options_.read_only = true;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<DB> sound, DB::Open(options_, path_));
  ASSERT_TRUE(ReadsAreRightOrFail(*sound));
  ASSERT_OK(sound->VerifyChecksums());
  const size_t step = testing_support::kSanitized ? 7 : 1;
  int refused = 0;
  for (size_t at = 0; at < bytes.size(); at += step) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    WriteBytes(copy_ + "/" + table_, damaged);
    const absl::StatusOr<std::unique_ptr<DB>> db = DB::Open(options_, copy_);
    if (!db.ok()) {
      ++refused;
      EXPECT_THAT(std::string(db.status().message()), HasSubstr(table_)) << at;
      continue;
    }
    ReadsAreRightOrFail(**db);
    const absl::Status verified = (*db)->VerifyChecksums();
    EXPECT_FALSE(verified.ok()) << "byte " << at << " of " << bytes.size();
    EXPECT_THAT(std::string(verified.message()), HasSubstr(table_));
    ASSERT_FALSE(HasFailure()) << "byte " << at << " of " << bytes.size();
  }
  EXPECT_GT(refused, 0);
}

TEST_F(DamageTest, ADamagedFilterHidesNoKeyAndIsReported) {
  Make(400);
  CopyDatabase(path_, copy_);
  const std::string bytes = ReadBytes(path_ + "/" + table_);
  // The filter is what differs from the same table made without one; find it by its magic-free neighbours: the meta index.
  const std::string_view stored = std::string_view(bytes).substr(bytes.size() - internal::kFooterBytes);
  ASSERT_OK_AND_ASSIGN(const internal::Footer footer, internal::DecodeFooter(stored, bytes.size(), table_));
  const std::string_view meta = std::string_view(bytes).substr(footer.meta_index.offset, footer.meta_index.size);
  ASSERT_OK_AND_ASSIGN(const std::vector<internal::MetaBlock> blocks, internal::DecodeMetaIndex(meta));
  internal::BlockHandle filter;
  for (const internal::MetaBlock& block : blocks) {
    if (block.type == static_cast<uint32_t>(internal::MetaBlockType::kKeyFilter)) filter = block.handle;
  }
  ASSERT_GT(filter.size, 64u);
  for (uint64_t at = filter.offset; at < filter.offset + filter.size; at += 5) {
    for (const char value : {'\0', static_cast<char>(bytes[at] ^ 0x20)}) {
      if (value == bytes[at]) continue;
      std::string damaged = bytes;
      damaged[at] = value;
      WriteBytes(copy_ + "/" + table_, damaged);
      options_.read_only = true;
      const absl::StatusOr<std::unique_ptr<DB>> db = DB::Open(options_, copy_);
      ASSERT_OK(db);  // read without its filter
      ASSERT_TRUE(ReadsAreRightOrFail(**db)) << at;
      ASSERT_OK_AND_ASSIGN(const Stats stats, (*db)->GetStats());
      EXPECT_EQ(stats.filters_refused, 1u);
      const absl::Status verified = (*db)->VerifyChecksums();
      EXPECT_FALSE(verified.ok());
      EXPECT_THAT(std::string(verified.message()), HasSubstr(table_));
    }
  }
}

// Three versions of each key in three tables; the newest one is unreadable.
TEST_F(DamageTest, AnUnreadableNewerVersionIsAnErrorAndNeverTheOlderOne) {
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<DB> db, DB::Open(options_, path_));
  for (const char* version : {"oldest", "older", "newest"}) {
    for (uint64_t i = 0; i < 200; ++i) ASSERT_OK(db->Put(Key(i), version + std::string(40, '.')));
    ASSERT_OK(db->Flush());
    if (version == std::string("oldest")) ASSERT_OK(db->CompactRange(std::nullopt, std::nullopt));
  }
  db.reset();
  const std::string newest = FilesOfKind(path_, FileKind::kTable).back();
  std::string bytes = ReadBytes(path_ + "/" + newest);
  for (size_t at = 100; at < 2500; at += 700) bytes[at] = static_cast<char>(bytes[at] ^ 1);  // several data blocks
  WriteBytes(path_ + "/" + newest, bytes);
  options_.read_only = true;
  ASSERT_OK_AND_ASSIGN(db, DB::Open(options_, path_));
  for (const bool forward : {true, false}) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Iterator> it, db->NewIterator());
    bool failed = false;
    for (uint64_t i = 0; i < 200; ++i) {
      forward ? it->Seek(Key(i)) : it->SeekForPrev(Key(i));
      if (!it->Valid()) {
        EXPECT_CODE(it->status(), absl::StatusCode::kDataLoss);
        failed = true;
        continue;
      }
      EXPECT_EQ(it->value().substr(0, 6), "newest");
    }
    EXPECT_TRUE(failed);
    for (forward ? it->SeekToFirst() : it->SeekToLast(); it->Valid(); forward ? it->Next() : it->Prev()) {
      ASSERT_EQ(it->value().substr(0, 6), "newest");
    }
    EXPECT_CODE(it->status(), absl::StatusCode::kDataLoss);
  }
  int failures = 0;
  for (uint64_t i = 0; i < 200; ++i) {
    std::string value;
    const absl::Status status = db->Get(Key(i), &value);
    if (status.ok()) {
      EXPECT_EQ(value.substr(0, 6), "newest");
    } else {
      EXPECT_CODE(status, absl::StatusCode::kDataLoss);
      ++failures;
    }
  }
  EXPECT_GT(failures, 0);
  EXPECT_LT(failures, 200);
}

// A damaged table is taken out of compaction; the database stays usable and says so, and nothing loops.
class DamagedCompactionTest : public DamageTest {
 protected:
  // A database of one level with a damaged data block in one of its tables.
  void MakeDamagedLevel() {
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<DB> db, DB::Open(options_, path_));
    for (uint64_t i = 0; i < 2000; ++i) ASSERT_OK(db->Put(Key(i), std::string(50, 'o')));
    ASSERT_OK(db->CompactRange(std::nullopt, std::nullopt));
    db.reset();
    const std::string victim = FilesOfKind(path_, FileKind::kTable).front();
    std::string bytes = ReadBytes(path_ + "/" + victim);
    bytes[200] = static_cast<char>(bytes[200] ^ 1);
    WriteBytes(path_ + "/" + victim, bytes);
  }

  static void Overwrite(DB* db, int round) {
    for (uint64_t i = 0; i < 2000; i += 2) ASSERT_OK(db->Put(Key(i), "round " + std::to_string(round)));
    ASSERT_OK(db->Flush());
  }

  static void ExpectUsable(DB* db, const std::string& newest) {
    ASSERT_OK_AND_ASSIGN(const Stats stats, db->GetStats());
    EXPECT_GE(stats.blocked_files, 1u);
    EXPECT_LE(stats.background_errors, 3u);
    EXPECT_EQ(stats.background_error, "");
    for (uint64_t i = 0; i < 2000; i += 2) {
      std::string value;
      const absl::Status status = db->Get(Key(i), &value);
      ASSERT_TRUE(status.ok() || absl::IsDataLoss(status)) << status;
      ASSERT_TRUE(!status.ok() || value == newest);
    }
    EXPECT_CODE(db->VerifyChecksums(), absl::StatusCode::kDataLoss);
  }
};

TEST_F(DamagedCompactionTest, CompactRangeReportsTheDamageItMeetsAndLaterOnesLeaveTheTableOut) {
  ASSERT_NO_FATAL_FAILURE(MakeDamagedLevel());
  options_.compaction.l0_trigger = 20;  // no compaction but the one below
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<DB> db, DB::Open(options_, path_));
  ASSERT_NO_FATAL_FAILURE(Overwrite(db.get(), 0));
  ASSERT_OK(db->WaitForBackgroundWork());
  ASSERT_OK_AND_ASSIGN(const Stats before, db->GetStats());
  ASSERT_EQ(before.blocked_files, 0u);
  EXPECT_CODE(db->CompactRange(std::nullopt, std::nullopt), absl::StatusCode::kDataLoss);
  for (int i = 0; i < 5; ++i) EXPECT_OK(db->CompactRange(std::nullopt, std::nullopt));
  ExpectUsable(db.get(), "round 0");
}

TEST_F(DamagedCompactionTest, ABackgroundCompactionThatMeetsDamageLeavesTheTableOutAndGoesOn) {
  ASSERT_NO_FATAL_FAILURE(MakeDamagedLevel());
  options_.compaction.l0_trigger = 1;
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<DB> db, DB::Open(options_, path_));
  int round = 0;
  for (uint64_t blocked = 0; blocked == 0; ++round) {
    ASSERT_LT(round, 100) << "no compaction met the damage";
    ASSERT_NO_FATAL_FAILURE(Overwrite(db.get(), round));
    ASSERT_OK(db->WaitForBackgroundWork());
    ASSERT_OK_AND_ASSIGN(const Stats stats, db->GetStats());
    blocked = stats.blocked_files;
  }
  for (int more = 0; more < 12; ++more) ASSERT_NO_FATAL_FAILURE(Overwrite(db.get(), round++));
  EXPECT_OK(db->CompactRange(std::nullopt, std::nullopt));
  ExpectUsable(db.get(), "round " + std::to_string(round - 1));
}

}  // namespace
}  // namespace tamis
