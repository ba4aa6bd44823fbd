// Counts of latencies in buckets of at most 1/32 relative width, so that histograms are joined exactly, by adding. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>

namespace tamis::tools {

class LatencyHistogram {
 public:
  void Add(uint64_t nanos) { AddToBucket(BucketOf(nanos), 1); }
  void AddToBucket(uint32_t bucket, uint64_t count);
  void Merge(const LatencyHistogram& other);
  uint64_t count() const { return count_; }
  // Nanoseconds: the middle of the bucket that holds the share `quantile` (0..1) of all counts. 0 if nothing was counted.
  double Quantile(double quantile) const;
  // Bucket and count, ascending; none is zero.
  const std::map<uint32_t, uint64_t>& buckets() const { return buckets_; }
  friend bool operator==(const LatencyHistogram&, const LatencyHistogram&) = default;

  // Numbers below 64 have a bucket each; above, each power of two is cut into 32. In the results' JSON: never renumber.
  static uint32_t BucketOf(uint64_t nanos);
  static double MiddleOf(uint32_t bucket);
  static constexpr uint32_t kBuckets = 64 + 58 * 32;

 private:
  std::map<uint32_t, uint64_t> buckets_;
  uint64_t count_ = 0;
};

}  // namespace tamis::tools
