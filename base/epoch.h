// Epoch-based reclamation: readers look at shared immutable objects without a lock, a shared counter or a fence; the one who replaces an
// object frees the old one when no reader can still see it.
//
//   reader:   EpochGuard guard;  Object* o = pointer.load(std::memory_order_acquire);  ... use o ...
//   replacer: Object* old = pointer.exchange(replacement);  EpochRetire([old] { delete old; });
//
// One domain serves the whole process. Each thread owns a slot on a cache line of its own; entering stores the current epoch into it,
// leaving stores zero. On Linux the replacer pays for the ordering with membarrier(PRIVATE_EXPEDITED) (150 ns a call; a guard
// costs 2.6 ns in a tight loop); elsewhere, and under ThreadSanitizer, entering uses a full fence (10 ns). A slot is freed without a
// thread-exit hook: when no slot is free, slots whose thread no longer exists are taken over, and if all are alive the thread enters a
// shared list under a mutex (correct, slower). A forked child has the forking thread's guards and nobody else's.
//
// Rules. Guards may nest. A guard may be held over a read from disk; while it is held nothing retired later is freed. Retired functions
// run on whatever thread calls EpochRetire, EpochReclaim or EpochSynchronize, outside any lock of this module; they may retire
// further objects (which are freed by a later call), but must not enter a guard. EpochSynchronize must not be called inside a guard.
//
// Why it is right: see epoch.cc.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace tamis::internal {

namespace epoch_internal {

struct alignas(64) Slot {
  std::atomic<uint64_t> epoch{0};  // 0: no guard is held
  std::atomic<uint64_t> owner{0};  // how often it was claimed << 32 | thread id (0: free)
};

// Trivially destructible and constant-initialised: no hook at thread exit, no check at access.
struct ThreadState {
  Slot* slot = nullptr;
  uint32_t depth = 0;             // guards held
  bool fenced = false;            // no membarrier: entering needs a full fence
  const void* running = nullptr;  // the batch of retired functions that it is in
  // A thread without a slot.
  uint32_t entries = 0;
  uint64_t epoch = 0;  // while it is in the list
  ThreadState* previous = nullptr;
  ThreadState* next = nullptr;
};

inline constinit thread_local ThreadState thread_state;
alignas(64) inline constinit std::atomic<uint64_t> current_epoch{1};

void EnterSlow(ThreadState& thread);
void LeaveSlow(ThreadState& thread);

}  // namespace epoch_internal

class EpochGuard {
 public:
  EpochGuard() {
    epoch_internal::ThreadState& thread = epoch_internal::thread_state;
    if (thread.depth++ != 0) return;
    if (thread.slot == nullptr || thread.fenced) [[unlikely]] {
      epoch_internal::EnterSlow(thread);
      return;
    }
    thread.slot->epoch.store(epoch_internal::current_epoch.load(std::memory_order_acquire), std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // for the compiler; the scanner's membarrier does the rest
  }
  ~EpochGuard() {
    epoch_internal::ThreadState& thread = epoch_internal::thread_state;
    if (--thread.depth != 0) return;
    if (thread.slot == nullptr) [[unlikely]] {
      epoch_internal::LeaveSlow(thread);
      return;
    }
    thread.slot->epoch.store(0, std::memory_order_release);
  }
  EpochGuard(const EpochGuard&) = delete;
  EpochGuard& operator=(const EpochGuard&) = delete;
};

// Runs `free` once every guard that was held when this was called has ended.
void EpochRetire(std::function<void()> free);
// Runs what has become free. Cheap if nothing was retired.
void EpochReclaim();
// Waits until every guard held at the call has ended, then runs all that was retired before the call (and waits for what another thread
// is running of it).
void EpochSynchronize();

}  // namespace tamis::internal
