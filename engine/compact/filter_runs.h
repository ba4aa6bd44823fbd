// The runs of a tree, for the allocation of filter bits: one a level, and one a table in L0.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "engine/compact/filter_budget.h"
#include "engine/version/version.h"
#include "engine/version/version_edit.h"

namespace tamis::internal {

// Once a job has replaced the tables `inputs` by `keys` keys in `level`. Last stands the run that it writes to; in L0 that is a table of
// its own.
std::vector<RunSize> RunsAfter(const Version& version, absl::Span<const uint64_t> inputs, uint32_t level, uint64_t keys);

// The same for a table of `keys` keys in L0 beside a recovered state and the tables made so far (`recovered`, L0).
std::vector<RunSize> RunsAfter(const ManifestState& state, absl::Span<const std::shared_ptr<TableFile>> recovered, uint64_t keys);

// By level and table, in the order of the version: the bits per key that the table would get now; of a run that is divided between two
// settings, some tables the one and some the other. The same tree and counters give the same answer.
std::vector<std::vector<double>> TableTargets(const FilterOptions& options, const Version& version, absl::Span<const LevelMisses> lookups);

// By level: the bits per key that its tables would get now, on average over its keys. A level without keys has what an empty run gets.
std::vector<double> FilterTargets(const FilterOptions& options, const Version& version, absl::Span<const LevelMisses> lookups);

}  // namespace tamis::internal
