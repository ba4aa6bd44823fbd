#include "engine/compact/filter_budget.h"

#include <algorithm>

namespace tamis::internal {

std::vector<double> AllocateFilterBits(const FilterOptions& options, const std::vector<RunSize>& runs) {
  std::vector<double> bits;
  bits.reserve(runs.size());
  for (const RunSize& run : runs) {
    double wanted = options.bits_per_key;
    if (options.kind == FilterKind::kNone) {
      wanted = 0;
    } else if (options.allocation == FilterAllocation::kPerLevel && !options.bits_per_level.empty()) {
      wanted = options.bits_per_level[std::min<size_t>(run.level, options.bits_per_level.size() - 1)];
    }
    bits.push_back(wanted);
  }
  return bits;
}

}  // namespace tamis::internal
