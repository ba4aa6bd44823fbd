#include "bench/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_format.h"

namespace tamis::bench {
namespace {

// Upper ends of the buckets: 1, 2, then half as much again each time, kept to two significant digits; the last takes everything.
const std::vector<uint64_t>& Limits() {
  static const auto* limits = [] {
    auto* made = new std::vector<uint64_t>{1, 2};
    double limit = 2;
    while ((limit *= 1.5) < 1e19) {
      uint64_t rounded = static_cast<uint64_t>(limit);
      uint64_t power = 1;
      while (rounded / 10 > 10) {
        rounded /= 10;
        power *= 10;
      }
      made->push_back(rounded * power);
    }
    made->back() = std::numeric_limits<uint64_t>::max();
    return made;
  }();
  return *limits;
}

}  // namespace

Histogram::Histogram() : buckets_(Limits().size(), 0), min_(std::numeric_limits<uint64_t>::max()) {}

void Histogram::Add(uint64_t micros) {
  const auto& limits = Limits();
  const size_t bucket = static_cast<size_t>(std::lower_bound(limits.begin(), limits.end(), micros) - limits.begin());
  ++buckets_[bucket];
  ++count_;
  min_ = std::min(min_, micros);
  max_ = std::max(max_, micros);
  const double value = static_cast<double>(micros);
  sum_ += value;
  sum_of_squares_ += value * value;
}

void Histogram::Merge(const Histogram& other) {
  for (size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
  sum_of_squares_ += other.sum_of_squares_;
}

double Histogram::Average() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

double Histogram::StandardDeviation() const {
  if (count_ == 0) return 0;
  const double n = static_cast<double>(count_);
  return std::sqrt(std::max(0.0, (sum_of_squares_ * n - sum_ * sum_) / (n * n)));
}

double Histogram::Percentile(double percent) const {
  const auto& limits = Limits();
  const double wanted = static_cast<double>(count_) * percent / 100;
  double below = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    const double in_bucket = static_cast<double>(buckets_[i]);
    if (in_bucket == 0 || below + in_bucket < wanted) {
      below += in_bucket;
      continue;
    }
    const double left = i == 0 ? 0 : static_cast<double>(limits[i - 1]);
    const double right = static_cast<double>(limits[i]);
    const double value = left + (right - left) * (wanted - below) / in_bucket;
    return std::clamp(value, static_cast<double>(min_), static_cast<double>(max_));
  }
  return static_cast<double>(max_);
}

std::string Histogram::ToString() const {
  std::string text = absl::StrFormat("Count: %d Average: %.4f  StdDev: %.2f\n", count_, Average(), StandardDeviation());
  text += absl::StrFormat("Min: %d  Median: %.4f  Max: %d\n", count_ == 0 ? 0 : min_, Percentile(50), max_);
  text += absl::StrFormat("Percentiles: P50: %.2f P75: %.2f P99: %.2f P99.9: %.2f P99.99: %.2f\n", Percentile(50), Percentile(75),
                          Percentile(99), Percentile(99.9), Percentile(99.99));
  text += "------------------------------------------------------\n";
  if (count_ == 0) return text;
  const auto& limits = Limits();
  const double percent = 100.0 / static_cast<double>(count_);
  uint64_t cumulative = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    if (buckets_[i] == 0) continue;
    cumulative += buckets_[i];
    text += absl::StrFormat("%c %7d, %7d ] %8d %7.3f%% %7.3f%% ", i == 0 ? '[' : '(', i == 0 ? 0 : limits[i - 1], limits[i], buckets_[i],
                            percent * static_cast<double>(buckets_[i]), percent * static_cast<double>(cumulative));
    text.append(static_cast<size_t>(percent * static_cast<double>(buckets_[i]) / 5 + 0.5), '#');
    text += '\n';
  }
  return text;
}

}  // namespace tamis::bench
