// Where among sorted numbers a number must lie, with two dependent memory accesses instead of one for each halving.
//
// The range of the numbers is cut into equal buckets, 1 to 2 for each number, and of a bucket is kept at which index its numbers begin.
// Where the numbers are spread evenly (hashes, counters) a bucket holds none or a few, and what is left to search is short. Where they are
// not, it is as long as the bucket is full, which a binary search finishes: never more steps than over all of them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"

namespace tamis::internal {

// Immutable. Thread-safe.
class BucketIndex {
 public:
  // The first number >= target has an index in [begin, end]; end is the count if there is none.
  struct Range {
    size_t begin;
    size_t end;
  };

  BucketIndex() = default;  // of no numbers
  // `number(i)`, i < count < 2^32, ascending; equal ones are allowed. Not kept.
  template <typename Number>
  BucketIndex(size_t count, Number number);

  size_t count() const { return count_; }
  Range Find(uint64_t target) const;
  size_t MemoryBytes() const { return starts_.capacity() * sizeof(uint32_t); }

 private:
  size_t count_ = 0;
  uint64_t first_ = 0;
  uint64_t span_ = 0;  // last - first
  uint32_t shift_ = 0;
  // Bucket b holds the numbers with (number - first) >> shift == b: indexes starts_[b] to starts_[b + 1] - 1.
  std::vector<uint32_t> starts_;
};

template <typename Number>
BucketIndex::BucketIndex(size_t count, Number number) : count_(count) {
  TAMIS_CHECK(count < UINT32_MAX);
  if (count == 0) return;
  first_ = number(0);
  span_ = number(count - 1) - first_;
  // The top bits of the distance from the first number tell the bucket; a span shorter than that has a bucket for each value.
  const int bucket_bits = std::bit_width(count);
  const int span_bits = std::bit_width(span_);
  shift_ = span_bits > bucket_bits ? static_cast<uint32_t>(span_bits - bucket_bits) : 0;
  const size_t buckets = static_cast<size_t>(span_ >> shift_) + 1;
  starts_.reserve(buckets + 1);
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t bucket = (number(i) - first_) >> shift_;
    while (starts_.size() <= bucket) starts_.push_back(i);
  }
  starts_.resize(buckets + 1, static_cast<uint32_t>(count));
}

inline BucketIndex::Range BucketIndex::Find(uint64_t target) const {
  if (count_ == 0 || target <= first_) return {0, 0};
  const uint64_t distance = target - first_;
  if (distance > span_) return {count_, count_};
  // Buckets are in the order of the numbers: those before the target's hold smaller numbers only, those behind it larger ones only.
  const uint64_t bucket = distance >> shift_;
  return {starts_[bucket], starts_[bucket + 1]};
}

}  // namespace tamis::internal
