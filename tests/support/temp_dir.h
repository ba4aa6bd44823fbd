// A fresh directory, removed with all in it at the end.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace tamis::testing_support {

class TempDir {
 public:
  TempDir() : TempDir(DefaultBase()) {}
  explicit TempDir(const std::string& base) {
    std::string name = base + "/tamis-test-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }

  static std::string DefaultBase() {
    const char* base = std::getenv("TMPDIR");
    return base != nullptr ? base : "/tmp";
  }
  // In memory if the machine offers it: real files, but a sync costs nothing. For tests that open databases hundreds of times.
  static std::string MemoryBase() { return ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : DefaultBase(); }

 private:
  std::string path_;
};

}  // namespace tamis::testing_support
