// Counts of latencies in buckets that grow by half, printed as the familiar tool prints them. Not thread-safe: one a thread, merged.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tamis::bench {

class Histogram {
 public:
  Histogram();
  void Add(uint64_t micros);
  void Merge(const Histogram& other);
  uint64_t count() const { return count_; }
  double Average() const;
  double StandardDeviation() const;
  double Percentile(double percent) const;  // interpolated within the bucket
  std::string ToString() const;

 private:
  std::vector<uint64_t> buckets_;
  uint64_t count_ = 0;
  uint64_t min_;
  uint64_t max_ = 0;
  double sum_ = 0;
  double sum_of_squares_ = 0;
};

}  // namespace tamis::bench
