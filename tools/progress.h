// Progress of a long command on standard error: a bar that is redrawn on a terminal, a plain line every ten seconds elsewhere,
// with the time that is left at the pace so far.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace tamis::tools {

class ProgressReport {
 public:
  // `label`: what is being done. `unit`: what Update counts ("bytes" are printed as MiB).
  ProgressReport(std::string label, std::string unit);
  ~ProgressReport();  // erases the bar
  ProgressReport(const ProgressReport&) = delete;
  ProgressReport& operator=(const ProgressReport&) = delete;

  // `total` 0: not known. Cheap enough to call often: draws at most ten times a second.
  void Update(uint64_t done, uint64_t total);

 private:
  std::string Amount(uint64_t count) const;
  void DrawBar(uint64_t done, uint64_t total);
  void PrintLine(uint64_t done, uint64_t total) const;

  const std::string label_;
  const std::string unit_;
  const bool terminal_;
  bool drawn_ = false;
  const std::chrono::steady_clock::time_point begin_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace tamis::tools
