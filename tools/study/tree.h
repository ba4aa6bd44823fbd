// Builds databases whose trees have a given number of populated levels, each near its target, from small amounts of data.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tamis/db.h"

namespace tamis::tools {

struct TreeShape {
  uint64_t keys = 0;
  // Further keys that were there and are deleted, last of all but for what fills the levels.
  uint64_t deleted_keys = 0;
  uint32_t levels = 4;
  uint32_t ratio = 10;  // of the sizes of neighbouring levels
  uint64_t seed = 1;    // of keys, values and hash
};

// Levels that a database of a study can have, L0 included: populated are the last ones.
inline constexpr uint32_t kTreeLevels = 8;

// InvalidArgument, with the number of keys it takes, if the uppermost level would be smaller than a level can be.
absl::Status CheckShape(const TreeShape& shape);

// Settings with which the shape comes about, filters left at `filter`. Everything runs inside the calls: the same shape and filters give
// the same files.
Options TreeOptions(const TreeShape& shape, const FilterOptions& filter);

struct BuiltTree {
  std::unique_ptr<DB> db;
  double nanos_per_key = 0;  // processor time of this process, flushes and compactions included, for each Put and Delete
};

// A new database in `path`, settled: L0 is empty, exactly `shape.levels` levels are populated and each but the last is filled to at least
// half. FailedPrecondition if that does not come about; otherwise errors of the database. `progress` gets operations done (and 0);
// Cancelled if it says so. REQUIRES: CheckShape is OK.
absl::StatusOr<BuiltTree> BuildTree(const TreeShape& shape, const FilterOptions& filter, const std::string& path,
                                    const Progress& progress = {});

// Writes each key of such a database once more and brings its levels back into shape: every table is then made under the settings and what
// the database has learned by now. Errors as BuildTree.
absl::Status RegrowTree(DB* db, const TreeShape& shape, const Progress& progress = {});

}  // namespace tamis::tools
