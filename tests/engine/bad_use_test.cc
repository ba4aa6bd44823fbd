// Wrong use, wrong directories and wrong files get a clear error, and nothing is lost or touched.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <functional>

#include "base/checksum.h"
#include "base/coding.h"
#include "base/random.h"
#include "engine/db_impl.h"
#include "engine/version/manifest.h"
#include "table/internal_key.h"
#include "table/table_format.h"
#include "tests/support/database_test_util.h"
#include "wal/log_format.h"

namespace tamis {
namespace {

using internal::FileKind;
using ::testing::HasSubstr;
using testing_support::Contents;
using testing_support::FilesIn;
using testing_support::FilesOfKind;
using testing_support::GetOr;
using testing_support::Key;
using testing_support::ReadAll;
using testing_support::ReadBytes;
using testing_support::SmallOptions;
using testing_support::WriteBytes;
namespace fs = std::filesystem;

class BadUseTest : public ::testing::Test {
 protected:
  BadUseTest() : path_(directory_.path() + "/db") {}

  // A database with tables and a log that holds records.
  void MakeDatabase(uint64_t keys = 2000) {
    ASSERT_OK_AND_ASSIGN(db_, DB::Open(options_, path_));
    for (uint64_t i = 0; i < keys; ++i) ASSERT_OK(db_->Put(Key(i), "value" + std::to_string(i)));
    ASSERT_OK(db_->Flush());
    ASSERT_OK(db_->Put("in the log", "yes"));
  }
  absl::Status OpenStatus(const Options& options) { return DB::Open(options, path_).status(); }
  Options ReadOnly() const {
    Options options = options_;
    options.read_only = true;
    return options;
  }
  // Both kinds of open fail so, and change nothing.
  void ExpectRefused(absl::StatusCode code, const std::string& text) {
    const Contents before = FilesIn(path_);
    for (const bool read_only : {true, false}) {
      options_.read_only = read_only;
      const absl::Status status = OpenStatus(options_);
      EXPECT_EQ(status.code(), code) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(text));
    }
    options_.read_only = false;
    Contents after = FilesIn(path_);
    for (const char* log : {"LOG", "LOG.old", "LOCK"}) after.erase(log);
    for (const auto& [name, bytes] : before) {
      if (name != "LOG" && name != "LOG.old" && name != "LOCK") {
        EXPECT_EQ(after[name] == bytes, true) << name;
      }
      after.erase(name);
    }
    EXPECT_TRUE(after.empty()) << after.begin()->first << " was made";
  }

