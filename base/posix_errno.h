// errno to status, by the rules of tamis/file_system.h. (absl::ErrnoToStatus makes NotFound of ENOENT, which here means "no such key".)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/status_util.h"

namespace tamis::internal {

// What was asked of the system.
enum class IoKind {
  kDirectory,  // open or make a database directory: it may not exist
  kOpen,       // open, create, look up or list: nothing is changed in a way that could be half done
  kRead,       // read bytes
  kChange,     // rename, remove
  kWrite,      // write, sync, truncate, close: a failure leaves unknown bytes on the disk
};

// "`operation` `path`: `system's message`", with " at offset N" before the colon if `offset` is given.
inline constexpr uint64_t kNoOffset = UINT64_MAX;
absl::Status ErrnoStatus(IoKind kind, int error, std::string_view operation, std::string_view path, uint64_t offset = kNoOffset);

// No space, no descriptors, no memory: what gave the error may be tried again later.
bool IsOutOfResources(int error);

// OK if `name` is a single path component; shared by all implementations of Directory.
absl::Status CheckName(std::string_view name);

}  // namespace tamis::internal
