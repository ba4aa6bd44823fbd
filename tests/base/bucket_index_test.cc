#include "base/bucket_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace tamis::internal {
namespace {

BucketIndex IndexOf(const std::vector<uint64_t>& numbers) {
  return BucketIndex(numbers.size(), [&](size_t i) { return numbers[i]; });
}

// At every number, its neighbours, the middles between them, and the ends of the range.
void ExpectRightRanges(std::vector<uint64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  const BucketIndex index = IndexOf(numbers);
  ASSERT_EQ(index.count(), numbers.size());
  const auto expect = [&](uint64_t target) {
    const auto right = static_cast<size_t>(std::lower_bound(numbers.begin(), numbers.end(), target) - numbers.begin());
    const BucketIndex::Range range = index.Find(target);
    ASSERT_LE(range.begin, right) << target;
    ASSERT_GE(range.end, right) << target;
    ASSERT_LE(range.end, numbers.size()) << target;
  };
  expect(0);
  expect(UINT64_MAX);
  for (size_t i = 0; i < numbers.size(); ++i) {
    expect(numbers[i]);
    expect(numbers[i] - 1);  // wraps at the ends, which is as good a target as any
    expect(numbers[i] + 1);
    if (i > 0) expect(numbers[i - 1] + (numbers[i] - numbers[i - 1]) / 2);
  }
}

TEST(BucketIndexTest, AnEmptyIndexHoldsNothing) {
  EXPECT_EQ(BucketIndex().Find(5).end, 0u);
  EXPECT_EQ(IndexOf({}).Find(5).end, 0u);
}

TEST(BucketIndexTest, TheRangeHoldsThePlaceWhateverTheSpread) {
  std::mt19937_64 random(1);
  for (size_t count = 1; count <= 300; ++count) {
    std::vector<uint64_t> uniform;
    std::vector<uint64_t> narrow;
    std::vector<uint64_t> exponential;
    std::vector<uint64_t> clustered;
    for (size_t i = 0; i < count; ++i) {
      uniform.push_back(random());
      narrow.push_back(1000 + random() % (count + 1));
      exponential.push_back(random() >> random() % 64);
      clustered.push_back((random() % 3 << 60) + random() % 500);
    }
    ExpectRightRanges(uniform);
    ExpectRightRanges(narrow);
    ExpectRightRanges(exponential);
    ExpectRightRanges(clustered);
  }
}

TEST(BucketIndexTest, EqualNumbersAndTheEndsOfTheRangeAreFound) {
  ExpectRightRanges({7});
  ExpectRightRanges(std::vector<uint64_t>(100, 7));
  ExpectRightRanges({0, UINT64_MAX});
  ExpectRightRanges({0, 0, 0, 0, 0, 0, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX});
  ExpectRightRanges({UINT64_MAX - 1, UINT64_MAX});
}

TEST(BucketIndexTest, EvenlySpreadNumbersLeaveLittleToSearchInLittleMemory) {
  std::mt19937_64 random(2);
  std::vector<uint64_t> numbers(10000);
  for (uint64_t& number : numbers) number = random();
  std::sort(numbers.begin(), numbers.end());
  const BucketIndex index = IndexOf(numbers);
  uint64_t left = 0;
  for (int i = 0; i < 10000; ++i) {
    const BucketIndex::Range range = index.Find(random());
    left += range.end - range.begin;
  }
  EXPECT_LE(left, 10000u);  // half to one a bucket
  EXPECT_LE(index.MemoryBytes(), 8u * 10000 + 8);
}

}  // namespace
}  // namespace tamis::internal