  testing_support::TempDir directory_{testing_support::TempDir::MemoryBase()};
  Options options_ = SmallOptions();
  std::string path_;
  std::unique_ptr<DB> db_;
};

TEST_F(BadUseTest, AMissingDirectoryIsNotCreatedByAReader) {
  const absl::Status status = OpenStatus(ReadOnly());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(BadUseTest, CreateIfMissingFalseCreatesNothing) {
  options_.create_if_missing = false;
  EXPECT_CODE(OpenStatus(options_), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(fs::exists(path_));
  fs::create_directory(path_);
  EXPECT_CODE(OpenStatus(options_), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(fs::is_empty(path_));
}

TEST_F(BadUseTest, AMissingParentIsNamed) {
  const absl::Status status = DB::Open(options_, directory_.path() + "/x/y/z").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr(directory_.path() + "/x/y"));
  EXPECT_FALSE(fs::exists(directory_.path() + "/x"));
}

TEST_F(BadUseTest, ErrorIfExistsIsHonoured) {
  MakeDatabase();
  db_.reset();
  options_.error_if_exists = true;
  const Contents before = FilesIn(path_);
  EXPECT_CODE(OpenStatus(options_), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(FilesIn(path_) == before);
}

TEST_F(BadUseTest, AFileIsNoDatabase) {
  WriteBytes(path_, "hello");
  for (const bool read_only : {true, false}) {
    options_.read_only = read_only;
    const absl::Status status = OpenStatus(options_);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
  }
  EXPECT_EQ(ReadBytes(path_), "hello");
  EXPECT_CODE(DestroyDB(options_, path_), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReadBytes(path_), "hello");
}

TEST_F(BadUseTest, AForeignDirectoryIsLeftAlone) {
  fs::create_directory(path_);
  WriteBytes(path_ + "/letter.txt", "dear reader");
  WriteBytes(path_ + "/000003.ldb", "another store");
  for (const bool read_only : {true, false}) {
    options_.read_only = read_only;
    EXPECT_CODE(OpenStatus(options_), absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_CODE(DestroyDB(options_, path_), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(FilesIn(path_), (Contents{{"letter.txt", "dear reader"}, {"000003.ldb", "another store"}}));
}

TEST_F(BadUseTest, TablesWithoutCurrentAreADatabaseThatLostIt) {
  MakeDatabase();
  db_.reset();
  fs::remove(path_ + "/CURRENT");
  const Contents before = FilesIn(path_);
  for (const bool read_only : {true, false}) {
    options_.read_only = read_only;
    const absl::Status status = OpenStatus(options_);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("CURRENT"));
  }
  EXPECT_TRUE(FilesIn(path_) == before);
}

// Changes a little-endian u32 at `offset` of a header and sets its checksum right again.
void ForgeLogVersion(const std::string& file) {
  std::string bytes = ReadBytes(file);
  bytes[8] = 2;
  const uint64_t checksum = internal::Checksum64(std::string_view(bytes).substr(0, 56));
  for (size_t i = 0; i < 8; ++i) bytes[56 + i] = static_cast<char>(checksum >> (8 * i));
  WriteBytes(file, bytes);
}

TEST_F(BadUseTest, ANewerLogFormatIsNamed) {
  MakeDatabase();
  const std::string copy = directory_.path() + "/copy";
  testing_support::CopyDatabase(path_, copy);
  path_ = copy;
  const std::string log = FilesOfKind(path_, FileKind::kLog).back();
  ForgeLogVersion(path_ + "/" + log);
  ExpectRefused(absl::StatusCode::kUnimplemented, log);
}

TEST_F(BadUseTest, ANewerManifestFormatIsNamed) {
  MakeDatabase();
  db_.reset();
  const std::string manifest = FilesOfKind(path_, FileKind::kManifest).back();
  ForgeLogVersion(path_ + "/" + manifest);
  ExpectRefused(absl::StatusCode::kUnimplemented, manifest);
}

TEST_F(BadUseTest, ANewerCurrentFormatIsNamed) {
  MakeDatabase();
  db_.reset();
  std::string text = ReadBytes(path_ + "/CURRENT");
  text.replace(text.find(" 1 "), 3, " 2 ");
  WriteBytes(path_ + "/CURRENT", text);
  ExpectRefused(absl::StatusCode::kUnimplemented, "CURRENT");
}

TEST_F(BadUseTest, ANewerTableFormatIsNamed) {
  MakeDatabase();
  db_.reset();
  const std::string table = FilesOfKind(path_, FileKind::kTable).back();
  std::string bytes = ReadBytes(path_ + "/" + table);
  std::string_view stored = std::string_view(bytes).substr(bytes.size() - internal::kFooterBytes);
  ASSERT_OK_AND_ASSIGN(internal::Footer footer, internal::DecodeFooter(stored, bytes.size(), table));
  footer.required_features = uint64_t{1} << 40;
  bytes.replace(bytes.size() - internal::kFooterBytes, internal::kFooterBytes, internal::EncodeFooter(footer));
  WriteBytes(path_ + "/" + table, bytes);
  ExpectRefused(absl::StatusCode::kUnimplemented, table);
}

TEST_F(BadUseTest, AnUnknownRequiredFeatureOfTheManifestIsNamed) {
  MakeDatabase();
  db_.reset();
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Directory> directory,
                       FileSystem::Posix()->OpenDirectory(path_, FileSystem::OpenMode::kExisting, 0600));
  ASSERT_OK_AND_ASSIGN(internal::ManifestContents contents, internal::ReadManifest(*directory));
  contents.state.required_features = uint64_t{1} << 33;
  contents.state.next_file_number += 2;
  ASSERT_OK(internal::Manifest::Create(directory.get(), contents.state.next_file_number - 2, contents.state.next_file_number - 1,
                                       contents.state, internal::RandomSource::System()));
  ExpectRefused(absl::StatusCode::kUnimplemented, "feature");
}

// --- a second writer ---

TEST_F(BadUseTest, ASecondWriterOfThisProcessIsRefusedAlsoThroughALink) {
  MakeDatabase();
  fs::create_directory_symlink(path_, directory_.path() + "/link");
  for (const std::string& path : {path_, directory_.path() + "/link", directory_.path() + "/./db", path_ + "/"}) {
    const absl::Status status = DB::Open(options_, path).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::to_string(::getpid())));
    EXPECT_CODE(DestroyDB(options_, path), absl::StatusCode::kUnavailable);
  }
  ASSERT_OK(db_->Put("still", "writable"));
  ASSERT_OK(db_->Close());
  EXPECT_OK(DB::Open(options_, directory_.path() + "/link"));
}

// What the child returns is its exit code.
int InChild(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int state = 0;
  // A child that hangs is a failure, not a hang of the test.
  for (int waited = 0; waited < 3000; ++waited) {
    if (::waitpid(child, &state, WNOHANG) == child) return WIFEXITED(state) ? WEXITSTATUS(state) : 1000 + WTERMSIG(state);
    ::usleep(10'000);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, &state, 0);
  return 2000;
}

TEST_F(BadUseTest, AnotherProcessIsRefusedAlsoAfterAFailedOpenHere) {
  MakeDatabase();
  EXPECT_CODE(OpenStatus(options_), absl::StatusCode::kUnavailable);
  const auto open_in_child = [&] {
    const absl::Status status = OpenStatus(options_);
    const bool names_the_holder = std::string(status.message()).find(std::to_string(::getppid())) != std::string::npos;
    return static_cast<int>(status.code()) + (names_the_holder ? 100 : 0);
  };
  EXPECT_EQ(InChild(open_in_child), static_cast<int>(absl::StatusCode::kUnavailable) + 100);
  ASSERT_OK(db_->Close());
  EXPECT_EQ(InChild([&] { return OpenStatus(options_).ok() ? 0 : 1; }), 0);
}

TEST_F(BadUseTest, AKilledWriterLeavesNoLockBehind) {
  const int code = InChild([&] {
    absl::StatusOr<std::unique_ptr<DB>> db = DB::Open(options_, path_);
    if (!db.ok() || !(*db)->Put("k", "v").ok()) return 1;
    ::kill(::getpid(), SIGKILL);
    return 2;
  });
  ASSERT_EQ(code, 1000 + SIGKILL);
  ASSERT_TRUE(fs::exists(path_ + "/LOCK"));
  ASSERT_OK_AND_ASSIGN(db_, DB::Open(options_, path_));
  EXPECT_EQ(GetOr(*db_, "k"), "v");
}

// --- a forked child ---

TEST_F(BadUseTest, AForkedChildIsRefusedEverythingAndDisturbsNothing) {
  for (const uint32_t threads : {0u, 2u}) {
    SCOPED_TRACE(threads);
    options_.background_threads = threads;
    db_.reset();
    ASSERT_OK(DestroyDB(options_, path_));
    MakeDatabase();
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<Iterator> it, db_->NewIterator());
    it->SeekToFirst();
    ASSERT_TRUE(it->Valid());
    const int code = InChild([&] {
      const auto refused = [](const absl::Status& status) { return absl::IsFailedPrecondition(status); };
      std::string value;
      if (!refused(db_->Put("from the child", "1"))) return 1;
      if (!refused(db_->Get("in the log", &value))) return 2;
      if (!refused(db_->Flush()) || !refused(db_->SyncLog()) || !refused(db_->CompactRange(std::nullopt, std::nullopt))) return 3;
      if (it->Valid() || !refused(it->status())) return 4;
      if (!refused(db_->NewIterator().status()) || !refused(db_->GetStats().status()) || db_->GetProperty("tamis.id")) return 5;
      if (!refused(db_->Close())) return 6;
      it.reset();
      db_.reset();
      // The parent's lock outlives the child's copy of the handle.
      if (!absl::IsUnavailable(OpenStatus(options_))) return 7;
      return 0;
    });
    EXPECT_EQ(code, 0);
    it->Next();
    EXPECT_TRUE(it->Valid());
    it.reset();
    EXPECT_CODE(OpenStatus(options_), absl::StatusCode::kUnavailable);
    ASSERT_OK(db_->Put("after", "the child"));
    ASSERT_OK(db_->Flush());
    ASSERT_OK(db_->Close());
    ASSERT_OK_AND_ASSIGN(db_, DB::Open(options_, path_));
    EXPECT_EQ(GetOr(*db_, "after"), "the child");
    EXPECT_EQ(GetOr(*db_, "in the log"), "yes");
    EXPECT_EQ(GetOr(*db_, "from the child"), std::nullopt);
    EXPECT_EQ(ReadAll(*db_).size(), 2002u);
  }
}

TEST_F(BadUseTest, DescriptorsAreNotInheritedByOtherPrograms) {
  MakeDatabase();
  std::string listing = "ls -l /proc/self/fd/ | grep -q '" + path_ + "'";
  EXPECT_NE(std::system(listing.c_str()), 0) << "an inherited descriptor leads into the database";
}

// --- links in the place of files ---

TEST_F(BadUseTest, ALinkInPlaceOfAFileIsRefusedAndItsTargetUntouched) {
  MakeDatabase();
  const std::string crashed = directory_.path() + "/crashed";
  testing_support::CopyDatabase(path_, crashed);
  db_.reset();
  const std::string outside = directory_.path() + "/outside";
  path_ = directory_.path() + "/copy";
  const std::vector<std::string> names = {"CURRENT", "LOCK", FilesOfKind(crashed, FileKind::kTable).front(),
                                          FilesOfKind(crashed, FileKind::kLog).back(), FilesOfKind(crashed, FileKind::kManifest).back()};
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    testing_support::CopyDatabase(crashed, path_);
    const std::string bytes = ReadBytes(path_ + "/" + name);
    WriteBytes(outside, bytes);
    fs::remove(path_ + "/" + name);
    fs::create_symlink(outside, path_ + "/" + name);
    if (name != "LOCK") {
      const absl::Status status = OpenStatus(ReadOnly());
      EXPECT_FALSE(status.ok());
      EXPECT_THAT(std::string(status.message()), HasSubstr(name));
    }
    const absl::Status status = OpenStatus(options_);
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
    EXPECT_TRUE(ReadBytes(outside) == bytes);
    EXPECT_TRUE(fs::is_symlink(path_ + "/" + name));
  }
}

TEST_F(BadUseTest, ALinkInPlaceOfTheInfoLogIsNotWrittenThrough) {
  MakeDatabase();
  db_.reset();
  const std::string outside = directory_.path() + "/outside";
  WriteBytes(outside, "mine");
  for (const char* name : {"LOG", "LOG.old"}) {
    fs::remove(path_ + "/" + name);
    fs::create_symlink(outside, path_ + "/" + name);
    ASSERT_OK_AND_ASSIGN(db_, DB::Open(options_, path_));
    ASSERT_OK(db_->Close());
    EXPECT_EQ(ReadBytes(outside), "mine");
  }
}

TEST_F(BadUseTest, ADirectoryOrNothingInPlaceOfAFileIsAnErrorThatNamesIt) {
  MakeDatabase();
  const std::string crashed = directory_.path() + "/crashed";
  testing_support::CopyDatabase(path_, crashed);
  db_.reset();
  path_ = directory_.path() + "/copy";
  const std::vector<std::string> names = {FilesOfKind(crashed, FileKind::kTable).front(), FilesOfKind(crashed, FileKind::kLog).back(),
                                          FilesOfKind(crashed, FileKind::kManifest).back()};
  for (const std::string& name : names) {
    for (const char* what : {"missing", "directory", "empty", "one byte", "half"}) {
      SCOPED_TRACE(name + " " + what);
      testing_support::CopyDatabase(crashed, path_);
      const std::string file = path_ + "/" + name;
      const std::string bytes = ReadBytes(file);
      fs::remove(file);
      if (what == std::string("directory")) fs::create_directory(file);
      if (what == std::string("empty")) WriteBytes(file, "");
      if (what == std::string("one byte")) WriteBytes(file, bytes.substr(0, 1));
      if (what == std::string("half")) WriteBytes(file, bytes.substr(0, bytes.size() / 2));
      // Half of a log or manifest may be a torn tail that was never promised.
      if (what == std::string("half") && name.find("table") == std::string::npos) {
        OpenStatus(options_).IgnoreError();
        continue;
      }
      ExpectRefused(what == std::string("directory") && name.find("MANIFEST") == std::string::npos ? absl::StatusCode::kFailedPrecondition
                                                                                                   : absl::StatusCode::kDataLoss,
                    name);
    }
  }
}

// --- sizes ---

// An address range that must not be touched.
class Unreadable {
 public:
  explicit Unreadable(uint64_t bytes)
      : bytes_(bytes), start_(::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~Unreadable() { ::munmap(start_, bytes_); }
  bool made() const { return start_ != MAP_FAILED; }
  std::string_view view(uint64_t bytes) const { return {static_cast<const char*>(start_), static_cast<size_t>(bytes)}; }

 private:
  const uint64_t bytes_;
  void* const start_;
};

TEST_F(BadUseTest, SizesBeyondTheLimitsAreRefusedUpFront) {
  MakeDatabase();
  const Unreadable huge((uint64_t{1} << 32) + 4096);
  if (!huge.made()) GTEST_SKIP() << "no address space";
  const uint64_t k4Gi = uint64_t{1} << 32;
  for (const uint64_t bytes : {internal::kMaxKeyBytes + 1, k4Gi - 1, k4Gi, k4Gi + 10}) {
    EXPECT_CODE(db_->Put(huge.view(bytes), "v"), absl::StatusCode::kInvalidArgument);
    EXPECT_CODE(db_->Delete(huge.view(bytes)), absl::StatusCode::kInvalidArgument);
  }
  for (const uint64_t bytes : {internal::kMaxValueBytes + 1, k4Gi - 1, k4Gi, k4Gi + 10}) {
    const absl::Status status = db_->Put("k", huge.view(bytes));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::to_string(bytes)));
  }
  EXPECT_EQ(GetOr(*db_, "k"), std::nullopt);
  ASSERT_OK(db_->Put("k", "v"));
  EXPECT_EQ(GetOr(*db_, "k"), "v");
}

TEST_F(BadUseTest, ABatchWithARefusedWriteIsRefusedWhole) {
  MakeDatabase();
  WriteBatch batch;
  batch.Put("good", "1");
  batch.Put(std::string(internal::kMaxKeyBytes + 1, 'x'), "2");
  batch.Put("good too", "3");
  EXPECT_CODE(batch.status(), absl::StatusCode::kInvalidArgument);
  EXPECT_CODE(db_->Write(batch), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(GetOr(*db_, "good"), std::nullopt);
  EXPECT_EQ(GetOr(*db_, "good too"), std::nullopt);
  batch.Clear();
  batch.Put("good", "1");
  ASSERT_OK(db_->Write(batch));
  EXPECT_EQ(GetOr(*db_, "good"), "1");
}

// A key that is looked up may have any length: it is not there.
TEST_F(BadUseTest, AKeyTooLongToBeWrittenIsNotFound) {
  MakeDatabase();
  const std::string key(internal::kMaxKeyBytes + 1, 'k');
  EXPECT_EQ(GetOr(*db_, key), std::nullopt);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Iterator> it, db_->NewIterator());
  it->Seek(key);
  EXPECT_OK(it->status());
  it->SeekForPrev(key);
  ASSERT_TRUE(it->Valid());
  EXPECT_EQ(it->key(), Key(1999));
}

TEST_F(BadUseTest, AKeyAtTheLimitIsAnOrdinaryKey) {
  const std::string key(internal::kMaxKeyBytes, 'k');
  ASSERT_OK_AND_ASSIGN(db_, DB::Open(options_, path_));
  ASSERT_OK(db_->Put(key, "long"));
  ASSERT_OK(db_->Put(key.substr(1), "one less"));
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(GetOr(*db_, key), "long");
    EXPECT_EQ(GetOr(*db_, key.substr(1)), "one less");
    if (round == 0) ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt));
    if (round == 1) {
      db_.reset();
      ASSERT_OK_AND_ASSIGN(db_, DB::Open(options_, path_));
    }
  }
}

