// A child process that is killed, and memory that it shares with its parent: what the child stored there before its death is there after.
#pragma once

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>

namespace tamis::testing_support {

// One T in memory that children forked later share. T: zero-initialisable, of atomics and plain bytes.
template <typename T>
class SharedMemory {
 public:
  SharedMemory() {
    void* memory = ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    value_ = new (memory) T();
  }
  ~SharedMemory() { ::munmap(value_, sizeof(T)); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  T* operator->() const { return value_; }
  T& operator*() const { return *value_; }

 private:
  T* value_;
};

// For a child to say why it gave up.
struct FailureText {
  char text[512];
  [[noreturn]] void Give(std::string_view what, std::string_view why) {
    const std::string all = std::string(what) + ": " + std::string(why);
    std::strncpy(text, all.c_str(), sizeof text - 1);
    ::_exit(3);
  }
};

// Start while no database is open and no other thread runs: the child is then as good as a new process. It dies with its parent.
class ChildProcess {
 public:
  template <typename F>
  explicit ChildProcess(const F& run) {
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) std::abort();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(4);
    run();
    ::_exit(0);  // no destructors, no leak check, no second report of the parent's tests
  }
  ~ChildProcess() { Kill(); }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  bool Ended() {
    if (pid_ > 0 && ::waitpid(pid_, &status_, WNOHANG) == pid_) pid_ = 0;
    return pid_ == 0;
  }
  // As by kill -9, and waits. True if that was what ended it: it had not ended by itself.
  bool Kill() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      while (::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
      }
      pid_ = 0;
    }
    return WIFSIGNALED(status_) && WTERMSIG(status_) == SIGKILL;
  }
  // Waits until it has ended by itself; its exit code, or -1.
  int Wait() {
    if (pid_ > 0) {
      while (::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
      }
      pid_ = 0;
    }
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
  }

 private:
  pid_t pid_ = 0;
  int status_ = 0;
};

inline uint64_t NumberFromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 0) : otherwise;
}

}  // namespace tamis::testing_support
