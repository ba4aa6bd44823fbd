// A database written by format version 1 is kept in tests/golden/v1 and must open for ever.
//
// With TAMIS_REWRITE=1 in the environment it is written anew, from fixed seeds: only for a new format version, in a new directory.
#include <gtest/gtest.h>

#include <cstdlib>

#include "engine/db_impl.h"
#include "engine/version/manifest.h"
#include "tests/support/database_test_util.h"

namespace tamis {
namespace {

using internal::FileKind;
using testing_support::Contents;
using testing_support::CopyDatabase;
using testing_support::FilesIn;
using testing_support::GetOr;
using testing_support::Key;
using testing_support::ReadAll;
using testing_support::SmallOptions;
namespace fs = std::filesystem;

std::string GoldenPath() { return std::string(TAMIS_SOURCE_DIR) + "/tests/golden/v1"; }

Options GoldenOptions() {
  Options options = SmallOptions();
  options.memtable_bytes = 8 << 10;
  options.compaction.level_base_bytes = 8 << 10;
  options.compaction.target_file_bytes = 8 << 10;
  return options;
}

std::string GoldenValue(uint64_t i) { return "value of " + std::to_string(i * 2654435761u % 100'000) + std::string(i % 23, 'v'); }

// What the stored database holds: written in this order, so the last 12 writes are in the log only.
class GoldenHistory {
 public:
  virtual ~GoldenHistory() = default;
  virtual void Put(const std::string& key, const std::string& value) = 0;
  virtual void Delete(const std::string& key) = 0;
  virtual void FlushNow() = 0;

  void Write() {
    for (uint64_t i = 0; i < 1500; ++i) Put(Key(i * 577 % 1500), GoldenValue(i));
    for (uint64_t i = 0; i < 1500; i += 5) Delete(Key(i));
    for (uint64_t i = 0; i < 1500; i += 7) Put(Key(i), GoldenValue(i + 1));
    Put("", "the empty key");
    Put("empty value", "");
    Put(std::string("binary\x00\xff\x01", 9), std::string("\x00\x01\xff", 3));
    Put("long value", std::string(5000, 'l'));
    FlushNow();
    for (uint64_t i = 0; i < 10; ++i) Put(Key(i * 3), "from the log");
    Delete(Key(1001));
    Put("zz", "last");
  }
};

class WriteToDatabase final : public GoldenHistory {
 public:
  explicit WriteToDatabase(DB* db) : db_(db) {}
  void Put(const std::string& key, const std::string& value) override { ASSERT_OK(db_->Put(key, value)); }
  void Delete(const std::string& key) override { ASSERT_OK(db_->Delete(key)); }
  void FlushNow() override { ASSERT_OK(db_->Flush()); }

 private:
  DB* const db_;
};

class WriteToModel final : public GoldenHistory {
 public:
  void Put(const std::string& key, const std::string& value) override { contents[key] = value; }
  void Delete(const std::string& key) override { contents.erase(key); }
  void FlushNow() override {}
  Contents contents;
};

Contents ExpectedContents() {
  WriteToModel model;
  model.Write();
  return model.contents;
}

// As the death of its process leaves it: the log has no end mark, and its reserved space is still there (cut off, so as not to store
// zeros).
void WriteGolden(const std::string& path) {
  testing_support::TempDir directory;
  const std::string live = directory.path() + "/db";
  internal::Environment environment = internal::Environment::System();
  const std::unique_ptr<internal::RandomSource> random = internal::RandomSource::Seeded(20'260'101);
  environment.random = random.get();
  Options options = GoldenOptions();
  options.logger = [](LogLevel, std::string_view) {};
  ASSERT_OK_AND_ASSIGN(std::shared_ptr<internal::DbImpl> impl, internal::OpenDatabase(options, live, environment));
  DB db(std::move(impl));
  WriteToDatabase writer(&db);
  writer.Write();
  CopyDatabase(live, path);
  fs::remove(path + "/LOCK");
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().filename();
    if (!name.ends_with(".log") && !name.starts_with("MANIFEST")) continue;
    const std::string bytes = testing_support::ReadBytes(entry.path());
    fs::resize_file(entry.path(), bytes.find_last_not_of('\0') + 1 + 512);
  }
}

class GoldenTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* rewrite = std::getenv("TAMIS_REWRITE");
    if (rewrite != nullptr && std::string(rewrite) == "1") WriteGolden(GoldenPath());
    copy_ = directory_.path() + "/copy";
    CopyDatabase(GoldenPath(), copy_);
  }
  testing_support::TempDir directory_;
  std::string copy_;
  Options options_ = GoldenOptions();
};

TEST_F(GoldenTest, TheStoredDatabaseIsSmallAndHasAllParts) {
  EXPECT_LT(testing_support::BytesIn(copy_), 200u << 10);
  EXPECT_EQ(testing_support::FilesOfKind(copy_, FileKind::kLog).size(), 1u);
  EXPECT_GT(testing_support::FilesOfKind(copy_, FileKind::kTable).size(), 2u);
}

TEST_F(GoldenTest, AReaderFindsEverythingAndChangesNothing) {
  const Contents files = FilesIn(copy_);
  options_.read_only = true;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<DB> db, DB::Open(options_, copy_));
  EXPECT_EQ(ReadAll(*db), ExpectedContents());
  for (const auto& [key, value] : ExpectedContents()) ASSERT_EQ(GetOr(*db, key), value);
  for (uint64_t i = 0; i < 1600; ++i) ASSERT_EQ(GetOr(*db, Key(i)).has_value(), ExpectedContents().count(Key(i)) != 0 || i > 1600);
  ASSERT_OK(db->VerifyChecksums());
  ASSERT_OK_AND_ASSIGN(const Stats stats, db->GetStats());
  EXPECT_EQ(stats.recovery.records, 12u);
  EXPECT_EQ(stats.recovery.bytes_dropped, 0u);
  EXPECT_EQ(stats.filters_refused, 0u);
  size_t levels = 0;
  for (const LevelStats& level : stats.levels) levels += level.files != 0 ? 1 : 0;
  EXPECT_GE(levels, 2u);
  EXPECT_TRUE(FilesIn(copy_) == files);
}

