#include "engine/version/descriptor_cache.h"

#include <thread>

#include "base/random.h"
#include "engine/version/file_names.h"
#include "tests/engine/version_test_util.h"

namespace tamis::internal {
namespace {

using Code = absl::StatusCode;
using File = std::shared_ptr<const RandomAccessFile>;

class DescriptorCacheTest : public VersionTest {
 protected:
  static constexpr uint64_t kFiles = 20;
  DescriptorCacheTest() {
    for (uint64_t i = 1; i <= kFiles; ++i) WriteFile(TableName(i), Content(i));
  }
  static std::string Content(uint64_t number) { return std::string(100, static_cast<char>('a' + number)); }
  void MakeCache(uint32_t capacity) {
    cache_ = std::make_shared<DescriptorCache>(directory_, capacity);
    directory_->opened = 0;
  }
  File Open(uint64_t number, bool keep_open = false) {
    auto file = cache_->Open(TableName(number), 100, keep_open);
    EXPECT_OK(file);
    return file.ok() ? *std::move(file) : nullptr;
  }
  static absl::Status Check(const File& file, uint64_t number) {
    char buffer[10];
    if (absl::Status status = file->Read(50, absl::MakeSpan(buffer)); !status.ok()) return status;
    return std::string_view(buffer, 10) == Content(number).substr(0, 10) ? absl::OkStatus() : absl::InternalError("wrong bytes");
  }
  std::shared_ptr<DescriptorCache> cache_;
};

TEST_F(DescriptorCacheTest, HoldsNoMoreThanItsCapacityAndReadsThemAll) {
  MakeCache(8);
  std::vector<File> files;
  for (uint64_t i = 1; i <= kFiles; ++i) files.push_back(Open(i));
  EXPECT_EQ(cache_->open_descriptors(), 8u);
  for (int round = 0; round < 3; ++round) {
    for (uint64_t i = 1; i <= kFiles; ++i) {
      EXPECT_OK(Check(files[i - 1], i));
      EXPECT_LE(cache_->open_descriptors(), 8u);
    }
  }
  EXPECT_EQ(files[0]->size(), 100u);
  EXPECT_EQ(files[0]->path(), "/db/000001.table");
  files[0]->ReadAhead(0, 100);
}

TEST_F(DescriptorCacheTest, OpensAFileOnceWhileThereIsRoom) {
  MakeCache(8);
  std::vector<File> files;
  for (uint64_t i = 1; i <= 8; ++i) files.push_back(Open(i));
  for (int round = 0; round < 100; ++round) {
    for (uint64_t i = 1; i <= 8; ++i) EXPECT_OK(Check(files[i - 1], i));
  }
  EXPECT_EQ(directory_->opened, 8);
}

TEST_F(DescriptorCacheTest, AFileInUseIsPassedOverOnce) {
  MakeCache(8);
  std::vector<File> files;
  for (uint64_t i = 1; i <= 8; ++i) files.push_back(Open(i));
  // The oldest is read all the time, others come and go: it is not opened again.
  for (uint64_t i = 9; i <= kFiles; ++i) {
    EXPECT_OK(Check(files[0], 1));
    files.push_back(Open(i));
  }
  EXPECT_EQ(directory_->opened, static_cast<int>(kFiles));
}

TEST_F(DescriptorCacheTest, AFileThatIsDroppedGivesItsDescriptorBack) {
  MakeCache(8);
  File one = Open(1);
  File two = Open(2);
  EXPECT_EQ(cache_->open_descriptors(), 2u);
  one.reset();
  EXPECT_EQ(cache_->open_descriptors(), 1u);
  // The file outlives the cache's owner.
  cache_.reset();
  EXPECT_OK(Check(two, 2));
}

TEST_F(DescriptorCacheTest, KeptFilesAreNotCountedAndSurviveDeletion) {
  MakeCache(8);
  const File kept = Open(1, true);
  EXPECT_EQ(cache_->open_descriptors(), 0u);
  std::vector<File> files;
  for (uint64_t i = 2; i <= kFiles; ++i) files.push_back(Open(i));
  ASSERT_OK(directory_->Remove(TableName(1)));
  EXPECT_OK(Check(kept, 1));
}

TEST_F(DescriptorCacheTest, AWrongSizeOrMissingFileIsDataLoss) {
  MakeCache(8);
  for (const bool keep_open : {false, true}) {
    const auto wrong = cache_->Open(TableName(1), 101, keep_open);
    EXPECT_CODE(wrong, Code::kDataLoss);
    EXPECT_THAT(std::string(wrong.status().message()), testing::HasSubstr("/db/000001.table"));
    EXPECT_CODE(cache_->Open(TableName(77), 100, keep_open), Code::kDataLoss);
  }
  EXPECT_EQ(cache_->open_descriptors(), 0u);
  EXPECT_OK(Check(Open(1), 1));
}

TEST_F(DescriptorCacheTest, AFileThatChangedWhileClosedIsDataLoss) {
  MakeCache(8);
  std::vector<File> files;
  for (uint64_t i = 1; i <= kFiles; ++i) files.push_back(Open(i));
  WriteFile(TableName(1), "short");
  EXPECT_CODE(Check(files[0], 1), Code::kDataLoss);
  WriteFile(TableName(1), Content(1));
  EXPECT_OK(Check(files[0], 1));  // the error is not remembered
}

TEST_F(DescriptorCacheTest, TriesAgainWithADescriptorLessWhenTheProcessHasNone) {
  MakeCache(8);
  std::vector<File> files;
  for (uint64_t i = 1; i <= 4; ++i) files.push_back(Open(i));
  directory_->hook = [&](std::string_view operation, std::string_view) {
    return operation == "open" && cache_->open_descriptors() >= 4 ? absl::ResourceExhaustedError("injected") : absl::OkStatus();
  };
  files.push_back(Open(5));
  EXPECT_EQ(cache_->open_descriptors(), 4u);
  for (uint64_t i = 1; i <= 5; ++i) EXPECT_OK(Check(files[i - 1], i));
  FailAt("open", "", absl::ResourceExhaustedError("injected"));
  EXPECT_CODE(cache_->Open(TableName(6), 100, false), Code::kResourceExhausted);
  Heal();
  EXPECT_OK(Check(Open(6), 6));
}

TEST_F(DescriptorCacheTest, ManyThreadsReadMoreFilesThanFit) {
  MakeCache(8);
  std::vector<File> files;
  for (uint64_t i = 1; i <= kFiles; ++i) files.push_back(Open(i));
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random random(t);
      for (int i = 0; i < 5000; ++i) {
        const uint64_t number = random.Uniform(kFiles) + 1;
        if (!Check(files[number - 1], number).ok()) ++failures;
        if (i % 100 == 0) {
          auto fresh = cache_->Open(TableName(number), 100, false);
          if (!fresh.ok() || !Check(*fresh, number).ok()) ++failures;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_LE(cache_->open_descriptors(), 8u);
  files.clear();
  EXPECT_EQ(cache_->open_descriptors(), 0u);
}

}  // namespace
}  // namespace tamis::internal
