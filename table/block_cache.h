// Uncompressed data blocks in memory, bounded by bytes, shared by all tables (and, if wanted, all databases) that are given the cache.
//
// A table keeps one atomic pointer per data block (BlockSlots); a hit is one load under an epoch guard (base/epoch.h), without a hash
// table, a lock or a reference count. The cache itself only knows what to admit and what to evict: a clock per shard. So a block is reached
// by (table, ordinal), and a table is keyed by its id because only its own reader holds the slots.
//
// Once a shard is full, a block is admitted only when it is read for the second time within a shard's capacity of bytes read. So blocks
// read once, most of them where the data are many times the cache, push nothing out, and cost no eviction: their memory is freed at once
// and is still warm when the next block takes it (a seek with ten steps: 6.6 us instead of 7.95, 20 M keys, a cache for a tenth of them).
//
// Lifetime: a pointer from BlockSlots::Get is good while the guard is held. Whoever needs it longer takes a BlockRef (a count on the
// block). An evicted block leaves its slot at once, and is freed when no guard can see it and no BlockRef is left. Pinned blocks that
// were evicted no longer count for the capacity; pinned_bytes says how much they hold.
//
//   C1  A slot holds a block exactly while the block is in the ring of the slot's shard; the two change together, under the mutex of that
//       shard. Which shard a slot belongs to never changes.
//   C2  The ring owns one reference to each of its blocks. It is given up by a retired function (EpochRetire), made after the slot was
//       cleared. So whoever loaded the pointer from the slot under a guard may use the block, and take a reference, until the guard ends:
//       the count cannot reach zero before.
//   C3  A CachedBlock names its slots only while it is in a ring (C1). Its destructor touches neither slots nor cache, and retired
//       functions hold nothing but blocks: they may run after both are gone.
//   C4  The destructor of BlockSlots takes each shard's mutex in turn and removes its blocks. By C1 no ring names it afterwards, so no
//       eviction by another table reaches it. Nobody may be in Get or Offer of a BlockSlots that is destroyed.
//   C5  EpochRetire is never called with a shard's mutex held: it runs foreign functions, among them destructors of tables (C4).
//   C6  A slot without a block holds an odd number: twice the bytes that its shard had been offered when the block was offered last, plus
//       one; 1 if it never was, or was evicted since. Blocks are aligned, so their addresses are even. It changes under the mutex of C1.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "table/block.h"

namespace tamis::internal {

class BlockSlots;

// One block, immutable but for its bookkeeping. Its bytes lie behind it in the same piece of memory: making and freeing a block is one call
// to the heap (two, and an aligned buffer, were a fifth of the cost of a block read).
class CachedBlock {
 public:
  // Room for `size` bytes, which the caller fills in before Parse. Throws std::bad_alloc.
  static CachedBlock* New(size_t size);
  char* data() { return reinterpret_cast<char*>(this + 1); }
  // REQUIRES once, before the block is shared: the parsed view of the first `size` of the bytes.
  absl::Status Parse(size_t size);
  const Block& block() const { return block_; }
  uint64_t charge() const;  // bytes, bookkeeping included
  void Ref() { references_.fetch_add(1, std::memory_order_relaxed); }
  void Unref();

 private:
  friend class BlockCache;
  friend class BlockSlots;
  explicit CachedBlock(size_t capacity) : capacity_(capacity) {}
  ~CachedBlock();          // by the last Unref
  const size_t capacity_;  // bytes behind this object
  Block block_;
  std::atomic<uint32_t> references_{1};
  std::atomic<bool> used_{false};  // since the clock hand last passed
  BlockSlots* slots_ = nullptr;    // where it is reachable, while cached
  uint32_t ordinal_ = 0;
  uint32_t ring_index_ = 0;
  CachedBlock* next_removed_ = nullptr;                  // of those removed together
  std::shared_ptr<std::atomic<uint64_t>> pinned_bytes_;  // set at the eviction: where its charge counts until it is freed
};

// Owns one reference.
class BlockRef {
 public:
  BlockRef() = default;
  static BlockRef Adopt(CachedBlock* block);  // takes over a reference
  static BlockRef Share(CachedBlock* block);  // adds one; under the guard that protects `block`, or from another reference
  BlockRef(BlockRef&& other) noexcept;
  BlockRef& operator=(BlockRef&& other) noexcept;
  ~BlockRef();
  CachedBlock* get() const { return block_; }
  explicit operator bool() const { return block_ != nullptr; }
  void Reset();

