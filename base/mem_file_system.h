// A file system in memory: for tests, and for databases that need not survive the process. Everything written is at once "durable".
// Thread-safe. Paths are plain strings; a parent directory must exist unless it is "" or "/".
#pragma once

#include <memory>

#include "tamis/file_system.h"

namespace tamis::internal {

std::unique_ptr<FileSystem> NewMemFileSystem();

}  // namespace tamis::internal
