// std::mutex with clang's thread-safety annotations. (absl::Mutex is not used: the packaged library is not built with ThreadSanitizer
// and gives false reports.)
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#if defined(__clang__)
#define TAMIS_ANNOTATE(x) __attribute__((x))
#else
#define TAMIS_ANNOTATE(x)
#endif
#define TAMIS_CAPABILITY(name) TAMIS_ANNOTATE(capability(name))
#define TAMIS_SCOPED_CAPABILITY TAMIS_ANNOTATE(scoped_lockable)
#define TAMIS_GUARDED_BY(m) TAMIS_ANNOTATE(guarded_by(m))
#define TAMIS_REQUIRES(...) TAMIS_ANNOTATE(requires_capability(__VA_ARGS__))
#define TAMIS_EXCLUDES(...) TAMIS_ANNOTATE(locks_excluded(__VA_ARGS__))
#define TAMIS_ACQUIRE(...) TAMIS_ANNOTATE(acquire_capability(__VA_ARGS__))
#define TAMIS_RELEASE(...) TAMIS_ANNOTATE(release_capability(__VA_ARGS__))
#define TAMIS_NO_THREAD_SAFETY_ANALYSIS TAMIS_ANNOTATE(no_thread_safety_analysis)

namespace tamis::internal {

class TAMIS_CAPABILITY("mutex") Mutex {
 public:
  void Lock() TAMIS_ACQUIRE() { mutex_.lock(); }
  void Unlock() TAMIS_RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class TAMIS_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) TAMIS_ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() TAMIS_RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits give the mutex up and take it again; as with every condition variable they may wake for no reason.
class CondVar {
 public:
  void Wait(Mutex& mutex) TAMIS_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    cv_.wait(lock);
    lock.release();
  }
  // False if `micros` passed without a signal.
  bool WaitFor(Mutex& mutex, uint64_t micros) TAMIS_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool signalled =
        cv_.wait_for(lock, std::chrono::microseconds(micros)) == std::cv_status::no_timeout;
    lock.release();
    return signalled;
  }
  void Signal() { cv_.notify_one(); }
  void SignalAll() { cv_.notify_all(); }

 private:
  std::condition_variable cv_;
};

}  // namespace tamis::internal
