// What tamis/stats.h says of filters, from a version and counters: functions of their arguments.
#pragma once

#include "absl/types/span.h"
#include "engine/read/filter_ledger.h"
#include "engine/version/version.h"
#include "tamis/filter_allocation.h"
#include "tamis/stats.h"

namespace tamis::internal {

// 1 for levels of which no filter is loaded.
RateLimits RateLimitsOf(const Version& version);

// Of the last look at the counters, all of the same moment.
struct LookupsSeen {
  LevelsLookups levels;  // since opening
  uint64_t gets = 0;     // since opening
  uint64_t found = 0;
  RateLimits limits{};               // FilterLedger::Limit
  std::vector<LevelMisses> learned;  // LookupHistory
};

// Fills in the filter and point-read fields of stats->levels (one for each level of the version, with files and keys counted) and the
// totals made of them.
void AddFilterStats(const Version& version, const LookupsSeen& seen, absl::Span<const double> bits_targets, Stats* stats);

// Fills in the fill of each level's filters. Reads them all.
void MeasureFilterFill(const Version& version, Stats* stats);

}  // namespace tamis::internal
