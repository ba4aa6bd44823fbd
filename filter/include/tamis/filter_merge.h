// Filters put together and counted: works on bits, needs no keys. All functions are thread-safe; each reads its filters whole.
#pragma once

#include "absl/status/statusor.h"
#include "tamis/filter.h"

namespace tamis {

// The filter of all keys of `a` and `b`, bit for bit what one builder with the same lines and probes would have made of them. Only of equal
// parameters: kind, hash id, seed, prefix rule, size in bits and probes; InvalidArgument names the one that differs. Unimplemented for
// kRibbon and kBinaryFuse, whose bits are solutions of equations and do not add up; InvalidArgument for kind none. ResourceExhausted
// without memory. Its number of keys is the sum of the two, so an upper bound (kFilterKeysUnknown if one is that). Its owner is `owner`.
absl::StatusOr<FilterBytes> UnionFilters(const FilterView& a, const FilterView& b, const FilterOwner& owner = {});

// A HINT, not the filter of the keys in both: "certainly not" is right for every key that is missing in one of them and has been so
// answered by that one, and no key of both is lost, but it has more false positives than a filter built from the common keys. Same
// conditions as UnionFilters. The number of keys is kFilterKeysUnknown.
absl::StatusOr<FilterBytes> IntersectFiltersHint(const FilterView& a, const FilterView& b, const FilterOwner& owner = {});

// The number of distinct hashes in a filter as its share of set bits tells it.
struct FilterKeyEstimate {
  double keys = 0;
  double standard_error = 0;
};
// Unimplemented for kRibbon and kBinaryFuse (their bits are set by chance); InvalidArgument for kind none; OutOfRange if every bit is set.
absl::StatusOr<FilterKeyEstimate> EstimateFilterKeys(const FilterView& filter);

}  // namespace tamis
