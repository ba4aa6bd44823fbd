// The exact false-positive rates.
//
// kBlockedBloom. The keys of one line are Poisson with mean 512 / (bits per key). A line with i keys has had m = i k positions drawn out of
// 512, independently; s of them are distinct. An absent key is answered "maybe" if its k positions all fall on those: with probability (s /
// 512)^k. So the rate of a line is the k-th moment of s / 512 after m draws,
//     f(k, i) = M(k, i k),   M(j, m) = E[(s / 512)^j],
// and the rate of the filter is its mean over i. Nothing is approximated; in particular not (1 - e^(-k/c))^k, which is 18 % too low at 10
// bits per key and 84 % too low at 16, because it takes all lines for average ones.
//
// The moments are computed by a recursion over the draws. A draw raises s by one with probability 1 - s / B (B = 512), hence
//     E[s'^k] = (1 - k / B) E[s^k] + sum over j < k of (C(k, j) - C(k, j - 1) / B) E[s^j].
// All terms are positive, so it is exact to rounding even where the rate is 1e-20; the usual inclusion-exclusion sum cancels there to
// nothing.
//
// kSplitBlockBloom. The keys of one block are Poisson with mean 256 / (bits per key). In each of eight words of 32 bits every key sets one
// bit, independently, so a block with i keys has rate (1 - (31/32)^i)^8.
//
// kClassicBloom. With k probes the share of set bits is 1 - e^(-k/c) for any number of keys but a few, and the rate its k-th power.
//
// kBinaryFuse. A fingerprint of w bits lets 2^-w of the absent keys pass, whatever the filter holds. The steps are those of 1.203 slots a
// key, what 10^5 keys need.
//
// kRibbon. A column lets half of the absent keys pass; c' = (bits per key) / (slots per key) columns on average, which is 1 + floor for a
// part of the keys and floor for the others.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "filter/binary_fuse_builder.h"
#include "filter/filter_format.h"
#include "filter/ribbon_builder.h"
#include "filter/split_block_bloom.h"
#include "tamis/filter.h"

namespace tamis::fpr_model {
namespace {

constexpr double kLineBits = 512;
constexpr uint32_t kMaxProbes = internal::kMaxFilterProbes;
constexpr uint32_t kBuilderMaxProbes = 12;  // best at 21.18 to 24.14 bits per key

// Bits per key from which k + 1 probes beat k, k = 1..11. Derived from FalsePositiveRate below (fpr_model_test checks each), to two digits;
// part of what a builder writes, so changed only with care, though any k is readable.
constexpr std::array<double, kBuilderMaxProbes - 1> kProbeThresholds = {2.08,  3.58,  5.10,  6.67,  8.32, 10.06,
                                                                        11.92, 13.93, 16.12, 18.53, 21.18};

// The same for kClassicBloom, k = 1..16, by its own formula.
constexpr uint32_t kClassicBuilderMaxProbes = 17;  // best at 23.79 to 25.23
constexpr std::array<double, kClassicBuilderMaxProbes - 1> kClassicThresholds = {2.08,  3.56,  5.01,  6.46,  7.91,  9.36,  10.80, 12.25,
                                                                                 13.69, 15.14, 16.58, 18.02, 19.47, 20.91, 22.35, 23.80};

// f(k, i) for i k up to kDraws. After so many draws a bit is unset with probability 4e-11, and the line counts as full (error below 1e-9).
// 330 KB, built at the first use in about a millisecond.
class LineRates {
 public:
  static constexpr uint32_t kDraws = 12288;

  LineRates() {
    std::array<std::array<double, kMaxProbes + 1>, kMaxProbes + 1> step{};  // step[k][j]: coefficient of M(j, m) in M(k, m + 1)
    double binomial[kMaxProbes + 1][kMaxProbes + 1] = {};
    for (uint32_t k = 0; k <= kMaxProbes; ++k) {
      binomial[k][0] = 1;
      for (uint32_t j = 1; j <= k; ++j) binomial[k][j] = binomial[k - 1][j - 1] + (j < k ? binomial[k - 1][j] : 0);
      for (uint32_t j = 0; j < k; ++j) {
        const double carried = j == 0 ? 0 : binomial[k][j - 1] / kLineBits;
        step[k][j] = std::pow(kLineBits, static_cast<double>(j) - k) * (binomial[k][j] - carried);
      }
      step[k][k] = 1 - k / kLineBits;
      rates_[k].reserve(k == 0 ? 0 : kDraws / k + 1);
    }
    std::array<double, kMaxProbes + 1> moments{};
    moments[0] = 1;
    for (uint32_t m = 0; m <= kDraws; ++m) {
      for (uint32_t k = 1; k <= kMaxProbes; ++k) {
        if (m % k == 0) rates_[k].push_back(moments[k]);
      }
      for (uint32_t k = kMaxProbes; k >= 1; --k) {  // downwards: each needs the old values of those below
        double next = 0;
        for (uint32_t j = 0; j <= k; ++j) next += step[k][j] * moments[j];
        moments[k] = next;
      }
    }
  }

