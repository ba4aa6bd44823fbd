#include "base/posix_io.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace tamis::internal {
namespace {

// Linux moves at most 0x7ffff000 bytes a call; others refuse more than INT_MAX.
constexpr size_t kMaxTransferBytes = size_t{1} << 30;

bool BeyondOffsets(uint64_t offset, size_t length) {
  return offset > static_cast<uint64_t>(INT64_MAX) || length > static_cast<uint64_t>(INT64_MAX) - offset;
}

template <typename Call>
int Retry(Call call) {
  while (call() != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

}  // namespace

int FileDescriptor::Close() {
  if (fd_ < 0) return 0;
  return ::close(std::exchange(fd_, -1)) == 0 ? 0 : errno;
}

FileDescriptor OpenAt(int directory, const char* name, int flags, uint32_t mode) {
  int fd;
  do {
    fd = ::openat(directory, name, flags | O_CLOEXEC, static_cast<mode_t>(mode));
  } while (fd < 0 && errno == EINTR);
  if (fd < 0 || fd > 2) return FileDescriptor(fd);
  const int high = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
  const int error = errno;
  ::close(fd);
  errno = error;
  return FileDescriptor(high);
}

int WriteFully(int fd, uint64_t offset, std::string_view bytes) {
  if (BeyondOffsets(offset, bytes.size())) return EFBIG;
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd, bytes.data(), std::min(bytes.size(), kMaxTransferBytes), static_cast<off_t>(offset));
    if (n < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    if (n == 0) return EIO;  // never for a regular file; without this a broken one would be tried for ever
    bytes.remove_prefix(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return 0;
}

int ReadFully(int fd, uint64_t offset, absl::Span<char> buffer, size_t* done) {
  *done = 0;
  if (BeyondOffsets(offset, buffer.size())) return 0;  // no file reaches there
  while (*done < buffer.size()) {
    const size_t wanted = std::min(buffer.size() - *done, kMaxTransferBytes);
    const ssize_t n = ::pread(fd, buffer.data() + *done, wanted, static_cast<off_t>(offset + *done));
    if (n < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    if (n == 0) return 0;
    *done += static_cast<size_t>(n);
  }
  return 0;
}

int Sync(int fd) {
  return Retry([fd] { return ::fsync(fd); });
}

int SyncData(int fd) {
#if defined(_POSIX_SYNCHRONIZED_IO) && _POSIX_SYNCHRONIZED_IO > 0
  return Retry([fd] { return ::fdatasync(fd); });
#else
  return Sync(fd);
#endif
}

int SetSize(int fd, uint64_t size) {
  if (BeyondOffsets(size, 0)) return EFBIG;
  return Retry([fd, size] { return ::ftruncate(fd, static_cast<off_t>(size)); });
}

absl::Status StickyStatus::Set(absl::Status status) {
  MutexLock lock(mutex_);
  if (status_.ok()) {
    status_ = std::move(status);
    failed_.store(!status_.ok(), std::memory_order_release);
  }
  return status_;
}

}  // namespace tamis::internal
