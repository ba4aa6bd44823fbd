// How many filter bits per key a new table gets: pure, from the settings and the sizes of all runs as they will be after the job.
#pragma once

#include <cstdint>
#include <vector>

#include "tamis/filter_options.h"

namespace tamis::internal {

struct RunSize {
  uint32_t level = 0;
  uint64_t keys = 0;
};

// Bits per key for each run (0: no filter). kUniform and kPerLevel look at the level only; the sizes are what an allocation that divides
// a budget over the runs needs.
std::vector<double> AllocateFilterBits(const FilterOptions& options, const std::vector<RunSize>& runs);

inline double FilterBitsForLevel(const FilterOptions& options, uint32_t level) {
  return AllocateFilterBits(options, {{.level = level, .keys = 1}})[0];
}

}  // namespace tamis::internal
