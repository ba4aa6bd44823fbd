// What only a real file system can do: links, FIFOs, descriptors, processes.
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>

#include "base/posix_errno.h"
#include "base/posix_files.h"
#include "tamis/file_system.h"
#include "tests/support/status_matchers.h"

namespace tamis::internal {
namespace {

using absl::StatusCode;
using OpenMode = FileSystem::OpenMode;

std::set<int> OpenDescriptors() {
  std::set<int> fds;
  DIR* const stream = opendir("/proc/self/fd");
  while (const dirent* const entry = readdir(stream)) {
    if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(stream)) fds.insert(atoi(entry->d_name));
  }
  closedir(stream);
  return fds;
}

class PosixFileSystemTest : public ::testing::Test {
 protected:
  PosixFileSystemTest() {
    std::string root = ::testing::TempDir() + "tamis_posix_XXXXXX";
    root_ = mkdtemp(root.data());
    db_ = root_ + "/db";
    directory_ = Open(db_, OpenMode::kCreate);
  }
  ~PosixFileSystemTest() override {
    directory_.reset();
    std::filesystem::remove_all(root_);
  }
  static std::unique_ptr<Directory> Open(const std::string& path, OpenMode mode, uint32_t file_mode = 0600) {
    auto directory = FileSystem::Posix()->OpenDirectory(path, mode, file_mode);
    EXPECT_OK(directory);
    return directory.ok() ? *std::move(directory) : nullptr;
  }
  static mode_t ModeOf(const std::string& path) {
    struct stat info {};
    EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 0777;
  }
  void Put(std::string_view name, std::string_view bytes) {
    ASSERT_OK_AND_ASSIGN(auto file, directory_->CreateAppend(name));
    ASSERT_OK(file->Append(bytes));
    ASSERT_OK(file->Close());
  }
  void ExpectRefusedEverywhere(const std::string& name) {
    EXPECT_CODE(directory_->FileSize(name), StatusCode::kFailedPrecondition);
    EXPECT_CODE(directory_->OpenRandomAccess(name), StatusCode::kFailedPrecondition);
    EXPECT_CODE(directory_->CreateAppend(name), StatusCode::kFailedPrecondition);
    EXPECT_CODE(directory_->CreateLog(name), StatusCode::kFailedPrecondition);
    EXPECT_CODE(directory_->Lock(name), StatusCode::kFailedPrecondition);
    const auto entries = directory_->List();
    for (const DirectoryEntry& entry : *entries) EXPECT_FALSE(entry.name == name && entry.regular);
  }

