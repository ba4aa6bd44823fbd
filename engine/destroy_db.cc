// DestroyDB: removes a database's own files, CURRENT last of what holds data, and then the directory if it is empty.
#include "base/status_util.h"
#include "engine/version/file_names.h"
#include "tamis/db.h"

namespace tamis {
namespace {

using internal::FileKind;

absl::Status RemoveOwnFiles(Directory* directory) {
  absl::StatusOr<std::vector<DirectoryEntry>> entries = directory->List();
  if (!entries.ok()) return entries.status();
  const auto remove = [&](bool last) -> absl::Status {
    for (const DirectoryEntry& entry : *entries) {
      const std::optional<internal::FileName> name = internal::ParseFileName(entry.name);
      if (!name || name->kind == FileKind::kLock) continue;
      // A manifest or CURRENT without its files is noticed as damage; tables without CURRENT would be, too, but say less.
      const bool is_last = name->kind == FileKind::kCurrent || name->kind == FileKind::kManifest;
      if (is_last == last) TAMIS_RETURN_IF_ERROR(directory->Remove(entry.name));
    }
    return directory->Sync();
  };
  TAMIS_RETURN_IF_ERROR(remove(false));
  return remove(true);
}

}  // namespace

absl::Status DestroyDB(const Options& options, const std::string& path) {
  FileSystem* files = options.file_system != nullptr ? options.file_system : FileSystem::Posix();
  absl::StatusOr<bool> exists = files->PathExists(path);
  if (!exists.ok()) return exists.status();
  if (!*exists) return absl::OkStatus();
  TAMIS_ASSIGN_OR_RETURN(std::unique_ptr<Directory> directory, files->OpenDirectory(path, FileSystem::OpenMode::kExisting, options.file_mode));
  TAMIS_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, directory->List());
  bool own = entries.empty();
  bool foreign = false;
  for (const DirectoryEntry& entry : entries) {
    (internal::ParseFileName(entry.name).has_value() ? own : foreign) = true;
  }
  if (!own) return absl::FailedPreconditionError(internal::Concat(path, " holds no Tamis database; nothing was removed"));
  if (!entries.empty()) {
    TAMIS_ASSIGN_OR_RETURN(const std::unique_ptr<FileLock> lock, directory->Lock(internal::kLockName));
    TAMIS_RETURN_IF_ERROR(RemoveOwnFiles(directory.get()));
    TAMIS_RETURN_IF_ERROR(directory->Remove(internal::kLockName));
  }
  directory.reset();
  return foreign ? absl::OkStatus() : files->RemoveDirectory(path);
}

}  // namespace tamis
