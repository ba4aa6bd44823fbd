// System calls on descriptors with what POSIX leaves to the caller: EINTR, short transfers, descriptors 0 to 2, sticky failures.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/mutex.h"

namespace tamis::internal {

// Owns a descriptor.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() { (void)Close(); }

  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }
  // errno, or 0. Not to be retried, not even after EINTR: on Linux the descriptor is gone, and may be another thread's by then.
  int Close();

 private:
  int fd_ = -1;
};

// openat with O_CLOEXEC. The descriptor is never 0, 1 or 2: a stray write to a closed standard stream must not hit a database (SQLite
// met this: "How to corrupt", 2.6). On failure !ok() and errno says why.
FileDescriptor OpenAt(int directory, const char* name, int flags, uint32_t mode = 0);

// Both return errno, or 0. ReadFully stops at the end of the file with *done < buffer.size().
int WriteFully(int fd, uint64_t offset, std::string_view bytes);
int ReadFully(int fd, uint64_t offset, absl::Span<char> buffer, size_t* done);

int Sync(int fd);      // fsync; errno or 0
int SyncData(int fd);  // fdatasync where there is one
int SetSize(int fd, uint64_t size);

// The first failure of a file object; later calls return it again. Thread-safe.
class StickyStatus {
 public:
  // OK costs one load.
  absl::Status Get() const {
    if (!failed_.load(std::memory_order_acquire)) [[likely]]
      return absl::OkStatus();
    MutexLock lock(mutex_);
    return status_;
  }
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // Returns the first failure, which may be an earlier one.
  absl::Status Set(absl::Status status);

 private:
  std::atomic<bool> failed_{false};
  mutable Mutex mutex_;
  absl::Status status_ TAMIS_GUARDED_BY(mutex_);
};

}  // namespace tamis::internal
