// A log is listed durably before its first record: one that holds records but is not listed shows that the manifest lost its end. That is
// DataLoss, and nothing is deleted.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/support/database_test_util.h"
#include "wal/log_reader.h"

namespace tamis {
namespace {

using namespace testing_support;

TEST(LostManifestTailTest, AnUnlistedLogWithRecordsIsDataLoss) {
  TempDir directory;
  const std::string path = directory.path() + "/db";
  const std::string copy = directory.path() + "/copy";
  Options options;
  options.background_threads = 0;
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<DB> db, DB::Open(options, path));
  ASSERT_OK(db->Put({.sync = true}, "key", "synced"));
  CopyDatabase(path, copy);
  // The edit that lists the log, and all behind it, reads as zeros.
  const std::string manifest = FilesOfKind(copy, internal::FileKind::kManifest).back();
  uint64_t second = 0;
  {
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<Directory> opened, FileSystem::Posix()->OpenDirectory(copy, FileSystem::OpenMode::kExisting, 0600));
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<RandomAccessFile> file, opened->OpenRandomAccess(manifest));
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<internal::LogReader> log,
                         internal::LogReader::Open(std::move(file), internal::LogKind::kManifest, std::nullopt));
    internal::LogRecord record;
    while (log->Next(&record)) second = record.offset;
    ASSERT_EQ(record.first_sequence, 2u);
  }
  std::string bytes = ReadBytes(copy + "/" + manifest);
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(second), bytes.end(), '\0');
  WriteBytes(copy + "/" + manifest, bytes);
  const Contents before = FilesIn(copy);

  absl::StatusOr<std::unique_ptr<DB>> opened = DB::Open(options, copy);
  EXPECT_TRUE(absl::IsDataLoss(opened.status())) << opened.status();
  if (opened.ok()) {
    std::string value;
    ADD_FAILURE() << "the synced write reads as: " << (*opened)->Get("key", &value);
  }
  const std::string log = FilesOfKind(path, internal::FileKind::kLog).back();
  EXPECT_EQ(FilesIn(copy)[log], before.at(log)) << "the log was deleted";
}

}  // namespace
}  // namespace tamis