  std::string root_, db_;
  std::unique_ptr<Directory> directory_;
};

TEST_F(PosixFileSystemTest, SymbolicLinksBelowTheDirectoryAreNotFollowed) {
  Put("target", "x");
  ASSERT_EQ(symlink("target", (db_ + "/link").c_str()), 0);
  ExpectRefusedEverywhere("link");
  const std::string outside = root_ + "/outside";
  ASSERT_EQ(symlink(outside.c_str(), (db_ + "/dangling").c_str()), 0);
  ExpectRefusedEverywhere("dangling");
  EXPECT_FALSE(std::filesystem::exists(outside));
  ASSERT_OK(directory_->Remove("link"));
  ASSERT_OK_AND_ASSIGN(const auto size, directory_->FileSize("target"));
  EXPECT_EQ(size, 1u) << "removing a link removed its target";
}

TEST_F(PosixFileSystemTest, AFifoNeitherBlocksNorOpens) {
  ASSERT_EQ(mkfifo((db_ + "/fifo").c_str(), 0600), 0);
  alarm(10);
  ExpectRefusedEverywhere("fifo");
  alarm(0);
}

TEST_F(PosixFileSystemTest, ALockFileWithAnotherNameIsRefusedUntouched) {
  Put("precious", "content");
  ASSERT_EQ(link((db_ + "/precious").c_str(), (db_ + "/LOCK").c_str()), 0);
  EXPECT_CODE(directory_->Lock("LOCK"), StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::filesystem::file_size(db_ + "/precious"), 7u);
  ASSERT_OK(directory_->Remove("LOCK"));
  EXPECT_OK(directory_->Lock("LOCK"));  // the refusal left the lock registered
}

TEST_F(PosixFileSystemTest, TheDirectoryMayBeASymbolicLinkAndIsResolvedOnce) {
  const std::string link = root_ + "/link";
  ASSERT_EQ(symlink("db", link.c_str()), 0);
  const auto through = Open(link, OpenMode::kCreate);
  EXPECT_EQ(through->id(), directory_->id());
  ASSERT_OK(through->Lock("LOCK"));
  ASSERT_OK_AND_ASSIGN(const auto lock, directory_->Lock("LOCK"));
  EXPECT_CODE(through->Lock("LOCK"), StatusCode::kUnavailable);
  // The link now leads elsewhere; the open directory stays what it was.
  std::filesystem::create_directory(root_ + "/other");
  std::filesystem::remove(link);
  ASSERT_EQ(symlink("other", link.c_str()), 0);
  ASSERT_OK(through->CreateAppend("file"));
  EXPECT_TRUE(std::filesystem::exists(db_ + "/file"));
  EXPECT_CODE(FileSystem::Posix()->OpenDirectory("", OpenMode::kCreate, 0600), StatusCode::kInvalidArgument);
  ASSERT_EQ(symlink("nowhere", (root_ + "/dangling").c_str()), 0);
  EXPECT_CODE(FileSystem::Posix()->OpenDirectory(root_ + "/dangling", OpenMode::kCreate, 0600), StatusCode::kFailedPrecondition);
}

TEST_F(PosixFileSystemTest, RelativePathsWithTrailingSlashesWork) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(root_);
  EXPECT_NE(Open("relative", OpenMode::kCreate), nullptr);
  EXPECT_NE(Open("slashes///", OpenMode::kCreate), nullptr);
  EXPECT_NE(Open("/", OpenMode::kExisting), nullptr);
  const auto orphan = FileSystem::Posix()->OpenDirectory("no//such/", OpenMode::kCreate, 0600);
  EXPECT_NE(orphan.status().message().find("missing: no"), absl::string_view::npos) << orphan.status();
  std::filesystem::current_path(before);
}

TEST_F(PosixFileSystemTest, ModesAreTheAskedOnesLessTheUmask) {
  const mode_t before = umask(027);
  const auto open = Open(root_ + "/wide", OpenMode::kCreate, 0664);
  ASSERT_OK(open->CreateAppend("file"));
  ASSERT_OK(open->CreateLog("log"));
  ASSERT_OK(directory_->CreateAppend("file"));
  umask(before);
  EXPECT_EQ(ModeOf(root_ + "/wide"), 0750u);
  EXPECT_EQ(ModeOf(root_ + "/wide/file"), 0640u);
  EXPECT_EQ(ModeOf(root_ + "/wide/log"), 0640u);
  EXPECT_EQ(ModeOf(db_), 0700u);
  EXPECT_EQ(ModeOf(db_ + "/file"), 0600u);
}

