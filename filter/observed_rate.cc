// The interval of a rate from counts in groups.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tamis/filter_observed.h"

namespace tamis {
namespace {

using Groups = std::array<uint64_t, kHashGroups>;

// Student's t, 63 degrees of freedom: P(T < q) = .975 and 1 - 10^-5.
constexpr double kTwoSided95 = 1.9983;
constexpr double kOneIn100000 = 4.6126;

double Sum(const Groups& counts) { return std::accumulate(counts.begin(), counts.end(), 0.0); }

// Variance over mean of independent counts in the groups: 1 if they are Poisson's, w if every event comes w times.
double Dispersion(const Groups& counts) {
  const double mean = Sum(counts) / kHashGroups;
  if (mean == 0) return 0;
  double squares = 0;
  for (const uint64_t count : counts) squares += (static_cast<double>(count) - mean) * (static_cast<double>(count) - mean);
  return squares / (kHashGroups - 1) / mean;
}

// Byar's limits of the mean of a Poisson count (which need not be whole: a count divided by its dispersion).
double ByarLower(double count, double quantile) {
  if (count <= 0) return 0;
  const double root = 1 - 1 / (9 * count) - quantile / (3 * std::sqrt(count));
  return root <= 0 ? 0 : count * root * root * root;
}

double ByarUpper(double count, double quantile) {
  const double next = count + 1;
  const double root = 1 - 1 / (9 * next) + quantile / (3 * std::sqrt(next));
  return next * root * root * root;
}

struct Totals {
  double asked = 0;
  double errors = 0;
  Groups asked_by_group{};

  explicit Totals(const FilterOutcomes& outcomes) {
    for (size_t i = 0; i < kHashGroups; ++i) asked_by_group[i] = outcomes.skipped[i] + outcomes.false_positives[i];
    asked = Sum(asked_by_group);
    errors = Sum(outcomes.false_positives);
  }
  double rate() const { return errors / asked; }
  // A count out of `asked` has the variance of a binomial, 1 - rate times Poisson's; at rates near 1 that is nothing.
  double LeastDispersion() const { return std::max(1 - rate(), 1 / asked); }
};

double UpperLimit(const FilterOutcomes& outcomes, const Totals& totals, double quantile) {
  // How far the errors of each group are from their share of the lookups.
  double squares = 0;
  for (size_t i = 0; i < kHashGroups; ++i) {
    const double off = static_cast<double>(outcomes.false_positives[i]) - totals.rate() * static_cast<double>(totals.asked_by_group[i]);
    squares += off * off;
  }
  const double residual = totals.errors == 0 ? 0 : squares * kHashGroups / (kHashGroups - 1) / totals.errors;
  const double repeated = totals.LeastDispersion() * Dispersion(totals.asked_by_group);
  const double dispersion = std::max({totals.LeastDispersion(), residual, repeated});
  return std::min(1.0, dispersion * ByarUpper(totals.errors / dispersion, quantile) / totals.asked);
}

double LowerLimit(const FilterOutcomes& outcomes, const Totals& totals, double quantile) {
  if (totals.errors == 0) return 0;
  if (totals.rate() > .5) {
    // Poisson's are the limits of something rare: here, of what was skipped.
    const FilterOutcomes others{.skipped = outcomes.false_positives, .false_positives = outcomes.skipped};
    return 1 - UpperLimit(others, Totals(others), quantile);
  }
  const double dispersion = std::max(totals.LeastDispersion(), (1 - totals.rate()) * Dispersion(outcomes.false_positives));
  return std::min(totals.rate(), dispersion * ByarLower(totals.errors / dispersion, quantile) / totals.asked);
}

}  // namespace

ObservedRate ObserveRate(const FilterOutcomes& outcomes) {
  ObservedRate observed;
  const Totals totals(outcomes);
  if (totals.asked == 0) return observed;
  for (size_t i = 0; i < kHashGroups; ++i) {
    observed.asked += totals.asked_by_group[i];
    observed.false_positives += outcomes.false_positives[i];
  }
  observed.rate = totals.rate();
  observed.lower = LowerLimit(outcomes, totals, kTwoSided95);
  observed.upper = std::max(observed.rate, UpperLimit(outcomes, totals, kTwoSided95));
  return observed;
}

bool AbovePrediction(const FilterOutcomes& outcomes, double predicted) {
  const Totals totals(outcomes);
  return totals.asked != 0 && LowerLimit(outcomes, totals, kOneIn100000) > predicted;
}

}  // namespace tamis
