#include "engine/compact/compaction_picker.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace tamis::internal {
namespace {

// Of levels above the base: ahead of any level that merely fills up.
constexpr double kScoreAboveBase = 100;
// A file is compacted for its deletes and old versions from this many, and this share (one in), on.
constexpr uint64_t kDeletesLeast = 16;
constexpr uint64_t kDeletesOneIn = 3;

using Level = std::vector<FileShape>;

struct KeyRange {
  std::string_view smallest;
  std::string_view largest;

  void Add(const TableMeta& meta) {
    smallest = std::min(smallest, std::string_view(meta.smallest));
    largest = std::max(largest, std::string_view(meta.largest));
  }
  bool Overlaps(const TableMeta& meta) const { return smallest <= meta.largest && meta.smallest <= largest; }
};
KeyRange RangeOf(const TableMeta& meta) { return {meta.smallest, meta.largest}; }
bool Overlap(const TableMeta& a, const TableMeta& b) { return RangeOf(a).Overlaps(b); }

uint64_t Bytes(const Level& level, bool with_blocked) {
  uint64_t bytes = 0;
  for (const FileShape& file : level) bytes += with_blocked || !file.blocked ? file.meta->size : 0;
  return bytes;
}

uint64_t UnblockedFiles(const Level& level) {
  return static_cast<uint64_t>(std::count_if(level.begin(), level.end(), [](const FileShape& file) { return !file.blocked; }));
}

bool AnyBusy(const Level& level) {
  return std::any_of(level.begin(), level.end(), [](const FileShape& file) { return file.busy; });
}

// Where plans from `level` go: the next level that is not empty or the base (P2).
uint32_t OutputLevel(const TreeShape& tree, uint32_t level, uint32_t base_level) {
  uint32_t output = level + 1;
  while (output < base_level && tree[output].empty()) ++output;
  return output;
}

// [first, last) of the files of a level below L0 that overlap `range`.
std::pair<size_t, size_t> Overlapping(const Level& level, const KeyRange& range) {
  const auto first =
      std::partition_point(level.begin(), level.end(), [&](const FileShape& file) { return file.meta->largest < range.smallest; });
  const auto last = std::partition_point(first, level.end(), [&](const FileShape& file) { return file.meta->smallest <= range.largest; });
  return {static_cast<size_t>(first - level.begin()), static_cast<size_t>(last - level.begin())};
}

// Files below this part of target_file_bytes are small.
constexpr uint64_t kSmallFileOneIn = 8;

enum class Obstacle : uint8_t { kNone, kBusy, kBlocked };

// A choice of first inputs (from one level) completed to a plan, or what is in its way.
struct Draft {
  Obstacle obstacle = Obstacle::kNone;
  CompactionPlan plan;
  uint64_t own_bytes = 0;
  uint64_t overlap_bytes = 0;
};

// Whether moving the file as it is leaves nothing behind that only a rewrite would drop.
bool MayMove(const TreeShape& tree, const TableMeta& meta, uint32_t output_level) {
  return output_level + 1 < tree.size() || (meta.deletes == 0 && meta.entries == meta.distinct_keys);
}

Draft Complete(const TreeShape& tree, uint32_t level, uint32_t output_level, const std::vector<const FileShape*>& inputs,
               CompactionReason reason) {
  Draft draft;
  CompactionPlan& plan = draft.plan;
  plan.reason = reason;
  plan.level = level;
  plan.output_level = output_level;
  KeyRange hull = RangeOf(*inputs.front()->meta);
  for (const FileShape* file : inputs) {
    plan.inputs.push_back(file->meta->number);
    draft.own_bytes += file->meta->size;
    hull.Add(*file->meta);
  }
  if (output_level != level) {
    const Level& below = tree[output_level];
    const auto [first, last] = Overlapping(below, hull);
    for (size_t i = first; i < last; ++i) {
      if (below[i].blocked) {
        draft.obstacle = Obstacle::kBlocked;
        return draft;
      }
      plan.output_inputs.push_back(below[i].meta->number);
      draft.overlap_bytes += below[i].meta->size;
      hull.Add(*below[i].meta);
    }
  }
  // P3. (In L0 the inputs themselves are free, and the others stay above.)
  for (const uint32_t touched : {level, output_level}) {
    if (touched == 0) continue;
    const auto [first, last] = Overlapping(tree[touched], hull);
    for (size_t i = first; i < last; ++i) {
      if (tree[touched][i].busy) draft.obstacle = Obstacle::kBusy;
    }
  }
  plan.input_bytes = draft.own_bytes + draft.overlap_bytes;
  plan.trivial_move = reason != CompactionReason::kDeletes && inputs.size() == 1 && plan.output_inputs.empty() &&
                      MayMove(tree, *inputs.front()->meta, output_level);
  return draft;
}

// ---- L0 ----

// Of the wanted L0 files (by index, newest first) and all older ones that overlap them, those that may be inputs: not blocked, and above
// no overlapping file that is left out.
std::vector<size_t> EligibleL0(const Level& files, const std::vector<bool>& wanted) {
  std::vector<bool> take = wanted;
  for (size_t i = 0; i < files.size(); ++i) {
    if (!take[i]) continue;
    for (size_t older = i + 1; older < files.size(); ++older) {
      if (Overlap(*files[i].meta, *files[older].meta)) take[older] = true;
    }
  }
  std::vector<size_t> eligible;
  for (size_t i = files.size(); i-- > 0;) {
    if (!take[i] || files[i].blocked) {
      take[i] = false;
      continue;
    }
    for (size_t older = i + 1; older < files.size() && take[i]; ++older) {
      if (!take[older] && Overlap(*files[i].meta, *files[older].meta)) take[i] = false;
    }
    if (take[i]) eligible.insert(eligible.begin(), i);
  }
  return eligible;
}

// The files of `eligible` that hang together with `seed` by overlapping ranges: their hull has no gaps.
std::vector<size_t> ComponentOf(const Level& files, const std::vector<size_t>& eligible, size_t seed) {
  KeyRange hull = RangeOf(*files[seed].meta);
  for (bool grown = true; grown;) {
    grown = false;
    for (size_t i : eligible) {
      const KeyRange before = hull;
      if (hull.Overlaps(*files[i].meta)) hull.Add(*files[i].meta);
      grown = grown || hull.smallest != before.smallest || hull.largest != before.largest;
    }
  }
  std::vector<size_t> component;
  for (size_t i : eligible) {
    if (hull.Overlaps(*files[i].meta)) component.push_back(i);
  }
  return component;
}

Draft CompleteL0(const TreeShape& tree, uint32_t output_level, const std::vector<size_t>& chosen, CompactionReason reason) {
  std::vector<const FileShape*> inputs;
  for (size_t i : chosen) inputs.push_back(&tree[0][i]);
  return Complete(tree, 0, output_level, inputs, reason);
}

// Small files beside the plan's range in the output level are rewritten with it. Else a load in ascending order through many short
// openings, each of which flushes a tiny table, would leave one file for each in the last level for ever. (No other plan writes between
// the range and its neighbour: the levels between L0 and its output are empty, P2.)
CompactionPlan WithSmallNeighbours(const TreeShape& tree, CompactionPlan plan, uint64_t small_bytes) {
  if (plan.input_bytes == 0) return plan;
  std::optional<KeyRange> hull;
  const auto add = [&hull](const Level& files, const std::vector<uint64_t>& numbers) {
    for (const FileShape& file : files) {
      if (std::find(numbers.begin(), numbers.end(), file.meta->number) == numbers.end()) continue;
      hull ? hull->Add(*file.meta) : void(hull = RangeOf(*file.meta));
    }
  };
  add(tree[plan.level], plan.inputs);
  const Level& below = tree[plan.output_level];
  add(below, plan.output_inputs);
  const auto [first, last] = Overlapping(below, *hull);
  const auto take = [&](const FileShape& file, std::vector<uint64_t>::iterator place) {
    if (file.busy || file.blocked || file.meta->size >= small_bytes) return;
    plan.output_inputs.insert(place, file.meta->number);
    plan.input_bytes += file.meta->size;
    plan.trivial_move = false;
  };
  if (first > 0) take(below[first - 1], plan.output_inputs.begin());
  if (last < below.size()) take(below[last], plan.output_inputs.end());
  return plan;
}

// The oldest file that can be moved without a rewrite, if there is one; small ones are to be merged instead.
std::optional<CompactionPlan> PickL0Move(const TreeShape& tree, uint32_t output_level, const std::vector<size_t>& eligible,
                                         CompactionReason reason, uint64_t small_bytes) {
  const Level& files = tree[0];
  for (auto i = eligible.rbegin(); i != eligible.rend(); ++i) {
    if (files[*i].meta->size < small_bytes) continue;
    const auto older = files.begin() + static_cast<std::ptrdiff_t>(*i) + 1;
    if (std::any_of(older, files.end(), [&](const FileShape& file) { return Overlap(*file.meta, *files[*i].meta); })) continue;
    Draft draft = CompleteL0(tree, output_level, {*i}, reason);
    if (draft.obstacle == Obstacle::kNone && draft.plan.trivial_move) return std::move(draft.plan);
  }
  return std::nullopt;
}

// A plan from L0 for the wanted files and what must go with them. Without one, *busy says whether that may change when running plans end.
std::optional<CompactionPlan> PickL0(const TreeShape& tree, uint32_t output_level, const std::vector<bool>& wanted, CompactionReason reason,
                                     const CompactionOptions& options, bool* busy) {
  const uint64_t small_bytes = options.target_file_bytes / kSmallFileOneIn;
  *busy = false;
  const std::vector<size_t> eligible = EligibleL0(tree[0], wanted);
  if (eligible.empty()) return std::nullopt;
  if (AnyBusy(tree[0])) {
    *busy = true;
    return std::nullopt;
  }
  if (auto move = PickL0Move(tree, output_level, eligible, reason, small_bytes)) return move;
  Draft all = CompleteL0(tree, output_level, eligible, reason);
  if (all.obstacle == Obstacle::kNone) return WithSmallNeighbours(tree, std::move(all.plan), small_bytes);
  *busy = all.obstacle == Obstacle::kBusy;
  if (*busy) return std::nullopt;
  // A blocked file below lies in a gap between the chosen ones (those that overlap it are blocked themselves): go around it.
  for (auto seed = eligible.rbegin(); seed != eligible.rend(); ++seed) {
    Draft part = CompleteL0(tree, output_level, ComponentOf(tree[0], eligible, *seed), reason);
    if (part.obstacle == Obstacle::kNone) return std::move(part.plan);
    *busy = *busy || part.obstacle == Obstacle::kBusy;
  }
  return std::nullopt;
}

// ---- Deeper levels ----

std::optional<CompactionPlan> PickBySize(const TreeShape& tree, uint32_t level, uint32_t output_level, std::string_view cursor_key) {
  const Level& files = tree[level];
  const size_t start = static_cast<size_t>(
      std::partition_point(files.begin(), files.end(), [&](const FileShape& file) { return file.meta->largest <= cursor_key; }) -
      files.begin());
  std::optional<Draft> best;
  double best_ratio = 0;
  for (size_t n = 0; n < files.size(); ++n) {
    const FileShape& file = files[(start + n) % files.size()];
    if (file.busy || file.blocked) continue;
    Draft draft = Complete(tree, level, output_level, {&file}, CompactionReason::kLevelSize);
    if (draft.obstacle != Obstacle::kNone) continue;
    const double ratio = static_cast<double>(draft.overlap_bytes) / static_cast<double>(std::max<uint64_t>(draft.own_bytes, 1));
    if (best && ratio >= best_ratio) continue;
    best = std::move(draft);
    best_ratio = ratio;
  }
  if (!best) return std::nullopt;
  return std::move(best->plan);
}

// Older versions count like deletes: a snapshot that is gone by now made a compaction keep them.
bool DenseInDroppableEntries(const TableMeta& meta, SequenceNumber oldest_snapshot) {
  const uint64_t droppable = meta.deletes + (meta.entries - std::min(meta.entries, meta.distinct_keys));
  return droppable >= kDeletesLeast && droppable >= meta.entries / kDeletesOneIn + (meta.entries % kDeletesOneIn != 0) &&
         meta.largest_sequence <= oldest_snapshot;
}

std::optional<CompactionPlan> PickForDeletes(const TreeShape& tree, SequenceNumber oldest_snapshot, std::optional<uint32_t> held) {
  for (uint32_t level = 1; level < tree.size(); ++level) {
    if (level == held) continue;
    uint32_t output = level + 1;
    while (output < tree.size() && tree[output].empty()) ++output;
    if (output == tree.size()) output = level;
    if (output == held) continue;
    for (const FileShape& file : tree[level]) {
      if (file.busy || file.blocked || !DenseInDroppableEntries(*file.meta, oldest_snapshot)) continue;
      Draft draft = Complete(tree, level, output, {&file}, CompactionReason::kDeletes);
      if (draft.obstacle == Obstacle::kNone) return std::move(draft.plan);
    }
  }
  return std::nullopt;
}

std::string_view CursorKey(const std::vector<std::string>& cursor_keys, uint32_t level) {
  return level < cursor_keys.size() ? std::string_view(cursor_keys[level]) : std::string_view();
}

}  // namespace

