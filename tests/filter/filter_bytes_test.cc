#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>

#include "tests/filter/filter_test_util.h"

namespace tamis {
namespace {

bool AllZero(const FilterBytes& bytes) {
  return std::all_of(bytes.view().begin(), bytes.view().end(), [](char c) { return c == 0; });
}

TEST(FilterBytes, AreAlignedAndZeroAtEverySize) {
  constexpr size_t kMiB = size_t{1} << 20;
  for (size_t base : {size_t{1}, size_t{64}, size_t{128}, size_t{4096}, size_t{1000000}, kMiB, 2 * kMiB, 3 * kMiB, 5 * kMiB}) {
    for (size_t size : {base, base + 1, base + 63, base + 64, base - 1}) {
      if (size == 0) continue;
      FilterBytes bytes(size);
      ASSERT_EQ(bytes.size(), size);
      ASSERT_EQ(bytes.view().data(), bytes.data());
      EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes.data()) % (size >= kMiB ? 2 * kMiB : 64), 0U) << size;
      EXPECT_TRUE(AllZero(bytes)) << size;
      std::fill_n(bytes.data(), size, '\xff');  // all of it can be written, and the next block of this size is zero again
    }
  }
}

TEST(FilterBytes, EmptyHoldsNothing) {
  FilterBytes none;
  EXPECT_EQ(none.size(), 0U);
  EXPECT_EQ(FilterBytes(0).data(), nullptr);
}

TEST(FilterBytes, MoveLeavesTheSourceEmpty) {
  static_assert(!std::is_copy_constructible_v<FilterBytes>);
  FilterBytes a(100);
  a.data()[99] = 'x';
  const char* where = a.data();
  FilterBytes b(std::move(a));
  EXPECT_EQ(b.data(), where);
  EXPECT_EQ(a.size(), 0U);  // NOLINT(bugprone-use-after-move)
  FilterBytes c(7);
  c = std::move(b);
  EXPECT_EQ(c.data(), where);
  EXPECT_EQ(c.data()[99], 'x');
  FilterBytes& self = c;
  c = std::move(self);
  EXPECT_EQ(c.size(), 100U);
}

TEST(FilterBytes, ImpossibleSizeIsBadAlloc) {
  for (size_t size : {std::numeric_limits<size_t>::max(), std::numeric_limits<size_t>::max() - (size_t{2} << 20)}) {
    // The second reaches the allocator, and that of a sanitizer ends the process instead of saying no.
    if (filter_testing::kSmall && size != std::numeric_limits<size_t>::max()) continue;
    EXPECT_THROW(FilterBytes bytes(size), std::bad_alloc) << size;
  }
}

}  // namespace
}  // namespace tamis
