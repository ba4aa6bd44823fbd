// Directories, names and locks on POSIX.
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <tuple>
#include <utility>

#include "base/mutex.h"
#include "base/posix_errno.h"
#include "base/posix_files.h"
#include "base/posix_io.h"
#include "base/status_util.h"
#include "tamis/file_system.h"

namespace tamis::internal {
namespace {

constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY;

// The locks that this process holds. flock alone is not enough within a process that forked, nor does it tell us from another process;
// the directory's identity, not its path, so that symbolic links and bind mounts lead to the same entry. Never destroyed.
class LockRegistry {
 public:
  using Key = std::tuple<uint64_t, uint64_t, std::string>;  // device and inode of the directory, name

  static LockRegistry& Get() {
    static LockRegistry* const registry = new LockRegistry;
    return *registry;
  }
  bool Insert(const Key& key) {
    MutexLock lock(mutex_);
    return held_.insert(key).second;
  }
  void Erase(const Key& key) {
    MutexLock lock(mutex_);
    held_.erase(key);
  }

 private:
  Mutex mutex_;
  std::set<Key> held_ TAMIS_GUARDED_BY(mutex_);
};

// An entry of the registry, taken out again by the destructor.
class RegisteredLock {
 public:
  explicit RegisteredLock(LockRegistry::Key key) : key_(std::move(key)), held_(LockRegistry::Get().Insert(key_)) {}
  RegisteredLock(RegisteredLock&& other) noexcept : key_(std::move(other.key_)), held_(std::exchange(other.held_, false)) {}
  ~RegisteredLock() {
    if (held_) LockRegistry::Get().Erase(key_);
  }
  bool held() const { return held_; }

 private:
  LockRegistry::Key key_;
  bool held_;
};

class PosixFileLock final : public FileLock {
 public:
  PosixFileLock(RegisteredLock registered, FileDescriptor fd) : registered_(std::move(registered)), fd_(std::move(fd)) {}
  // Closing, not LOCK_UN, which would also unlock the copy of a parent process. The file stays: removing it would let two processes lock
  // two different files. Members are destroyed last to first: first the file, then the entry.

 private:
  RegisteredLock registered_;
  FileDescriptor fd_;
};

// The text names the pid that the holder wrote.
absl::Status LockedBy(const std::string& path, int fd) {
  char text[21];
  size_t length = 0;
  if (ReadFully(fd, 0, absl::MakeSpan(text), &length) != 0) length = 0;
  size_t digits = 0;
  while (digits < length && text[digits] >= '0' && text[digits] <= '9') ++digits;
  const std::string_view pid = digits == 0 ? "of unknown id" : std::string_view(text, digits);
  const bool ours = pid == Concat(static_cast<int64_t>(::getpid()));
  return absl::UnavailableError(Concat(path, " is locked by process ", pid, ours ? " (this one)" : ""));
}

class PosixDirectory final : public Directory {
 public:
  PosixDirectory(FileDescriptor fd, std::string path, DirectoryId id, uint32_t file_mode)
      : fd_(std::move(fd)), path_(std::move(path)), id_(id), file_mode_(file_mode) {}

  const std::string& path() const override { return path_; }
  DirectoryId id() const override { return id_; }

  absl::StatusOr<std::vector<DirectoryEntry>> List() const override;
  absl::StatusOr<std::optional<uint64_t>> FileSize(std::string_view name) const override;
  absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenRandomAccess(std::string_view name) const override;
  absl::StatusOr<std::unique_ptr<AppendFile>> CreateAppend(std::string_view name) override;
  absl::StatusOr<std::unique_ptr<LogFile>> CreateLog(std::string_view name) override;
  absl::Status Rename(std::string_view from, std::string_view to) override;
  absl::Status Remove(std::string_view name) override;
  absl::Status Sync() override;
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(std::string_view name) override;

