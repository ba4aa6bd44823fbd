// A block that was read without checking its checksum is not handed to a read that asks for the check.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/database_test_util.h"

namespace tamis {
namespace {

using namespace testing_support;

TEST(UnverifiedBlockTest, ItDoesNotReachAVerifyingRead) {
  TempDir directory;
  const std::string path = directory.path() + "/db";
  Options options;
  options.background_threads = 0;
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<DB> db, DB::Open(options, path));
  ASSERT_OK(db->Put("key", "the right value"));
  ASSERT_OK(db->Flush());
  db.reset();
  const std::string table = path + "/" + FilesOfKind(path, internal::FileKind::kTable).front();
  std::string bytes = ReadBytes(table);
  const size_t at = bytes.find("right");
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 5, "wrong");
  WriteBytes(table, bytes);
  ASSERT_OK_AND_ASSIGN(db, DB::Open(options, path));
  std::string value;
  db->Get({.verify_checksums = false}, "key", &value).IgnoreError();
  value.clear();
  const absl::Status status = db->Get("key", &value);
  EXPECT_TRUE(absl::IsDataLoss(status)) << status << ", value: " << value;
}

}  // namespace
}  // namespace tamis
