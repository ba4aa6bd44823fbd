// A disk with room for logs and flushes but not for a compaction's output: calls end with a status, none hangs.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "tests/support/database_test_util.h"
#include "tests/support/hooked_file_system.h"

namespace tamis {
namespace {

using namespace testing_support;
using Kind = FileOperation::Kind;

std::string Value(int i) {  // does not compress
  std::mt19937 random(static_cast<uint32_t>(i));
  std::string value;
  while (value.size() < 1000) value += static_cast<char>(random());
  return value;
}

class FullDiskCompactionTest : public ::testing::Test {
 protected:
  FullDiskCompactionTest() {
    options_.file_system = &files_;
    options_.background_threads = 1;
    options_.memtable_bytes = 32 << 10;
    options_.compaction.l0_trigger = 2;
    options_.compaction.l0_slowdown = 4;
    options_.compaction.l0_stop = 6;
    files_.SetHook([this](const FileOperation& operation) {
      if (operation.kind != Kind::kAppend || !operation.name.ends_with(".table")) return absl::OkStatus();
      std::lock_guard<std::mutex> lock(mutex_);
      return (bytes_[operation.name] += operation.bytes) > 50'000 ? absl::ResourceExhaustedError("no space left on device") : absl::OkStatus();
    });
  }
  // True if `call` ended within 20 seconds; Close ends it then.
  bool Ends(DB* db, const std::function<void()>& call) {
    std::atomic<bool> done{false};
    std::thread thread([&] {
      call();
      done = true;
    });
    for (int tenths = 0; tenths < 200 && !done; ++tenths) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const bool ended = done;
    db->Close().IgnoreError();
    thread.join();
    return ended;
  }
  TempDir directory_;
  HookedFileSystem files_{FileSystem::Posix()};
  Options options_;
  std::mutex mutex_;
  std::map<std::string, uint64_t> bytes_;
};

TEST_F(FullDiskCompactionTest, ThreadedWritesEnd) {
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<DB> db, DB::Open(options_, directory_.path() + "/db"));
  absl::Status status;
  EXPECT_TRUE(Ends(db.get(), [&] {
    for (int i = 0; i < 1500 && status.ok(); ++i) status = db->Put(Key((i * 391'939LL) % 999'983), Value(i));
  })) << "a write hangs";
  EXPECT_TRUE(status.ok() || absl::IsResourceExhausted(status)) << status;
}

TEST_F(FullDiskCompactionTest, ThreadedWaitForBackgroundWorkEnds) {
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<DB> db, DB::Open(options_, directory_.path() + "/db"));
  for (int i = 0; i < 150; ++i) ASSERT_OK(db->Put(Key((i * 391'939LL) % 999'983), Value(i)));
  absl::Status status;
  EXPECT_TRUE(Ends(db.get(), [&] { status = db->WaitForBackgroundWork(); })) << "WaitForBackgroundWork hangs";
  EXPECT_TRUE(status.ok() || absl::IsResourceExhausted(status)) << status;
}

}  // namespace
}  // namespace tamis
