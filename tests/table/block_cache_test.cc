#include "table/block_cache.h"

#include <thread>

#include "base/epoch.h"
#include "table/block_builder.h"
#include "tests/table/table_test_util.h"

namespace tamis::internal {
namespace {

// A block whose only key is `key`, with a value of `bytes`.
BlockRef NewBlock(const std::string& key, size_t bytes = 100) {
  BlockBuilder builder;
  builder.Add(key, 1, EntryKind::kPut, std::string(bytes, 'v'));
  const std::string_view block = builder.Finish();
  BlockRef ref = BlockRef::Adopt(CachedBlock::New(block.size()));
  std::memcpy(ref.get()->data(), block.data(), block.size());
  EXPECT_OK(ref.get()->Parse(block.size()));
  return ref;
}

// As two reads would: the first makes the cache remember it, the second brings it in.
void OfferTwice(BlockSlots* slots, uint32_t ordinal, const BlockRef& block) {
  slots->Offer(ordinal, block);
  slots->Offer(ordinal, block);
}

bool Holds(const CachedBlock* block, const std::string& key) { return block->block().count() == 1 && block->block().KeyEquals(0, key); }

TEST(BlockCacheTest, AnOfferedBlockIsFoundAndTheFirstOfferStays) {
  auto cache = std::make_shared<BlockCache>(1 << 20);
  BlockSlots slots(cache, 4);
  const EpochGuard guard;
  EXPECT_EQ(slots.Get(2), nullptr);
  const BlockRef first = NewBlock("first");
  slots.Offer(2, first);
  slots.Offer(2, NewBlock("second"));
  EXPECT_EQ(slots.Get(2), first.get());
  EXPECT_EQ(slots.Get(3), nullptr);
  EXPECT_EQ(cache->GetStats().blocks, 1u);
  EXPECT_EQ(cache->GetStats().bytes, first.get()->charge());
}

TEST(BlockCacheTest, WithoutACacheNothingIsKept) {
  BlockSlots slots(nullptr, 4);
  slots.Offer(1, NewBlock("k"));
  const EpochGuard guard;
  EXPECT_EQ(slots.Get(1), nullptr);
}

TEST(BlockCacheTest, ABlockLargerThanAShardIsNotKept) {
  auto cache = std::make_shared<BlockCache>(10000);
  BlockSlots slots(cache, 2);
  slots.Offer(0, NewBlock("k"));
  slots.Offer(1, NewBlock("big", 10000));
  EXPECT_EQ(cache->GetStats().blocks, 1u);
  EXPECT_EQ(cache->GetStats().evictions, 0u);
}

TEST(BlockCacheTest, CapacityIsNeverPassed) {
  for (const uint64_t capacity : {uint64_t{0}, uint64_t{1000}, uint64_t{100000}, uint64_t{9} << 20}) {
    auto cache = std::make_shared<BlockCache>(capacity);
    BlockSlots slots(cache, 4000);
    Random random(capacity);
    for (uint32_t i = 0; i < 4000; ++i) {
      slots.Offer(i, NewBlock(std::to_string(i), random.Uniform(8000)));
      ASSERT_LE(cache->GetStats().bytes, capacity);
    }
    const BlockCacheStats stats = cache->GetStats();
    EXPECT_EQ(stats.insertions - stats.evictions, stats.blocks);
    if (capacity > 50000) {
      EXPECT_GT(stats.bytes, capacity * 3 / 4);
    }
  }
}

TEST(BlockCacheTest, UsedBlocksStayWhenOthersGo) {
  auto cache = std::make_shared<BlockCache>(100000);
  BlockSlots slots(cache, 10000);
  for (uint32_t i = 0; i < 10; ++i) slots.Offer(i, NewBlock(std::to_string(i)));
  for (uint32_t i = 10; i < 10000; ++i) {
    OfferTwice(&slots, i, NewBlock(std::to_string(i)));
    const EpochGuard guard;
    for (uint32_t hot = 0; hot < 10; ++hot) ASSERT_NE(slots.Get(hot), nullptr) << "at " << i;
  }
  EXPECT_GT(cache->GetStats().evictions, 9000u);
}

TEST(BlockCacheTest, AFullCacheAdmitsWhatIsReadTwiceWithinItsCapacity) {
  auto cache = std::make_shared<BlockCache>(100000);
  BlockSlots slots(cache, 10000);
  uint32_t next = 0;
  while (cache->GetStats().not_admitted == 0) slots.Offer(next++, NewBlock("filler"));
  const uint64_t blocks = cache->GetStats().blocks;
  EXPECT_EQ(cache->GetStats().insertions, blocks) << "all, as long as there was room";
  const auto cached = [&](uint32_t ordinal) {
    const EpochGuard guard;
    return slots.Get(ordinal) != nullptr;
  };
  EXPECT_TRUE(cached(0));

  // Read once: nothing is pushed out, however many.
  const uint32_t once = next;
  for (; next < 5000; ++next) slots.Offer(next, NewBlock("once"));
  EXPECT_EQ(cache->GetStats().evictions, 0u);
  EXPECT_FALSE(cached(once));
  EXPECT_TRUE(cached(0));

  // Again, but after many times the capacity: as if for the first time. Then soon once more.
  slots.Offer(once, NewBlock("twice"));
  EXPECT_FALSE(cached(once));
  for (uint32_t i = 0; i < blocks / 2; ++i) slots.Offer(next++, NewBlock("once"));
  slots.Offer(once, NewBlock("twice"));
  EXPECT_TRUE(cached(once));
  EXPECT_EQ(cache->GetStats().evictions, 1u);

  // What was evicted starts from the beginning.
  uint32_t gone = 0;
  while (cached(gone)) ++gone;
  slots.Offer(gone, NewBlock("gone"));
  EXPECT_FALSE(cached(gone));
  slots.Offer(gone, NewBlock("gone"));
  EXPECT_TRUE(cached(gone));
}

TEST(BlockCacheTest, APinnedBlockOutlivesEvictionTableAndCache) {
  BlockRef pinned;
  {
    auto cache = std::make_shared<BlockCache>(5000);
    auto slots = std::make_unique<BlockSlots>(cache, 100);
    slots->Offer(0, NewBlock("pinned"));
    {
      const EpochGuard guard;
      pinned = BlockRef::Share(slots->Get(0));
    }
    for (uint32_t i = 1; i < 100; ++i) OfferTwice(slots.get(), i, NewBlock("other"));
    {
      const EpochGuard guard;
      EXPECT_EQ(slots->Get(0), nullptr);
    }
    EpochSynchronize();
    EXPECT_EQ(cache->GetStats().pinned_bytes, pinned.get()->charge());
    slots.reset();
    EpochSynchronize();
    EXPECT_EQ(cache->GetStats().blocks, 0u);
    EXPECT_EQ(cache->GetStats().bytes, 0u);
  }
  EXPECT_TRUE(Holds(pinned.get(), "pinned"));
}

TEST(BlockCacheTest, AGuardKeepsWhatItSawUntilItEnds) {
  auto cache = std::make_shared<BlockCache>(5000);
  auto slots = std::make_unique<BlockSlots>(cache, 100);
  slots->Offer(0, NewBlock("seen"));
  {
    const EpochGuard guard;
    const CachedBlock* seen = slots->Get(0);
    std::thread([&] { slots.reset(); }).join();
    EpochReclaim();
    EXPECT_TRUE(Holds(seen, "seen"));
    EXPECT_GT(cache->GetStats().pinned_bytes, 0u);
  }
  EpochSynchronize();
  EXPECT_EQ(cache->GetStats().pinned_bytes, 0u);
}

// Readers of a lasting table, and tables that come and go, in one small cache, so that each evicts the others' blocks all the time.
TEST(BlockCacheTest, ReadersEvictionsAndDyingTablesDoNotDisturbEachOther) {
  auto cache = std::make_shared<BlockCache>(60000);
  constexpr uint32_t kBlocks = 200;
  BlockSlots lasting(cache, kBlocks);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> hits{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      Random random(static_cast<uint64_t>(t) + 10);
      std::vector<std::pair<BlockRef, std::string>> pins(8);
      while (!stop.load(std::memory_order_relaxed)) {
        const uint32_t ordinal = static_cast<uint32_t>(random.Uniform(kBlocks));
        const std::string key = "lasting" + std::to_string(ordinal);
        {
          const EpochGuard guard;
          if (CachedBlock* block = lasting.Get(ordinal); block != nullptr) {
            hits.fetch_add(1, std::memory_order_relaxed);
            ASSERT_TRUE(Holds(block, key));
            if (random.OneIn(8)) pins[random.Uniform(pins.size())] = {BlockRef::Share(block), key};
            continue;
          }
        }
        lasting.Offer(ordinal, NewBlock(key));
        const auto& [pin, pinned_key] = pins[random.Uniform(pins.size())];
        if (pin) {
          ASSERT_TRUE(Holds(pin.get(), pinned_key));
        }
      }
    });
  }
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      Random random(static_cast<uint64_t>(t) + 20);
      for (int round = 0; round < 400; ++round) {
        BlockSlots passing(cache, 50);
        for (int i = 0; i < 60; ++i) {
          const uint32_t ordinal = static_cast<uint32_t>(random.Uniform(50));
          const std::string key = std::to_string(t) + "/" + std::to_string(round) + "/" + std::to_string(ordinal);
          const EpochGuard guard;
          if (CachedBlock* block = passing.Get(ordinal); block != nullptr) {
            ASSERT_TRUE(Holds(block, key));
          } else {
            passing.Offer(ordinal, NewBlock(key));
          }
        }
      }
      stop.store(true);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(hits.load(), 0u);
  EXPECT_LE(cache->GetStats().bytes, 60000u);
  EpochSynchronize();
  EXPECT_EQ(cache->GetStats().pinned_bytes, 0u);
}

}  // namespace
}  // namespace tamis::internal
