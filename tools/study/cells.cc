#include "tools/study/cells.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace tamis::tools {
namespace {

enum Axis : size_t { kKind, kBits, kAllocation, kLevels, kAbsent, kAbsentKind, kSkew, kCache, kBlocks };
static_assert(kBlocks + 1 == kAxes);

constexpr char kNotApplicable[] = "-";
constexpr double kDefaultGoal = 0.001;
constexpr uint32_t kMostLevels = 7;
constexpr std::pair<AbsentKind, const char*> kAbsentKinds[] = {{AbsentKind::kFar, "far"},
                                                               {AbsentKind::kBetween, "between"},
                                                               {AbsentKind::kPrefix, "prefix"},
                                                               {AbsentKind::kDeleted, "deleted"},
                                                               {AbsentKind::kAgainst, "against"}};
constexpr FilterKind kKinds[] = {FilterKind::kNone,         FilterKind::kBlockedBloom, FilterKind::kSplitBlockBloom,
                                 FilterKind::kClassicBloom, FilterKind::kRibbon,       FilterKind::kBinaryFuse};

std::string Number(double value) { return absl::StrFormat("%.10g", value); }

bool ParseNumber(const std::string& text, double least, double greatest, double* to) {
  return absl::SimpleAtod(text, to) && *to >= least && *to <= greatest;
}

bool ParseKind(const std::string& text, FilterKind* to) {
  for (const FilterKind kind : kKinds) {
    if (text != FilterKindName(kind)) continue;
    *to = kind;
    return true;
  }
  return false;
}

bool ParseBits(const std::string& text, double* to) { return ParseNumber(text, kMinBitsPerKey, kMaxBitsPerKey, to); }

bool ParseAllocation(const std::string& text, StudyAllocation* to) {
  const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  *to = StudyAllocation();
  if (parts[0] == "uniform") return parts.size() == 1;
  if (parts[0] == "optimal") {
    to->mode = FilterAllocation::kOptimal;
    to->goal = kDefaultGoal;
    return parts.size() == 1 || ParseNumber(parts[1], 0, 1000, &to->goal);
  }
  if (parts[0] != "levels" || parts.size() != 2) return false;
  to->mode = FilterAllocation::kPerLevel;
  for (const absl::string_view bits_text : absl::StrSplit(parts[1], '/')) {
    double bits = 0;
    if (!ParseNumber(std::string(bits_text), 0, kMaxBitsPerKey, &bits) || (bits != 0 && bits < kMinBitsPerKey)) return false;
    to->bits_by_level.push_back(bits);
  }
  return true;
}

std::string AllocationText(const StudyAllocation& allocation) {
  switch (allocation.mode) {
    case FilterAllocation::kUniform:
      return "uniform";
    case FilterAllocation::kOptimal:
      return allocation.goal == kDefaultGoal ? "optimal" : "optimal:" + Number(allocation.goal);
    case FilterAllocation::kPerLevel:
      break;
  }
  std::string text;
  for (const double bits : allocation.bits_by_level) text += (text.empty() ? "levels:" : "/") + Number(bits);
  return text;
}

bool ParseAbsentKind(const std::string& text, AbsentKind* to) {
  for (const auto& [kind, name] : kAbsentKinds) {
    if (text != name) continue;
    *to = kind;
    return true;
  }
  return false;
}

bool ParseSkew(const std::string& text, double* theta) {
  *theta = 0;
  if (text == "uniform") return true;
  return text.rfind("zipf:", 0) == 0 && ParseNumber(text.substr(5), 0, 10, theta) && *theta > 0;
}

bool ParseBytes(const std::string& text, uint64_t* to) {
  if (text.empty()) return false;
  const char last = absl::ascii_toupper(static_cast<unsigned char>(text.back()));
  const int shift = last == 'K' ? 10 : last == 'M' ? 20 : last == 'G' ? 30 : 0;
  if (!absl::SimpleAtoi(shift == 0 ? text : text.substr(0, text.size() - 1), to) || *to > (uint64_t{1} << 40) >> shift) return false;
  *to <<= shift;
  return true;
}

std::string BytesText(uint64_t bytes) {
  if (bytes != 0 && bytes % (1 << 20) == 0) return absl::StrCat(bytes >> 20, "M");
  if (bytes != 0 && bytes % (1 << 10) == 0) return absl::StrCat(bytes >> 10, "K");
  return absl::StrCat(bytes);
}

bool ParseAxis(size_t axis, const std::string& text, StudyCell* cell) {
  uint32_t& levels = cell->levels;
  switch (axis) {
    case kKind:
      return ParseKind(text, &cell->kind);
    case kBits:
      return text == kNotApplicable || ParseBits(text, &cell->bits_per_key);
    case kAllocation:
      return text == kNotApplicable || ParseAllocation(text, &cell->allocation);
    case kLevels:
      return absl::SimpleAtoi(text, &levels) && levels >= 1 && levels <= kMostLevels;
    case kAbsent:
      return ParseNumber(text, 0, 100, &cell->absent_percent);
    case kAbsentKind:
      return text == kNotApplicable || ParseAbsentKind(text, &cell->absent_kind);
    case kSkew:
      return ParseSkew(text, &cell->zipf_theta);
    case kCache:
      return ParseBytes(text, &cell->cache_bytes);
    default:
      cell->cold = text == "cold";
      return cell->cold || text == "warm";
  }
}

// Values that mean nothing in this cell get their default, so that equal cells are equal.
void Normalise(StudyCell* cell) {
  if (cell->kind == FilterKind::kNone) {
    cell->bits_per_key = StudyCell().bits_per_key;
    cell->allocation = StudyAllocation();
  }
  if (cell->allocation.mode == FilterAllocation::kPerLevel) cell->bits_per_key = StudyCell().bits_per_key;
  if (cell->absent_percent == 0) cell->absent_kind = AbsentKind::kBetween;
}

StudySection Section(std::string title, std::initializer_list<std::pair<Axis, std::vector<std::string>>> axes, bool by_level = false) {
  StudySection section{.title = std::move(title), .axes = DefaultAxes(), .by_level = by_level};
  for (const auto& [axis, values] : axes) section.axes[axis] = values;
  return section;
}

}  // namespace

