// A study: a plan, the part of it that one process runs, and the results, which parts are joined from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tamis/options.h"
#include "tools/study/cells.h"
#include "tools/study/measure.h"

namespace tamis::tools {

// What parts must have in common to be joined.
struct StudyPlan {
  std::vector<StudySection> sections;
  uint64_t keys = 300000;
  uint64_t lookups = 100000;  // a repeat of a cell
  uint32_t ratio = 6;         // of the sizes of neighbouring levels
  friend bool operator==(const StudyPlan&, const StudyPlan&) = default;
};

struct StudyPart {
  uint64_t seed = 1;
  uint32_t repeats = 3;
  uint32_t shard = 1;  // of shards, from 1
  uint32_t shards = 1;
  // Databases are made in a new folder in here, which is removed at the end, whatever the end is.
  std::string parent_directory{};
};

struct CellResult {
  StudyCell cell;
  std::vector<StudyRun> runs{};  // none: not measured (yet)
  friend bool operator==(const CellResult&, const CellResult&) = default;
};

struct StudyResult {
  StudyPlan plan;
  std::vector<CellResult> cells;  // all cells of the plan in their order
};

// Builds the databases and measures the cells of a part. `progress` gets work done and in all, in operations (roughly equal in time), at
// least every few milliseconds. InvalidArgument, before anything is made, for a plan that is not possible; Cancelled; errors of the
// database with the cell that met it.
absl::StatusOr<StudyResult> RunStudy(const StudyPlan& plan, const StudyPart& part, const Progress& progress);

// All cells of the plan, none of them measured.
absl::StatusOr<StudyResult> EmptyResult(const StudyPlan& plan);

// Joins parts: the runs of each cell are put together, ordered by seed and repeat. InvalidArgument for parts of different plans and for a
// run (cell, seed, repeat) that two parts have: it would count twice.
absl::StatusOr<StudyResult> MergeResults(absl::Span<const StudyResult> parts);

}  // namespace tamis::tools
