#include "engine/handle_state.h"

#include <pthread.h>

namespace tamis::internal {
namespace {

std::atomic<uint32_t> fork_generation{0};

void CountFork() { fork_generation.fetch_add(1, std::memory_order_relaxed); }

// Before main, so before there is a second thread. (Without memory for the handler, use after fork is not noticed.)
[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, &CountFork);

}  // namespace

uint32_t ForkGeneration() { return fork_generation.load(std::memory_order_relaxed); }

HandleState::HandleState() : fork_generation_(ForkGeneration()) {}

absl::Status HandleState::Check() const {
  if (closed_.load(std::memory_order_acquire)) return absl::FailedPreconditionError("the database is closed");
  if (InForkedChild()) {
    return absl::FailedPreconditionError("a database handle cannot be used in a forked child: open the database again there");
  }
  return absl::OkStatus();
}

}  // namespace tamis::internal