TEST_F(PosixFileSystemTest, EveryDescriptorClosesOnExecAndNoneLeaks) {
  const std::set<int> before = OpenDescriptors();
  {
    const auto again = Open(db_, OpenMode::kCreate);
    ASSERT_OK_AND_ASSIGN(const auto append, directory_->CreateAppend("append"));
    ASSERT_OK_AND_ASSIGN(const auto log, directory_->CreateLog("log"));
    ASSERT_OK(log->Reserve(1 << 20));
    ASSERT_OK_AND_ASSIGN(const auto reader, directory_->OpenRandomAccess("append"));
    ASSERT_OK_AND_ASSIGN(const auto lock, directory_->Lock("LOCK"));
    ASSERT_OK(directory_->List());
    int opened = 0;
    for (const int fd : OpenDescriptors()) {
      if (before.contains(fd)) continue;
      ++opened;
      EXPECT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC) << fd;
    }
    EXPECT_EQ(opened, 5);
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

template <typename Body>
void InChild(Body body) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(body());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(PosixFileSystemTest, DescriptorsAreNeverThoseOfTheStandardStreams) {
  InChild([&] {
    for (const int fd : {0, 1, 2}) close(fd);
    const auto again = FileSystem::Posix()->OpenDirectory(db_, OpenMode::kCreate, 0600);
    const auto append = (*again)->CreateAppend("append");
    const auto log = (*again)->CreateLog("log");
    const auto reader = (*again)->OpenRandomAccess("append");
    const auto lock = (*again)->Lock("LOCK");
    if (!append.ok() || !log.ok() || !reader.ok() || !lock.ok()) return 10;
    for (const int fd : {0, 1, 2}) {
      if (fcntl(fd, F_GETFD) != -1) return 1 + fd;
    }
    return 0;
  });
}

TEST_F(PosixFileSystemTest, ALockHoldsAgainstForkedChildrenAndOtherProcesses) {
  ASSERT_OK_AND_ASSIGN(auto lock, directory_->Lock("LOCK"));
  const std::string pid = std::to_string(getpid());
  const auto refused = [&] {
    const auto second = directory_->Lock("LOCK");
    return second.status().code() == StatusCode::kUnavailable && second.status().message().find(pid) != absl::string_view::npos;
  };
  InChild([&] { return refused() ? 0 : 1; });  // has inherited the registry
  InChild([&] {
    lock.reset();  // must not release the parent's lock; leaves the registry, so only the lock on the file is left
    return refused() ? 0 : 1;
  });
  EXPECT_CODE(directory_->Lock("LOCK"), StatusCode::kUnavailable);
  lock.reset();
  InChild([&] { return directory_->Lock("LOCK").ok() ? 0 : 1; });
}

TEST_F(PosixFileSystemTest, ALockOfAnotherProcessNamesItsPidAndEndsWithIt) {
  int ready[2], done[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(done), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto lock = directory_->Lock("LOCK");
    char byte = lock.ok() ? 'y' : 'n';
    (void)!write(ready[1], &byte, 1);
    (void)!read(done[0], &byte, 1);
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  ASSERT_EQ(byte, 'y');
  for (int i = 0; i < 2; ++i) {  // the first refusal must not leave the registry's entry
    const auto second = directory_->Lock("LOCK");
    EXPECT_CODE(second, StatusCode::kUnavailable);
    EXPECT_NE(second.status().message().find(std::to_string(child)), absl::string_view::npos) << second.status();
  }
  ASSERT_EQ(write(done[1], "x", 1), 1);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_OK(directory_->Lock("LOCK"));
  for (const int fd : {ready[0], ready[1], done[0], done[1]}) close(fd);
}

TEST_F(PosixFileSystemTest, AFileThatShrankIsAShortRead) {
  Put("file", std::string(10'000, 'x'));
  ASSERT_OK_AND_ASSIGN(const auto file, directory_->OpenRandomAccess("file"));
  ASSERT_EQ(truncate((db_ + "/file").c_str(), 5000), 0);
  std::string bytes(10'000, '\0');
  EXPECT_CODE(file->Read(0, absl::MakeSpan(bytes)), StatusCode::kDataLoss);
}

TEST_F(PosixFileSystemTest, AFailedAppendIsStickyAndUnknown) {
  FileDescriptor read_only = OpenAt(AT_FDCWD, (db_ + "/ro").c_str(), O_RDONLY | O_CREAT, 0600);
  const auto file = NewPosixAppendFile(std::move(read_only), "ro");
  EXPECT_OK(file->Append("buffered"));
  const absl::Status first = file->Sync();
  EXPECT_CODE(first, StatusCode::kUnknown);
  EXPECT_EQ(file->Append("x"), first);
  EXPECT_EQ(file->Sync(), first);
  EXPECT_EQ(file->Close(), first);
}

TEST_F(PosixFileSystemTest, AFullDeviceIsResourceExhaustedAndStickyForAppend) {
  FileDescriptor full = OpenAt(AT_FDCWD, "/dev/full", O_WRONLY);
  if (!full.ok()) GTEST_SKIP();
  const auto file = NewPosixAppendFile(std::move(full), "full");
  const absl::Status first = file->Append(std::string(2'000'000, 'x'));
  EXPECT_CODE(first, StatusCode::kResourceExhausted);
  EXPECT_EQ(file->Append("x"), first);
  EXPECT_EQ(file->Close(), first);
}

class PosixLogFileTest : public PosixFileSystemTest {
 protected:
  std::unique_ptr<LogFile> NewLog(AllocateFunction allocate) {
    FileDescriptor fd = OpenAt(AT_FDCWD, (db_ + "/log").c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    EXPECT_TRUE(fd.ok());
    return NewPosixLogFile(std::move(fd), db_ + "/log", allocate);
  }
  uint64_t SizeOnDisk() { return std::filesystem::file_size(db_ + "/log"); }
  static bool full_;
};
bool PosixLogFileTest::full_ = false;

TEST_F(PosixLogFileTest, AFullDiskChangesNothingAndMayBeTriedAgain) {
  const auto log = NewLog([](int fd, uint64_t begin, uint64_t end) {
    if (!full_) return AllocateSpace(fd, begin, end);
    AllocateSpace(fd, begin, (begin + end) / 2);  // as a file system may: half done, then no more
    return ENOSPC;
  });
  ASSERT_OK(log->Reserve(100'000));
  ASSERT_OK(log->Write(99'990, "0123456789"));
  full_ = true;
  EXPECT_CODE(log->Reserve(300'000), StatusCode::kResourceExhausted);
  EXPECT_EQ(log->reserved(), 100'000u);
  EXPECT_EQ(SizeOnDisk(), 100'000u);
  ASSERT_OK(log->Write(50'000, "still usable"));
  ASSERT_OK(log->Sync());
  EXPECT_CODE(log->Reserve(300'000), StatusCode::kResourceExhausted);
  full_ = false;
  ASSERT_OK(log->Reserve(300'000));
  ASSERT_OK(log->Write(99'995, std::string(1000, 'y')));
  ASSERT_OK(log->Close());
}

TEST_F(PosixLogFileTest, AnotherErrorOfAllocationIsSticky) {
  const auto log = NewLog([](int, uint64_t, uint64_t) { return EIO; });
  const absl::Status first = log->Reserve(1000);
  EXPECT_CODE(first, StatusCode::kUnknown);
  EXPECT_EQ(log->Reserve(10), first);
  EXPECT_EQ(log->Write(0, "x"), first);
  EXPECT_EQ(log->Sync(), first);
  EXPECT_EQ(log->Truncate(0), first);
  EXPECT_EQ(log->Close(), first);
}

TEST_F(PosixLogFileTest, WithoutAllocationItWritesZeros) {
  for (const AllocateFunction allocate : {AllocateFunction([](int, uint64_t, uint64_t) { return EOPNOTSUPP; }),
                                          AllocateFunction([](int, uint64_t, uint64_t) { return ENOSYS; })}) {
    const auto log = NewLog(allocate);
    ASSERT_OK(log->Reserve(300'001));
    EXPECT_EQ(SizeOnDisk(), 300'001u);
    struct stat info {};
    ASSERT_EQ(stat((db_ + "/log").c_str(), &info), 0);
    EXPECT_GE(info.st_blocks * 512, 300'001) << "a hole, not zeros";
    ASSERT_OK(log->Write(299'999, "ab"));
    ASSERT_OK(log->Reserve(400'000));
    ASSERT_OK(log->Close());
    std::filesystem::remove(db_ + "/log");
  }
}

TEST_F(PosixLogFileTest, ReservedSpaceIsReallyAllocated) {
  const auto log = NewLog(AllocateSpace);
  ASSERT_OK(log->Reserve(8 << 20));
  struct stat info {};
  ASSERT_EQ(stat((db_ + "/log").c_str(), &info), 0);
  EXPECT_GE(info.st_blocks * 512, 8 << 20);
  ASSERT_OK(log->Truncate(4096));
  ASSERT_EQ(stat((db_ + "/log").c_str(), &info), 0);
  EXPECT_LE(info.st_blocks * 512, 64 << 10);
}

TEST_F(PosixLogFileTest, AtMostTwoWindowsStayMapped) {
  const auto mappings = [&] {
    int count = 0;
    FILE* const maps = fopen("/proc/self/maps", "r");
    char line[1024];
    while (fgets(line, sizeof line, maps) != nullptr) count += std::string_view(line).find(db_ + "/log") != std::string_view::npos;
    fclose(maps);
    return count;
  };
  const auto log = NewLog(AllocateSpace);
  for (uint64_t end = 1; end <= 20; ++end) {
    ASSERT_OK(log->Reserve(end * 100'000));
    ASSERT_OK(log->Write(end * 100'000 - 50, std::string(50, 'x')));
    EXPECT_GE(mappings(), 1);
    EXPECT_LE(mappings(), 2);
  }
  ASSERT_OK(log->Truncate(0));
  EXPECT_EQ(mappings(), 0);
}

TEST_F(PosixLogFileTest, MappedBytesSurviveKill) {
  InChild([&] {
    const pid_t child = fork();
    if (child == 0) {
      auto log = directory_->CreateLog("log");
      bool ok = (*log)->Reserve(1 << 20).ok();
      for (uint64_t i = 0; i < 1000; ++i) ok = ok && (*log)->Write(i * 8, "record!\n").ok();
      raise(ok ? SIGKILL : SIGABRT);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 0 : 1;
  });
  ASSERT_OK_AND_ASSIGN(const auto file, directory_->OpenRandomAccess("log"));
  std::string bytes(8001, 'x'), wanted;
  ASSERT_OK(file->Read(0, absl::MakeSpan(bytes)));
  for (int i = 0; i < 1000; ++i) wanted += "record!\n";
  EXPECT_TRUE(bytes == wanted + '\0');
}

TEST(ErrnoStatus, MapsAsTheHeaderSays) {
  const struct {
    IoKind kind;
    int error;
    StatusCode code;
  } kCases[] = {
      {IoKind::kDirectory, ENOENT, StatusCode::kFailedPrecondition},
      {IoKind::kOpen, ENOENT, StatusCode::kDataLoss},
      {IoKind::kChange, ENOENT, StatusCode::kDataLoss},
      {IoKind::kRead, EIO, StatusCode::kDataLoss},
      {IoKind::kOpen, EIO, StatusCode::kDataLoss},
      {IoKind::kWrite, EIO, StatusCode::kUnknown},
      {IoKind::kChange, EIO, StatusCode::kUnknown},
      {IoKind::kWrite, EROFS, StatusCode::kUnknown},
      {IoKind::kOpen, EROFS, StatusCode::kFailedPrecondition},
      {IoKind::kOpen, EACCES, StatusCode::kFailedPrecondition},
      {IoKind::kOpen, ELOOP, StatusCode::kFailedPrecondition},
      {IoKind::kDirectory, ENOTDIR, StatusCode::kFailedPrecondition},
  };
  for (const auto& c : kCases) EXPECT_EQ(ErrnoStatus(c.kind, c.error, "do", "path").code(), c.code) << c.error;
  for (const IoKind kind : {IoKind::kDirectory, IoKind::kOpen, IoKind::kRead, IoKind::kChange, IoKind::kWrite}) {
    for (const int error : {ENOSPC, EDQUOT, EMFILE, ENFILE, ENOMEM}) {
      EXPECT_EQ(ErrnoStatus(kind, error, "do", "path").code(), StatusCode::kResourceExhausted) << error;
    }
  }
  EXPECT_EQ(ErrnoStatus(IoKind::kRead, EIO, "read", "/a/b", 4096).message(), "read /a/b at offset 4096: Input/output error");
}

}  // namespace
}  // namespace tamis::internal
