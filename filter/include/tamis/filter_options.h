// Settings of the filters of a database: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tamis/filter.h"

namespace tamis {

// How the memory for filters is divided over the levels.
enum class FilterAllocation : uint8_t {
  kUniform = 0,   // the same bits per key in every level
  kPerLevel = 1,  // FilterOptions::bits_per_level
  kOptimal = 2,   // for the fewest wasted reads, from the sizes of all runs and what lookups have found so far (default)
};

struct FilterOptions {
  // kNone: tables get no filter. Default kBlockedBloom.
  FilterKind kind = FilterKind::kBlockedBloom;
  // Of the tables of the last level (number compaction.levels - 1), which hold most keys and are asked least often for what another level
  // has: kRibbon saves about a third of their filters' memory at the same rate, for slower building and probing. Unset: like `kind`. Not
  // kNone. Without effect if `kind` is kNone. A table that is moved there keeps its filter until RebuildFilters.
  std::optional<FilterKind> last_level_kind{};
  FilterAllocation allocation = FilterAllocation::kOptimal;
  // For kOptimal: the most that keys may have on average, 0 to 24; a table gets none, or 2 to 24. Default 10.
  // For kUniform: bits per key, 2 to 24 in steps of 1/8, or 0 for no filter (10: 0.97 % false positives).
  double bits_per_key = 10.0;
  // For kPerLevel: by level number as the stats print it (0 = L0); the last entry repeats; 0 = no filter in that level.
  std::vector<double> bits_per_level{};
  // For kOptimal: the most that all filters together may take, instead of bits_per_key. 0: unset.
  uint64_t memory_budget_bytes = 0;
  // For kOptimal: bits are spent only until this many wasted reads per lookup are predicted. 0: the whole budget is spent.
  double wasted_reads_goal = 0.001;
  // Set: tables get a second filter, of the same kind, over the prefixes that their keys have under this rule (tamis/filter_prefix.h). Iterators
  // with both bounds, ReadOptions::prefix above all, then leave out tables that hold no key of the range. Acts on tables that are written
  // from now on; each table is asked under the rule that it was written with, so another rule, or none, changes no answer. Needs a kind.
  std::optional<FilterPrefixRule> prefix_rule{};
  // Bits for each distinct prefix of a table, 2 to 24 in steps of 1/8, or 0 for no prefix filter; the same in every level. Apart from what
  // bits_per_key, bits_per_level and memory_budget_bytes allow.
  double prefix_bits_per_key = 10.0;
  // Seed of the key hash. Not a secret: the header of every filter holds it, and whoever knows it and the keys can choose absent keys that
  // pass nearly all filters (against another seed they pass at the ordinary rate). Acts only when the database is created (unset: drawn at
  // random); another value later is FailedPrecondition.
  std::optional<uint64_t> hash_seed{};
};

}  // namespace tamis
