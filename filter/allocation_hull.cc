#include "filter/allocation_hull.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace tamis::internal {

absl::Status CheckNotNegative(const char* what, double value) {
  // Written so that NaN fails it.
  if (value >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " ", value, " is negative or not a number"));
}

absl::Status CheckRun(const FilterRun& run, size_t index) {
  if (run.keys > kMaxRunKeys) {
    return absl::InvalidArgumentError(absl::StrCat("run ", index, ": ", run.keys, " keys are more than 2^50"));
  }
  if (!(run.absent_probability >= 0 && run.absent_probability <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat("run ", index, ": probability ", run.absent_probability, " is not between 0 and 1"));
  }
  if (!(run.read_cost >= 0 && std::isfinite(run.read_cost))) {
    return absl::InvalidArgumentError(absl::StrCat("run ", index, ": read cost ", run.read_cost, " is negative or not finite"));
  }
  return absl::OkStatus();
}

absl::Status CheckCurve(absl::Span<const FilterSetting> curve, size_t index) {
  if (curve.empty()) return absl::InvalidArgumentError(absl::StrCat("run ", index, ": the curve is empty"));
  double last = 0;
  for (const FilterSetting& at : curve) {
    if (!(at.bits_per_key > 0 && std::isfinite(at.bits_per_key))) {
      return absl::InvalidArgumentError(
          absl::StrCat("run ", index, ": the curve has ", at.bits_per_key, " bits per key, not a finite number above 0"));
    }
    if (at.bits_per_key <= last) {
      return absl::InvalidArgumentError(
          absl::StrCat("run ", index, ": the curve is not sorted: ", at.bits_per_key, " bits per key after ", last));
    }
    if (!(at.rate >= 0 && at.rate <= 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat("run ", index, ": rate ", at.rate, " at ", at.bits_per_key, " bits per key is not between 0 and 1"));
    }
    last = at.bits_per_key;
  }
  return absl::OkStatus();
}

absl::Status CheckRuns(absl::Span<const FilterRun> runs) {
  const FilterRun* checked = nullptr;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (absl::Status s = CheckRun(runs[i], i); !s.ok()) return s;
    // Thousands of runs share one curve.
    const absl::Span<const FilterSetting> curve = runs[i].curve;
    if (checked != nullptr && curve.data() == checked->curve.data() && curve.size() == checked->curve.size()) continue;
    if (absl::Status s = CheckCurve(curve, i); !s.ok()) return s;
    checked = &runs[i];
  }
  return absl::OkStatus();
}

FilterCurve LowerHull(absl::Span<const FilterSetting> curve, bool with_none) {
  FilterCurve hull;
  hull.reserve(curve.size() + 1);
  const auto add = [&hull](const FilterSetting& at) {
    while (hull.size() >= 2) {
      const FilterSetting& a = hull[hull.size() - 2];
      const FilterSetting& b = hull.back();
      const double slope_ab = (b.rate - a.rate) * (at.bits_per_key - a.bits_per_key);
      if (slope_ab < (at.rate - a.rate) * (b.bits_per_key - a.bits_per_key)) break;
      hull.pop_back();  // b lies on or above the line from a to `at`
    }
    if (hull.empty() || at.rate < hull.back().rate) hull.push_back(at);
  };
  if (with_none) add({});
  for (const FilterSetting& at : curve) add(at);
  return hull;
}

void SumUp(absl::Span<const FilterRun> runs, FilterPlan* plan) {
  BitSum bits = 0;
  plan->wasted_reads = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    bits += BitsOf(runs[i].keys, plan->runs[i]);
    plan->wasted_reads += Weight(runs[i]) * plan->runs[i].rate();
  }
  plan->bits = static_cast<double>(bits);
}

}  // namespace tamis::internal