LevelTargets ComputeLevelTargets(const TreeShape& tree, const CompactionOptions& options) {
  LevelTargets targets;
  const uint32_t levels = static_cast<uint32_t>(tree.size());
  targets.target_bytes.assign(levels, 0);
  targets.score.assign(levels, 0);
  if (levels < 2) return targets;
  const uint32_t last = levels - 1;

  uint64_t target = Bytes(tree[last], true);
  targets.base_level = last;
  targets.target_bytes[last] = std::max(target, options.level_base_bytes);
  while (target > options.level_base_bytes && targets.base_level > 1) {
    target /= std::max<uint32_t>(options.size_ratio, 2);
    targets.target_bytes[--targets.base_level] = std::max<uint64_t>(target, 1);
  }

  targets.score[0] = static_cast<double>(UnblockedFiles(tree[0])) / std::max<uint32_t>(options.l0_trigger, 1);
  for (uint32_t level = 1; level < last; ++level) {
    const double bytes = static_cast<double>(Bytes(tree[level], false));
    const double base_bytes = static_cast<double>(std::max<uint64_t>(options.level_base_bytes, 1));
    if (level >= targets.base_level) {
      targets.score[level] = bytes / static_cast<double>(std::max<uint64_t>(targets.target_bytes[level], 1));
    } else if (bytes > 0) {
      targets.score[level] = kScoreAboveBase + bytes / base_bytes;
    }
  }
  return targets;
}

