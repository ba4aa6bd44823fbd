// A damaged table takes what overlaps it out of compaction; writes go on all the same, also after many more flushes.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "tests/support/database_test_util.h"
#include "tests/support/hooked_file_system.h"

namespace tamis {
namespace {

using namespace testing_support;
using Kind = FileOperation::Kind;

TEST(BlockedTableStallTest, ThreadedWritesGoOnAboveADamagedTable) {
  TempDir directory;
  HookedFileSystem files(FileSystem::Posix());
  Options options;
  options.file_system = &files;
  options.background_threads = 1;
  options.memtable_bytes = 32 << 10;
  options.block_cache_bytes = 0;
  options.compaction.l0_trigger = 2;
  options.compaction.l0_slowdown = 6;
  options.compaction.l0_stop = 8;
  const std::string path = directory.path() + "/db";
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<DB> db, DB::Open(options, path));
  ASSERT_OK(db->Put(Key(0), "a"));
  ASSERT_OK(db->Put(Key(999'999), "z"));
  ASSERT_OK(db->Flush());
  const std::string damaged = FilesOfKind(path, internal::FileKind::kTable).front();
  files.SetHook([damaged](const FileOperation& operation) {
    return operation.kind == Kind::kRead && operation.name == damaged ? absl::DataLossError("bad sector") : absl::OkStatus();
  });
  std::atomic<int> written{0};
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; i < 1500 && !stop; ++i) {
      if (!db->Put(Key((i * 7919) % 999'999), std::string(1000, 'v')).ok()) return;
      written = i + 1;
    }
  });
  for (int tenths = 0; tenths < 200 && written < 1500; ++tenths) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(written, 1500) << "writes hang: " << db->GetStats()->stalls.current_reason << ", blocked " << db->GetStats()->blocked_files;
  stop = true;
  db->Close().IgnoreError();
  writer.join();
}

}  // namespace
}  // namespace tamis
