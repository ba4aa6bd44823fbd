// The end mark of a rotated log proves nothing about older logs that were never synced: a power cut that keeps it and loses their last
// pages is a legal state, not damage.
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "tests/support/database_test_util.h"
#include "tests/support/hooked_file_system.h"

namespace tamis {
namespace {

using namespace testing_support;

TEST(RotationEndMarkTest, ItDoesNotProveThatOlderUnsyncedLogsWereDurable) {
  TempDir directory;
  HookedFileSystem files(FileSystem::Posix());
  Options options;
  options.file_system = &files;
  options.background_threads = 1;
  options.memtable_bytes = 64 << 10;
  std::atomic<bool> full{true};
  // No table can be made, so logs stay and are not synced.
  files.SetHook([&](const FileOperation& operation) {
    const bool table = operation.kind == FileOperation::Kind::kCreate && operation.name.ends_with(".table");
    return table && full ? absl::ResourceExhaustedError("full") : absl::OkStatus();
  });
  const std::string path = directory.path() + "/db";
  const std::string cut = directory.path() + "/cut";
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<DB> db, DB::Open(options, path));
  const std::string first_log = FilesOfKind(path, internal::FileKind::kLog).front();
  // Until two logs are closed and a third takes records.
  for (int i = 0; i < 1000 && db->GetStats()->immutable_memtables < 2; ++i) {
    db->Put({.sync = false}, Key(i), std::string(1000, 'v')).IgnoreError();
  }
  ASSERT_EQ(db->GetStats()->immutable_memtables, 2u);
  CopyDatabase(path, cut);
  full = false;
  db.reset();
  // The last pages of the oldest log never reached the disk.
  std::string bytes = ReadBytes(cut + "/" + first_log);
  ASSERT_GT(bytes.size(), 32768u);
  std::fill(bytes.end() - 8192, bytes.end(), '\0');
  WriteBytes(cut + "/" + first_log, bytes);

  options.file_system = nullptr;
  absl::StatusOr<std::unique_ptr<DB>> opened = DB::Open(options, cut);
  ASSERT_OK(opened);
  const Contents all = ReadAll(**opened);
  EXPECT_GT(all.size(), 20u);
  EXPECT_EQ(all.rbegin()->first, Key(all.size() - 1));  // a prefix
}

}  // namespace
}  // namespace tamis
