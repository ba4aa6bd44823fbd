// What one thread, and all threads together, did in a benchmark; and the result line.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "bench/histogram.h"

namespace tamis::bench {

inline uint64_t NowMicros() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

// Counts operations of one thread. Not thread-safe; merged at the end.
class ThreadStats {
 public:
  explicit ThreadStats(bool histogram) : histogram_(histogram) {}

  void Start() { last_op_ = start_ = NowMicros(); }
  void Stop() {
    finish_ = NowMicros();
    seconds_ = static_cast<double>(finish_ - start_) * 1e-6;
  }
  // `count` operations ended; `kind` ("read", "write", "delete", "seek") is whose histogram their latency goes to.
  void Finished(uint64_t count, const char* kind);
  void AddBytes(uint64_t bytes) { bytes_ += bytes; }
  void AddFound(uint64_t found, uint64_t of) {
    found_ += found;
    found_of_ += of;
  }
  void Merge(const ThreadStats& other);
  // One line on standard output; the familiar tool's scripts read fields 1, 3, 5, 8, 11.
  void Print(const std::string& name) const;
  double OpsPerSecond() const;
  double MegabytesPerSecond() const;

 private:
  double Elapsed() const { return static_cast<double>(finish_ - start_) * 1e-6; }

  bool histogram_;
  uint64_t start_ = 0;
  uint64_t finish_ = 0;
  uint64_t last_op_ = 0;
  double seconds_ = 0;  // summed over threads
  uint64_t done_ = 0;
  uint64_t bytes_ = 0;
  uint64_t found_ = 0;
  uint64_t found_of_ = 0;
  std::map<std::string, Histogram> histograms_;
};

}  // namespace tamis::bench
