// The first things a user does, on the real file system and in memory, inline and with threads.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "base/mem_file_system.h"
#include "base/random.h"
#include "tamis/db.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace tamis {
namespace {

struct Setting {
  const char* name;
  bool in_memory;
  uint32_t threads;
  uint64_t memtable_bytes;
};

class DbBasicTest : public ::testing::TestWithParam<Setting> {
 protected:
  DbBasicTest() {
    if (GetParam().in_memory) files_ = internal::NewMemFileSystem();
    options_.file_system = files_.get();
    options_.background_threads = GetParam().threads;
    options_.memtable_bytes = GetParam().memtable_bytes;
    options_.compaction.level_base_bytes = 64 << 10;
    options_.compaction.target_file_bytes = 32 << 10;
    options_.compaction.size_ratio = 4;
    path_ = files_ ? "/db" : directory_.path() + "/db";
  }
  void Open() {
    db_.reset();
    ASSERT_OK_AND_ASSIGN(db_, DB::Open(options_, path_));
  }
  std::string Get(const std::string& key) {
    std::string value;
    const absl::Status status = db_->Get(key, &value);
    if (absl::IsNotFound(status)) return "(not found)";
    return status.ok() ? value : status.ToString();
  }

  testing_support::TempDir directory_;
  std::unique_ptr<FileSystem> files_;
  Options options_;
  std::string path_;
  std::unique_ptr<DB> db_;
};

TEST_P(DbBasicTest, WhatIsPutIsRead) {
  Open();
  ASSERT_OK(db_->Put("b", "2"));
  ASSERT_OK(db_->Put("a", "1"));
  ASSERT_OK(db_->Put("", "empty key"));
  ASSERT_OK(db_->Put("c", ""));
  EXPECT_EQ(Get("a"), "1");
  EXPECT_EQ(Get("b"), "2");
  EXPECT_EQ(Get(""), "empty key");
  EXPECT_EQ(Get("c"), "");
  EXPECT_EQ(Get("d"), "(not found)");
  ASSERT_OK(db_->Delete("a"));
  EXPECT_EQ(Get("a"), "(not found)");
  ASSERT_OK(db_->Flush());
  EXPECT_EQ(Get("a"), "(not found)");
  EXPECT_EQ(Get("b"), "2");
  Open();
  EXPECT_EQ(Get("a"), "(not found)");
  EXPECT_EQ(Get("b"), "2");
  EXPECT_EQ(Get(""), "empty key");
}

TEST_P(DbBasicTest, ManyKeysSurviveFlushCompactionAndReopen) {
  Open();
  internal::Random random(7);
  std::map<std::string, std::string> model;
  for (int i = 0; i < 20000; ++i) {
    const std::string key = "key" + std::to_string(random.Uniform(8000));
    if (random.OneIn(4)) {
      ASSERT_OK(db_->Delete(key));
      model.erase(key);
    } else {
      const std::string value(random.Uniform(100), static_cast<char>('a' + i % 26));
      ASSERT_OK(db_->Put(key, value));
      model[key] = value;
    }
  }
  const auto check = [&] {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Iterator> it, db_->NewIterator());
    auto expected = model.begin();
    for (it->SeekToFirst(); it->Valid(); it->Next(), ++expected) {
      ASSERT_NE(expected, model.end());
      ASSERT_EQ(it->key(), expected->first);
      ASSERT_EQ(it->value(), expected->second);
    }
    ASSERT_OK(it->status());
    ASSERT_EQ(expected, model.end());
    for (int i = 0; i < 8000; i += 7) {
      const std::string key = "key" + std::to_string(i);
      const auto found = model.find(key);
      ASSERT_EQ(Get(key), found == model.end() ? "(not found)" : found->second) << key;
    }
  };
  check();
  ASSERT_OK(db_->WaitForBackgroundWork());
  check();
  Open();
  check();
  ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt));
  check();
  ASSERT_OK(db_->VerifyChecksums());
  ASSERT_OK_AND_ASSIGN(const Stats stats, db_->GetStats());
  EXPECT_EQ(stats.levels.back().deletes, 0u);
  ASSERT_OK(db_->Close());
  EXPECT_CODE(db_->Put("x", "y"), absl::StatusCode::kFailedPrecondition);
}

INSTANTIATE_TEST_SUITE_P(Settings, DbBasicTest,
                         ::testing::Values(Setting{"MemoryInlineTiny", true, 0, 4096}, Setting{"MemoryInline", true, 0, 64 << 10},
                                           Setting{"DiskInline", false, 0, 64 << 10}, Setting{"DiskOneThread", false, 1, 64 << 10},
                                           Setting{"DiskTwoThreads", false, 2, 64 << 10}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tamis
