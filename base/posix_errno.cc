#include "base/posix_errno.h"

#include <cerrno>
#include <system_error>

namespace tamis::internal {
namespace {

absl::StatusCode CodeOf(IoKind kind, int error) {
  if (IsOutOfResources(error)) return absl::StatusCode::kResourceExhausted;
  if (kind == IoKind::kWrite) return absl::StatusCode::kUnknown;
  switch (error) {
    case ENOENT:
      return kind == IoKind::kDirectory ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kDataLoss;
    case EACCES:
    case EPERM:
    case EROFS:
    case ELOOP:
    case ENOTDIR:
    case EISDIR:
    case EEXIST:
    case ENOTEMPTY:
    case EBUSY:
    case ETXTBSY:
    case ENXIO:  // a socket, or a device that is not there
    case ENODEV:
    case ENAMETOOLONG:
    case EXDEV:
      return absl::StatusCode::kFailedPrecondition;
    case EIO:
#ifdef EBADMSG
    case EBADMSG:  // ext4, XFS, btrfs: a checksum of the file system's own does not fit
#endif
#ifdef EUCLEAN
    case EUCLEAN:  // the same under an older name
#endif
      return kind == IoKind::kChange ? absl::StatusCode::kUnknown : absl::StatusCode::kDataLoss;
    default:
      return absl::StatusCode::kUnknown;
  }
}

}  // namespace

bool IsOutOfResources(int error) { return error == ENOSPC || error == EDQUOT || error == EMFILE || error == ENFILE || error == ENOMEM; }

absl::Status ErrnoStatus(IoKind kind, int error, std::string_view operation, std::string_view path, uint64_t offset) {
  std::string text = Concat(operation, " ", path);
  if (offset != kNoOffset) text += Concat(" at offset ", offset);
  if (kind == IoKind::kDirectory && error == ENOENT) {
    text += ": no such directory";
  } else {
    text += Concat(": ", std::generic_category().message(error));
  }
  return absl::Status(CodeOf(kind, error), text);
}

absl::Status CheckName(std::string_view name) {
  if (!name.empty() && name != "." && name != ".." && name.find('/') == name.npos && name.find('\0') == name.npos) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("a file name must be one path component that is not empty, \".\" or \"..\"");
}

}  // namespace tamis::internal
