// Allocations that are given, not derived, and what each is expected to cost; curves.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "filter/allocation_hull.h"
#include "filter/filter_format.h"
#include "tamis/filter_allocation.h"

namespace tamis {
namespace {

constexpr double kMaxSettings = 1 << 16;

// `bits` between two neighbours of the curve, no filter being the one below the first.
FilterTarget TargetFor(const FilterRun& run, double bits) {
  const auto above = std::find_if(run.curve.begin(), run.curve.end(), [bits](const FilterSetting& at) { return at.bits_per_key > bits; });
  FilterTarget target;
  if (above != run.curve.begin()) target.setting = *std::prev(above);
  target.next = target.setting;
  if (above == run.curve.end()) return target;
  const double share = (bits - target.setting.bits_per_key) / (above->bits_per_key - target.setting.bits_per_key);
  target.next_keys = std::min(run.keys, static_cast<uint64_t>(share * static_cast<double>(run.keys)));
  if (target.next_keys == 0) return target;
  target.next = *above;
  target.next_share = static_cast<double>(target.next_keys) / static_cast<double>(run.keys);
  return target;
}

absl::Status CheckBits(double bits_per_key) {
  if (bits_per_key >= 0 && std::isfinite(bits_per_key)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("bits per key ", bits_per_key, " are negative or not finite"));
}

}  // namespace

absl::StatusOr<FilterCurve> SampleCurve(const std::function<double(double)>& rate, const FilterBitsRange& range) {
  if (!(range.minimum > 0 && range.maximum >= range.minimum && std::isfinite(range.maximum) && range.step > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("no range of bits per key: ", range.minimum, " to ", range.maximum, " in steps of ", range.step));
  }
  // The last setting of a range of thirds may lie above the maximum by rounding.
  const double last = std::floor((range.maximum - range.minimum) / range.step + 1e-9);
  if (!(last < kMaxSettings)) {
    return absl::InvalidArgumentError(
        absl::StrCat("more than 2^16 settings from ", range.minimum, " to ", range.maximum, " in steps of ", range.step));
  }
  FilterCurve curve;
  curve.reserve(static_cast<size_t>(last) + 1);
  for (double i = 0; i <= last; ++i) {
    const double bits = std::min(range.maximum, range.minimum + i * range.step);
    curve.push_back({.bits_per_key = bits, .rate = rate(bits)});
  }
  if (absl::Status s = internal::CheckCurve(curve, 0); !s.ok()) return s;
  return curve;
}

absl::StatusOr<FilterCurve> CurveOf(FilterKind kind, const FilterBitsRange& range) {
  if (absl::Status s = internal::CheckFilterKind(kind); !s.ok()) return s;
  return SampleCurve([kind](double bits) { return fpr_model::FalsePositiveRate(kind, bits); }, range);
}

double ContinuousBloomRate(double bits_per_key) {
  constexpr double kLn2 = 0.693147180559945309417;
  return std::exp(-bits_per_key * (kLn2 * kLn2));
}

double FingerprintRate(double bits_per_key, double overhead) { return std::exp2(-bits_per_key / overhead); }

absl::StatusOr<FilterPlan> PerLevelAllocation(absl::Span<const FilterRun> runs, absl::Span<const double> bits_per_level) {
  if (bits_per_level.empty()) return absl::InvalidArgumentError("the list of bits per key of the levels is empty");
  for (const double bits : bits_per_level) {
    if (absl::Status s = CheckBits(bits); !s.ok()) return s;
  }
  if (absl::Status s = internal::CheckRuns(runs); !s.ok()) return s;
  FilterPlan plan;
  plan.runs.reserve(runs.size());
  for (const FilterRun& run : runs) {
    plan.runs.push_back(TargetFor(run, bits_per_level[std::min<size_t>(run.level, bits_per_level.size() - 1)]));
  }
  internal::SumUp(runs, &plan);
  return plan;
}

absl::StatusOr<FilterPlan> UniformAllocation(absl::Span<const FilterRun> runs, double bits_per_key) {
  return PerLevelAllocation(runs, {&bits_per_key, 1});
}

absl::StatusOr<double> PredictedWastedReads(absl::Span<const FilterRun> runs, absl::Span<const double> rates) {
  if (runs.size() != rates.size()) {
    return absl::InvalidArgumentError(absl::StrCat(rates.size(), " rates for ", runs.size(), " runs"));
  }
  double sum = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (absl::Status s = internal::CheckRun(runs[i], i); !s.ok()) return s;
    if (!(rates[i] >= 0 && rates[i] <= 1)) {
      return absl::InvalidArgumentError(absl::StrCat("run ", i, ": rate ", rates[i], " is not between 0 and 1"));
    }
    sum += internal::Weight(runs[i]) * rates[i];
  }
  return sum;
}

}  // namespace tamis