  double Rate(uint32_t k, uint64_t keys) const {
    const std::vector<double>& rates = rates_[k];
    return keys < rates.size() ? rates[keys] : 1;
  }

 private:
  std::array<std::vector<double>, kMaxProbes + 1> rates_;
};

const LineRates& Rates() {
  static const LineRates rates;
  return rates;
}

// std::lgamma stores the sign in a global variable, a race between the threads that write tables.
double LogGamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

// The mean of rate(i) over i keys, Poisson with the given mean. `rate` is at most one.
template <typename Rate>
double PoissonMean(double mean, const Rate& rate) {
  if (!(mean < 1e5)) return 1;  // so full that no bit is unset
  // From the mode outwards, each way until nothing can be added: a rate is at most one, so what remains is at most a few times the weight.
  const uint64_t mode = static_cast<uint64_t>(mean);
  const double top = std::exp(-mean + static_cast<double>(mode) * std::log(mean) - LogGamma(static_cast<double>(mode) + 1));
  double sum = 0;
  double weight = top;
  for (uint64_t i = mode; i > 0 && weight > 1e-18 * top; --i) {
    sum += weight * rate(i);
    weight *= static_cast<double>(i) / mean;
  }
  weight = top;
  for (uint64_t i = mode + 1;; ++i) {
    weight *= mean / static_cast<double>(i);
    sum += weight * rate(i);
    if (weight < 1e-17 * sum || weight == 0) break;
  }
  return std::min(1.0, sum);
}

double BlockedBloomRate(double bits_per_key, uint32_t probes) {
  const LineRates& rates = Rates();
  return PoissonMean(kLineBits / bits_per_key, [&](uint64_t keys) { return rates.Rate(probes, keys); });
}

double SplitBlockRateOf(uint64_t keys) {
  static const double missed = std::log1p(-1.0 / 32);
  return std::pow(-std::expm1(static_cast<double>(keys) * missed), internal::kSplitBlockProbes);
}

double SplitBlockRate(double bits_per_key) { return PoissonMean(internal::kSplitBlockBytes * 8 / bits_per_key, SplitBlockRateOf); }

// Variance of the mean rate of `units` lines or blocks, their keys Poisson with mean `keys` each. That the sum of the keys is known makes it
// less, that lines with as many keys differ in their bits makes it more: between .15 and .25 of this is left at 4 to 10 bits per key.
template <typename Rate>
double VarianceOfUnits(double keys, double units, const Rate& rate) {
  const double mean = PoissonMean(keys, rate);
  const double square = PoissonMean(keys, [&](uint64_t i) { return rate(i) * rate(i); });
  return std::max(0.0, square - mean * mean) / units;
}

// The width that the builder would choose for many keys; 0: it makes a filter of kind kBlockedBloom instead.
uint32_t FuseWidth(double bits_per_key) {
  if (bits_per_key >= 16 * internal::kFuseSlotsPerKey) return 16;
  return bits_per_key >= 8 * internal::kFuseSlotsPerKey ? 8 : 0;
}

double RibbonColumns(double bits_per_key) { return bits_per_key / internal::kRibbonSlotsPerKey; }

double RibbonRate(double bits_per_key) {
  const double columns = RibbonColumns(bits_per_key);
  const double upper = std::ceil(columns);
  return std::exp2(-upper) * (1 + upper - columns);
}

// Rates at each step of bits per key from 1 on, with the probes that the builder would choose.
class StepRates {
 public:
  explicit StepRates(FilterKind kind) : first_(static_cast<uint32_t>(internal::MinBitsPerKey(kind) / kBitsPerKeyStep)) {
    for (uint32_t e = first_; e <= kLast; ++e) rates_.push_back(FalsePositiveRate(kind, e * kBitsPerKeyStep));
  }

