// The f of each level, from counters.
#include <algorithm>

#include "tamis/filter_allocation.h"

namespace tamis {

double AbsentProbability(const LevelMisses& level) {
  // In doubles: counters of any size add without overflow.
  const double misses = static_cast<double>(level.misses) + static_cast<double>(kPriorMisses);
  const double lookups = static_cast<double>(level.lookups) + static_cast<double>(kPriorMisses);
  return std::min(1.0, misses / lookups);
}

LevelMisses Aged(LevelMisses level) {
  while (level.probes > kProbesBeforeHalving) {
    level.lookups /= 2;
    level.probes /= 2;
    level.misses /= 2;
  }
  return level;
}

}  // namespace tamis
