// The log file on POSIX: allocated ahead with fallocate, stored to through shared mappings.
//
// I1. [0, reserved_) is allocated and within the file, so neither a store through a window nor a pwrite there can meet a full disk.
// I2. windows_ holds at most two mapped ranges, in file order, disjoint, each ending at or below reserved_. Bytes outside of them are
//     written with pwrite; both ways meet in the page cache, so order and visibility do not depend on the way.
// I3. A window is stored to only below its `populated` mark: the pages there were faulted in by MADV_POPULATE_WRITE, which reports a
//     page that cannot be had as an error where the store would raise SIGBUS. Kernels before 5.14 lack it; there I1 must do.
// I4. The file is never made smaller than a window: Truncate unmaps first.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/posix_errno.h"
#include "base/posix_files.h"
#include "base/status_util.h"

#if defined(__linux__) && !defined(MADV_POPULATE_WRITE)
#define MADV_POPULATE_WRITE 23  // Linux 5.14; the headers may be older than the kernel
#endif

namespace tamis::internal {
namespace {

// Pages are faulted in by steps, not the whole window: dirtied pages are written out even if no record ever reaches them. The step does
// not change the price of a write (150 bytes: about 0.2 us with none, 256 KiB or 2 MiB, loaded 2-core VM, ext4).
constexpr uint64_t kPopulateBytes = uint64_t{256} << 10;

uint64_t PageBytes() {
  static const auto bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}
uint64_t PageDown(uint64_t offset) { return offset / PageBytes() * PageBytes(); }
uint64_t PageUp(uint64_t offset) { return PageDown(offset + PageBytes() - 1); }

// A mapped part of the file: `data` is the byte at `begin`.
class Window {
 public:
  Window() = default;
  Window(Window&& other) noexcept { *this = std::move(other); }
  Window& operator=(Window&& other) noexcept {
    Unmap();
    map_ = std::exchange(other.map_, nullptr);
    map_begin_ = other.map_begin_;
    begin_ = other.begin_;
    end_ = std::exchange(other.end_, other.begin_);
    populated_ = other.populated_;
    return *this;
  }
  ~Window() { Unmap(); }

  // Maps [begin, end) of `fd`; leaves the window empty if that fails.
  void Map(int fd, uint64_t begin, uint64_t end) {
    Unmap();
    map_begin_ = PageDown(begin);
    void* const map = ::mmap(nullptr, end - map_begin_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(map_begin_));
    if (map == MAP_FAILED) return;
    map_ = static_cast<char*>(map);
    begin_ = begin;
    end_ = end;
    populated_ = begin;
#ifdef MADV_DONTFORK
    ::madvise(map_, end - map_begin_, MADV_DONTFORK);  // a child has no business in the log
#endif
  }

  // Gives up what lies at or beyond `end`.
  void Cut(uint64_t end) {
    if (map_ == nullptr || end >= end_) return;
    if (end <= begin_) return Unmap();
    const uint64_t keep = PageUp(end);
    const uint64_t mapped = PageUp(end_);
    if (keep < mapped) ::munmap(map_ + (keep - map_begin_), mapped - keep);
    end_ = end;
    populated_ = std::min(populated_, end);
  }

  void Unmap() {
    if (map_ != nullptr) ::munmap(map_, PageUp(end_) - map_begin_);
    map_ = nullptr;
    end_ = begin_;
  }

  uint64_t begin() const { return begin_; }
  uint64_t end() const { return end_; }
  bool Holds(uint64_t offset) const { return offset >= begin_ && offset < end_; }

  // Stores bytes that lie wholly inside. False if the window had to be given up.
  bool Store(uint64_t offset, std::string_view bytes) {
    if (offset + bytes.size() > populated_ && !Populate(offset + bytes.size())) return false;
    std::memcpy(map_ + (offset - map_begin_), bytes.data(), bytes.size());
    return true;
  }

 private:
  bool Populate(uint64_t end) {
    const uint64_t from = std::max(PageDown(populated_), map_begin_);
    const uint64_t to = std::min(std::max(PageUp(end), from + kPopulateBytes), end_);
#ifdef MADV_POPULATE_WRITE
    int result;
    do {
      result = ::madvise(map_ + (from - map_begin_), to - from, MADV_POPULATE_WRITE);
    } while (result != 0 && (errno == EINTR || errno == EAGAIN));
    if (result != 0 && errno != EINVAL) {
      Unmap();
      return false;
    }
#endif
    populated_ = to;
    return true;
  }

  char* map_ = nullptr;
  uint64_t map_begin_ = 0;  // begin_ rounded down to a page
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
  uint64_t populated_ = 0;
};

class PosixLogFile final : public LogFile {
 public:
  PosixLogFile(FileDescriptor fd, std::string path, AllocateFunction allocate)
      : fd_(std::move(fd)), path_(std::move(path)), allocate_(allocate) {}

  absl::Status Reserve(uint64_t end) override {
    TAMIS_RETURN_IF_ERROR(sticky_.Get());
    if (end <= reserved_) return absl::OkStatus();
    if (end > static_cast<uint64_t>(INT64_MAX) - PageBytes()) {
      return absl::InvalidArgumentError(Concat("reserve ", path_, " to ", end, ": no file can be that large"));
    }
    if (can_allocate_) {
      const int error = allocate_(fd_.get(), reserved_, end);
      if (error == 0) {
        const uint64_t begin = reserved_;
        reserved_ = end;
        // A record may span the two last steps; what lies before them has been written.
        windows_[0] = std::move(windows_[1]);
        windows_[1].Map(fd_.get(), begin, end);
        return absl::OkStatus();
      }
      if (error != EOPNOTSUPP && error != ENOSYS && error != EINVAL) return TakeBack(error, "allocate");
      can_allocate_ = false;
    }
    return ReserveByZeros(end);
  }

