// Why no object is freed under a reader.
//
// Words: R enters guard G: it loads the epoch e, stores e into its slot, loads a pointer. A replacer exchanges the pointer, then retires
// the old object with r = epoch++ (EpochRetire). A scanner loads the bound b = epoch, orders itself against all readers (membarrier, or
// fences on both sides), then looks at every slot; it frees what has r < b and r < every non-zero epoch seen.
//
// I1. If R can hold the old object, then e <= r. Otherwise e > r, so R's acquiring load of the epoch read from the increment that gave r
//     or a later one of its release sequence; the exchange comes before the increment, so R's pointer load sees the replacement.
// I2. If R can hold the old object and r < b, the scanner's look at R's slot sees G's store or a later one of R. The scanner's barrier
//     falls somewhere between R's instructions. If it falls after G's store, the scanner sees that. If before, R's pointer load comes
//     after it, and sees what came before the scanner's barrier; r < b says that the exchange did, so R gets the replacement. With fences
//     instead (store, fence, pointer load / bound, fence, slot load) the same two cases follow from the order of the fences.
// I3. What the scanner sees in R's slot is then e (I1: e <= r, not freed), or a later store of R: zero or a later guard's epoch. All
//     stores to slots are releases and the look is an acquire, so G's reads come before the freeing.
// I4. An epoch loaded long before it is stored only makes R look older: less is freed.
// I5. A slot changes hands only when its owner no longer exists (so holds no guard), or by the owner itself. used_slots grows before a new
//     slot's first store, so I2 covers it: a scanner that misses the growth also precedes R's pointer load.
// I6. The list of threads without a slot is under list_mutex, which the scanner takes after loading b. If R enters after that, its pointer
//     load comes after the scanner's unlock, hence after the exchange; if before, the scanner sees e.
// I7. In a forked child only the forking thread exists: all other slots and list entries are cleared by the fork handler, which runs on
//     that thread before fork returns. Mutexes of this file are held across fork by that thread, so none is left locked.
// I8. `retired` is in the order of its epochs (both are assigned under retire_mutex); a batch taken off it is in `batches` until its last
//     function has returned, so EpochSynchronize knows of all that was retired before it.
#include "base/epoch.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/mutex.h"

// ThreadSanitizer knows neither membarrier nor fences.
#if defined(__SANITIZE_THREAD__)
#define TAMIS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TAMIS_TSAN 1
#endif
#endif
#ifndef TAMIS_TSAN
#define TAMIS_TSAN 0
#endif

namespace tamis::internal {

using epoch_internal::current_epoch;
using epoch_internal::Slot;
using epoch_internal::thread_state;
using epoch_internal::ThreadState;

namespace {

constexpr size_t kSlots = 512;
constexpr uint32_t kRetryEntries = 256;    // a thread without a slot looks for one this often: 512 x 100 ns, spread
constexpr uint64_t kReclaimInterval = 64;  // retirements between two scans

struct Retired {
  uint64_t epoch;
  std::function<void()> free;
};

// Functions that a thread is running just now; lives on its stack.
struct Batch {
  uint64_t first_epoch = 0;
  std::vector<Retired> functions;
};

// Never destroyed: guards and retirements may come from destructors of static objects.
struct Domain {
  Slot slots[kSlots];
  std::atomic<size_t> used_slots{0};  // no slot from here on was ever owned

  Mutex list_mutex;
  ThreadState* list TAMIS_GUARDED_BY(list_mutex) = nullptr;

  Mutex retire_mutex;
  CondVar batch_ended;
  std::deque<Retired> retired TAMIS_GUARDED_BY(retire_mutex);
  std::vector<Batch*> batches TAMIS_GUARDED_BY(retire_mutex);
  std::atomic<size_t> retired_count{0};  // of `retired`, readable without the mutex
  std::atomic<uint64_t> retirements{0};

