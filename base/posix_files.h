// The three kinds of files on POSIX. Each takes an open descriptor; opening is posix_directory.cc's.
#pragma once

#include <memory>
#include <string>

#include "base/posix_io.h"
#include "tamis/file_system.h"

namespace tamis::internal {

std::unique_ptr<RandomAccessFile> NewPosixRandomAccessFile(FileDescriptor fd, std::string path, uint64_t size);
std::unique_ptr<AppendFile> NewPosixAppendFile(FileDescriptor fd, std::string path);

// Allocates [begin, end) of a file, making it larger; returns errno, or 0. May leave a part done when it fails. A parameter so that tests
// can play a full disk and a file system that cannot allocate.
using AllocateFunction = int (*)(int fd, uint64_t begin, uint64_t end);
int AllocateSpace(int fd, uint64_t begin, uint64_t end);  // fallocate

std::unique_ptr<LogFile> NewPosixLogFile(FileDescriptor fd, std::string path, AllocateFunction allocate = AllocateSpace);

}  // namespace tamis::internal