uint64_t CompactionDebtBytes(const TreeShape& tree, const CompactionOptions& options) {
  if (tree.size() < 2) return 0;
  const LevelTargets targets = ComputeLevelTargets(tree, options);
  const uint32_t last = static_cast<uint32_t>(tree.size()) - 1;
  double debt = 0;
  double arriving = 0;  // bytes that the levels above will have sent into this one
  if (targets.score[0] >= 1) {
    arriving = static_cast<double>(Bytes(tree[0], false));
    debt = arriving + static_cast<double>(Bytes(tree[OutputLevel(tree, 0, targets.base_level)], false));
  }
  for (uint32_t level = 1; level < last; ++level) {
    const double bytes = static_cast<double>(Bytes(tree[level], false)) + arriving;
    const double target = static_cast<double>(targets.target_bytes[level]);
    if (bytes < target || bytes == 0) {
      arriving = 0;
      continue;
    }
    arriving = bytes - target;
    const double below = static_cast<double>(Bytes(tree[level + 1], false));
    // L0's bytes pass empty levels above the base for nothing.
    if (!tree[level].empty() || level >= targets.base_level) debt += arriving * (1 + below / bytes);
  }
  return static_cast<uint64_t>(debt);
}

std::string_view CompactionReasonName(CompactionReason reason) {
  switch (reason) {
    case CompactionReason::kL0Files:
      return "l0_files";
    case CompactionReason::kLevelSize:
      return "level_size";
    case CompactionReason::kDeletes:
      return "deletes";
    case CompactionReason::kManual:
      return "manual";
  }
  return "unknown";
}

