// Limits the bytes a second that compactions move: sleeps the caller as needed.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/environment.h"
#include "base/mutex.h"

namespace tamis::internal {

// Thread-safe. A rate of 0 is no limit.
class RateLimiter {
 public:
  RateLimiter(uint64_t bytes_per_second, Clock* clock) : rate_(bytes_per_second), clock_(clock) {}

  // Accounts for `bytes` and sleeps until they fit the rate, in pieces of at most 50 ms so that `stop` ends it soon.
  void Acquire(uint64_t bytes, const std::atomic<bool>& stop) {
    if (rate_ == 0) return;
    uint64_t until;
    {
      MutexLock lock(mutex_);
      const uint64_t now = clock_->NowMicros();
      if (free_at_ < now) free_at_ = now;
      free_at_ += static_cast<uint64_t>(static_cast<double>(bytes) * 1e6 / static_cast<double>(rate_));
      until = free_at_;
    }
    for (uint64_t now = clock_->NowMicros(); now < until && !stop.load(std::memory_order_relaxed); now = clock_->NowMicros()) {
      clock_->SleepMicros(until - now < 50'000 ? until - now : 50'000);
    }
  }

 private:
  const uint64_t rate_;
  Clock* const clock_;
  Mutex mutex_;
  uint64_t free_at_ TAMIS_GUARDED_BY(mutex_) = 0;
};

}  // namespace tamis::internal
