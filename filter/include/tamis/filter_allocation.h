// How many filter bits per key each sorted run gets: pure functions, usable on their own, thread-safe, touching nothing but arguments.
//
//   const tamis::FilterCurve curve = tamis::CurveOf(tamis::FilterKind::kBlockedBloom).value();
//   const std::vector<tamis::FilterRun> runs = {{.keys = 100'000, .curve = curve}, {.keys = 1'000'000, .curve = curve}};
//   const tamis::FilterPlan plan = tamis::OptimalAllocation(runs, {.bits = tamis::BudgetBits(runs, 10)}).value();
//   // plan.runs[0].bits_per_key() == 14.875, plan.runs[1].bits_per_key() == 9.512, plan.wasted_reads == .0132 (uniform: .0193)
//
// What is minimised is R, the expected wasted reads per lookup: R = sum over runs of f c p, with f the probability that a lookup asks the
// run for a key that is not in it, c the cost of the read that follows if the filter errs, p the filter's false-positive rate. What is
// spent is the sum of keys times bits per key: headers and the rounding of each filter up to whole lines are not in it.
// Runs are usually levels (and single tables of L0), but tables of one level do as well. Units: bits, keys, probabilities, reads.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tamis/filter.h"

namespace tamis {

// One setting that a filter can have. {0, 1} is "no filter".
struct FilterSetting {
  double bits_per_key = 0;
  double rate = 1;  // false positives, 0..1
  friend bool operator==(const FilterSetting&, const FilterSetting&) = default;
};

// The settings that a run may have, "no filter" not among them (FilterRun::none_allowed). Valid: not empty; bits per key above 0, finite
// and strictly rising; rates 0 to 1. The rates need neither fall nor be convex: settings that an optimum never uses are passed over.
using FilterCurve = std::vector<FilterSetting>;

struct FilterBitsRange {
  double minimum = kMinBitsPerKey;
  double maximum = kMaxBitsPerKey;
  double step = kBitsPerKeyStep;
};

// minimum, minimum + step, ... up to maximum with their rates. InvalidArgument unless 0 < minimum <= maximum, step > 0, at most 2^16
// settings, and all rates 0 to 1.
absl::StatusOr<FilterCurve> SampleCurve(const std::function<double(double bits_per_key)>& rate, const FilterBitsRange& range = {});
// The exact rates of `kind` (fpr_model); also refuses a kind that cannot be built, with the code that FilterBuilder::Create has for it.
absl::StatusOr<FilterCurve> CurveOf(FilterKind kind, const FilterBitsRange& range = {});
// exp(-bits ln2^2): a Bloom filter without lines and with real-valued k; what closed forms assume, and no table reaches.
double ContinuousBloomRate(double bits_per_key);
// 2^(-bits / overhead): fingerprints of bits / overhead bits, in a structure that costs `overhead` times the information bound.
double FingerprintRate(double bits_per_key, double overhead);

inline constexpr uint64_t kMaxRunKeys = uint64_t{1} << 50;

struct FilterRun {
  uint64_t keys = 0;                        // distinct user keys, at most kMaxRunKeys
  double absent_probability = 1;            // f, 0..1
  double read_cost = 1;                     // c, 0 or more, finite
  absl::Span<const FilterSetting> curve{};  // not owned; runs may share it, and may differ
  bool none_allowed = true;                 // whether the run may go without a filter
  uint32_t level = 0;                       // for PerLevelAllocation only
};

// What one run gets: the share `next_keys` / keys of it (whole tables, as near as they come) has the setting `next`, the rest `setting`.
// Runs that are not divided have next_keys 0 and next == setting.
struct FilterTarget {
  FilterSetting setting;
  FilterSetting next;
  uint64_t next_keys = 0;
  double next_share = 0;  // next_keys / keys
  double bits_per_key() const { return setting.bits_per_key + next_share * (next.bits_per_key - setting.bits_per_key); }
  double rate() const { return setting.rate + next_share * (next.rate - setting.rate); }
};

struct FilterPlan {
  std::vector<FilterTarget> runs{};  // in the order of the runs given
  double wasted_reads = 0;           // R
  double bits = 0;                   // spent
  // The price: wasted reads saved by the last bit bought, or by the first that could not be afforded if none was. 0 if more bits would
  // save nothing, and in plans that no price led to (UniformAllocation, PerLevelAllocation).
  double lambda = 0;
};

struct FilterBudget {
  double bits = std::numeric_limits<double>::infinity();  // 0 or more; infinite: as much as the goal takes
  double wasted_reads_goal = 0;                           // spending stops when R is at most this; 0: spend all
};
// Average bits per key times the keys of all runs. A budget in bytes is 8.0 * bytes.
double BudgetBits(absl::Span<const FilterRun> runs, double average_bits_per_key);

// The plan with the least R among all that spend at most `budget.bits`, or, if the goal can be reached with less, the one that reaches it
// with the fewest bits. At most one run is divided. The sum of keys times bits over the targets, taken exactly, never exceeds the budget.
// A run without keys gets the setting of the fewest bits (none, if allowed) and adds nothing to R, whatever its f; so does a run
// with f or c 0. Equal gains are served in the order of the runs.
// InvalidArgument, with the run and the reason: a number is NaN, negative, infinite or out of its range; a curve is not valid; the
// runs that may not go without a filter need more than the budget.
absl::StatusOr<FilterPlan> OptimalAllocation(absl::Span<const FilterRun> runs, const FilterBudget& budget);

// The fewest bits that bring R down to `wasted_reads`: "the same wasted reads at how much memory". Errors as above; OutOfRange if the
// best settings of all runs do not reach it.
absl::StatusOr<FilterPlan> LeastMemoryFor(absl::Span<const FilterRun> runs, double wasted_reads);

// What a run would get at the price lambda (FilterPlan::lambda): the setting of least f c p + lambda keys bits, of equal ones the one of
// fewer bits. So a table can be given its bits when it is written, without a plan for the others. Total spending at the lambda of a
// plan is never above that plan's. Errors as above, and for lambda NaN or negative.
absl::StatusOr<FilterSetting> SettingAtPrice(const FilterRun& run, double lambda);

// The same bits in each run, or by FilterRun::level from a list whose last entry repeats: 0, or bits between two settings of the
// curve, then divided between them; more than the curve has are its last. Takes no account of none_allowed. Errors as above;
// InvalidArgument for an empty list and for bits that are NaN, negative or infinite.
absl::StatusOr<FilterPlan> UniformAllocation(absl::Span<const FilterRun> runs, double bits_per_key);
absl::StatusOr<FilterPlan> PerLevelAllocation(absl::Span<const FilterRun> runs, absl::Span<const double> bits_per_level);

// R of filters as they are: rates[i] (0..1) is the mean false-positive rate of run i, weighted by how its tables are asked. Runs without
// keys add nothing; their rates are checked all the same. The curves are not looked at. InvalidArgument as above, and for another number of
// rates than of runs.
absl::StatusOr<double> PredictedWastedReads(absl::Span<const FilterRun> runs, absl::Span<const double> rates);

// The exact optimum on ContinuousBloomRate: p_i = min(1, lambda keys_i / (f_i c_i)), by waterfilling. Curves are not looked at and every
// run may go without a filter. InvalidArgument as above; the budget must be finite.
struct ContinuousPlan {
  std::vector<double> bits_per_key{};
  std::vector<double> rates{};
  double wasted_reads = 0;
  double lambda = 0;  // in the units of p_i above: FilterPlan::lambda / ln2^2
};
absl::StatusOr<ContinuousPlan> ContinuousAllocation(absl::Span<const FilterRun> runs, double budget_bits);

// Sum of w ln(w / phi) in nats, both taken as shares of their sum. Infinite where phi is 0 and w is not. InvalidArgument for different
// lengths, entries that are NaN, negative or infinite, and a sum of 0.
absl::StatusOr<double> KlDivergence(absl::Span<const double> w, absl::Span<const double> phi);
// What tuning is worth, before building anything: KlDivergence of the shares of keys from the shares of f c. On the continuous curve and
// without clamps the optimum has exp(this) times fewer wasted reads than the same bits everywhere, or saves this / ln2^2 bits per key.
absl::StatusOr<double> AllocationGainNats(absl::Span<const FilterRun> runs);

// f as it is learned, for each level. `lookups` counts all lookups of the database, `probes` those that asked a table of the level,
// `misses` those of the probes for a key that the table did not hold, whatever its filter said.
struct LevelMisses {
  uint64_t lookups = 0;
  uint64_t probes = 0;
  uint64_t misses = 0;
  friend bool operator==(const LevelMisses&, const LevelMisses&) = default;
};
inline constexpr uint64_t kPriorMisses = 64;                           // as if 64 lookups had come before, all of them misses
inline constexpr uint64_t kProbesBeforeHalving = uint64_t{1} << 20;    // then the past counts half: about 2^20 probes are remembered
inline constexpr uint64_t kLookupsBeforeDropping = uint64_t{1} << 16;  // (0 + 64) / (2^16 + 64) = .00098: below the default goal

// (misses + 64) / (lookups + 64), at most 1 (several tables of L0 may miss in one lookup). 1 before the first lookup.
double AbsentProbability(const LevelMisses& level);
// The counters halved, rounded down, as often as it takes until at most 2^20 probes remain: recent lookups count more. Unchanged at or
// below.
LevelMisses Aged(LevelMisses level);
// Whether enough lookups have been seen to let the last run with a filter go without one: 2^16. (FilterRun::none_allowed.)
inline bool MayDropLastFilter(uint64_t lookups) { return lookups >= kLookupsBeforeDropping; }

}  // namespace tamis
