// Whether a database handle may still be used: not after Close, and not in a forked child. One object a database, shared by everything
// obtained from it.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"

namespace tamis::internal {

// How many forks lie between the start of the program and this process; one load. (Counted by a pthread_atfork child handler.)
uint32_t ForkGeneration();

class HandleState {
 public:
  HandleState();
  bool Usable() const { return !closed_.load(std::memory_order_acquire) && fork_generation_ == ForkGeneration(); }
  absl::Status Check() const;  // OK, or FailedPrecondition saying which
  // In such a child no lock of the database may be taken: the thread that held it at the fork does not exist there.
  bool InForkedChild() const { return fork_generation_ != ForkGeneration(); }
  void MarkClosed() { closed_.store(true, std::memory_order_release); }

 private:
  std::atomic<bool> closed_{false};
  const uint32_t fork_generation_;
};

}  // namespace tamis::internal
