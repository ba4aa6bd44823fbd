#include "table/block_cache.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/epoch.h"

namespace tamis::internal {
namespace {

constexpr uint64_t kBytesPerShard = uint64_t{4} << 20;  // fewer would keep large blocks out
constexpr uint64_t kMaxShards = 16;                     // 64 were no better, measured
constexpr uint64_t kHeapOverhead = 40;                  // malloc's header and rounding, ring and slot pointers

}  // namespace

CachedBlock::~CachedBlock() {
  if (pinned_bytes_ != nullptr) pinned_bytes_->fetch_sub(charge(), std::memory_order_relaxed);
}

CachedBlock* CachedBlock::New(size_t size) { return new (::operator new(sizeof(CachedBlock) + size)) CachedBlock(size); }

absl::Status CachedBlock::Parse(size_t size) {
  absl::StatusOr<Block> block = Block::Parse({data(), size});
  if (!block.ok()) return std::move(block).status();
  block_ = *block;
  return absl::OkStatus();
}

uint64_t CachedBlock::charge() const { return sizeof(CachedBlock) + capacity_ + kHeapOverhead; }

void CachedBlock::Unref() {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  this->~CachedBlock();
  ::operator delete(this);
}

BlockRef BlockRef::Adopt(CachedBlock* block) {
  BlockRef ref;
  ref.block_ = block;
  return ref;
}

BlockRef BlockRef::Share(CachedBlock* block) {
  block->Ref();
  return Adopt(block);
}

BlockRef::BlockRef(BlockRef&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}

BlockRef& BlockRef::operator=(BlockRef&& other) noexcept {
  if (this != &other) {
    Reset();
    block_ = std::exchange(other.block_, nullptr);
  }
  return *this;
}

BlockRef::~BlockRef() { Reset(); }

void BlockRef::Reset() {
  if (CachedBlock* const block = std::exchange(block_, nullptr); block != nullptr) block->Unref();
}

BlockCache::BlockCache(uint64_t capacity_bytes) : capacity_(capacity_bytes) {
  const uint64_t shards = std::clamp<uint64_t>(capacity_bytes / kBytesPerShard, 1, kMaxShards);
  shard_capacity_ = capacity_bytes / shards;
  for (uint64_t i = 0; i < shards; ++i) shards_.push_back(std::make_unique<Shard>());
}

BlockCache::~BlockCache() {
  for (const auto& shard : shards_) {
    MutexLock lock(shard->mutex);
    TAMIS_CHECK(shard->blocks == 0);  // every BlockSlots holds the cache
  }
}

BlockCacheStats BlockCache::GetStats() const {
  BlockCacheStats stats;
  stats.capacity = capacity_;
  stats.pinned_bytes = pinned_bytes_->load(std::memory_order_relaxed);
  for (const auto& shard : shards_) {
    MutexLock lock(shard->mutex);
    stats.bytes += shard->bytes;
    stats.blocks += shard->blocks;
    stats.insertions += shard->insertions;
    stats.not_admitted += shard->not_admitted;
    stats.evictions += shard->evictions;
  }
  return stats;
}

void BlockCache::Insert(Shard& shard, BlockSlots* slots, uint32_t ordinal, CachedBlock* block) {
  const uint64_t charge = block->charge();
  if (charge > shard_capacity_) return;
  CachedBlock* evicted = nullptr;
  {
    MutexLock lock(shard.mutex);
    std::atomic<uintptr_t>& slot = slots->slots_[ordinal];
    const uintptr_t before = slot.load(std::memory_order_relaxed);
    if (BlockSlots::IsBlock(before)) return;
    shard.offered_bytes += charge;
    if (!Admit(shard, before, charge)) {
      ++shard.not_admitted;
      slot.store(BlockSlots::OfferedAt(shard.offered_bytes), std::memory_order_relaxed);
      return;
    }
    while (shard.bytes + charge > shard_capacity_) {
      CachedBlock* const old = EvictOne(shard);
      old->next_removed_ = evicted;
      evicted = old;
    }
    if (shard.holes.empty()) {
      shard.holes.reserve(shard.clock.size() + 1);  // so that Remove cannot throw
      shard.clock.push_back(nullptr);
      shard.holes.push_back(static_cast<uint32_t>(shard.clock.size() - 1));
    }
    const uint32_t place = shard.holes.back();
    shard.holes.pop_back();
    shard.clock[place] = block;
    block->ring_index_ = place;
    block->slots_ = slots;
    block->ordinal_ = ordinal;
    block->Ref();  // C2
    shard.bytes += charge;
    ++shard.blocks;
    ++shard.insertions;
    slot.store(reinterpret_cast<uintptr_t>(block), std::memory_order_release);  // C1
  }
  Retire(evicted);  // C5
}

bool BlockCache::Admit(const Shard& shard, uintptr_t slot, uint64_t charge) const {
  if (shard.bytes + charge <= shard_capacity_) return true;
  const uint64_t offered_at = slot >> 1;
  return offered_at != 0 && shard.offered_bytes - offered_at <= shard_capacity_;
}

// The next block that was not used since the hand last passed. Readers may keep setting marks, so after two rounds any block will do.
CachedBlock* BlockCache::EvictOne(Shard& shard) {
  TAMIS_CHECK(shard.blocks > 0);
  for (size_t steps = 0;; ++steps) {
    if (shard.hand >= shard.clock.size()) shard.hand = 0;
    CachedBlock* const block = shard.clock[shard.hand++];
    if (block == nullptr) continue;
    if (block->used_.load(std::memory_order_relaxed) && steps < 2 * shard.clock.size()) {
      block->used_.store(false, std::memory_order_relaxed);
      continue;
    }
    Remove(shard, block);
    ++shard.evictions;
    PrefetchVictims(shard);
    return block;
  }
}

// Nobody has touched the next victims for a long time: their marks are asked for two evictions ahead, their slots one.
void BlockCache::PrefetchVictims(const Shard& shard) {
  const size_t ahead = shard.clock.size() - shard.hand;
  if (ahead > 0) {
    if (const CachedBlock* next = shard.clock[shard.hand]; next != nullptr) __builtin_prefetch(&next->slots_->slots_[next->ordinal_], 1);
  }
  if (ahead > 1) __builtin_prefetch(shard.clock[shard.hand + 1]);
}

void BlockCache::Remove(Shard& shard, CachedBlock* block) {
  block->slots_->slots_[block->ordinal_].store(BlockSlots::OfferedAt(0), std::memory_order_release);  // C1
  block->slots_ = nullptr;
  shard.clock[block->ring_index_] = nullptr;
  shard.holes.push_back(block->ring_index_);
  shard.bytes -= block->charge();
  --shard.blocks;
  block->pinned_bytes_ = pinned_bytes_;
  pinned_bytes_->fetch_add(block->charge(), std::memory_order_relaxed);
}

void BlockCache::Retire(CachedBlock* removed) {
  while (removed != nullptr) {
    CachedBlock* const block = removed;
    removed = block->next_removed_;            // before it may be freed
    EpochRetire([block] { block->Unref(); });  // C3; a pointer alone is kept without an allocation
  }
}

BlockSlots::BlockSlots(std::shared_ptr<BlockCache> cache, uint32_t count) : cache_(std::move(cache)), count_(count) {
  if (cache_ == nullptr) return;
  slots_ = std::make_unique<std::atomic<uintptr_t>[]>(count);
  for (uint32_t i = 0; i < count; ++i) slots_[i].store(OfferedAt(0), std::memory_order_relaxed);
  const uint64_t mixed = reinterpret_cast<uintptr_t>(slots_.get()) * 0x9e3779b97f4a7c15u;
  first_shard_ = static_cast<size_t>((mixed >> 32) % cache_->shards_.size());
}

uint32_t BlockSlots::FirstOf(size_t shard) const {
  const size_t shards = cache_->shards_.size();
  return static_cast<uint32_t>((shard + shards - first_shard_) % shards);
}

BlockSlots::~BlockSlots() {
  if (cache_ == nullptr) return;
  CachedBlock* removed = nullptr;
  const size_t shards = cache_->shards_.size();
  for (size_t i = 0; i < shards; ++i) {
    BlockCache::Shard& shard = *cache_->shards_[i];
    MutexLock lock(shard.mutex);  // C4
    for (uint64_t ordinal = FirstOf(i); ordinal < count_; ordinal += shards) {
      const uintptr_t slot = slots_[ordinal].load(std::memory_order_relaxed);
      if (!IsBlock(slot)) continue;
      CachedBlock* const block = BlockIn(slot);
      cache_->Remove(shard, block);
      block->next_removed_ = removed;
      removed = block;
    }
  }
  BlockCache::Retire(removed);
}

void BlockSlots::Offer(uint32_t ordinal, const BlockRef& block) {
  TAMIS_DCHECK(ordinal < count_);
  if (cache_ == nullptr) return;
  BlockCache::Shard& shard = *cache_->shards_[(first_shard_ + ordinal) % cache_->shards_.size()];
  cache_->Insert(shard, this, ordinal, block.get());
}

}  // namespace tamis::internal