  uint64_t reserved() const override { return reserved_; }

  absl::Status Write(uint64_t offset, std::string_view bytes) override {
    Window& last = windows_[1];
    if (offset >= last.begin() && offset < last.end() && bytes.size() <= last.end() - offset && !sticky_.failed()) [[likely]] {
      if (last.Store(offset, bytes)) return absl::OkStatus();
    }
    return WritePieces(offset, bytes);
  }

  absl::Status WriteThrough(uint64_t offset, std::string_view bytes) override {
    TAMIS_RETURN_IF_ERROR(CheckRange(offset, bytes.size()));
    return WriteByCall(offset, bytes);
  }

  absl::Status Sync() override {
    TAMIS_RETURN_IF_ERROR(sticky_.Get());
    const int error = SyncData(fd_.get());
    return error == 0 ? absl::OkStatus() : sticky_.Set(ErrnoStatus(IoKind::kWrite, error, "sync", path_));
  }

  absl::Status Truncate(uint64_t size) override {
    TAMIS_RETURN_IF_ERROR(sticky_.Get());
    if (size > reserved_) {
      return absl::InvalidArgumentError(Concat("truncate ", path_, " to ", size, ": beyond the reserved ", reserved_, " bytes"));
    }
    for (Window& window : windows_) window.Cut(size);
    reserved_ = size;
    const int error = SetSize(fd_.get(), size);
    return error == 0 ? absl::OkStatus() : sticky_.Set(ErrnoStatus(IoKind::kWrite, error, "truncate", path_, size));
  }

  absl::Status Close() override {
    for (Window& window : windows_) window.Unmap();
    if (!fd_.ok()) return sticky_.Get();
    const int error = fd_.Close();
    if (error != 0) return sticky_.Set(ErrnoStatus(IoKind::kWrite, error, "close", path_));
    const absl::Status result = sticky_.Get();
    (void)sticky_.Set(absl::FailedPreconditionError(Concat(path_, ": the file was closed")));
    return result;
  }

  const std::string& path() const override { return path_; }

 private:
  absl::Status CheckRange(uint64_t offset, size_t length) const {
    TAMIS_RETURN_IF_ERROR(sticky_.Get());
    if (offset <= reserved_ && length <= reserved_ - offset) return absl::OkStatus();
    return absl::InvalidArgumentError(
        Concat("write ", path_, " at offset ", offset, ": ", length, " bytes reach beyond the reserved ", reserved_));
  }

  absl::Status ReserveByZeros(uint64_t end) {
    static constexpr char kZeros[size_t{64} << 10] = {};
    for (uint64_t at = reserved_; at < end;) {
      const size_t length = static_cast<size_t>(std::min<uint64_t>(end - at, sizeof kZeros));
      const int error = WriteFully(fd_.get(), at, std::string_view(kZeros, length));
      if (error != 0) return TakeBack(error, "fill with zeros");
      at += length;
    }
    reserved_ = end;
    return absl::OkStatus();
  }

  // After a failed extension: gives back what was allocated, so that nothing has changed. Only then, and only if something was short,
  // may the caller try again.
  absl::Status TakeBack(int error, std::string_view operation) {
    absl::Status status = ErrnoStatus(IoKind::kWrite, error, operation, path_, reserved_);
    const int undo = SetSize(fd_.get(), reserved_);
    if (undo != 0) return sticky_.Set(ErrnoStatus(IoKind::kWrite, undo, "truncate", path_, reserved_));
    return IsOutOfResources(error) ? status : sticky_.Set(std::move(status));
  }

  absl::Status WriteByCall(uint64_t offset, std::string_view bytes) {
    const int error = WriteFully(fd_.get(), offset, bytes);
    return error == 0 ? absl::OkStatus() : sticky_.Set(ErrnoStatus(IoKind::kWrite, error, "write", path_, offset));
  }

  // Bytes that reach over the edge of a window, or lie outside of both.
  absl::Status WritePieces(uint64_t offset, std::string_view bytes) {
    TAMIS_RETURN_IF_ERROR(CheckRange(offset, bytes.size()));
    while (!bytes.empty()) {
      uint64_t end = offset + bytes.size();
      Window* holder = nullptr;
      for (Window& window : windows_) {
        if (window.Holds(offset)) holder = &window;
        if (window.begin() > offset && window.end() > window.begin()) end = std::min(end, window.begin());
      }
      if (holder != nullptr) end = std::min(end, holder->end());
      const std::string_view piece = bytes.substr(0, end - offset);
      if (holder == nullptr || !holder->Store(offset, piece)) TAMIS_RETURN_IF_ERROR(WriteByCall(offset, piece));
      bytes.remove_prefix(piece.size());
      offset = end;
    }
    return absl::OkStatus();
  }

  FileDescriptor fd_;
  const std::string path_;
  const AllocateFunction allocate_;
  uint64_t reserved_ = 0;
  bool can_allocate_ = true;
  Window windows_[2];  // of the step before the last, and of the last
  StickyStatus sticky_;
};

}  // namespace

int AllocateSpace(int fd, uint64_t begin, uint64_t end) {
#ifdef __linux__
  // Not posix_fallocate: where the file system cannot allocate, glibc writes a byte to each block behind our back.
  while (::fallocate(fd, 0, static_cast<off_t>(begin), static_cast<off_t>(end - begin)) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
#else
  (void)fd, (void)begin, (void)end;
  return EOPNOTSUPP;
#endif
}

std::unique_ptr<LogFile> NewPosixLogFile(FileDescriptor fd, std::string path, AllocateFunction allocate) {
  return std::make_unique<PosixLogFile>(std::move(fd), std::move(path), allocate);
}

}  // namespace tamis::internal
