// Numbers about a database: typed. Text forms come from DB::GetProperty. Counters start at the opening of the database.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tamis/filter.h"
#include "tamis/filter_allocation.h"

namespace tamis {

// One level (L0 is level 0).
struct LevelStats {
  uint32_t level = 0;
  uint64_t files = 0;
  uint64_t bytes = 0;            // of table files
  uint64_t target_bytes = 0;     // 0 where the level has none
  uint64_t entries = 0;
  uint64_t keys = 0;             // distinct user keys, summed over files
  uint64_t deletes = 0;
  double score = 0;              // compaction urgency; due from 1 on
  // Filters. Bits per key: asked for by the settings now; real, over the keys of files that have a filter.
  uint64_t filter_bytes = 0;
  uint64_t files_without_filter = 0;
  double bits_per_key_target = 0;
  double bits_per_key = 0;
  double predicted_fpr = 1;      // mean over the files' keys; 1 for those without a filter
  FilterKind filter_kind = FilterKind::kNone;  // of most keys with a filter
  uint64_t files_of_other_kinds = 0;
  double filter_fill = 0;            // share of set bits, over all filters; 0 unless StatsOptions::filter_fill
  double predicted_filter_fill = 0;  // what the number of keys makes expect; likewise
  uint64_t files_with_prefix_filter = 0;
  uint64_t prefix_filter_bytes = 0;  // resident; not part of filter_bytes
  // Point reads that considered a file of this level whose key range holds the key.
  uint64_t probes = 0;           // filter asked
  uint64_t skipped = 0;          // the filter said "certainly not"
  uint64_t true_positives = 0;   // the filter said "maybe" and the key was there (any version)
  uint64_t false_positives = 0;  // ... and it was not
  double observed_fpr = 0;       // false_positives / (false_positives + skipped); 0 without probes
  double observed_fpr_lower = 0;  // 95 % interval, wider if the same keys are looked up again and again (tamis/filter_observed.h)
  double observed_fpr_upper = 1;
  // The filters erred more often than the worst of this level's, as they were at the time of each lookup, by more than chance (one wrong
  // mark in 100,000). Either keys are chosen against the filters, or there is a fault.
  bool fpr_above_prediction = false;
  uint64_t unfiltered = 0;         // files asked without a filter
  uint64_t unfiltered_misses = 0;  // ... that did not hold the key
  // What is remembered of lookups, also of earlier processes and fading (saved with the tree), and what follows: the probability that a
  // lookup asks a run of this level (in L0: a file) in vain. 1 before the first lookup. The allocation of filter bits goes by it.
  LevelMisses learned;
  double absent_probability = 1;
  // Compactions into this level.
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
  uint64_t moved_bytes = 0;      // by trivial moves
  uint64_t compactions = 0;
  uint64_t compaction_micros = 0;
};

// What GetStats does beyond reading counters.
struct StatsOptions {
  bool filter_fill = false;  // count the set bits of all filters: reads all of them
};

struct StallStats {
  uint64_t slowdowns = 0;              // writes that were delayed
  uint64_t stops = 0;                  // writes that waited for background work
  uint64_t micros = 0;                 // in all
  uint64_t micros_memtables = 0;       // because of immutable memtables
  uint64_t micros_l0 = 0;              // because of L0 files
  uint64_t micros_debt = 0;            // because of compaction debt
  std::string current_reason;          // empty if none now
};

struct RecoveryStats {
  uint64_t logs = 0;             // read
  uint64_t records = 0;          // replayed
  uint64_t bytes_dropped = 0;    // after the end of the history, in this and later logs
  std::string reason;            // why the history ended there; empty after a clean close
};

struct Stats {
  std::vector<LevelStats> levels;
  uint64_t last_sequence = 0;
  uint64_t memtable_bytes = 0;        // taken from the system: mutable, immutable, and flushed ones that a reader still holds
  uint64_t memtable_entries = 0;
  uint32_t immutable_memtables = 0;
  uint64_t block_cache_capacity = 0;
  uint64_t block_cache_bytes = 0;
  uint64_t filter_bytes = 0;          // resident
  uint64_t prefix_filter_bytes = 0;   // resident; not part of filter_bytes
  uint64_t index_bytes = 0;           // resident indexes, properties, slots
  uint64_t table_bytes = 0;           // on disk
  uint64_t log_bytes = 0;             // on disk, allocated space included
  uint64_t obsolete_bytes = 0;        // files kept only for iterators and snapshots still in use
  uint32_t snapshots = 0;
  uint64_t oldest_snapshot_sequence = 0;

  uint64_t puts = 0;
  uint64_t deletes = 0;
  uint64_t user_bytes_written = 0;    // keys and values given to Write
  uint64_t log_bytes_written = 0;
  uint64_t flush_bytes_written = 0;
  uint64_t compaction_bytes_read = 0;
  uint64_t compaction_bytes_written = 0;
  uint64_t manifest_bytes_written = 0;
  double write_amplification = 0;     // (log + flush + compaction bytes) / user bytes
  double space_amplification = 0;     // all table bytes / last level's bytes

  uint64_t gets = 0;
  uint64_t gets_found = 0;
  uint64_t files_considered = 0;      // candidates of point reads
  uint64_t files_skipped = 0;         // by filters
  uint64_t blocks_read = 0;           // data blocks read from files by point reads
  uint64_t prefix_probes = 0;         // prefix filters asked, one for each iterator and table
  uint64_t prefix_skipped = 0;        // ... that said "certainly not": the iterator leaves the table out
  double negative_share = 0;          // of gets that found no value; 0 without gets
  // Reads of a file that does not hold the key, per lookup. Predicted from the filters' rates, the tree, and how often a lookup asks each
  // level in vain (LevelStats::absent_probability); `_absent`: of a key that is nowhere, within the range of every level.
  double predicted_wasted_reads = 0;
  double predicted_wasted_reads_absent = 0;
  double observed_wasted_reads = 0;   // since opening; 0 without gets
  uint32_t levels_above_prediction = 0;  // LevelStats::fpr_above_prediction
  uint64_t flushes = 0;
  uint64_t compactions = 0;
  uint64_t trivial_moves = 0;
  uint64_t background_errors = 0;
  std::string background_error;       // empty if none
  uint64_t blocked_files = 0;         // taken out of compaction because of damage
  uint64_t filters_refused = 0;       // filters that a table should have and that are not used: damaged, missing, unknown
  uint64_t filters_rebuilt = 0;       // tables that got another filter without a compaction
  uint64_t filter_bytes_written = 0;  // of filter files

  StallStats stalls;
  RecoveryStats recovery;
};

}  // namespace tamis
