#include "tools/study/latency.h"

#include <bit>
#include <cmath>

namespace tamis::tools {

uint32_t LatencyHistogram::BucketOf(uint64_t nanos) {
  if (nanos < 64) return static_cast<uint32_t>(nanos);
  const auto shift = static_cast<uint32_t>(std::bit_width(nanos)) - 6;  // leaves 32 to 63
  return 64 + (shift - 1) * 32 + static_cast<uint32_t>(nanos >> shift) - 32;
}

double LatencyHistogram::MiddleOf(uint32_t bucket) {
  if (bucket < 64) return bucket;
  const uint32_t shift = (bucket - 64) / 32 + 1;
  return std::ldexp(static_cast<double>((bucket - 64) % 32 + 32) + 0.5, static_cast<int>(shift));
}

void LatencyHistogram::AddToBucket(uint32_t bucket, uint64_t count) {
  if (count == 0) return;
  buckets_[bucket] += count;
  count_ += count;
}

void LatencyHistogram::Merge(const LatencyHistogram& other) {
  for (const auto& [bucket, count] : other.buckets_) AddToBucket(bucket, count);
}

double LatencyHistogram::Quantile(double quantile) const {
  const double wanted = quantile * static_cast<double>(count_);
  double below = 0;
  for (const auto& [bucket, count] : buckets_) {
    below += static_cast<double>(count);
    if (below >= wanted) return MiddleOf(bucket);
  }
  return buckets_.empty() ? 0 : MiddleOf(buckets_.rbegin()->first);
}

}  // namespace tamis::tools