// --- closed and read-only ---

TEST_F(BadUseTest, EveryCallOfAClosedDatabaseIsFailedPrecondition) {
  MakeDatabase();
  ASSERT_OK_AND_ASSIGN(const Snapshot snapshot, db_->GetSnapshot());
  ASSERT_OK(db_->Close());
  ASSERT_OK(db_->Close());  // as the first
  const auto closed = absl::StatusCode::kFailedPrecondition;
  std::string value;
  PinnedValue pinned;
  WriteBatch batch;
  batch.Put("a", "b");
  EXPECT_CODE(db_->Put("a", "b"), closed);
  EXPECT_CODE(db_->Put({.sync = true}, "a", "b"), closed);
  EXPECT_CODE(db_->Delete("a"), closed);
  EXPECT_CODE(db_->Write(batch), closed);
  EXPECT_CODE(db_->Write(WriteBatch()), closed);
  EXPECT_CODE(db_->SyncLog(), closed);
  EXPECT_CODE(db_->Get("a", &value), closed);
  EXPECT_CODE(db_->Get(ReadOptions(), "a", &pinned), closed);
  ReadOptions at_snapshot;
  at_snapshot.snapshot = &snapshot;
  EXPECT_CODE(db_->Get(at_snapshot, "a", &value), closed);
  const std::vector<std::string_view> keys = {"a", "b"};
  std::vector<PinnedValue> values(2);
  std::vector<absl::Status> statuses(2);
  db_->MultiGet(ReadOptions(), keys, absl::MakeSpan(values), absl::MakeSpan(statuses));
  for (const absl::Status& status : statuses) EXPECT_CODE(status, closed);
  EXPECT_CODE(db_->MayExist(ReadOptions(), "a"), closed);
  EXPECT_CODE(db_->NewIterator(), closed);
  EXPECT_CODE(db_->GetSnapshot(), closed);
  EXPECT_CODE(db_->Flush(), closed);
  EXPECT_CODE(db_->CompactRange(std::nullopt, std::nullopt), closed);
  EXPECT_CODE(db_->WaitForBackgroundWork(), closed);
  EXPECT_CODE(db_->VerifyChecksums(), closed);
  EXPECT_CODE(db_->ApproximateSize(std::nullopt, std::nullopt), closed);
  EXPECT_CODE(db_->ApproximateCount(std::nullopt, std::nullopt), closed);
  EXPECT_CODE(db_->GetStats(), closed);
  EXPECT_EQ(db_->GetProperty("tamis.stats"), std::nullopt);
}

