#include "base/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/huge_memory.h"
#include "base/random.h"

namespace tamis::internal {
namespace {

TEST(Arena, TakesNothingBeforeTheFirstAllocation) {
  Arena arena;
  EXPECT_EQ(arena.footprint(), 0u);
  EXPECT_EQ(arena.used(), 0u);
}

TEST(Arena, PiecesAreAlignedAndDisjoint) {
  Arena arena;
  Random random(3);
  struct Piece {
    char* data;
    size_t size;
    char fill;
  };
  std::vector<Piece> pieces;
  size_t used = 0;
  for (int i = 0; i < 5000; ++i) {
    const size_t size = random.OneIn(500) ? random.Uniform(5 << 20) : random.Uniform(300);
    char* const data = arena.Allocate(size);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(data) % 8, 0u);
    const char fill = static_cast<char>(i);
    std::memset(data, fill, size);
    pieces.push_back({data, size, fill});
    used += (size + 7) / 8 * 8;
  }
  for (const Piece& piece : pieces) {
    ASSERT_TRUE(std::all_of(piece.data, piece.data + piece.size, [&](char c) { return c == piece.fill; }));
  }
  EXPECT_EQ(arena.used(), used);
  EXPECT_GE(arena.footprint(), used);
}

TEST(Arena, AllocatingWhatWasReservedTakesNoNewMemory) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Arena arena;
    Random random(seed);
    for (int group = 0; group < 20; ++group) {
      const size_t largest = 1 + random.Uniform(random.OneIn(10) ? 3 << 20 : 5000);
      const size_t total = largest + random.Uniform(4 * largest + 10'000);
      ASSERT_TRUE(arena.Reserve(total, largest));
      const size_t footprint = arena.footprint();
      // A group that uses only part of its reservation leaves untouched chunks to the next one.
      size_t left = (random.OneIn(2) ? total : random.Uniform(total / 4 + 1)) / 8 * 8;
      while (left > 0) {
        // Mostly the largest and the one just too large for what is left in a chunk: the sequences that waste most.
        size_t size = random.OneIn(3) ? 1 + random.Uniform(largest) : largest;
        size = std::min(size, left);
        arena.Allocate(size);
        left -= std::min(left, (size + 7) / 8 * 8);
      }
      ASSERT_EQ(arena.footprint(), footprint) << "seed " << seed << " group " << group;
    }
  }
}

TEST(Arena, ReservingTwiceWithoutUseTakesNothingMore) {
  Arena arena;
  ASSERT_TRUE(arena.Reserve(100'000, 1000));
  const size_t footprint = arena.footprint();
  ASSERT_TRUE(arena.Reserve(100'000, 1000));
  EXPECT_EQ(arena.footprint(), footprint);
}

TEST(Arena, AnImpossibleReservationLeavesItUsable) {
  Arena arena;
  EXPECT_FALSE(arena.Reserve(std::numeric_limits<size_t>::max(), 8));
  EXPECT_FALSE(arena.Reserve(8, std::numeric_limits<size_t>::max()));
  EXPECT_FALSE(arena.Reserve(size_t{1} << 55, 8));
  EXPECT_THROW(arena.Allocate(std::numeric_limits<size_t>::max()), std::bad_alloc);
  EXPECT_EQ(arena.footprint(), 0u);
  std::memset(arena.Allocate(100), 1, 100);
}

TEST(Arena, GrowsFromAPageToHugePages) {
  Arena arena;
  arena.Allocate(1);
  EXPECT_EQ(arena.footprint(), 4096u);
  while (arena.footprint() < 32 << 20) arena.Allocate(1000);
  EXPECT_LT(arena.footprint() - arena.used(), 2 * kHugePageBytes);
}

TEST(AlignedBuffer, IsAlignedToCacheLinesAndHugePages) {
  for (const size_t size : {1, 63, 64, 4097, 131'073, (1 << 20) - 1}) {
    AlignedBuffer buffer(static_cast<size_t>(size));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kCacheLineBytes, 0u) << size;
    std::memset(buffer.data(), 1, buffer.size());
  }
  for (const size_t size : {1 << 20, (1 << 20) + 1, 2 << 20, (3 << 20) - 1, 9 << 20}) {
    AlignedBuffer buffer(static_cast<size_t>(size));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kHugePageBytes, 0u) << size;
    EXPECT_EQ(buffer.size(), size);
    std::memset(buffer.data(), 1, buffer.size());
  }
}

TEST(AlignedBuffer, MovingPassesTheBytesOn) {
  AlignedBuffer first(2 << 20);
  first.data()[0] = 'a';
  const char* const data = first.data();
  AlignedBuffer second(std::move(first));
  EXPECT_EQ(second.data(), data);
  AlignedBuffer third(10);
  third = std::move(second);
  EXPECT_EQ(third.view().substr(0, 1), "a");
  EXPECT_EQ(third.size(), size_t{2} << 20);
}

TEST(AlignedBuffer, EmptyNeedsNoMemory) { EXPECT_EQ(AlignedBuffer(0).data(), nullptr); }

TEST(AlignedBuffer, ThrowsWhenMemoryIsShort) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer stops the process instead";
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
  GTEST_SKIP() << "AddressSanitizer stops the process instead";
#endif
#endif
  EXPECT_THROW(AlignedBuffer(size_t{1} << 46), std::bad_alloc);
}

TEST(HugeMemory, RoundsOnlyALongTailUpToAHugePage) {
  EXPECT_EQ(HugeMapBytes(kHugePageBytes), kHugePageBytes);
  EXPECT_EQ(HugeMapBytes(kHugePageBytes / 2), kHugePageBytes);
  EXPECT_EQ(HugeMapBytes(kHugePageBytes + 1), kHugePageBytes + 65536);
}

}  // namespace
}  // namespace tamis::internal
