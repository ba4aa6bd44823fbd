// What tamis/file_system.h promises, asked of every implementation.
#include "tamis/file_system.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <thread>

#include "base/mem_file_system.h"
#include "base/random.h"
#include "tests/support/status_matchers.h"

namespace tamis::internal {
namespace {

using absl::StatusCode;
using OpenMode = FileSystem::OpenMode;

enum class Kind { kPosix, kMem };

class FileSystemTest : public ::testing::TestWithParam<Kind> {
 protected:
  FileSystemTest() {
    if (GetParam() == Kind::kMem) {
      mem_ = NewMemFileSystem();
      files_ = mem_.get();
      root_ = "/root";
      EXPECT_OK(files_->OpenDirectory(root_, OpenMode::kCreate, 0600));
    } else {
      files_ = FileSystem::Posix();
      std::string root = ::testing::TempDir() + "tamis_files_XXXXXX";
      root_ = mkdtemp(root.data());
    }
    directory_ = Open(root_ + "/db", OpenMode::kCreate);
  }
  ~FileSystemTest() override {
    directory_.reset();
    if (GetParam() == Kind::kPosix) std::filesystem::remove_all(root_);
  }

  std::unique_ptr<Directory> Open(const std::string& path, OpenMode mode) {
    auto directory = files_->OpenDirectory(path, mode, 0600);
    EXPECT_OK(directory);
    return directory.ok() ? *std::move(directory) : nullptr;
  }

  void Put(std::string_view name, std::string_view bytes) {
    ASSERT_OK_AND_ASSIGN(auto file, directory_->CreateAppend(name));
    ASSERT_OK(file->Append(bytes));
    ASSERT_OK(file->Sync());
    ASSERT_OK(file->Close());
  }

  std::string Get(std::string_view name) {
    auto file = directory_->OpenRandomAccess(name);
    EXPECT_OK(file);
    if (!file.ok()) return "";
    std::string bytes((*file)->size(), '\0');
    EXPECT_OK((*file)->Read(0, absl::MakeSpan(bytes)));
    return bytes;
  }

  std::optional<uint64_t> Size(std::string_view name) {
    auto size = directory_->FileSize(name);
    EXPECT_OK(size);
    return size.ok() ? *size : std::nullopt;
  }

