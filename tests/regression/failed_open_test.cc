// An open that fails is a status, leaves nothing behind, and can be tried again.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/database_test_util.h"
#include "tests/support/hooked_file_system.h"

namespace tamis {
namespace {

using namespace testing_support;
using Kind = FileOperation::Kind;

TEST(FailedOpenTest, NoRoomForTheFirstLogIsAStatus) {
  TempDir directory;
  HookedFileSystem files(FileSystem::Posix());
  Options options;
  options.file_system = &files;
  files.SetHook([](const FileOperation& operation) {
    return operation.kind == Kind::kCreate && operation.name.ends_with(".log") ? absl::ResourceExhaustedError("full") : absl::OkStatus();
  });
  // In a child: it used to crash.
  EXPECT_EXIT(
      {
        const auto opened = DB::Open(options, directory.path() + "/db");
        std::exit(absl::IsResourceExhausted(opened.status()) ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(FailedOpenTest, TablesWrittenByARecoveryThatFailedAreRemoved) {
  TempDir directory;
  const std::string path = directory.path() + "/db";
  const std::string copy = directory.path() + "/copy";
  Options options;
  options.background_threads = 0;
  {
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<DB> db, DB::Open(options, path));
    for (int i = 0; i < 500; ++i) ASSERT_OK(db->Put(Key(i), std::string(1000, 'v')));
    CopyDatabase(path, copy);
  }
  HookedFileSystem files(FileSystem::Posix());
  options.file_system = &files;
  options.memtable_bytes = 64 << 10;  // several tables
  files.SetHook([](const FileOperation& operation) {
    return operation.kind == Kind::kCreate && operation.name.starts_with("MANIFEST") ? absl::ResourceExhaustedError("full") : absl::OkStatus();
  });
  for (int attempt = 0; attempt < 3; ++attempt) {
    EXPECT_TRUE(absl::IsResourceExhausted(DB::Open(options, copy).status()));
    EXPECT_EQ(FilesOfKind(copy, internal::FileKind::kTable).size(), 0u) << "after attempt " << attempt;
  }
}

}  // namespace
}  // namespace tamis