AxisTexts DefaultAxes() { return {{"blocked_bloom"}, {"10"}, {"uniform"}, {"4"}, {"100"}, {"between"}, {"uniform"}, {"8M"}, {"warm"}}; }

std::string AxisText(const StudyCell& cell, size_t axis) {
  switch (axis) {
    case kKind:
      return std::string(FilterKindName(cell.kind));
    case kBits:
      if (cell.kind == FilterKind::kNone || cell.allocation.mode == FilterAllocation::kPerLevel) return kNotApplicable;
      return Number(cell.bits_per_key);
    case kAllocation:
      return cell.kind == FilterKind::kNone ? kNotApplicable : AllocationText(cell.allocation);
    case kLevels:
      return absl::StrCat(cell.levels);
    case kAbsent:
      return Number(cell.absent_percent);
    case kAbsentKind:
      if (cell.absent_percent == 0) return kNotApplicable;
      return kAbsentKinds[static_cast<size_t>(cell.absent_kind)].second;
    case kSkew:
      return cell.zipf_theta == 0 ? "uniform" : "zipf:" + Number(cell.zipf_theta);
    case kCache:
      return BytesText(cell.cache_bytes);
    default:
      return cell.cold ? "cold" : "warm";
  }
}

absl::StatusOr<StudyCell> CellFromTexts(const std::vector<std::string>& texts) {
  if (texts.size() != kAxes) return absl::InvalidArgumentError(absl::StrCat("a cell has ", kAxes, " axes, not ", texts.size()));
  StudyCell cell;
  for (size_t axis = 0; axis < kAxes; ++axis) {
    if (!ParseAxis(axis, texts[axis], &cell)) {
      return absl::InvalidArgumentError(absl::StrCat("--", kAxisNames[axis], ": '", texts[axis], "' is not a value of this axis"));
    }
  }
  Normalise(&cell);
  return cell;
}

std::string FlagsOf(const StudySection& section) {
  const AxisTexts defaults = DefaultAxes();
  std::string flags;
  for (size_t axis = 0; axis < kAxes; ++axis) {
    if (section.axes[axis] == defaults[axis]) continue;
    flags += absl::StrCat(flags.empty() ? "" : " ", "--", kAxisNames[axis], " ");
    for (size_t i = 0; i < section.axes[axis].size(); ++i) flags += (i == 0 ? "" : ",") + section.axes[axis][i];
  }
  if (section.by_level) flags += flags.empty() ? "--by-level" : " --by-level";
  return flags;
}