 private:
  std::string PathOf(std::string_view name) const { return Concat(path_, "/", name); }
  absl::Status Irregular(std::string_view name) const {
    return absl::FailedPreconditionError(Concat(PathOf(name), " is not a regular file"));
  }
  absl::StatusOr<FileDescriptor> Create(std::string_view name, int access);
  absl::Status CheckLockFile(int fd, std::string_view name) const;

  const FileDescriptor fd_;
  const std::string path_;
  const DirectoryId id_;
  const uint32_t file_mode_;
};

absl::StatusOr<std::vector<DirectoryEntry>> PosixDirectory::List() const {
  // A descriptor of its own: the position of a directory stream belongs to the open file, and List may run in several threads.
  FileDescriptor fd = OpenAt(fd_.get(), ".", kDirectoryFlags);
  if (!fd.ok()) return ErrnoStatus(IoKind::kOpen, errno, "list", path_);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(fd.get()), ::closedir);
  if (stream == nullptr) return ErrnoStatus(IoKind::kOpen, errno, "list", path_);
  const int directory = fd.Release();  // now the stream's

  std::vector<DirectoryEntry> entries;
  while (true) {
    errno = 0;
    const dirent* const found = ::readdir(stream.get());
    if (found == nullptr) {
      if (errno != 0) return ErrnoStatus(IoKind::kRead, errno, "list", path_);
      return entries;
    }
    DirectoryEntry entry{.name = found->d_name};
    if (entry.name == "." || entry.name == "..") continue;
    struct stat info;
    if (::fstatat(directory, found->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) continue;  // removed since
      return ErrnoStatus(IoKind::kOpen, errno, "look up", PathOf(entry.name));
    }
    entry.regular = S_ISREG(info.st_mode);
    if (entry.regular) entry.size = static_cast<uint64_t>(info.st_size);
    entries.push_back(std::move(entry));
  }
}

absl::StatusOr<std::optional<uint64_t>> PosixDirectory::FileSize(std::string_view name) const {
  TAMIS_RETURN_IF_ERROR(CheckName(name));
  struct stat info;
  if (::fstatat(fd_.get(), std::string(name).c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return std::optional<uint64_t>();
    return ErrnoStatus(IoKind::kOpen, errno, "look up", PathOf(name));
  }
  if (!S_ISREG(info.st_mode)) return Irregular(name);
  return std::optional<uint64_t>(static_cast<uint64_t>(info.st_size));
}

absl::StatusOr<std::unique_ptr<RandomAccessFile>> PosixDirectory::OpenRandomAccess(std::string_view name) const {
  TAMIS_RETURN_IF_ERROR(CheckName(name));
  // O_NONBLOCK: opening a FIFO would otherwise wait for a writer. For a regular file it means nothing.
  FileDescriptor fd = OpenAt(fd_.get(), std::string(name).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (!fd.ok()) return ErrnoStatus(IoKind::kOpen, errno, "open", PathOf(name));
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return ErrnoStatus(IoKind::kOpen, errno, "look up", PathOf(name));
  if (!S_ISREG(info.st_mode)) return Irregular(name);
  return NewPosixRandomAccessFile(std::move(fd), PathOf(name), static_cast<uint64_t>(info.st_size));
}

absl::StatusOr<FileDescriptor> PosixDirectory::Create(std::string_view name, int access) {
  TAMIS_RETURN_IF_ERROR(CheckName(name));
  FileDescriptor fd = OpenAt(fd_.get(), std::string(name).c_str(), access | O_CREAT | O_EXCL | O_NOFOLLOW, file_mode_);
  if (!fd.ok()) return ErrnoStatus(IoKind::kOpen, errno, "create", PathOf(name));
  return fd;
}

absl::StatusOr<std::unique_ptr<AppendFile>> PosixDirectory::CreateAppend(std::string_view name) {
  TAMIS_ASSIGN_OR_RETURN(FileDescriptor fd, Create(name, O_WRONLY));
  return NewPosixAppendFile(std::move(fd), PathOf(name));
}

absl::StatusOr<std::unique_ptr<LogFile>> PosixDirectory::CreateLog(std::string_view name) {
  TAMIS_ASSIGN_OR_RETURN(FileDescriptor fd, Create(name, O_RDWR));  // a shared mapping needs both
  return NewPosixLogFile(std::move(fd), PathOf(name));
}

absl::Status PosixDirectory::Rename(std::string_view from, std::string_view to) {
  TAMIS_RETURN_IF_ERROR(CheckName(from));
  TAMIS_RETURN_IF_ERROR(CheckName(to));
  TAMIS_ASSIGN_OR_RETURN(const std::optional<uint64_t> size, FileSize(from));
  if (!size.has_value()) return ErrnoStatus(IoKind::kChange, ENOENT, "rename", PathOf(from));
  if (::renameat(fd_.get(), std::string(from).c_str(), fd_.get(), std::string(to).c_str()) == 0) return absl::OkStatus();
  return ErrnoStatus(IoKind::kChange, errno, Concat("rename to ", to), PathOf(from));
}

absl::Status PosixDirectory::Remove(std::string_view name) {
  TAMIS_RETURN_IF_ERROR(CheckName(name));
  if (::unlinkat(fd_.get(), std::string(name).c_str(), 0) == 0 || errno == ENOENT) return absl::OkStatus();
  return ErrnoStatus(IoKind::kChange, errno, "remove", PathOf(name));
}

absl::Status PosixDirectory::Sync() {
  const int error = internal::Sync(fd_.get());
  return error == 0 ? absl::OkStatus() : ErrnoStatus(IoKind::kWrite, error, "sync directory", path_);
}

// A lock file is written to, so it must be ours: someone who may write to the directory could have put a link to another file there.
absl::Status PosixDirectory::CheckLockFile(int fd, std::string_view name) const {
  struct stat info;
  if (::fstat(fd, &info) != 0) return ErrnoStatus(IoKind::kOpen, errno, "look up", PathOf(name));
  if (!S_ISREG(info.st_mode)) return Irregular(name);
  if (info.st_nlink > 1) return absl::FailedPreconditionError(Concat(PathOf(name), " has another name (hard link)"));
  const bool shared = (file_mode_ & (S_IWGRP | S_IWOTH)) != 0;  // several users were invited
  if (!shared && info.st_uid != ::geteuid() && ::geteuid() != 0) {
    return absl::FailedPreconditionError(Concat(PathOf(name), " belongs to another user"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<FileLock>> PosixDirectory::Lock(std::string_view name) {
  TAMIS_RETURN_IF_ERROR(CheckName(name));
  const std::string path = PathOf(name);
  RegisteredLock registered({id_.device, id_.inode, std::string(name)});
  const int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  FileDescriptor fd = OpenAt(fd_.get(), std::string(name).c_str(), flags, file_mode_);
  if (!fd.ok()) return ErrnoStatus(IoKind::kOpen, errno, "open", path);
  TAMIS_RETURN_IF_ERROR(CheckLockFile(fd.get(), name));
  if (!registered.held()) return LockedBy(path, fd.get());

  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return LockedBy(path, fd.get());
    return ErrnoStatus(IoKind::kOpen, errno, "lock", path);
  }
  const std::string pid = Concat(static_cast<int64_t>(::getpid()), "\n");
  int error = SetSize(fd.get(), 0);
  if (error == 0) error = WriteFully(fd.get(), 0, pid);
  // The pid only serves messages: a disk too full for it must not keep a database from being opened, which may be what frees space.
  if (error != 0 && !IsOutOfResources(error)) return ErrnoStatus(IoKind::kWrite, error, "write", path);
  return std::make_unique<PosixFileLock>(std::move(registered), std::move(fd));
}

class PosixFileSystem final : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<Directory>> OpenDirectory(const std::string& path, OpenMode mode, uint32_t file_mode) override;
  absl::StatusOr<bool> PathExists(const std::string& path) override;
  absl::Status RemoveDirectory(const std::string& path) override;

 private:
  static absl::StatusOr<bool> MakeDirectory(const std::string& path, uint32_t file_mode);
  static absl::Status SyncParent(int directory, const std::string& path, bool made);
};

// "a/b/" -> "a", "b" -> ".", "/b" -> "/".
std::string ParentOf(const std::string& path) {
  const size_t last = path.find_last_not_of('/');
  if (last == path.npos) return "/";
  const size_t slash = path.find_last_of('/', last);
  if (slash == path.npos) return ".";
  const size_t end = path.find_last_not_of('/', slash);
  return end == path.npos ? "/" : path.substr(0, end + 1);
}

// True if the directory was made, false if something of that name was there.
absl::StatusOr<bool> PosixFileSystem::MakeDirectory(const std::string& path, uint32_t file_mode) {
  const uint32_t mode = file_mode | ((file_mode & 0444) >> 2);  // x wherever r
  if (::mkdir(path.c_str(), static_cast<mode_t>(mode)) == 0) return true;
  if (errno == EEXIST) return false;
  if (errno == ENOENT) {
    return absl::FailedPreconditionError(Concat("create ", path, ": the parent directory is missing: ", ParentOf(path)));
  }
  const int error = errno;
  struct stat info;  // an existing directory on a read-only file system gives EROFS; so would a missing one
  if (::stat(path.c_str(), &info) == 0) return false;
  return ErrnoStatus(IoKind::kDirectory, error, "create directory", path);
}

absl::Status PosixFileSystem::SyncParent(int directory, const std::string& path, bool made) {
  // Through "..", not through the path: if that is a symbolic link its own parent is another directory.
  const FileDescriptor parent = OpenAt(directory, "..", kDirectoryFlags);
  const int error = parent.ok() ? internal::Sync(parent.get()) : errno;
  if (error == 0) return absl::OkStatus();
  // A directory that was there before may lie in one that we may not read. One that another process is just making is not our case.
  if (!made && !parent.ok()) return absl::OkStatus();
  return ErrnoStatus(parent.ok() ? IoKind::kWrite : IoKind::kDirectory, error, "sync the parent of", path);
}

absl::StatusOr<std::unique_ptr<Directory>> PosixFileSystem::OpenDirectory(const std::string& path, OpenMode mode, uint32_t file_mode) {
  if (path.empty() || path.find('\0') != path.npos) {
    return absl::InvalidArgumentError("a directory's path must not be empty or hold a NUL");
  }
  bool made = false;
  if (mode == OpenMode::kCreate) {
    TAMIS_ASSIGN_OR_RETURN(made, MakeDirectory(path, file_mode));
  }
  FileDescriptor fd = OpenAt(AT_FDCWD, path.c_str(), kDirectoryFlags);
  if (!fd.ok()) return ErrnoStatus(IoKind::kDirectory, errno, "open", path);
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return ErrnoStatus(IoKind::kDirectory, errno, "look up", path);
  if (mode == OpenMode::kCreate) TAMIS_RETURN_IF_ERROR(SyncParent(fd.get(), path, made));
  const DirectoryId id{static_cast<uint64_t>(info.st_dev), static_cast<uint64_t>(info.st_ino)};
  return std::make_unique<PosixDirectory>(std::move(fd), path, id, file_mode & 0777);
}

absl::StatusOr<bool> PosixFileSystem::PathExists(const std::string& path) {
  if (path.find('\0') != path.npos) return absl::InvalidArgumentError("a directory's path must not hold a NUL");
  struct stat info;
  if (::lstat(path.c_str(), &info) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return ErrnoStatus(IoKind::kRead, errno, "look for", path);
}

absl::Status PosixFileSystem::RemoveDirectory(const std::string& path) {
  if (path.find('\0') != path.npos) return absl::InvalidArgumentError("a directory's path must not hold a NUL");
  if (::rmdir(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return ErrnoStatus(IoKind::kChange, errno, "remove directory", path);
}

}  // namespace
}  // namespace tamis::internal

namespace tamis {

FileSystem* FileSystem::Posix() {
  static FileSystem* const files = new internal::PosixFileSystem;
  return files;
}

}  // namespace tamis