TEST_F(GoldenTest, AWriterGoesOnFromIt) {
  Contents expected = ExpectedContents();
  for (int round = 0; round < 3; ++round) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<DB> db, DB::Open(options_, copy_));
    EXPECT_EQ(ReadAll(*db), expected);
    expected["round"] = std::to_string(round);
    ASSERT_OK(db->Put("round", std::to_string(round)));
    if (round == 1) ASSERT_OK(db->CompactRange(std::nullopt, std::nullopt));
    EXPECT_EQ(ReadAll(*db), expected);
    ASSERT_OK(db->VerifyChecksums());
    ASSERT_OK(db->Close());
  }
}

// Without threads and with fixed seeds a run is reproducible, to the byte.
TEST_F(GoldenTest, TheSameHistoryGivesTheSameBytesTwice) {
  const std::string one = directory_.path() + "/one";
  const std::string two = directory_.path() + "/two";
  WriteGolden(one);
  WriteGolden(two);
  Contents expected = FilesIn(one);
  const Contents written = FilesIn(two);
  ASSERT_EQ(written.size(), expected.size());
  for (const auto& [name, bytes] : written) EXPECT_TRUE(expected[name] == bytes) << name << " differs";
}

// --- what a newer version may have put into the manifest ---

class GoldenUnknownFieldsTest : public GoldenTest {
 protected:
  // A new manifest of the copy, with one more edit behind the state.
  void AddEdit(const internal::VersionEdit& edit) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Directory> directory,
                         FileSystem::Posix()->OpenDirectory(copy_, FileSystem::OpenMode::kExisting, 0600));
    ASSERT_OK_AND_ASSIGN(internal::ManifestContents contents, internal::ReadManifest(*directory));
    contents.state.next_file_number += 1000;
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<internal::Manifest> manifest,
                         internal::Manifest::Create(directory.get(), contents.state.next_file_number - 2,
                                                    contents.state.next_file_number - 1, contents.state, internal::RandomSource::System()));
    ASSERT_OK(manifest->Append(edit));
  }
  internal::ManifestState State() {
    absl::StatusOr<std::unique_ptr<Directory>> directory = FileSystem::Posix()->OpenDirectory(copy_, FileSystem::OpenMode::kExisting, 0600);
    EXPECT_OK(directory);
    absl::StatusOr<internal::ManifestContents> contents = internal::ReadManifest(**directory);
    EXPECT_OK(contents);
    return contents.ok() ? contents->state : internal::ManifestState();
  }
};

TEST_F(GoldenUnknownFieldsTest, OptionalOnesSurviveRollOverAndReopen) {
  internal::VersionEdit edit;
  edit.unknown = {{101 * 2, "an optional field"}, {5000 * 2, std::string("\x00\xff", 2)}};
  edit.optional_features = uint64_t{1} << 50;
  AddEdit(edit);
  for (int round = 0; round < 3; ++round) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<DB> db, DB::Open(options_, copy_));  // each open writes a new manifest
    ASSERT_OK(db->Put("round", std::to_string(round)));
    ASSERT_OK(db->CompactRange(std::nullopt, std::nullopt));
    ASSERT_OK(db->Close());
    const internal::ManifestState state = State();
    EXPECT_EQ(state.unknown, edit.unknown);
    EXPECT_EQ(state.optional_features, edit.optional_features);
  }
}

TEST_F(GoldenUnknownFieldsTest, RequiredOnesAreRefusedByTheirNumber) {
  internal::VersionEdit edit;
  edit.unknown = {{101 * 2 + 1, "what this version does not know"}};
  AddEdit(edit);
  const Contents files = FilesIn(copy_);
  for (const bool read_only : {true, false}) {
    options_.read_only = read_only;
    options_.logger = [](LogLevel, std::string_view) {};
    const absl::Status status = DB::Open(options_, copy_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("101"));
  }
  Contents after = FilesIn(copy_);
  after.erase("LOCK");
  EXPECT_TRUE(after == files);
}

}  // namespace
}  // namespace tamis
