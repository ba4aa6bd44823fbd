// What a flush that fails does to writers and to the background threads.
#include <gtest/gtest.h>
#include <sys/resource.h>

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

double CpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) { return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec); };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// "Unknown: the write may or may not survive (a log write or sync failed); afterwards FailedPrecondition."
TEST(FailedFlushTest, AWriteThatWroteNothingIsNotUnknown) {
  TempDir directory;
  HookedFileSystem files(FileSystem::Posix());
  Options options;
  options.file_system = &files;
  options.background_threads = 0;
  options.memtable_bytes = 16 << 10;
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<DB> db, DB::Open(options, directory.path() + "/db"));
  std::atomic<int> failures{1};
  files.SetHook([&](const FileOperation& operation) {
    const bool table = operation.kind == Kind::kAppend && operation.name.ends_with(".table");
    return table && failures-- > 0 ? absl::UnknownError("I/O error") : absl::OkStatus();
  });
  absl::Status status;
  int i = 0;
  for (; i < 100 && status.ok(); ++i) status = db->Put(Key(i), std::string(1000, 'v'));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(GetOr(*db, Key(i - 1)), std::nullopt);  // nothing was written
  EXPECT_OK(db->Put(Key(i - 1), "again"));          // and the store goes on
  EXPECT_NE(status.code(), absl::StatusCode::kUnknown) << status;
}

TEST(FailedFlushTest, ThreadsSleepAfterTheErrorThatStopsWrites) {
  TempDir directory;
  HookedFileSystem files(FileSystem::Posix());
  Options options;
  options.file_system = &files;
  options.background_threads = 1;
  options.memtable_bytes = 64 << 10;
  std::atomic<bool> slow{true};
  std::atomic<bool> broken{false};
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<DB> db, DB::Open(options, directory.path() + "/db"));
  // The flush waits until the next memtable is more than half full; then the manifest cannot be written.
  files.SetHook([&](const FileOperation& operation) {
    if (operation.kind == Kind::kSync && operation.name.ends_with(".table")) {
      while (slow) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return broken && operation.name.starts_with("MANIFEST") ? absl::UnknownError("I/O error") : absl::OkStatus();
  });
  int i = 0;
  while (db->GetStats()->immutable_memtables == 0) ASSERT_OK(db->Put(Key(i++), std::string(1000, 'v')));
  for (int more = 0; more < 50; ++more) ASSERT_OK(db->Put(Key(i++), std::string(1000, 'v')));
  broken = true;
  slow = false;
  while (db->GetStats()->background_error.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const double before = CpuSeconds();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  EXPECT_LT(CpuSeconds() - before, 0.2) << "a background thread spins";
}

}  // namespace
}  // namespace tamis