TEST_F(BadUseTest, WritesToAReadOnlyDatabaseAreRefused) {
  MakeDatabase();
  const Contents before = FilesIn(path_);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<DB> reader, DB::Open(ReadOnly(), path_));
  const auto refused = absl::StatusCode::kFailedPrecondition;
  WriteBatch batch;
  batch.Put("a", "b");
  EXPECT_CODE(reader->Put("a", "b"), refused);
  EXPECT_CODE(reader->Delete("a"), refused);
  EXPECT_CODE(reader->Write(batch), refused);
  EXPECT_CODE(reader->SyncLog(), refused);
  EXPECT_CODE(reader->Flush(), refused);
  EXPECT_CODE(reader->CompactRange(std::nullopt, std::nullopt), refused);
  EXPECT_OK(reader->WaitForBackgroundWork());
  EXPECT_OK(reader->VerifyChecksums());
  EXPECT_EQ(GetOr(*reader, "in the log"), "yes");
  EXPECT_EQ(ReadAll(*reader).size(), 2001u);
  EXPECT_OK(reader->GetStats());
  EXPECT_OK(reader->Close());
  EXPECT_TRUE(FilesIn(path_) == before);
}

TEST_F(BadUseTest, ReadersWorkOnAReadOnlyDiskAndWritersAreRefusedThere) {
  MakeDatabase();
  db_.reset();
  const std::string mounted = directory_.path() + "/mounted";
  fs::create_directory(mounted);
  // A mount is private to a child process in a mount namespace of its own: nothing to clean up.
  const int code = InChild([&] {
    const std::string command = "mount --bind '" + path_ + "' '" + mounted + "' && mount -o remount,ro,bind '" + mounted + "'";
    if (::unshare(CLONE_NEWNS) != 0 || std::system(("mount --make-rprivate / 2>/dev/null; " + command + " 2>/dev/null").c_str()) != 0) {
      return 77;
    }
    {
      absl::StatusOr<std::unique_ptr<DB>> one = DB::Open(ReadOnly(), mounted);
      absl::StatusOr<std::unique_ptr<DB>> two = DB::Open(ReadOnly(), mounted);
      if (!one.ok() || !two.ok()) return 1;
      std::string value;
      if (!(*one)->Get("in the log", &value).ok() || value != "yes") return 2;
      if (!(*two)->VerifyChecksums().ok()) return 3;
    }
    const absl::Status status = DB::Open(options_, mounted).status();
    if (status.ok() || absl::IsDataLoss(status) || absl::IsNotFound(status)) return 4;
    return std::string(status.message()).find("Read-only file system") != std::string::npos ? 0 : 5;
  });
  if (code == 77) GTEST_SKIP() << "no right to mount";
  EXPECT_EQ(code, 0);
  ASSERT_OK_AND_ASSIGN(db_, DB::Open(options_, path_));
  EXPECT_EQ(GetOr(*db_, "in the log"), "yes");
}

