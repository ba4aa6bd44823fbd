// Which filters a workload should have: what `advise` says. Pure.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "tamis/filter_options.h"
#include "tools/filter_workload.h"

namespace tamis::tools {

struct LookupCosts {
  double read_us = 2;    // a read for nothing; a block that the page cache has: system call, checksum, decompression, search
  double probe_ns = 10;  // a blocked filter asked; ribbon is reckoned at kRibbonProbes times as much
};
inline constexpr double kRibbonProbes = 4;  // 10^6 keys: 30 to 44 ns where blocked Bloom takes 8 (filter/README.md)

// Below this, filters do not matter beside a block cache and memtables of the usual size, and ribbon is not advised.
inline constexpr double kRibbonSavesBytesMin = 64.0 * (1 << 20);
inline constexpr double kRibbonAbsentMax = .5;     // f of the last level from which its filter is asked in vain too often for ribbon
inline constexpr double kRibbonTimeShareMax = .1;  // of the time that filters save, the most that ribbon may take

// Of a choice of filters, on average.
struct FilterOutcome {
  double bytes = 0;
  double bits_per_key = 0;
  double wasted_reads = 0;  // a lookup
  double micros = 0;        // a lookup: wasted reads and filters asked; the read that finds the key is not in it
};

enum class AdviceCase {
  kNoKeys,       // nothing to say
  kNoFilters,    // filters would take the time that they save, or more
  kUpperLevels,  // the last level, nearly always asked for what it has, goes without
  kAllLevels,
};

struct Advice {
  AdviceCase which = AdviceCase::kNoKeys;
  FilterOptions options;             // what is advised
  std::vector<FilterTarget> runs{};  // what it gives each run
  FilterOutcome none;
  FilterOutcome now;
  FilterOutcome same_memory;  // the memory there is now, divided best
  FilterOutcome advised;
  // Both unless the last level has no filter: the same goal with ribbon there, which is advised if options.last_level_kind is set, and
  // with blocked Bloom everywhere, which is advised otherwise.
  std::optional<FilterOutcome> ribbon{};
  std::optional<FilterOutcome> blocked{};
  bool keep = false;  // what there is now takes at most 5 % more time and 10 % more memory
};

// Bits are spent until the wasted reads left take less time than asking all filters does; or, if what there is now has fewer wasted reads,
// until there are as few, but no fewer than a tenth of the former: filters that are there for nothing are no reason to keep them.
// InvalidArgument for costs that are not above 0 and finite.
absl::StatusOr<Advice> Advise(const Workload& workload, const LookupCosts& costs);

}  // namespace tamis::tools
