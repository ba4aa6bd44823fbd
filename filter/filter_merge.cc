#include "tamis/filter_merge.h"

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "filter/filter_format.h"

namespace tamis {
namespace {

using internal::FilterHeader;

FilterHeader HeaderOf(const FilterView& filter) { return internal::ParseFilterHeader(filter.base() - internal::kFilterHeaderBytes); }

absl::Status Differ(absl::string_view what, uint64_t a, uint64_t b) {
  return absl::InvalidArgumentError(absl::StrCat("filters of different ", what, " cannot be merged: ", a, " and ", b));
}

absl::Status CheckMergeable(const FilterView& a, const FilterView& b) {
  if (!a.has_filter() || !b.has_filter()) return absl::InvalidArgumentError("a filter of kind none cannot be merged");
  const FilterHeader x = HeaderOf(a);
  const FilterHeader y = HeaderOf(b);
  if (x.kind != y.kind) return Differ("kinds", static_cast<uint8_t>(x.kind), static_cast<uint8_t>(y.kind));
  if (x.kind == FilterKind::kRibbon || x.kind == FilterKind::kBinaryFuse) {
    return absl::UnimplementedError("ribbon and binary fuse filters cannot be merged: their bits solve equations of all keys");
  }
  if (x.hash_id != y.hash_id) return Differ("hash ids", x.hash_id, y.hash_id);
  if (x.seed != y.seed) return Differ("seeds", x.seed, y.seed);
  if (x.prefix_rule.kind != y.prefix_rule.kind) {
    return Differ("prefix rules", static_cast<uint8_t>(x.prefix_rule.kind), static_cast<uint8_t>(y.prefix_rule.kind));
  }
  if (x.prefix_rule.argument != y.prefix_rule.argument) return Differ("prefix arguments", x.prefix_rule.argument, y.prefix_rule.argument);
  if (x.lines != y.lines) return Differ("sizes", x.lines, y.lines);
  if (x.probes != y.probes) return Differ("probes", x.probes, y.probes);
  return absl::OkStatus();
}

uint64_t SumOfKeys(uint64_t a, uint64_t b) { return a > kFilterKeysUnknown - b ? kFilterKeysUnknown : a + b; }

template <typename Combine>
absl::StatusOr<FilterBytes> Merge(const FilterView& a, const FilterView& b, const FilterOwner& owner, uint64_t keys,
                                  const Combine& combine) {
  FilterHeader header = HeaderOf(a);
  header.owner = owner;
  header.keys = keys;
  absl::StatusOr<FilterBytes> bytes = internal::AllocateFilter(internal::FilterBodyLines(header));
  if (!bytes.ok()) return bytes.status();
  const size_t size = bytes->size() - internal::kFilterHeaderBytes;
  auto* out = reinterpret_cast<unsigned char*>(bytes->data()) + internal::kFilterHeaderBytes;
  const unsigned char* in_a = a.base();
  const unsigned char* in_b = b.base();
  for (size_t i = 0; i < size; ++i) out[i] = combine(in_a[i], in_b[i]);
  internal::SealFilter(header, bytes->data(), bytes->size());
  return bytes;
}

// Of the bits of one unit (line, block) that `keys` keys a unit leave unset, the keys being Poisson: the mean share, the variance of the
// share, and the slope of -ln(mean) by keys.
struct UnitModel {
  double unset;
  double variance;
  double slope;
};

UnitModel ModelOfLine(double keys, double bits, double probes) {
  const double slope = -std::expm1(probes * std::log1p(-1 / bits));
  const double one = std::exp(-keys * slope);
  const double pair = std::exp(keys * std::expm1(probes * std::log1p(-2 / bits)));
  return {one, (one + (bits - 1) * pair) / bits - one * one, slope};
}

// Eight words of 32 bits, one bit a key in each: two bits of one word are never set by the same key, those of two words independently.
UnitModel ModelOfSplitBlock(double keys) {
  const double one = std::exp(-keys / 32);
  const double same_word = std::exp(-keys * 2 / 32);
  const double other_word = std::exp(-keys * (1 - 31.0 / 32 * 31 / 32));
  return {one, (one + 31 * same_word + 224 * other_word) / 256 - one * one, 1.0 / 32};
}

}  // namespace

absl::StatusOr<FilterBytes> UnionFilters(const FilterView& a, const FilterView& b, const FilterOwner& owner) {
  if (absl::Status s = CheckMergeable(a, b); !s.ok()) return s;
  const uint64_t keys = SumOfKeys(HeaderOf(a).keys, HeaderOf(b).keys);
  return Merge(a, b, owner, keys, [](unsigned char x, unsigned char y) { return static_cast<unsigned char>(x | y); });
}

absl::StatusOr<FilterBytes> IntersectFiltersHint(const FilterView& a, const FilterView& b, const FilterOwner& owner) {
  if (absl::Status s = CheckMergeable(a, b); !s.ok()) return s;
  return Merge(a, b, owner, kFilterKeysUnknown, [](unsigned char x, unsigned char y) { return static_cast<unsigned char>(x & y); });
}

absl::StatusOr<FilterKeyEstimate> EstimateFilterKeys(const FilterView& filter) {
  if (!filter.has_filter()) return absl::InvalidArgumentError("a filter of kind none holds no keys to estimate");
  if (filter.kind() == FilterKind::kRibbon) return absl::UnimplementedError("half of a ribbon filter's bits are set whatever it holds");
  if (filter.kind() == FilterKind::kBinaryFuse) {
    return absl::UnimplementedError("the set bits of a binary fuse filter are a matter of chance: they do not tell the number of keys");
  }
  const double fill = filter.MeasuredFill();
  if (fill >= 1) return absl::OutOfRangeError("every bit of the filter is set: any number of keys from some on");
  const double hits = -std::log1p(-fill);  // -ln of the unset share
  const FilterHeader header = HeaderOf(filter);
  const auto units = static_cast<double>(header.lines);
  if (header.kind == FilterKind::kClassicBloom) {
    // n = -(m / k) ln(1 - X / m); the variance of X / m for n given is (e^-h - (1 + h) e^-2h) / m with h = k n / m.
    const double variance = std::exp(-hits) - (1 + hits) * std::exp(-2 * hits);
    return FilterKeyEstimate{units / header.probes * hits, std::sqrt(std::max(0.0, variance) * units) * std::exp(hits) / header.probes};
  }
  const bool split = header.kind == FilterKind::kSplitBlockBloom;
  const double per_unit = split ? hits * 32 : hits / ModelOfLine(0, 512, header.probes).slope;
  const UnitModel unit = split ? ModelOfSplitBlock(per_unit) : ModelOfLine(per_unit, 512, header.probes);
  // The model's keys are Poisson, those of a filter are given: their own variance, n, is not an error of the estimate.
  const double variance = unit.variance * units / (unit.slope * unit.slope * unit.unset * unit.unset) - per_unit * units;
  return FilterKeyEstimate{per_unit * units, std::sqrt(std::max(0.0, variance))};
}

}  // namespace tamis
