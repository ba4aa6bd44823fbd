// A file system that notes every change made through it, in order, and lets a test fail any operation.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "tamis/file_system.h"

namespace tamis::testing_support {

struct FileOperation {
  enum class Kind { kCreate, kAppend, kSync, kClose, kReserve, kWrite, kTruncate, kRename, kRemove, kSyncDirectory, kOpen, kRead };
  Kind kind;
  std::string name;           // of the file; empty for kSyncDirectory
  std::string new_name = {};  // kRename
  uint64_t offset = 0;        // kRead, kWrite; the end for kReserve and kTruncate
  uint64_t bytes = 0;         // kRead, kWrite, kAppend
};

// Called before each operation, from any thread; an error is returned in its place and nothing is done.
using FileHook = std::function<absl::Status(const FileOperation&)>;

class HookedFileSystem final : public FileSystem {
 public:
  explicit HookedFileSystem(FileSystem* base) : state_(std::make_shared<State>()), base_(base) {}

  void SetHook(FileHook hook) {
    internal::MutexLock lock(state_->mutex);
    state_->hook = std::make_shared<FileHook>(std::move(hook));
  }
  // Operations that succeeded so far, but for kOpen and kRead.
  std::vector<FileOperation> journal() const {
    internal::MutexLock lock(state_->mutex);
    return state_->journal;
  }
  void ClearJournal() {
    internal::MutexLock lock(state_->mutex);
    state_->journal.clear();
  }

  absl::StatusOr<std::unique_ptr<Directory>> OpenDirectory(const std::string& path, OpenMode mode, uint32_t file_mode) override {
    absl::StatusOr<std::unique_ptr<Directory>> opened = base_->OpenDirectory(path, mode, file_mode);
    if (!opened.ok()) return opened.status();
    return std::make_unique<HookedDirectory>(*std::move(opened), state_);
  }
  absl::StatusOr<bool> PathExists(const std::string& path) override { return base_->PathExists(path); }
  absl::Status RemoveDirectory(const std::string& path) override { return base_->RemoveDirectory(path); }

 private:
  using Kind = FileOperation::Kind;

  struct State {
    absl::Status Run(FileOperation operation, const std::function<absl::Status()>& perform) {
      std::shared_ptr<FileHook> called;
      {
        internal::MutexLock lock(mutex);
        called = hook;
      }
      absl::Status status = called != nullptr && *called ? (*called)(operation) : absl::OkStatus();
      if (status.ok()) status = perform();
      if (status.ok() && operation.kind != Kind::kOpen && operation.kind != Kind::kRead) {
        internal::MutexLock lock(mutex);
        journal.push_back(std::move(operation));
      }
      return status;
    }
    mutable internal::Mutex mutex;
    std::shared_ptr<FileHook> hook TAMIS_GUARDED_BY(mutex);
    std::vector<FileOperation> journal TAMIS_GUARDED_BY(mutex);
  };
  using StatePointer = std::shared_ptr<State>;

  class HookedReader final : public RandomAccessFile {
   public:
    HookedReader(std::unique_ptr<RandomAccessFile> base, std::string name, StatePointer state)
        : base_(std::move(base)), name_(std::move(name)), state_(std::move(state)) {}
    absl::Status Read(uint64_t offset, absl::Span<char> buffer) const override {
      return state_->Run({.kind = Kind::kRead, .name = name_, .offset = offset, .bytes = buffer.size()},
                         [&] { return base_->Read(offset, buffer); });
    }
    uint64_t size() const override { return base_->size(); }
    const std::string& path() const override { return base_->path(); }
    void ReadAhead(uint64_t offset, uint64_t length) const override { base_->ReadAhead(offset, length); }

   private:
    const std::unique_ptr<RandomAccessFile> base_;
    const std::string name_;
    const StatePointer state_;
  };

  class HookedAppend final : public AppendFile {
   public:
    HookedAppend(std::unique_ptr<AppendFile> base, std::string name, StatePointer state)
        : base_(std::move(base)), name_(std::move(name)), state_(std::move(state)) {}
    absl::Status Append(std::string_view bytes) override {
      return state_->Run({.kind = Kind::kAppend, .name = name_, .bytes = bytes.size()}, [&] { return base_->Append(bytes); });
    }
    void StartWriteback() override { base_->StartWriteback(); }
    absl::Status Sync() override {
      return state_->Run({.kind = Kind::kSync, .name = name_}, [&] { return base_->Sync(); });
    }
    absl::Status Close() override {
      return state_->Run({.kind = Kind::kClose, .name = name_}, [&] { return base_->Close(); });
    }
    uint64_t size() const override { return base_->size(); }
    const std::string& path() const override { return base_->path(); }