std::optional<CompactionPlan> PickCompaction(const TreeShape& tree, const CompactionOptions& options,
                                             const std::vector<std::string>& cursor_keys, SequenceNumber oldest_snapshot,
                                             CompactionLane lane) {
  if (tree.size() < 2) return std::nullopt;
  const LevelTargets targets = ComputeLevelTargets(tree, options);
  const uint32_t last = static_cast<uint32_t>(tree.size()) - 1;
  const auto pick_level = [&](uint32_t level) {
    return PickBySize(tree, level, OutputLevel(tree, level, targets.base_level), CursorKey(cursor_keys, level));
  };

  std::optional<uint32_t> held;  // the level that plans must not touch because L0 waits for it
  if (targets.score[0] >= 1) {
    const uint32_t output = OutputLevel(tree, 0, targets.base_level);
    if (output != last && targets.score[output] > targets.score[0] && tree[0].size() < options.l0_slowdown) {
      if (auto plan = pick_level(output)) {
        if (lane == CompactionLane::kL0Only) return std::nullopt;
        return plan;
      }
    }
    bool busy = false;
    auto plan = PickL0(tree, output, std::vector<bool>(tree[0].size(), true), CompactionReason::kL0Files, options, &busy);
    if (plan && lane != CompactionLane::kDeepOnly) return plan;
    if (plan || (busy && !AnyBusy(tree[0]))) held = output;
  }
  if (lane == CompactionLane::kL0Only) return std::nullopt;

  std::vector<uint32_t> order(last - 1);
  std::iota(order.begin(), order.end(), 1);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return targets.score[a] > targets.score[b]; });
  for (uint32_t level : order) {
    if (targets.score[level] < 1) break;
    if (level == held || OutputLevel(tree, level, targets.base_level) == held) continue;
    if (auto plan = pick_level(level)) return plan;
  }
  return PickForDeletes(tree, oldest_snapshot, held);
}

