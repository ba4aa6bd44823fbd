// What can be said without a curve: the optimum on exp(-b ln2^2), and what tuning is worth.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "filter/allocation_hull.h"
#include "tamis/filter_allocation.h"

namespace tamis {
namespace {

constexpr double kLn2 = 0.693147180559945309417;
constexpr double kLn2Squared = kLn2 * kLn2;

absl::StatusOr<double> SumOfShares(absl::Span<const double> values, const char* what) {
  double sum = 0;
  for (const double value : values) {
    if (!(value >= 0 && std::isfinite(value))) {
      return absl::InvalidArgumentError(absl::StrCat(what, " ", value, " is negative or not finite"));
    }
    sum += value;
  }
  if (!(sum > 0 && std::isfinite(sum))) return absl::InvalidArgumentError(absl::StrCat("the sum of each ", what, " is ", sum));
  return sum;
}

}  // namespace

// Stationarity of sum f c p + mu sum n b, with p = exp(-b ln2^2), is p = lambda n / (f c); a run whose f c / n is at most lambda gets none
// (p = 1). If the runs above lambda are known, their bits
//     sum n (ln(f c / n) - ln lambda) / ln2^2 = budget
// give ln lambda; and they are the first ones in the order of f c / n: as many as keep theirs above the lambda that results.
absl::StatusOr<ContinuousPlan> ContinuousAllocation(absl::Span<const FilterRun> runs, double budget_bits) {
  if (!(budget_bits >= 0 && std::isfinite(budget_bits))) {
    return absl::InvalidArgumentError(absl::StrCat("budget of ", budget_bits, " bits is negative or not finite"));
  }
  std::vector<double> log_value(runs.size());  // ln(f c / n)
  std::vector<size_t> order;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (absl::Status s = internal::CheckRun(runs[i], i); !s.ok()) return s;
    if (internal::Weight(runs[i]) == 0) continue;
    log_value[i] = std::log(internal::Weight(runs[i])) - std::log(static_cast<double>(runs[i].keys));
    order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return log_value[a] > log_value[b]; });
  ContinuousPlan plan{.bits_per_key = std::vector<double>(runs.size(), 0), .rates = std::vector<double>(runs.size(), 1)};
  double keys = 0;
  double sum = 0;  // of n ln(f c / n)
  double log_lambda = 0;
  for (const size_t i : order) {
    if (keys > 0 && log_value[i] <= log_lambda) break;
    keys += static_cast<double>(runs[i].keys);
    sum += static_cast<double>(runs[i].keys) * log_value[i];
    log_lambda = (sum - budget_bits * kLn2Squared) / keys;
  }
  if (keys > 0) plan.lambda = std::exp(log_lambda);
  for (const size_t i : order) {
    plan.bits_per_key[i] = std::max(0.0, (log_value[i] - log_lambda) / kLn2Squared);
    plan.rates[i] = ContinuousBloomRate(plan.bits_per_key[i]);
    plan.wasted_reads += internal::Weight(runs[i]) * plan.rates[i];
  }
  return plan;
}

absl::StatusOr<double> KlDivergence(absl::Span<const double> w, absl::Span<const double> phi) {
  if (w.size() != phi.size()) return absl::InvalidArgumentError(absl::StrCat("shares of ", w.size(), " and of ", phi.size(), " parts"));
  const absl::StatusOr<double> w_sum = SumOfShares(w, "share of keys");
  if (!w_sum.ok()) return w_sum.status();
  const absl::StatusOr<double> phi_sum = SumOfShares(phi, "share of wasted reads");
  if (!phi_sum.ok()) return phi_sum.status();
  double sum = 0;
  for (size_t i = 0; i < w.size(); ++i) {
    if (w[i] == 0) continue;
    if (phi[i] == 0) return std::numeric_limits<double>::infinity();
    sum += w[i] / *w_sum * (std::log(w[i] / *w_sum) - std::log(phi[i] / *phi_sum));
  }
  return std::max(0.0, sum);  // never negative but by rounding
}

absl::StatusOr<double> AllocationGainNats(absl::Span<const FilterRun> runs) {
  std::vector<double> keys;
  std::vector<double> weights;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (absl::Status s = internal::CheckRun(runs[i], i); !s.ok()) return s;
    keys.push_back(static_cast<double>(runs[i].keys));
    weights.push_back(internal::Weight(runs[i]));
  }
  return KlDivergence(keys, weights);
}

}  // namespace tamis
