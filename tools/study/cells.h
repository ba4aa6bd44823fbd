// What a study measures: cells, each one choice on every axis, dealt out to shards and grouped by the database that they need.
//
// An axis value has one text form, which the flags, the tables and the JSON share:
//   kind         none, blocked_bloom, split_block_bloom, classic_bloom, ribbon, binary_fuse
//   bits         bits per key, 2 to 24 (optimal: on average over the tree)
//   allocation   uniform; optimal (spending stops at a goal of .001 wasted reads a lookup) or optimal:GOAL; levels:A/B/C, bits per key of
//   the
//                levels from the uppermost on, the last one repeating
//   levels       populated levels, 1 to 7
//   absent       lookups for keys that are not there, percent, 0 to 100
//   absent-kind  far (outside the range of all keys), between (anywhere among them), prefix (a present key is their prefix), deleted (most
//                of them recently), against (chosen against the filters: see workload.h)
//   skew         uniform, or zipf:THETA with THETA above 0
//   cache        block cache in bytes, with suffix K, M or G
//   blocks       warm or cold (measure.h)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tamis/filter.h"
#include "tamis/filter_options.h"

namespace tamis::tools {

enum class AbsentKind : uint8_t { kFar, kBetween, kPrefix, kDeleted, kAgainst };

struct StudyAllocation {
  FilterAllocation mode = FilterAllocation::kUniform;
  double goal = 0;                      // kOptimal
  std::vector<double> bits_by_level{};  // kPerLevel, uppermost populated level first
  friend bool operator==(const StudyAllocation&, const StudyAllocation&) = default;
};

struct StudyCell {
  uint32_t section = 0;  // of the plan
  FilterKind kind = FilterKind::kBlockedBloom;
  double bits_per_key = 10;
  StudyAllocation allocation{};
  uint32_t levels = 4;
  double absent_percent = 100;
  AbsentKind absent_kind = AbsentKind::kBetween;
  double zipf_theta = 0;  // 0: uniform
  uint64_t cache_bytes = 0;
  bool cold = false;
  friend bool operator==(const StudyCell&, const StudyCell&) = default;
};

// The axes in the order of their names below, each with at least one value.
inline constexpr const char* kAxisNames[] = {"kind", "bits", "allocation", "levels", "absent", "absent-kind", "skew", "cache", "blocks"};
inline constexpr size_t kAxes = std::size(kAxisNames);
using AxisTexts = std::vector<std::vector<std::string>>;  // kAxes lists
AxisTexts DefaultAxes();

// The text of a cell's value on an axis, and a cell from kAxes texts. CellFromTexts: InvalidArgument naming axis and value. A cell of kind
// none has neither bits nor an allocation, and one without absent lookups no kind of absent key: "-" stands there, and is accepted.
std::string AxisText(const StudyCell& cell, size_t axis);
absl::StatusOr<StudyCell> CellFromTexts(const std::vector<std::string>& texts);

// A table of the report: all combinations of its axes.
struct StudySection {
  std::string title;
  AxisTexts axes;
  bool by_level = false;  // also a table of each cell's levels
  friend bool operator==(const StudySection&, const StudySection&) = default;
};
// The flags of `tamis study` that give this section: those axes that differ from the default; "" for none.
std::string FlagsOf(const StudySection& section);

// All cells of all sections, combinations that are the same cell once per section. Errors as CellFromTexts.
absl::StatusOr<std::vector<StudyCell>> CellsOf(const std::vector<StudySection>& sections);

// What a database is built from; cells with the same one share it.
struct StudyDatabase {
  FilterKind kind = FilterKind::kBlockedBloom;
  double bits_per_key = 0;
  StudyAllocation allocation{};
  uint32_t levels = 0;
  bool deletes = false;
  // kOptimal: the share of absent lookups that the allocation learns from; otherwise 0.
  double trained_absent_percent = 0;
  friend bool operator==(const StudyDatabase&, const StudyDatabase&) = default;
};
StudyDatabase DatabaseOf(const StudyCell& cell);

struct StudyGroup {
  StudyDatabase database;
  std::vector<size_t> cells;  // indexes
};
// Shard `shard` of `shards` (1 <= shard <= shards): the cells in the order of their databases are cut into `shards` pieces of equal length
// (within one cell), so that few databases are built by two shards. The union of all shards is every cell once.
std::vector<StudyGroup> GroupsOf(const std::vector<StudyCell>& cells, uint32_t shard, uint32_t shards);

// The default study: what filters save by level, by bits, by allocation, by share of absent lookups, by kind of key and of filter.
std::vector<StudySection> DefaultSections();

}  // namespace tamis::tools