  std::unique_ptr<FileSystem> mem_;
  FileSystem* files_ = nullptr;
  std::string root_;
  std::unique_ptr<Directory> directory_;
};

INSTANTIATE_TEST_SUITE_P(All, FileSystemTest, ::testing::Values(Kind::kPosix, Kind::kMem),
                         [](const auto& info) { return info.param == Kind::kPosix ? "Posix" : "Mem"; });

TEST_P(FileSystemTest, AMissingDirectoryIsFailedPrecondition) {
  EXPECT_CODE(files_->OpenDirectory(root_ + "/none", OpenMode::kExisting, 0600), StatusCode::kFailedPrecondition);
  const auto orphan = files_->OpenDirectory(root_ + "/none/db", OpenMode::kCreate, 0600);
  EXPECT_CODE(orphan, StatusCode::kFailedPrecondition);
  EXPECT_NE(orphan.status().message().find("/none"), absl::string_view::npos) << orphan.status();
  Put("file", "x");
  EXPECT_CODE(files_->OpenDirectory(root_ + "/db/file", OpenMode::kExisting, 0600), StatusCode::kFailedPrecondition);
  EXPECT_CODE(files_->OpenDirectory(root_ + "/db/file", OpenMode::kCreate, 0600), StatusCode::kFailedPrecondition);
}

TEST_P(FileSystemTest, CreatingAnExistingDirectoryOpensIt) {
  Put("file", "x");
  const auto again = Open(root_ + "/db", OpenMode::kCreate);
  EXPECT_EQ(again->id(), directory_->id());
  ASSERT_OK_AND_ASSIGN(const auto size, again->FileSize("file"));
  EXPECT_EQ(size, 1u);
  EXPECT_FALSE(Open(root_ + "/other", OpenMode::kCreate)->id() == directory_->id());
}

TEST_P(FileSystemTest, RemovesOnlyEmptyDirectories) {
  EXPECT_OK(files_->RemoveDirectory(root_ + "/none"));
  EXPECT_OK(files_->RemoveDirectory(root_ + "/none/none"));
  Put("file", "x");
  EXPECT_CODE(files_->RemoveDirectory(root_ + "/db"), StatusCode::kFailedPrecondition);
  EXPECT_CODE(files_->RemoveDirectory(root_ + "/db/file"), StatusCode::kFailedPrecondition);
  EXPECT_OK(directory_->Remove("file"));
  EXPECT_OK(files_->RemoveDirectory(root_ + "/db"));
  EXPECT_CODE(files_->OpenDirectory(root_ + "/db", OpenMode::kExisting, 0600), StatusCode::kFailedPrecondition);
  EXPECT_CODE(directory_->CreateAppend("file"), StatusCode::kDataLoss);  // the directory is gone
}

TEST_P(FileSystemTest, BadNamesAreInvalidArgumentEverywhere) {
  using namespace std::string_view_literals;
  for (const std::string_view name : {""sv, "."sv, ".."sv, "a/b"sv, "/a"sv, "../db/a"sv, "a\0b"sv, "\0"sv}) {
    EXPECT_CODE(directory_->FileSize(name), StatusCode::kInvalidArgument);
    EXPECT_CODE(directory_->OpenRandomAccess(name), StatusCode::kInvalidArgument);
    EXPECT_CODE(directory_->CreateAppend(name), StatusCode::kInvalidArgument);
    EXPECT_CODE(directory_->CreateLog(name), StatusCode::kInvalidArgument);
    EXPECT_CODE(directory_->Rename(name, "b"), StatusCode::kInvalidArgument);
    EXPECT_CODE(directory_->Rename("b", name), StatusCode::kInvalidArgument);
    EXPECT_CODE(directory_->Remove(name), StatusCode::kInvalidArgument);
    EXPECT_CODE(directory_->Lock(name), StatusCode::kInvalidArgument);
  }
  Put("...", "fine");
  EXPECT_EQ(Get("..."), "fine");
}

TEST_P(FileSystemTest, CreatingAnExistingNameIsRefusedAndChangesNothing) {
  Put("file", "old");
  EXPECT_CODE(directory_->CreateAppend("file"), StatusCode::kFailedPrecondition);
  EXPECT_CODE(directory_->CreateLog("file"), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Get("file"), "old");
}

TEST_P(FileSystemTest, AMissingFileIsDataLossToOpenAndNulloptToAsk) {
  EXPECT_CODE(directory_->OpenRandomAccess("none"), StatusCode::kDataLoss);
  EXPECT_CODE(directory_->Rename("none", "other"), StatusCode::kDataLoss);
  EXPECT_OK(directory_->Remove("none"));
  EXPECT_EQ(Size("none"), std::nullopt);
}

TEST_P(FileSystemTest, ADirectoryInPlaceOfAFileIsRefused) {
  Open(root_ + "/db/sub", OpenMode::kCreate);
  Put("file", "x");
  EXPECT_CODE(directory_->FileSize("sub"), StatusCode::kFailedPrecondition);
  EXPECT_CODE(directory_->OpenRandomAccess("sub"), StatusCode::kFailedPrecondition);
  EXPECT_CODE(directory_->CreateAppend("sub"), StatusCode::kFailedPrecondition);
  EXPECT_CODE(directory_->CreateLog("sub"), StatusCode::kFailedPrecondition);
  EXPECT_CODE(directory_->Rename("file", "sub"), StatusCode::kFailedPrecondition);
  EXPECT_CODE(directory_->Rename("sub", "file"), StatusCode::kFailedPrecondition);
  EXPECT_CODE(directory_->Remove("sub"), StatusCode::kFailedPrecondition);
  EXPECT_CODE(directory_->Lock("sub"), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Get("file"), "x");
}

TEST_P(FileSystemTest, ListsNamesSizesAndKinds) {
  EXPECT_TRUE(directory_->List()->empty());
  Put("a", "12345");
  Put("empty", "");
  Open(root_ + "/db/sub", OpenMode::kCreate);
  for (int round = 0; round < 2; ++round) {  // a second listing starts over
    ASSERT_OK_AND_ASSIGN(auto entries, directory_->List());
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    ASSERT_EQ(entries.size(), 3u);
    EXPECT_EQ(entries[0].name, "a");
    EXPECT_EQ(entries[0].size, 5u);
    EXPECT_TRUE(entries[0].regular);
    EXPECT_EQ(entries[1].name, "empty");
    EXPECT_EQ(entries[1].size, 0u);
    EXPECT_EQ(entries[2].name, "sub");
    EXPECT_EQ(entries[2].size, 0u);
    EXPECT_FALSE(entries[2].regular);
  }
}

TEST_P(FileSystemTest, RenameReplaces) {
  Put("from", "new");
  Put("to", "old");
  ASSERT_OK(directory_->Rename("from", "to"));
  ASSERT_OK(directory_->Rename("to", "to"));
  ASSERT_OK(directory_->Sync());
  EXPECT_EQ(Get("to"), "new");
  EXPECT_EQ(Size("from"), std::nullopt);
}

TEST_P(FileSystemTest, AnOpenFileOutlivesItsName) {
  Put("a", "first");
  Put("b", "second");
  ASSERT_OK_AND_ASSIGN(const auto a, directory_->OpenRandomAccess("a"));
  ASSERT_OK_AND_ASSIGN(const auto b, directory_->OpenRandomAccess("b"));
  ASSERT_OK(directory_->Rename("a", "b"));
  ASSERT_OK(directory_->Remove("b"));
  directory_.reset();
  std::string bytes(5, '\0');
  ASSERT_OK(a->Read(0, absl::MakeSpan(bytes)));
  EXPECT_EQ(bytes, "first");
  ASSERT_OK(b->Read(1, absl::MakeSpan(bytes)));
  EXPECT_EQ(bytes, "econd");
}

TEST_P(FileSystemTest, AReadBeyondTheEndIsDataLossWithPathAndOffset) {
  Put("file", "0123456789");
  ASSERT_OK_AND_ASSIGN(const auto file, directory_->OpenRandomAccess("file"));
  EXPECT_EQ(file->size(), 10u);
  EXPECT_EQ(file->path(), root_ + "/db/file");
  char bytes[8];
  ASSERT_OK(file->Read(2, absl::MakeSpan(bytes)));
  EXPECT_EQ(std::string_view(bytes, 8), "23456789");
  ASSERT_OK(file->Read(10, absl::Span<char>()));
  for (const uint64_t offset :
       {uint64_t{3}, uint64_t{10}, uint64_t{11}, uint64_t{1} << 40, uint64_t{1} << 63, UINT64_MAX, UINT64_MAX - 4}) {
    const absl::Status status = file->Read(offset, absl::MakeSpan(bytes));
    EXPECT_CODE(status, StatusCode::kDataLoss);
    EXPECT_NE(status.message().find(file->path()), absl::string_view::npos);
    EXPECT_NE(status.message().find(std::to_string(offset)), absl::string_view::npos);
  }
  file->ReadAhead(0, 100);
  file->ReadAhead(UINT64_MAX, UINT64_MAX);
}

TEST_P(FileSystemTest, AppendsOfAllSizesComeOutInOrder) {
  Random random(11);
  std::string all;
  ASSERT_OK_AND_ASSIGN(const auto file, directory_->CreateAppend("file"));
  for (int i = 0; i < 300; ++i) {
    const size_t size = random.OneIn(20) ? random.Uniform(200'000) : random.Uniform(9000);
    const std::string piece(size, static_cast<char>('a' + i % 26));
    ASSERT_OK(file->Append(piece));
    all += piece;
    ASSERT_EQ(file->size(), all.size());
    if (random.OneIn(30)) ASSERT_OK(file->Sync());
    if (random.OneIn(30)) file->StartWriteback();
  }
  ASSERT_OK(file->Close());
  EXPECT_TRUE(Get("file") == all);
  EXPECT_CODE(file->Append("x"), StatusCode::kFailedPrecondition);
  EXPECT_CODE(file->Sync(), StatusCode::kFailedPrecondition);
  EXPECT_CODE(file->Close(), StatusCode::kFailedPrecondition);
  file->StartWriteback();
}

TEST_P(FileSystemTest, AnUnclosedAppendFileKeepsItsBytes) {
  { ASSERT_OK((*directory_->CreateAppend("file"))->Append("abc")); }
  EXPECT_EQ(Get("file"), "abc");
}

TEST_P(FileSystemTest, ALogTakesBytesOnlyWhereSpaceWasReserved) {
  ASSERT_OK_AND_ASSIGN(const auto log, directory_->CreateLog("log"));
  EXPECT_EQ(log->reserved(), 0u);
  EXPECT_CODE(log->Write(0, "x"), StatusCode::kInvalidArgument);
  ASSERT_OK(log->Reserve(100));
  ASSERT_OK(log->Reserve(50));
  EXPECT_EQ(log->reserved(), 100u);
  EXPECT_CODE(log->Write(99, "xy"), StatusCode::kInvalidArgument);
  EXPECT_CODE(log->WriteThrough(101, "x"), StatusCode::kInvalidArgument);
  EXPECT_CODE(log->Write(UINT64_MAX, "xy"), StatusCode::kInvalidArgument);
  EXPECT_CODE(log->Truncate(101), StatusCode::kInvalidArgument);
  ASSERT_OK(log->Write(100, ""));
  ASSERT_OK(log->Write(99, "x"));
  EXPECT_EQ(Get("log"), std::string(99, '\0') + "x");
}

TEST_P(FileSystemTest, ALogReadsBackWhatWasWrittenAndZerosElsewhere) {
  Random random(23);
  ASSERT_OK_AND_ASSIGN(const auto log, directory_->CreateLog("log"));
  std::string model;
  for (int step = 0; step < 60; ++step) {
    if (model.size() < 1000 || random.OneIn(3)) {
      model.resize(model.size() + 1 + random.Uniform(random.OneIn(2) ? 900'000 : 5000));
      ASSERT_OK(log->Reserve(model.size()));
    }
    if (random.OneIn(10)) {
      model.resize(random.Uniform(model.size() + 1));
      ASSERT_OK(log->Truncate(model.size()));
      continue;
    }
    for (int i = 0; i < 20; ++i) {
      const uint64_t offset = random.Uniform(model.size() + 1);
      const std::string piece(std::min<size_t>(random.Uniform(random.OneIn(5) ? 300'000 : 300), model.size() - offset),
                              static_cast<char>(i + 1));
      ASSERT_OK(random.OneIn(4) ? log->WriteThrough(offset, piece) : log->Write(offset, piece));
      model.replace(offset, piece.size(), piece);
    }
    if (random.OneIn(10)) ASSERT_OK(log->Sync());
    ASSERT_EQ(log->reserved(), model.size());
    ASSERT_TRUE(Get("log") == model) << "step " << step;
  }
  model.resize(model.size() / 2);
  ASSERT_OK(log->Truncate(model.size()));
  ASSERT_OK(log->Sync());
  ASSERT_OK(log->Close());
  EXPECT_TRUE(Get("log") == model);
  EXPECT_CODE(log->Write(0, ""), StatusCode::kFailedPrecondition);
  EXPECT_CODE(log->WriteThrough(0, ""), StatusCode::kFailedPrecondition);
  EXPECT_CODE(log->Reserve(1), StatusCode::kFailedPrecondition);
  EXPECT_CODE(log->Sync(), StatusCode::kFailedPrecondition);
  EXPECT_CODE(log->Truncate(0), StatusCode::kFailedPrecondition);
  EXPECT_CODE(log->Close(), StatusCode::kFailedPrecondition);
}

TEST_P(FileSystemTest, AnUnclosedLogKeepsItsBytesAndItsSpace) {
  {
    ASSERT_OK_AND_ASSIGN(const auto log, directory_->CreateLog("log"));
    ASSERT_OK(log->Reserve(10'000));
    ASSERT_OK(log->Write(5, "abc"));
  }
  const std::string bytes = Get("log");
  EXPECT_EQ(bytes.size(), 10'000u);
  EXPECT_EQ(bytes.substr(0, 9), std::string("\0\0\0\0\0abc\0", 9));
}

TEST_P(FileSystemTest, ALogSyncsBesideWrites) {
  ASSERT_OK_AND_ASSIGN(const auto log, directory_->CreateLog("log"));
  ASSERT_OK(log->Reserve(1 << 20));
  std::thread syncer([&] {
    for (int i = 0; i < 20; ++i) EXPECT_OK(log->Sync());
  });
  for (uint64_t offset = 0; offset + 100 <= (1 << 20); offset += 100) {
    ASSERT_OK(offset % 700 == 0 ? log->WriteThrough(offset, std::string(100, 'w')) : log->Write(offset, std::string(100, 'm')));
  }
  syncer.join();
}

TEST_P(FileSystemTest, ALockIsHeldOnceAndReleased) {
  ASSERT_OK_AND_ASSIGN(auto lock, directory_->Lock("LOCK"));
  const std::string pid = std::to_string(getpid());
  EXPECT_EQ(Get("LOCK"), pid + "\n");
  const auto other = Open(root_ + "/db", OpenMode::kExisting);
  for (Directory* directory : {directory_.get(), other.get()}) {
    const auto second = directory->Lock("LOCK");
    EXPECT_CODE(second, StatusCode::kUnavailable);
    EXPECT_NE(second.status().message().find(root_ + "/db/LOCK"), absl::string_view::npos) << second.status();
    EXPECT_NE(second.status().message().find(pid), absl::string_view::npos) << second.status();
  }
  EXPECT_OK(Open(root_ + "/elsewhere", OpenMode::kCreate)->Lock("LOCK"));
  lock.reset();
  EXPECT_OK(other->Lock("LOCK"));
  EXPECT_OK(directory_->Lock("LOCK"));
  EXPECT_EQ(Size("LOCK"), pid.size() + 1) << "the file stays";
}

}  // namespace
}  // namespace tamis::internal