// A real full disk: no signal from a mapped log, a clear status, and what was acknowledged is there after more room was made.
TEST_F(BadUseTest, ADiskThatIsReallyFullRefusesWritesAndLosesNothing) {
  const std::string mounted = directory_.path() + "/mounted";
  fs::create_directory(mounted);
  const int code = InChild([&] {
    const std::string command = "mount -t tmpfs -o size=3m none '" + mounted + "' 2>/dev/null";
    if (::unshare(CLONE_NEWNS) != 0 || std::system(("mount --make-rprivate / 2>/dev/null; " + command).c_str()) != 0) return 77;
    const std::string path = mounted + "/db";
    Contents acknowledged;
    absl::StatusOr<std::unique_ptr<DB>> db = DB::Open(options_, path);
    if (!db.ok()) return 1;
    int refused = 0;
    internal::Random random(3);
    for (uint64_t i = 0; i < 4000 && refused < 20; ++i) {
      std::string value(1500, '\0');  // that no compression shrinks
      for (char& c : value) c = static_cast<char>(random.Next());
      const absl::Status status = (*db)->Put(Key(i), value);
      if (status.ok()) {
        acknowledged[Key(i)] = value;
      } else if (!absl::IsResourceExhausted(status)) {
        return 2;
      } else {
        ++refused;
      }
    }
    if (refused == 0) return 3;
    if (ReadAll(**db) != acknowledged) return 4;
    db->reset();
    if (std::system(("mount -o remount,size=64m '" + mounted + "'").c_str()) != 0) return 5;
    db = DB::Open(options_, path);
    if (!db.ok()) return 6;
    if (ReadAll(**db) != acknowledged) return 7;
    if (!(*db)->Put("again", "writable").ok() || !(*db)->VerifyChecksums().ok()) return 8;
    return 0;
  });
  if (code == 77) GTEST_SKIP() << "no right to mount";
  EXPECT_EQ(code, 0);
}

