// The part of bench/level_rates that measures RocksDB.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tamis::bench {

struct PeerTree {
  uint64_t keys = 0;
  uint32_t levels = 4;
  double bits_per_key = 10;
  bool for_hits = false;  // optimize_filters_for_hits: none in the last level
};

struct PeerRates {
  double absent_percent = 0;
  uint32_t levels = 0;      // populated, as they came about
  double bits_per_key = 0;  // filter blocks of all tables, over all their keys
  uint64_t wasted = 0;
  double observed = 0;  // reads for nothing in a lookup
};

// Builds a tree of the keys, values and sizes that tools/study/tree.h gives, and looks up the same keys. From RocksDB's statistics:
// filters' positives that were none; where the last level has no filter, each lookup of an absent key counts as one read there. Ends the
// program at an error.
std::vector<PeerRates> RocksDbRates(const PeerTree& tree, const std::string& path, const std::vector<double>& absent_percents,
                                    uint64_t lookups);

}  // namespace tamis::bench