 private:
  CachedBlock* block_ = nullptr;
};

struct BlockCacheStats {
  uint64_t capacity = 0;
  uint64_t bytes = 0;  // cached
  uint64_t blocks = 0;
  uint64_t insertions = 0;
  uint64_t not_admitted = 0;  // offered to a full shard, and not offered before for a while
  uint64_t evictions = 0;
  uint64_t pinned_bytes = 0;  // evicted but not freed: a BlockRef or an older guard still holds them
};

// Thread-safe. Must outlive every BlockSlots registered with it (tables hold a shared_ptr).
class BlockCache {
 public:
  explicit BlockCache(uint64_t capacity_bytes);
  ~BlockCache();
  BlockCacheStats GetStats() const;
  uint64_t capacity() const { return capacity_; }

 private:
  friend class BlockSlots;
  struct Shard {
    Mutex mutex;
    // Ring; a removed block leaves a null, whose place is in `holes` and is filled first: so the newest block stands right behind the
    // hand, and the hand comes to it last.
    std::vector<CachedBlock*> clock TAMIS_GUARDED_BY(mutex);
    std::vector<uint32_t> holes TAMIS_GUARDED_BY(mutex);
    size_t hand TAMIS_GUARDED_BY(mutex) = 0;
    uint64_t bytes TAMIS_GUARDED_BY(mutex) = 0;
    uint64_t offered_bytes TAMIS_GUARDED_BY(mutex) = 0;  // ever
    uint64_t blocks TAMIS_GUARDED_BY(mutex) = 0;
    uint64_t insertions TAMIS_GUARDED_BY(mutex) = 0;
    uint64_t not_admitted TAMIS_GUARDED_BY(mutex) = 0;
    uint64_t evictions TAMIS_GUARDED_BY(mutex) = 0;
  };
  void Insert(Shard& shard, BlockSlots* slots, uint32_t ordinal, CachedBlock* block);
  bool Admit(const Shard& shard, uintptr_t slot, uint64_t charge) const TAMIS_REQUIRES(shard.mutex);
  CachedBlock* EvictOne(Shard& shard) TAMIS_REQUIRES(shard.mutex);
  static void PrefetchVictims(const Shard& shard) TAMIS_REQUIRES(shard.mutex);
  void Remove(Shard& shard, CachedBlock* block) TAMIS_REQUIRES(shard.mutex);  // from ring and slot
  static void Retire(CachedBlock* removed);                                   // and all that are chained to it

  const uint64_t capacity_;
  uint64_t shard_capacity_;
  std::vector<std::unique_ptr<Shard>> shards_;
  const std::shared_ptr<std::atomic<uint64_t>> pinned_bytes_ = std::make_shared<std::atomic<uint64_t>>(0);
};

// The block pointers of one table.
class BlockSlots {
 public:
  // `cache` may be null: nothing is kept.
  BlockSlots(std::shared_ptr<BlockCache> cache, uint32_t count);
  ~BlockSlots();  // drops the table's blocks from the cache; blocks with a BlockRef live on

  // The cached block or nullptr. REQUIRES: an EpochGuard of this thread is held while the result is used.
  CachedBlock* Get(uint32_t ordinal) const;
  // Starts loading what Get(ordinal) returns. Needs no guard.
  void Prefetch(uint32_t ordinal) const {
    if (slots_ == nullptr) return;
    const uintptr_t slot = slots_[ordinal].load(std::memory_order_relaxed);
    if (IsBlock(slot)) __builtin_prefetch(BlockIn(slot));
  }
  // Offers a block that was just read; evicts others if needed. If the shard is full and the block was not offered before within the
  // capacity's worth of offers, the slot was filled meanwhile, or the block is larger than a shard, it is not kept. The caller keeps its
  // own reference in any case.
  void Offer(uint32_t ordinal, const BlockRef& block);

 private:
  friend class BlockCache;
  static bool IsBlock(uintptr_t slot) { return (slot & 1) == 0; }  // C6
  static CachedBlock* BlockIn(uintptr_t slot) { return reinterpret_cast<CachedBlock*>(slot); }
  static uintptr_t OfferedAt(uint64_t bytes) { return static_cast<uintptr_t>(bytes << 1 | 1); }
  // Slots first, first + shards, first + 2 * shards, ... belong to shard number `shard`.
  uint32_t FirstOf(size_t shard) const;

  const std::shared_ptr<BlockCache> cache_;
  std::unique_ptr<std::atomic<uintptr_t>[]> slots_;  // C6; null without a cache
  const uint32_t count_;
  size_t first_shard_ = 0;  // of slot 0; spreads the first blocks of tables over the shards
};

inline CachedBlock* BlockSlots::Get(uint32_t ordinal) const {
  if (slots_ == nullptr) return nullptr;
  const uintptr_t slot = slots_[ordinal].load(std::memory_order_acquire);
  if (!IsBlock(slot)) return nullptr;
  CachedBlock* const block = BlockIn(slot);
  // Written only if not set: a hot block's line stays shared between readers.
  if (!block->used_.load(std::memory_order_relaxed)) block->used_.store(true, std::memory_order_relaxed);
  return block;
}

}  // namespace tamis::internal
