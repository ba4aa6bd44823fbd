#include "base/environment.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/check.h"
#include "base/coding.h"
#include "base/mutex.h"
#include "base/random.h"

namespace tamis::internal {
namespace {

class SystemClock final : public Clock {
 public:
  uint64_t NowNanos() const override {
    timespec now{};
    TAMIS_CHECK(::clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  }

  void SleepMicros(uint64_t micros) override {
    timespec left{};
    left.tv_sec = static_cast<time_t>(micros / 1'000'000);
    left.tv_nsec = static_cast<long>(micros % 1'000'000 * 1000);
    while (::clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR) {
    }
  }
};

// All signals but those that a thread raises by its own fault: a crash handler of the program must still see these.
sigset_t BlockedSignals() {
  sigset_t set;
  sigfillset(&set);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) sigdelset(&set, fault);
  return set;
}

class SystemThread final : public Executor::Thread {
 public:
  explicit SystemThread(pthread_t thread) : thread_(thread) {}
  ~SystemThread() override { ::pthread_join(thread_, nullptr); }

 private:
  const pthread_t thread_;
};

struct ThreadStart {
  std::string name;
  std::function<void()> body;
};

void* Run(void* argument) {
  const std::unique_ptr<ThreadStart> start(static_cast<ThreadStart*>(argument));
#ifdef __linux__
  ::pthread_setname_np(::pthread_self(), start->name.substr(0, 15).c_str());  // the kernel keeps 15 bytes
#endif
  start->body();
  return nullptr;
}

class SystemExecutor final : public Executor {
 public:
  std::unique_ptr<Thread> Start(std::string name, std::function<void()> body) override {
    std::unique_ptr<ThreadStart> start(new ThreadStart{std::move(name), std::move(body)});
    // A thread inherits the mask of its maker: set here, there is no moment in which a signal could reach it.
    const sigset_t blocked = BlockedSignals();
    sigset_t before;
    pthread_t thread;
    ::pthread_sigmask(SIG_SETMASK, &blocked, &before);
    const int error = ::pthread_create(&thread, nullptr, Run, start.get());
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (error != 0) return nullptr;
    start.release();  // now Run's
    return std::make_unique<SystemThread>(thread);
  }
};

class SystemRandom final : public RandomSource {
 public:
  void Fill(absl::Span<uint8_t> bytes) override {
    while (!bytes.empty()) {
      ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
      if (got < 0 && errno == ENOSYS) got = FromDevice(bytes);
      if (got < 0 && errno == EINTR) continue;
      TAMIS_CHECK(got > 0);  // an id that is not random could pass another file's bytes
      bytes.remove_prefix(static_cast<size_t>(got));
    }
  }

 private:
  static ssize_t FromDevice(absl::Span<uint8_t> bytes) {
    const int fd = ::open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    const ssize_t got = ::read(fd, bytes.data(), bytes.size());
    const int error = errno;
    ::close(fd);
    errno = error;
    return got;
  }
};

class SeededRandom final : public RandomSource {
 public:
  explicit SeededRandom(uint64_t seed) : random_(seed) {}

  void Fill(absl::Span<uint8_t> bytes) override {
    MutexLock lock(mutex_);
    while (!bytes.empty()) {
      uint8_t word[8];
      StoreLittle(word, random_.Next());
      const size_t length = bytes.size() < sizeof word ? bytes.size() : sizeof word;
      std::memcpy(bytes.data(), word, length);
      bytes.remove_prefix(length);
    }
  }

 private:
  Mutex mutex_;
  Random random_ TAMIS_GUARDED_BY(mutex_);
};

}  // namespace

// The system's objects are never destroyed: threads may use them until the process ends.
Clock* Clock::System() {
  static Clock* const clock = new SystemClock;
  return clock;
}

Executor* Executor::System() {
  static Executor* const executor = new SystemExecutor;
  return executor;
}

RandomSource* RandomSource::System() {
  static RandomSource* const random = new SystemRandom;
  return random;
}

std::unique_ptr<RandomSource> RandomSource::Seeded(uint64_t seed) { return std::make_unique<SeededRandom>(seed); }

uint64_t RandomSource::Next64() {
  uint8_t bytes[8];
  Fill(absl::MakeSpan(bytes));
  return LoadLittle<uint64_t>(bytes);
}

Id128 RandomSource::NextId128() {
  Id128 id;
  Fill(absl::MakeSpan(id));
  return id;
}

Environment Environment::System() { return {FileSystem::Posix(), Clock::System(), Executor::System(), RandomSource::System()}; }

}  // namespace tamis::internal