std::optional<CompactionPlan> PickManual(const TreeShape& tree, const CompactionOptions& options, uint32_t level,
                                         std::optional<std::string_view> begin, std::optional<std::string_view> end, bool* busy) {
  *busy = false;
  if (tree.size() < 2 || level + 1 >= tree.size()) return std::nullopt;
  const auto in_range = [&](const TableMeta& meta) { return (!begin || meta.largest >= *begin) && (!end || meta.smallest < *end); };
  const uint32_t output = OutputLevel(tree, level, ComputeLevelTargets(tree, options).base_level);
  const Level& files = tree[level];
  if (level == 0) {
    std::vector<bool> wanted;
    for (const FileShape& file : files) wanted.push_back(in_range(*file.meta));
    return PickL0(tree, output, wanted, CompactionReason::kManual, options, busy);
  }
  bool waits = false;
  for (const FileShape& file : files) {
    if (!in_range(*file.meta) || file.blocked) continue;
    Draft draft = Complete(tree, level, output, {&file}, CompactionReason::kManual);
    if (file.busy) draft.obstacle = Obstacle::kBusy;
    if (draft.obstacle == Obstacle::kNone) return std::move(draft.plan);
    waits = waits || draft.obstacle == Obstacle::kBusy;
  }
  *busy = waits;
  return std::nullopt;
}

}  // namespace tamis::internal