  bool membarrier = false;  // set once, before the first guard
};

#ifdef __linux__
constexpr int kRegisterPrivateExpedited = 1 << 4;  // linux/membarrier.h
constexpr int kPrivateExpedited = 1 << 3;

bool Membarrier(int command) {
#ifdef SYS_membarrier
  return ::syscall(SYS_membarrier, command, 0, 0) == 0;
#else
  (void)command;
  return false;
#endif
}
int ThreadId() { return static_cast<int>(::syscall(SYS_gettid)); }
bool Exists(int thread) { return ::syscall(SYS_tgkill, ::getpid(), thread, 0) == 0 || errno != ESRCH; }
#else
constexpr int kRegisterPrivateExpedited = 0;
constexpr int kPrivateExpedited = 0;
bool Membarrier(int) { return false; }
int ThreadId() {  // slots are not taken over here, so a number that nobody else has will do
  static std::atomic<int> last{0};
  return ++last;
}
bool Exists(int) { return true; }
#endif

// The count makes every claim a new value. Else this could happen: we find thread X dead; a new thread gets the id X and takes X's slot
// over as its own; we exchange X for our id, and two threads share a slot.
uint64_t NextOwner(uint64_t owner, int thread) { return ((owner >> 32) + 1) << 32 | static_cast<uint32_t>(thread); }
int ThreadOf(uint64_t owner) { return static_cast<int>(static_cast<uint32_t>(owner)); }

bool RegisterMembarrier() { return !TAMIS_TSAN && Membarrier(kRegisterPrivateExpedited); }

void BeforeFork();
void AfterForkInParent();
void AfterForkInChild();

Domain* NewDomain() {
  auto* const domain = new Domain;
  domain->membarrier = RegisterMembarrier();
  TAMIS_CHECK(::pthread_atfork(BeforeFork, AfterForkInParent, AfterForkInChild) == 0);
  return domain;
}

Domain& TheDomain() {
  static Domain* const domain = NewDomain();
  return *domain;
}

// Made before main, so before there is a second thread: a fork while another thread is inside the initialiser above would leave the child
// waiting for it for ever.
[[maybe_unused]] Domain& made_at_load = TheDomain();

// Both mutexes in the order in which no other code holds them together.
void BeforeFork() TAMIS_NO_THREAD_SAFETY_ANALYSIS {
  TheDomain().retire_mutex.Lock();
  TheDomain().list_mutex.Lock();
}

void AfterForkInParent() TAMIS_NO_THREAD_SAFETY_ANALYSIS {
  TheDomain().list_mutex.Unlock();
  TheDomain().retire_mutex.Unlock();
}

void AfterForkInChild() TAMIS_NO_THREAD_SAFETY_ANALYSIS {
  Domain& domain = TheDomain();
  ThreadState& self = thread_state;
  for (Slot& slot : domain.slots) {
    if (&slot == self.slot) {
      slot.owner.store(NextOwner(slot.owner.load(std::memory_order_relaxed), ThreadId()), std::memory_order_relaxed);
    } else {
      slot.epoch.store(0, std::memory_order_relaxed);
      slot.owner.store(0, std::memory_order_relaxed);
    }
  }
  const bool listed = self.slot == nullptr && self.depth != 0;
  domain.list = listed ? &self : nullptr;
  self.previous = nullptr;
  self.next = nullptr;
  // Batches of threads that no longer exist: their functions never run, which leaks in the child only.
  std::erase_if(domain.batches, [&self](const Batch* batch) { return batch != self.running; });
  if (domain.membarrier && !RegisterMembarrier()) {
    domain.membarrier = false;
    self.fenced = true;
  }
  domain.list_mutex.Unlock();
  domain.retire_mutex.Unlock();
}

bool Claim(Slot& slot, uint64_t expected, int self) {
  if (!slot.owner.compare_exchange_strong(expected, NextOwner(expected, self), std::memory_order_acq_rel)) return false;
  slot.epoch.exchange(0, std::memory_order_acq_rel);  // acquires what the former owner released
  return true;
}

// A slot for the calling thread, or nullptr if 512 live threads have one.
Slot* FindSlot(Domain& domain) {
  const int self = ThreadId();
  for (size_t i = 0; i < kSlots; ++i) {
    Slot& slot = domain.slots[i];
    const uint64_t owner = slot.owner.load(std::memory_order_relaxed);
    if (ThreadOf(owner) != 0 || !Claim(slot, owner, self)) continue;
    size_t used = domain.used_slots.load(std::memory_order_relaxed);
    while (used <= i && !domain.used_slots.compare_exchange_weak(used, i + 1, std::memory_order_seq_cst)) {
    }
    return &slot;
  }
  for (Slot& slot : domain.slots) {
    const uint64_t owner = slot.owner.load(std::memory_order_relaxed);
    // An owner of our own id is a dead thread whose id was given to us.
    if ((ThreadOf(owner) == self || !Exists(ThreadOf(owner))) && Claim(slot, owner, self)) return &slot;
  }
  return nullptr;
}

// Stores `epoch` into the slot before any later load.
void StoreFenced(Slot& slot, uint64_t epoch) {
#if TAMIS_TSAN
  slot.epoch.exchange(epoch, std::memory_order_seq_cst);  // a full barrier on x86-64
#else
  slot.epoch.store(epoch, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

// The scanner's side of I2. False if the system could not do it now.
bool OrderAgainstReaders(Domain& domain) {
  if (domain.membarrier) return Membarrier(kPrivateExpedited);
#if !TAMIS_TSAN
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  return true;
}

// Everything retired before the result may be freed; at most `bound`, which was loaded from the epoch.
uint64_t OldestGuard(Domain& domain, uint64_t bound) {
  if (!OrderAgainstReaders(domain)) return 0;
  uint64_t oldest = bound;
  const size_t used = domain.used_slots.load(std::memory_order_seq_cst);
  for (size_t i = 0; i < used; ++i) {
    const uint64_t epoch = domain.slots[i].epoch.load(std::memory_order_seq_cst);
    if (epoch != 0) oldest = std::min(oldest, epoch);
  }
  MutexLock lock(domain.list_mutex);
  for (const ThreadState* thread = domain.list; thread != nullptr; thread = thread->next) oldest = std::min(oldest, thread->epoch);
  return oldest;
}

// Runs what was retired before `oldest`.
void RunRetired(Domain& domain, uint64_t oldest) {
  Batch batch;
  {
    MutexLock lock(domain.retire_mutex);
    size_t count = 0;
    while (count < domain.retired.size() && domain.retired[count].epoch < oldest) ++count;
    if (count == 0) return;
    batch.first_epoch = domain.retired.front().epoch;
    batch.functions.reserve(count);
    domain.batches.push_back(&batch);
    for (size_t i = 0; i < count; ++i) {
      batch.functions.push_back(std::move(domain.retired.front()));
      domain.retired.pop_front();
    }
    domain.retired_count.store(domain.retired.size(), std::memory_order_relaxed);
  }
  thread_state.running = &batch;
  for (Retired& retired : batch.functions) {
    retired.free();
    retired.free = nullptr;  // what it captured goes now, not after its successors
  }
  thread_state.running = nullptr;
  MutexLock lock(domain.retire_mutex);
  std::erase(domain.batches, &batch);
  domain.batch_ended.SignalAll();
}

void Pause(uint32_t round) {
  if (round < 16) {
    ::sched_yield();
    return;
  }
  const timespec time{0, round < 64 ? 50'000 : 1'000'000};
  ::nanosleep(&time, nullptr);
}

}  // namespace

namespace epoch_internal {

void EnterSlow(ThreadState& thread) {
  Domain& domain = TheDomain();
  if (thread.slot == nullptr && thread.entries++ % kRetryEntries == 0) {
    thread.fenced = !domain.membarrier;
    thread.slot = FindSlot(domain);
  }
  if (thread.slot != nullptr) {
    StoreFenced(*thread.slot, current_epoch.load(std::memory_order_acquire));
    return;
  }
  MutexLock lock(domain.list_mutex);
  thread.epoch = current_epoch.load(std::memory_order_acquire);
  thread.previous = nullptr;
  thread.next = domain.list;
  if (thread.next != nullptr) thread.next->previous = &thread;
  domain.list = &thread;
}

void LeaveSlow(ThreadState& thread) {
  Domain& domain = TheDomain();
  MutexLock lock(domain.list_mutex);
  (thread.previous != nullptr ? thread.previous->next : domain.list) = thread.next;
  if (thread.next != nullptr) thread.next->previous = thread.previous;
}

}  // namespace epoch_internal

void EpochRetire(std::function<void()> free) {
  Domain& domain = TheDomain();
  {
    MutexLock lock(domain.retire_mutex);
    domain.retired.push_back({0, std::move(free)});
    domain.retired.back().epoch = current_epoch.fetch_add(1, std::memory_order_seq_cst);
    domain.retired_count.store(domain.retired.size(), std::memory_order_relaxed);
  }
  if (domain.retirements.fetch_add(1, std::memory_order_relaxed) % kReclaimInterval == kReclaimInterval - 1) EpochReclaim();
}

void EpochReclaim() {
  Domain& domain = TheDomain();
  // A retired function that retires 64 more must not recurse into the next ones.
  if (thread_state.running != nullptr || domain.retired_count.load(std::memory_order_relaxed) == 0) return;
  RunRetired(domain, OldestGuard(domain, current_epoch.load(std::memory_order_seq_cst)));
}

void EpochSynchronize() {
  TAMIS_CHECK(thread_state.depth == 0 && thread_state.running == nullptr);  // would wait for itself
  Domain& domain = TheDomain();
  const uint64_t bound = current_epoch.fetch_add(1, std::memory_order_seq_cst) + 1;
  for (uint32_t round = 0; OldestGuard(domain, bound) < bound; ++round) Pause(round);
  RunRetired(domain, bound);
  MutexLock lock(domain.retire_mutex);
  const auto earlier = [bound](const Batch* batch) { return batch->first_epoch < bound; };
  while (std::any_of(domain.batches.begin(), domain.batches.end(), earlier)) domain.batch_ended.Wait(domain.retire_mutex);
}

}  // namespace tamis::internal
