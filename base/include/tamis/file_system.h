// The seam through which all file I/O of Tamis goes.
//
// An implementation is given to a database in Options::file_system; FileSystem::Posix() is the default. Everything below the database
// directory is reached through one open Directory, and every name given to a Directory is a single path component: a name that is
// empty, "." or "..", or that holds '/' or NUL, is InvalidArgument. Nothing follows a symbolic link below the directory.
//
// Durability. Three different things become durable by three different calls: the bytes of a file by its Sync(), the existence (and
// the name) of a file by Directory::Sync(), and the existence of the directory itself by OpenDirectory(kCreate), which syncs the
// parent. A crash may keep or lose, independently of each other, everything not synced.
//
// Errors. ENOSPC, EDQUOT, EMFILE, ENFILE and ENOMEM are ResourceExhausted; a missing file, a short read and a read error (EIO) are
// DataLoss; a path that is no directory, or may not be used, is FailedPrecondition; a failed write, sync, truncate or close is
// Unknown (what reached the disk is not known) unless it is one of the ResourceExhausted group. The text names the operation, the
// path and the system's message, and the offset where there is one. EINTR and short transfers are handled inside.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace tamis {

// A file opened for reading at any place. Thread-safe.
class RandomAccessFile {
 public:
  virtual ~RandomAccessFile() = default;
  // Fills `buffer` with the bytes at [offset, offset + buffer.size()). A file that ends before that is DataLoss: the caller has
  // checked the range against size(), so a short read is never "end of data".
  virtual absl::Status Read(uint64_t offset, absl::Span<char> buffer) const = 0;
  // Bytes, as of the opening.
  virtual uint64_t size() const = 0;
  // For error texts: the full path.
  virtual const std::string& path() const = 0;
  // Says that [offset, offset + length) is about to be read in order. A hint: never fails.
  virtual void ReadAhead(uint64_t offset, uint64_t length) const = 0;
};

// A new file written front to back (tables, CURRENT, filter files). Not thread-safe. After the first failed call every later one fails
// with the same status; a failed sync is never retried.
class AppendFile {
 public:
  virtual ~AppendFile() = default;  // closes without syncing if Close was not called
  virtual absl::Status Append(std::string_view bytes) = 0;
  // Asks that what was appended so far starts its way to the disk. No promise of durability; never an error.
  virtual void StartWriteback() = 0;
  virtual absl::Status Sync() = 0;
  virtual absl::Status Close() = 0;
  virtual uint64_t size() const = 0;  // bytes appended
  virtual const std::string& path() const = 0;
};

// A log: a new file whose space is allocated ahead of use, so that a full disk is a status from Reserve and never a signal or a failed
// write, and whose bytes may be stored through a shared mapping, without a system call. Not thread-safe, except that Sync may run
// beside Reserve, and beside Write and WriteThrough of other bytes (it covers what was written before it began). Bytes never written read as zero.
class LogFile {
 public:
  virtual ~LogFile() = default;  // closes without syncing or truncating if Close was not called
  // Makes [0, end) writable: allocates the space and, where the file system allows, maps what was added. ResourceExhausted changed
  // nothing and may be tried again. Where space cannot be allocated (EOPNOTSUPP), zeros are written and nothing is mapped.
  virtual absl::Status Reserve(uint64_t end) = 0;
  virtual uint64_t reserved() const = 0;
  // Stores bytes at [offset, offset + bytes.size()), which must lie below reserved(). They survive the death of the process once this
  // returns OK, and a power loss only after Sync. Uses the mapping if there is one, else WriteThrough.
  virtual absl::Status Write(uint64_t offset, std::string_view bytes) = 0;
  // The same by a system call: cheaper when a Sync follows at once (158 us against 304 us through the mapping, measured).
  virtual absl::Status WriteThrough(uint64_t offset, std::string_view bytes) = 0;
  virtual absl::Status Sync() = 0;
  // Sets the size, dropping reserved space beyond it (and unmapping it). `size` <= reserved().
  virtual absl::Status Truncate(uint64_t size) = 0;
  virtual absl::Status Close() = 0;
  virtual const std::string& path() const = 0;
};

// A lock held for writing; released by the destructor.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

struct DirectoryEntry {
  std::string name;
  uint64_t size = 0;      // bytes; 0 unless regular
  bool regular = false;   // false for directories, symbolic links, devices, ...
};

// Identity of a directory however it was reached (path, symbolic link, bind mount).
struct DirectoryId {
  uint64_t device = 0;
  uint64_t inode = 0;
  friend bool operator==(const DirectoryId&, const DirectoryId&) = default;
};

// An open directory. Thread-safe.
class Directory {
 public:
  virtual ~Directory() = default;
  virtual const std::string& path() const = 0;  // as given to OpenDirectory; for messages
  virtual DirectoryId id() const = 0;

  virtual absl::StatusOr<std::vector<DirectoryEntry>> List() const = 0;  // without "." and "..", in no order
  // Size in bytes of a regular file; nullopt if there is no such name; FailedPrecondition if it is something else.
  virtual absl::StatusOr<std::optional<uint64_t>> FileSize(std::string_view name) const = 0;
  // An existing regular file (anything else is FailedPrecondition, a missing one DataLoss). Never blocks on a FIFO.
  virtual absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenRandomAccess(std::string_view name) const = 0;
  // A new file; a name that exists already is FailedPrecondition (O_EXCL).
  virtual absl::StatusOr<std::unique_ptr<AppendFile>> CreateAppend(std::string_view name) = 0;
  virtual absl::StatusOr<std::unique_ptr<LogFile>> CreateLog(std::string_view name) = 0;
  virtual absl::Status Rename(std::string_view from, std::string_view to) = 0;  // replaces `to`, atomically
  virtual absl::Status Remove(std::string_view name) = 0;                       // a missing file is OK
  virtual absl::Status Sync() = 0;
  // Locks the file `name` (made if missing, a regular file, never a symbolic link) and writes the pid into it. Unavailable, with path
  // and pid, if this process (by DirectoryId) or another holds it.
  virtual absl::StatusOr<std::unique_ptr<FileLock>> Lock(std::string_view name) = 0;
};

class FileSystem {
 public:
  enum class OpenMode { kExisting, kCreate };
  virtual ~FileSystem() = default;
  // Opens the directory at `path` (which may be a symbolic link; it is resolved once). kCreate makes its last component if that is
  // missing (mode `file_mode` with x wherever r is) and syncs the parent; a missing parent is FailedPrecondition naming it.
  // `file_mode`: permission bits of the files made inside, 0600 by default.
  virtual absl::StatusOr<std::unique_ptr<Directory>> OpenDirectory(const std::string& path, OpenMode mode, uint32_t file_mode) = 0;
  // Whether anything, of whatever kind, has this path.
  virtual absl::StatusOr<bool> PathExists(const std::string& path) = 0;
  // Removes an empty directory. Missing is OK; one that is not empty is FailedPrecondition.
  virtual absl::Status RemoveDirectory(const std::string& path) = 0;

  // The file system of the machine. Never deleted.
  static FileSystem* Posix();
};

}  // namespace tamis
