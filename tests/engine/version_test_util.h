// Files as bytes, and a directory that fails on demand.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mem_file_system.h"
#include "tamis/file_system.h"
#include "tests/support/status_matchers.h"

namespace tamis::internal {

// Asked before each call with the operation ("reserve", "append", "sync", "dirsync", ...) and the name; not OK fails the call.
using FaultHook = std::function<absl::Status(std::string_view operation, std::string_view name)>;

class FaultLogFile : public LogFile {
 public:
  FaultLogFile(std::unique_ptr<LogFile> base, std::string name, const FaultHook* hook)
      : base_(std::move(base)), name_(std::move(name)), hook_(hook) {}
  absl::Status Reserve(uint64_t end) override {
    return Ask("reserve", [&] { return base_->Reserve(end); });
  }
  uint64_t reserved() const override { return base_->reserved(); }
  absl::Status Write(uint64_t offset, std::string_view bytes) override {
    return Ask("append", [&] { return base_->Write(offset, bytes); });
  }
  absl::Status WriteThrough(uint64_t offset, std::string_view bytes) override {
    return Ask("append", [&] { return base_->WriteThrough(offset, bytes); });
  }
  absl::Status Sync() override {
    return Ask("sync", [&] { return base_->Sync(); });
  }
  absl::Status Truncate(uint64_t size) override {
    return Ask("truncate", [&] { return base_->Truncate(size); });
  }
  absl::Status Close() override {
    return Ask("close", [&] { return base_->Close(); });
  }
  const std::string& path() const override { return base_->path(); }

 private:
  template <typename F>
  absl::Status Ask(std::string_view operation, F&& go_on) {
    absl::Status status = (*hook_)(operation, name_);
    return status.ok() ? go_on() : status;
  }
  const std::unique_ptr<LogFile> base_;
  const std::string name_;
  const FaultHook* const hook_;
};

class FaultAppendFile : public AppendFile {
 public:
  FaultAppendFile(std::unique_ptr<AppendFile> base, std::string name, const FaultHook* hook)
      : base_(std::move(base)), name_(std::move(name)), hook_(hook) {}
  absl::Status Append(std::string_view bytes) override {
    absl::Status status = (*hook_)("append", name_);
    return status.ok() ? base_->Append(bytes) : status;
  }
  void StartWriteback() override { base_->StartWriteback(); }
  absl::Status Sync() override {
    absl::Status status = (*hook_)("sync", name_);
    return status.ok() ? base_->Sync() : status;
  }
  absl::Status Close() override {
    absl::Status status = (*hook_)("close", name_);
    return status.ok() ? base_->Close() : status;
  }
  uint64_t size() const override { return base_->size(); }
  const std::string& path() const override { return base_->path(); }

 private:
  const std::unique_ptr<AppendFile> base_;
  const std::string name_;
  const FaultHook* const hook_;
};

class FaultDirectory : public Directory {
 public:
  explicit FaultDirectory(std::shared_ptr<Directory> base) : base_(std::move(base)) {}
  FaultHook hook = [](std::string_view, std::string_view) { return absl::OkStatus(); };
  mutable std::atomic<int> opened{0};

  const std::string& path() const override { return base_->path(); }
  DirectoryId id() const override { return base_->id(); }
  absl::StatusOr<std::vector<DirectoryEntry>> List() const override { return base_->List(); }
  absl::StatusOr<std::optional<uint64_t>> FileSize(std::string_view name) const override {
    if (absl::Status status = hook("size", name); !status.ok()) return status;
    return base_->FileSize(name);
  }
  absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenRandomAccess(std::string_view name) const override {
    if (absl::Status status = hook("open", name); !status.ok()) return status;
    ++opened;
    return base_->OpenRandomAccess(name);
  }
  absl::StatusOr<std::unique_ptr<AppendFile>> CreateAppend(std::string_view name) override {
    if (absl::Status status = hook("create", name); !status.ok()) return status;
    auto file = base_->CreateAppend(name);
    if (!file.ok()) return file.status();
    return std::make_unique<FaultAppendFile>(*std::move(file), std::string(name), &hook);
  }
  absl::StatusOr<std::unique_ptr<LogFile>> CreateLog(std::string_view name) override {
    if (absl::Status status = hook("create", name); !status.ok()) return status;
    auto file = base_->CreateLog(name);
    if (!file.ok()) return file.status();
    return std::make_unique<FaultLogFile>(*std::move(file), std::string(name), &hook);
  }
  absl::Status Rename(std::string_view from, std::string_view to) override {
    if (absl::Status status = hook("rename", from); !status.ok()) return status;
    return base_->Rename(from, to);
  }
  absl::Status Remove(std::string_view name) override {
    if (absl::Status status = hook("remove", name); !status.ok()) return status;
    return base_->Remove(name);
  }
  absl::Status Sync() override {
    if (absl::Status status = hook("dirsync", ""); !status.ok()) return status;
    return base_->Sync();
  }
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(std::string_view name) override { return base_->Lock(name); }

 private:
  const std::shared_ptr<Directory> base_;
};

// A directory in memory that fails on demand, and its files as strings.
class VersionTest : public testing::Test {
 protected:
  VersionTest() {
    auto opened = files_->OpenDirectory("/db", FileSystem::OpenMode::kCreate, 0600);
    EXPECT_OK(opened);
    directory_ = std::make_shared<FaultDirectory>(*std::move(opened));
  }
  void WriteFile(std::string_view name, std::string_view bytes) {
    ASSERT_OK(directory_->Remove(name));
    ASSERT_OK_AND_ASSIGN(auto file, directory_->CreateAppend(name));
    ASSERT_OK(file->Append(bytes));
    ASSERT_OK(file->Close());
  }
  std::string ReadFile(std::string_view name) const {
    auto file = directory_->OpenRandomAccess(name);
    EXPECT_OK(file);
    if (!file.ok()) return "";
    std::string bytes((*file)->size(), '\0');
    EXPECT_OK((*file)->Read(0, absl::MakeSpan(bytes)));
    return bytes;
  }
  bool Exists(std::string_view name) const {
    auto size = directory_->FileSize(name);
    return size.ok() && size->has_value();
  }
  void FailAt(std::string_view operation, std::string_view name_part, absl::Status error) {
    directory_->hook = [operation = std::string(operation), part = std::string(name_part), error](std::string_view op,
                                                                                                  std::string_view name) {
      return op == operation && name.find(part) != std::string_view::npos ? error : absl::OkStatus();
    };
  }
  void Heal() {
    directory_->hook = [](std::string_view, std::string_view) { return absl::OkStatus(); };
  }

  const std::unique_ptr<FileSystem> files_ = NewMemFileSystem();
  std::shared_ptr<FaultDirectory> directory_;
};

}  // namespace tamis::internal