// --- settings ---

TEST_F(BadUseTest, ASettingOutOfRangeIsNamedAndNothingIsCreated) {
  const std::vector<std::pair<std::string, std::function<void(Options*)>>> cases = {
      {"memtable_bytes", [](Options* o) { o->memtable_bytes = 4095; }},
      {"memtable_bytes", [](Options* o) { o->memtable_bytes = (uint64_t{4} << 30) + 1; }},
      {"max_immutable_memtables", [](Options* o) { o->max_immutable_memtables = 0; }},
      {"background_threads", [](Options* o) { o->background_threads = 65; }},
      {"max_open_files", [](Options* o) { o->max_open_files = 7; }},
      {"file_mode", [](Options* o) { o->file_mode = 0444; }},
      {"file_mode", [](Options* o) { o->file_mode = 04600; }},
      {"table.block_bytes", [](Options* o) { o->table.block_bytes = 255; }},
      {"table.block_bytes", [](Options* o) { o->table.block_bytes = (1u << 20) + 1; }},
      {"table.compression", [](Options* o) { o->table.compression = static_cast<Compression>(9); }},
      {"compaction.levels", [](Options* o) { o->compaction.levels = 1; }},
      {"compaction.levels", [](Options* o) { o->compaction.levels = 13; }},
      {"compaction.level_base_bytes", [](Options* o) { o->compaction.level_base_bytes = 0; }},
      {"compaction.size_ratio", [](Options* o) { o->compaction.size_ratio = 1; }},
      {"compaction.size_ratio", [](Options* o) { o->compaction.size_ratio = 101; }},
      {"compaction.target_file_bytes", [](Options* o) { o->compaction.target_file_bytes = 1; }},
      {"compaction.l0_trigger", [](Options* o) { o->compaction.l0_trigger = 0; }},
      {"compaction.l0_", [](Options* o) { o->compaction.l0_slowdown = 3; }},
      {"compaction.l0_s", [](Options* o) { o->compaction.l0_stop = 5; }},
      {"filter.kind", [](Options* o) { o->filter.kind = static_cast<FilterKind>(200); }},
      {"filter.bits_per_key",
       [](Options* o) {
         o->filter.allocation = FilterAllocation::kUniform;  // as an average, 1 is legal
         o->filter.bits_per_key = 1;
       }},
      {"filter.bits_per_key", [](Options* o) { o->filter.bits_per_key = 25; }},
      {"filter.bits_per_key", [](Options* o) { o->filter.bits_per_key = -1; }},
      {"filter.bits_per_key", [](Options* o) { o->filter.bits_per_key = std::nan(""); }},
      {"filter.bits_per_level",
       [](Options* o) {
         o->filter.bits_per_level = {10, 99};
       }},
      {"filter.bits_per_level", [](Options* o) { o->filter.allocation = FilterAllocation::kPerLevel; }},
      {"filter.allocation", [](Options* o) { o->filter.allocation = static_cast<FilterAllocation>(77); }},
  };
  for (const auto& [name, change] : cases) {
    Options options;
    change(&options);
    const absl::Status status = OpenStatus(options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
    EXPECT_FALSE(fs::exists(path_)) << name;
    db_.reset();
    DestroyDB(Options(), path_).IgnoreError();
  }
}

TEST_F(BadUseTest, AnotherHashSeedIsRefusedByItsName) {
  options_.filter.hash_seed = 7;
  MakeDatabase();
  db_.reset();
  options_.filter.hash_seed = 8;
  ExpectRefused(absl::StatusCode::kFailedPrecondition, "hash_seed");
  options_.filter.hash_seed.reset();
  ASSERT_OK_AND_ASSIGN(db_, DB::Open(options_, path_));
  EXPECT_EQ(db_->GetProperty("tamis.hash-seed"), "7");
}

TEST_F(BadUseTest, ASnapshotOfAnotherDatabaseIsRefused) {
  MakeDatabase();
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<DB> other, DB::Open(options_, directory_.path() + "/other"));
  ASSERT_OK_AND_ASSIGN(const Snapshot foreign, other->GetSnapshot());
  const Snapshot empty;
  for (const Snapshot* snapshot : {&foreign, &empty}) {
    ReadOptions options;
    options.snapshot = snapshot;
    std::string value = "as it was";
    EXPECT_CODE(db_->Get(options, Key(1), &value), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(value, "as it was");
    EXPECT_CODE(db_->NewIterator(options), absl::StatusCode::kInvalidArgument);
    EXPECT_CODE(db_->MayExist(options, Key(1)), absl::StatusCode::kInvalidArgument);
  }
}

// --- destroying ---

TEST_F(BadUseTest, DestroyRemovesItsOwnFilesOnly) {
  ASSERT_OK(DestroyDB(options_, path_));
  EXPECT_FALSE(fs::exists(path_));
  MakeDatabase();
  EXPECT_CODE(DestroyDB(options_, path_), absl::StatusCode::kUnavailable);
  ASSERT_OK(db_->Put("still", "there"));
  ASSERT_OK(db_->Close());
  WriteBytes(path_ + "/notes.txt", "mine");
  ASSERT_OK(DestroyDB(options_, path_));
  EXPECT_EQ(FilesIn(path_), (Contents{{"notes.txt", "mine"}}));
  fs::remove(path_ + "/notes.txt");
  ASSERT_OK(DestroyDB(options_, path_));  // an empty directory
  EXPECT_FALSE(fs::exists(path_));
  MakeDatabase();
  ASSERT_OK(db_->Close());
  ASSERT_OK(DestroyDB(options_, path_));
  EXPECT_FALSE(fs::exists(path_));
}

}  // namespace
}  // namespace tamis