absl::StatusOr<std::vector<StudyCell>> CellsOf(const std::vector<StudySection>& sections) {
  std::vector<StudyCell> cells;
  for (uint32_t section = 0; section < sections.size(); ++section) {
    const AxisTexts& axes = sections[section].axes;
    const size_t first = cells.size();
    std::vector<size_t> at(kAxes, 0);
    for (bool more = true; more;) {
      std::vector<std::string> texts;
      for (size_t axis = 0; axis < kAxes; ++axis) texts.push_back(axes[axis][at[axis]]);
      absl::StatusOr<StudyCell> cell = CellFromTexts(texts);
      if (!cell.ok()) return cell.status();
      cell->section = section;
      if (std::find(cells.begin() + static_cast<std::ptrdiff_t>(first), cells.end(), *cell) == cells.end()) cells.push_back(*cell);
      more = false;
      for (size_t axis = kAxes; axis-- > 0 && !more;) {  // the last axis moves fastest
        more = ++at[axis] < axes[axis].size();
        if (!more) at[axis] = 0;
      }
    }
  }
  return cells;
}

StudyDatabase DatabaseOf(const StudyCell& cell) {
  StudyDatabase database{.kind = cell.kind,
                         .bits_per_key = cell.bits_per_key,
                         .allocation = cell.allocation,
                         .levels = cell.levels,
                         .deletes = cell.absent_kind == AbsentKind::kDeleted};
  if (cell.allocation.mode == FilterAllocation::kOptimal) database.trained_absent_percent = cell.absent_percent;
  return database;
}

std::vector<StudyGroup> GroupsOf(const std::vector<StudyCell>& cells, uint32_t shard, uint32_t shards) {
  std::vector<StudyGroup> all;
  for (size_t i = 0; i < cells.size(); ++i) {
    const StudyDatabase database = DatabaseOf(cells[i]);
    auto group = std::find_if(all.begin(), all.end(), [&](const StudyGroup& g) { return g.database == database; });
    if (group == all.end()) group = all.insert(all.end(), StudyGroup{.database = database, .cells = {}});
    group->cells.push_back(i);
  }
  const size_t begin = cells.size() * (shard - 1) / shards;
  const size_t end = cells.size() * shard / shards;
  std::vector<StudyGroup> groups;
  size_t position = 0;
  for (const StudyGroup& group : all) {
    StudyGroup mine{.database = group.database, .cells = {}};
    for (const size_t cell : group.cells) {
      if (position >= begin && position < end) mine.cells.push_back(cell);
      ++position;
    }
    if (!mine.cells.empty()) groups.push_back(std::move(mine));
  }
  return groups;
}

std::vector<StudySection> DefaultSections() {
  return {
      Section("Savings by number of levels", {{kKind, {"none", "blocked_bloom"}}, {kLevels, {"1", "2", "3", "4", "5"}}}),
      Section("Savings by level of one tree", {{kAllocation, {"uniform", "optimal:0"}}, {kLevels, {"5"}}}, /*by_level=*/true),
      Section("Savings by bits per key", {{kBits, {"4", "6", "8", "10", "12", "16"}}}),
      Section("Savings by allocation",
              {{kAllocation, {"uniform", "optimal:0", "optimal"}}, {kLevels, {"4", "5"}}, {kAbsent, {"100", "10", "0"}}}),
      Section("Savings by share of absent lookups",
              {{kKind, {"none", "blocked_bloom"}}, {kAbsent, {"0", "10", "50", "90", "100"}}, {kCache, {"1M"}}}),
      Section("Kinds of absent key", {{kAbsentKind, {"far", "between", "prefix", "deleted", "against"}}}),
      // 12: small tables cannot have binary fuse for 10.
      Section("Kinds of filter",
              {{kKind, {"blocked_bloom", "split_block_bloom", "classic_bloom", "ribbon", "binary_fuse"}}, {kBits, {"12"}}}),
      Section("Skew, cache, and blocks that are not in memory",
              {{kKind, {"none", "blocked_bloom"}}, {kSkew, {"uniform", "zipf:0.99"}}, {kCache, {"0", "8M"}}, {kBlocks, {"warm", "cold"}}}),
  };
}

}  // namespace tamis::tools