   private:
    const std::unique_ptr<AppendFile> base_;
    const std::string name_;
    const StatePointer state_;
  };

  class HookedLog final : public LogFile {
   public:
    HookedLog(std::unique_ptr<LogFile> base, std::string name, StatePointer state)
        : base_(std::move(base)), name_(std::move(name)), state_(std::move(state)) {}
    absl::Status Reserve(uint64_t end) override {
      return state_->Run({.kind = Kind::kReserve, .name = name_, .offset = end}, [&] { return base_->Reserve(end); });
    }
    uint64_t reserved() const override { return base_->reserved(); }
    absl::Status Write(uint64_t offset, std::string_view bytes) override {
      return state_->Run({.kind = Kind::kWrite, .name = name_, .offset = offset, .bytes = bytes.size()},
                         [&] { return base_->Write(offset, bytes); });
    }
    absl::Status WriteThrough(uint64_t offset, std::string_view bytes) override {
      return state_->Run({.kind = Kind::kWrite, .name = name_, .offset = offset, .bytes = bytes.size()},
                         [&] { return base_->WriteThrough(offset, bytes); });
    }
    absl::Status Sync() override {
      return state_->Run({.kind = Kind::kSync, .name = name_}, [&] { return base_->Sync(); });
    }
    absl::Status Truncate(uint64_t size) override {
      return state_->Run({.kind = Kind::kTruncate, .name = name_, .offset = size}, [&] { return base_->Truncate(size); });
    }
    absl::Status Close() override {
      return state_->Run({.kind = Kind::kClose, .name = name_}, [&] { return base_->Close(); });
    }
    const std::string& path() const override { return base_->path(); }

   private:
    const std::unique_ptr<LogFile> base_;
    const std::string name_;
    const StatePointer state_;
  };

  class HookedDirectory final : public Directory {
   public:
    HookedDirectory(std::unique_ptr<Directory> base, StatePointer state) : base_(std::move(base)), state_(std::move(state)) {}
    const std::string& path() const override { return base_->path(); }
    DirectoryId id() const override { return base_->id(); }
    absl::StatusOr<std::vector<DirectoryEntry>> List() const override { return base_->List(); }
    absl::StatusOr<std::optional<uint64_t>> FileSize(std::string_view name) const override { return base_->FileSize(name); }
    absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenRandomAccess(std::string_view name) const override {
      absl::StatusOr<std::unique_ptr<RandomAccessFile>> file = absl::UnknownError("");
      const absl::Status status = state_->Run({.kind = Kind::kOpen, .name = std::string(name)}, [&] {
        file = base_->OpenRandomAccess(name);
        return file.status();
      });
      if (!status.ok()) return status;
      return std::make_unique<HookedReader>(*std::move(file), std::string(name), state_);
    }
    absl::StatusOr<std::unique_ptr<AppendFile>> CreateAppend(std::string_view name) override {
      absl::StatusOr<std::unique_ptr<AppendFile>> file = absl::UnknownError("");
      const absl::Status status = state_->Run({.kind = Kind::kCreate, .name = std::string(name)}, [&] {
        file = base_->CreateAppend(name);
        return file.status();
      });
      if (!status.ok()) return status;
      return std::make_unique<HookedAppend>(*std::move(file), std::string(name), state_);
    }
    absl::StatusOr<std::unique_ptr<LogFile>> CreateLog(std::string_view name) override {
      absl::StatusOr<std::unique_ptr<LogFile>> file = absl::UnknownError("");
      const absl::Status status = state_->Run({.kind = Kind::kCreate, .name = std::string(name)}, [&] {
        file = base_->CreateLog(name);
        return file.status();
      });
      if (!status.ok()) return status;
      return std::make_unique<HookedLog>(*std::move(file), std::string(name), state_);
    }
    absl::Status Rename(std::string_view from, std::string_view to) override {
      return state_->Run({.kind = Kind::kRename, .name = std::string(from), .new_name = std::string(to)},
                         [&] { return base_->Rename(from, to); });
    }
    absl::Status Remove(std::string_view name) override {
      return state_->Run({.kind = Kind::kRemove, .name = std::string(name)}, [&] { return base_->Remove(name); });
    }
    absl::Status Sync() override {
      return state_->Run({.kind = Kind::kSyncDirectory, .name = {}}, [&] { return base_->Sync(); });
    }
    absl::StatusOr<std::unique_ptr<FileLock>> Lock(std::string_view name) override { return base_->Lock(name); }

   private:
    const std::unique_ptr<Directory> base_;
    const StatePointer state_;
  };

  const StatePointer state_;
  FileSystem* const base_;
};

}  // namespace tamis::testing_support
