#include "bench/db_bench_stats.h"

#include <algorithm>
#include <cstdio>

namespace tamis::bench {

void ThreadStats::Finished(uint64_t count, const char* kind) {
  done_ += count;
  if (!histogram_) return;
  const uint64_t now = NowMicros();
  histograms_[kind].Add(now - last_op_);
  last_op_ = now;
}

void ThreadStats::Merge(const ThreadStats& other) {
  start_ = std::min(start_, other.start_);
  finish_ = std::max(finish_, other.finish_);
  seconds_ += other.seconds_;
  done_ += other.done_;
  bytes_ += other.bytes_;
  found_ += other.found_;
  found_of_ += other.found_of_;
  for (const auto& [kind, histogram] : other.histograms_) histograms_[kind].Merge(histogram);
}

// A clock that stood still must not make a rate of infinity.
double ThreadStats::OpsPerSecond() const { return static_cast<double>(std::max<uint64_t>(1, done_)) / std::max(1e-6, Elapsed()); }
double ThreadStats::MegabytesPerSecond() const { return static_cast<double>(bytes_) / 1048576.0 / std::max(1e-6, Elapsed()); }

void ThreadStats::Print(const std::string& name) const {
  const uint64_t done = std::max<uint64_t>(1, done_);
  std::printf("%-12s : %11.3f micros/op %ld ops/sec %.3f seconds %llu operations;", name.c_str(),
              seconds_ * 1e6 / static_cast<double>(done), static_cast<long>(OpsPerSecond()), Elapsed(),
              static_cast<unsigned long long>(done));
  if (bytes_ > 0) std::printf(" %6.1f MB/s", MegabytesPerSecond());
  if (found_of_ > 0) {
    // The blank line after it is the familiar tool's.
    std::printf(" (%llu of %llu found)\n", static_cast<unsigned long long>(found_), static_cast<unsigned long long>(found_of_));
  }
  std::printf("\n");
  for (const auto& [kind, histogram] : histograms_) std::printf("Microseconds per %s:\n%s\n", kind.c_str(), histogram.ToString().c_str());
  std::fflush(stdout);
}

}  // namespace tamis::bench
