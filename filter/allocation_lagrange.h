// The optimum by another way, which shares neither the hull nor the heap with OptimalAllocation: the tests hold each to the other.
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tamis/filter_allocation.h"

namespace tamis::internal {

// At a price for a bit each run takes the setting of its whole curve with the least f c p + lambda keys bits, on its own. The price is
// bisected; the plan is the one on the side that keeps to the budget, undivided. Errors as OptimalAllocation; `budget_bits` finite.
absl::StatusOr<FilterPlan> LagrangianAllocation(absl::Span<const FilterRun> runs, double budget_bits);

}  // namespace tamis::internal
