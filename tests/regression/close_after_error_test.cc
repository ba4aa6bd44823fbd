// Close after an error that stopped writes: the log itself is whole, so what was acknowledged is synced, and the error is told.
#include <gtest/gtest.h>

#include <algorithm>
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

TEST(CloseAfterErrorTest, TheLogIsSyncedThoughTablesCouldNotBeWritten) {
  TempDir directory;
  HookedFileSystem files(FileSystem::Posix());
  Options options;
  options.file_system = &files;
  options.background_threads = 1;
  options.memtable_bytes = 64 << 10;
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<DB> db, DB::Open(options, directory.path() + "/db"));
  files.SetHook([&](const FileOperation& operation) {
    return operation.kind == Kind::kAppend && operation.name.ends_with(".table") ? absl::UnknownError("I/O error") : absl::OkStatus();
  });
  for (int i = 0; i < 80; ++i) ASSERT_OK(db->Put(Key(i), std::string(1000, 'v')));
  for (int i = 0; i < 500 && db->GetStats()->background_error.empty(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_FALSE(db->GetStats()->background_error.empty());
  files.ClearJournal();
  const absl::Status closed = db->Close();
  const std::vector<FileOperation> journal = files.journal();
  EXPECT_TRUE(std::any_of(journal.begin(), journal.end(),
                          [](const FileOperation& done) { return done.kind == Kind::kSync && done.name.ends_with(".log"); }))
      << "Close returned " << closed;
}

}  // namespace
}  // namespace tamis