  // 0 if no step reaches the rate.
  double BitsFor(double rate) const {
    const auto first = std::find_if(rates_.begin(), rates_.end(), [rate](double r) { return r <= rate; });
    return first == rates_.end() ? 0 : static_cast<double>(first - rates_.begin() + first_) * kBitsPerKeyStep;
  }

 private:
  static constexpr uint32_t kLast = static_cast<uint32_t>(kMaxBitsPerKey / kBitsPerKeyStep);
  uint32_t first_;
  std::vector<double> rates_;
};

// REQUIRES: a kind that can be built.
const StepRates& StepRatesOf(FilterKind kind) {
  static const std::array<StepRates, 5> steps = {StepRates(FilterKind::kBlockedBloom), StepRates(FilterKind::kSplitBlockBloom),
                                                 StepRates(FilterKind::kClassicBloom), StepRates(FilterKind::kRibbon),
                                                 StepRates(FilterKind::kBinaryFuse)};
  return steps[static_cast<size_t>(kind) - 1];
}

template <size_t kSize>
uint32_t ProbesFor(const std::array<double, kSize>& thresholds, double bits_per_key) {
  return 1 + static_cast<uint32_t>(std::upper_bound(thresholds.begin(), thresholds.end(), bits_per_key) - thresholds.begin());
}

}  // namespace

double FalsePositiveRate(FilterKind kind, double bits_per_key, uint32_t probes) {
  if (!(bits_per_key > 0) || probes == 0) return 1;
  switch (kind) {
    case FilterKind::kBlockedBloom:
      return BlockedBloomRate(bits_per_key, std::min(probes, kMaxProbes));
    case FilterKind::kSplitBlockBloom:
      return SplitBlockRate(bits_per_key);
    case FilterKind::kClassicBloom:
      return std::pow(-std::expm1(-static_cast<double>(probes) / bits_per_key), probes);
    case FilterKind::kRibbon:
      return RibbonRate(bits_per_key);
    case FilterKind::kBinaryFuse:
      if (FuseWidth(bits_per_key) == 0) return BlockedBloomRate(bits_per_key, std::min(probes, kMaxProbes));
      return std::ldexp(1.0, -static_cast<int>(FuseWidth(bits_per_key)));
    case FilterKind::kNone:
      break;
  }
  return 1;  // what is not modelled filters nothing
}

double FalsePositiveRate(FilterKind kind, double bits_per_key) {
  return FalsePositiveRate(kind, bits_per_key, BestProbes(kind, bits_per_key));
}

uint32_t BestProbes(FilterKind kind, double bits_per_key) {
  switch (kind) {
    case FilterKind::kBlockedBloom:
      return ProbesFor(kProbeThresholds, bits_per_key);
    case FilterKind::kSplitBlockBloom:
      return internal::kSplitBlockProbes;
    case FilterKind::kClassicBloom:
      return ProbesFor(kClassicThresholds, bits_per_key);
    case FilterKind::kRibbon:
      // Clamped first, and so that NaN gives one: the conversion of a double that is out of range is not defined.
      if (!(RibbonColumns(bits_per_key) > 1)) return 1;
      return static_cast<uint32_t>(std::ceil(std::min(RibbonColumns(bits_per_key), double{internal::kMaxRibbonColumns})));
    case FilterKind::kBinaryFuse:
      return FuseWidth(bits_per_key) != 0 ? FuseWidth(bits_per_key) : ProbesFor(kProbeThresholds, bits_per_key);
    case FilterKind::kNone:
      break;
  }
  return 0;
}

absl::StatusOr<double> BitsForRate(FilterKind kind, double rate) {
  if (!(rate > 0 && rate < 1)) return absl::InvalidArgumentError(absl::StrCat("false-positive rate ", rate, " is not between 0 and 1"));
  if (absl::Status s = internal::CheckFilterKind(kind); !s.ok()) return s;
  const double bits = StepRatesOf(kind).BitsFor(rate);
  if (bits == 0) {
    return absl::OutOfRangeError(absl::StrCat("no filter of up to ", kMaxBitsPerKey, " bits per key reaches a rate of ", rate));
  }
  return bits;
}

double ExpectedFill(FilterKind kind, double bits_per_key, uint32_t probes) {
  if (!(bits_per_key > 0)) return 0;
  switch (kind) {
    case FilterKind::kBlockedBloom:
      // The mean over the Poisson occupancy of 1 - (1 - 1/512)^(k i), in closed form.
      return -std::expm1(-kLineBits / bits_per_key * -std::expm1(probes * std::log1p(-1 / kLineBits)));
    case FilterKind::kSplitBlockBloom:
      return -std::expm1(-double{internal::kSplitBlockProbes} / bits_per_key);
    case FilterKind::kClassicBloom:
      return -std::expm1(-static_cast<double>(probes) / bits_per_key);
    case FilterKind::kRibbon:
      return .5 / internal::kRibbonSlotsPerKey;
    case FilterKind::kBinaryFuse:
      // Half of the bits of the slots that are some key's own; the others are zero.
      if (FuseWidth(bits_per_key) == 0) return ExpectedFill(FilterKind::kBlockedBloom, bits_per_key, probes);
      return .5 * FuseWidth(bits_per_key) / bits_per_key;
    case FilterKind::kNone:
      break;
  }
  return 0;
}

FilterKind BuiltKind(FilterKind kind, uint64_t keys, double bits_per_key) {
  const absl::StatusOr<uint32_t> eighths = internal::BitsPerKeyEighths(kind, bits_per_key);
  if (!eighths.ok()) return kind;
  if (kind == FilterKind::kRibbon && keys < internal::kMinRibbonKeys) return FilterKind::kBlockedBloom;
  if (kind == FilterKind::kBinaryFuse && !internal::FuseShapeWithin(keys, *eighths)) return FilterKind::kBlockedBloom;
  return kind;
}

double RateDeviation(const FilterInfo& info) {
  const double rate = info.predicted_fpr;
  if (rate <= 0 || rate >= 1 || !(info.bits_per_key > 0)) return 0;
  switch (info.kind) {
    case FilterKind::kBlockedBloom: {
      const LineRates& rates = Rates();
      const uint32_t probes = std::min(info.probes, kMaxProbes);
      return std::sqrt(VarianceOfUnits(kLineBits / info.bits_per_key, static_cast<double>(info.lines),
                                       [&](uint64_t keys) { return rates.Rate(probes, keys); }));
    }
    case FilterKind::kSplitBlockBloom: {
      constexpr double kBlockBits = internal::kSplitBlockBytes * 8;
      return std::sqrt(VarianceOfUnits(kBlockBits / info.bits_per_key, static_cast<double>(info.bits) / kBlockBits, SplitBlockRateOf));
    }
    case FilterKind::kClassicBloom: {
      // The fill varies by sqrt((e^-h - (1 + h) e^-2h) / bits) with h = k / c; the rate is its k-th power.
      const double h = info.probes / info.bits_per_key;
      const double fill = std::sqrt(std::max(0.0, std::exp(-h) - (1 + h) * std::exp(-2 * h)) / static_cast<double>(info.bits));
      return rate * info.probes * fill / -std::expm1(-h);
    }
    case FilterKind::kRibbon:
    case FilterKind::kBinaryFuse:
      // The rate does not depend on the keys; what is left is not modelled, and less than if each key were a unit of its own.
      return rate / std::sqrt(static_cast<double>(info.keys));
    case FilterKind::kNone:
      break;
  }
  return 0;
}

absl::StatusOr<uint64_t> SizeBytes(FilterKind kind, uint64_t keys, double bits_per_key) {
  if (kind == FilterKind::kNone) return uint64_t{0};
  if (absl::Status s = internal::CheckFilterKind(kind); !s.ok()) return s;
  absl::StatusOr<uint32_t> eighths = internal::BitsPerKeyEighths(kind, bits_per_key);
  if (!eighths.ok()) return eighths.status();
  if (kind == FilterKind::kRibbon && keys < internal::kMinRibbonKeys) *eighths = internal::RibbonFallbackEighths(*eighths);
  uint64_t lines = internal::FilterLinesFor(keys, *eighths);
  if (kind == FilterKind::kBinaryFuse) {
    if (const auto shape = internal::FuseShapeWithin(keys, *eighths)) lines = shape->lines();
  }
  bool possible = lines <= internal::kMaxFilterLines;
  if (kind == FilterKind::kSplitBlockBloom) {
    const uint64_t blocks = internal::SplitBlocksFor(keys, *eighths);
    possible = blocks <= internal::kMaxSplitBlocks;
    lines = (blocks + 1) / 2;
  }
  if (!possible) {
    const std::string_view name = FilterKindName(kind);
    return absl::InvalidArgumentError(absl::StrCat("a filter of kind ", absl::string_view(name.data(), name.size()), " for ", keys,
                                                   " keys of ", bits_per_key, " bits would pass the limit of its size"));
  }
  return internal::kFilterHeaderBytes + lines * internal::kFilterLineBytes;
}

}  // namespace tamis::fpr_model
