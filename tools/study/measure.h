// Measures a cell on its database.
//
// Warm: lookups of the same mix go before, so that the block cache and the system's cache hold what they can. Cold: no data block is kept
// in the block cache, and the system is asked to drop the files' pages before every 16th lookup; a cell does a fiftieth of the lookups
// then.
//
// Reads for nothing are counted as what the lookups asked (files considered), less what filters spared, less what was met: a value, or a
// delete. How many deletes were met, filters tell. Where a level has none, the share of the deletes that still exist is taken for it (a
// delete is dropped when it reaches the last level; that lookup then misses everything).
//
// Predicted are, for each level, the lookups that asked it for a key that it does not hold times its filters' rate by the model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tamis/db.h"
#include "tools/study/cells.h"
#include "tools/study/latency.h"
#include "tools/study/tree.h"

namespace tamis::tools {

// A level at the end of a run, and what the lookups of the run did there.
struct StudyLevel {
  uint32_t level = 0;
  uint64_t keys = 0;
  uint64_t filter_bytes = 0;
  double predicted_fpr = 1;
  uint64_t skipped = 0;
  uint64_t false_positives = 0;
  uint64_t true_positives = 0;
  friend bool operator==(const StudyLevel&, const StudyLevel&) = default;
};

// One repeat of a cell: numbers to be added. Everything but build_nanos_per_key and latency follows from the seed alone.
struct StudyRun {
  uint64_t seed = 0;
  uint32_t repeat = 0;  // from 0
  uint64_t tree_keys = 0;
  uint64_t filter_bytes = 0;
  double build_nanos_per_key = 0;
  uint64_t lookups = 0;
  uint64_t found = 0;
  uint64_t considered = 0;   // files
  uint64_t skipped = 0;      // of them, by filters
  uint64_t wasted = 0;       // files read for a key that they do not hold
  uint64_t blocks_read = 0;  // from files
  double predicted_wasted = 0;
  std::vector<StudyLevel> levels{};  // populated ones, uppermost first
  LatencyHistogram latency{};        // each lookup, reading the clock included (about 30 ns)
  friend bool operator==(const StudyRun&, const StudyRun&) = default;
};

struct MeasureSettings {
  uint64_t lookups = 0;
  uint32_t repeats = 1;
  uint64_t seed = 1;
};

// Cold cells do a fiftieth, at least one.
uint64_t LookupsOf(const StudyCell& cell, const MeasureSettings& settings);

// Filter settings of a database, and the deleted keys that it has (a fiftieth of the others).
FilterOptions FilterOptionsOf(const StudyDatabase& database, uint64_t seed);
uint64_t DeletedKeysOf(uint64_t keys);

// Looks keys up, the share `absent_percent` of them absent ones, so that the database learns what its lookups find.
absl::Status LearnFromLookups(DB* db, const TreeShape& shape, double absent_percent, uint64_t lookups, const Progress& progress);

// For kOptimal: lets the database learn from kTrainingLookups and gives the tables the filters that follow. (More than 2^16: without them
// the last level's filter is never dropped.)
inline constexpr uint64_t kTrainingLookups = uint64_t{1} << 17;
absl::Status TrainTree(DB* db, const TreeShape& shape, double absent_percent, const Progress& progress);

// Keys chosen against the filters: absent keys that DB::MayExist is wrong about, found by trial, at most 2,000. Whoever can ask, or can
// read the seed out of the files, can do the same. Where 2 million trials find none, the first of them.
absl::StatusOr<std::vector<std::string>> KeysAgainst(const DB& db, uint64_t seed, const Progress& progress);

// Opens the database at `path` (closed, built from `shape`) for reading and measures all repeats. `progress`: operations done.
// Internal if a lookup answers wrongly; Cancelled if `progress` says so.
absl::StatusOr<std::vector<StudyRun>> MeasureCell(const StudyCell& cell, const TreeShape& shape, const std::string& path,
                                                  const MeasureSettings& settings, const Progress& progress);

}  // namespace tamis::tools
