// Which compaction is due next: a pure function of the tree's shape and the settings.
//
// Leveled. Level targets are computed from the bottom up. Let `last` be levels - 1, S its size, r size_ratio, B level_base_bytes.
//   S <= B:  the base level is `last`.
//   else:    the base level is the deepest level i in [1, last) with S / r^(last - i) <= B, or 1 if there is none. Levels i in
//            [base, last) have the target S / r^(last - i) (integer divisions one after the other), at least 1. (Not at least B: at 20 M
//            keys a base level of B = 256 MiB above 1.1 GiB cost a quarter of the seeks' speed and 12 % of space, and saved 3 % of writes.)
// Levels between L0 and the base are to be empty. L0 is compacted into the base, so the upper levels together stay near 1/9 of the last,
// and space amplification near 1.1. A level over its target is compacted into the next, file by file; the last never is, unless for its
// deletes. When S shrinks or `levels` grows, the base moves down and files are left above it: these levels have the target 0 and a score
// of at least 100, so they are emptied downward before the others, and until then L0 goes into the first of them.
//
// Invariants that plans keep (and rely on).
//   P1  Within a level below L0 all entries of a user key are in one file: outputs are cut between user keys only (a duty of whoever runs
//       the plan). So inputs need no widening by files that share a boundary key.
//   P2  A newer entry of a key never gets below an older one: all files that overlap the hull (least range that covers them) of the first
//       inputs in the output level are inputs, levels between the two are empty, and an L0 file is taken only with every older L0 file
//       that overlaps it.
//       A plan from L0 also rewrites the files beside its range in the output level that are below an eighth of target_file_bytes.
//   P3  Plans that run at once have disjoint outputs. The engine marks all inputs of a running plan busy, of both levels. At most one
//       plan from L0 runs at a time (its hull may have gaps that a second one could fill). Other plans have one first input, which
//       every output input overlaps: the hull has no gaps, so two of them overlap only if they share a file or one's input overlaps the
//       other's; no plan is given whose hull overlaps a busy file of its two levels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/version/version_edit.h"
#include "tamis/options.h"

namespace tamis::internal {

struct FileShape {
  const TableMeta* meta = nullptr;
  bool busy = false;     // part of a running compaction
  bool blocked = false;  // damaged, or above something damaged: never an input (see below)
};

// L0 newest first; other levels by key. All `compaction.levels` of them.
using TreeShape = std::vector<std::vector<FileShape>>;

struct LevelTargets {
  uint32_t base_level = 1;             // where L0 goes; levels-1 in an empty tree
  std::vector<uint64_t> target_bytes;  // by level; [0] unused
  std::vector<double> score;           // by level; a compaction from the level is due from 1.0 on; blocked files do not count
};
LevelTargets ComputeLevelTargets(const TreeShape& tree, const CompactionOptions& options);

// Bytes that must still be compacted until every score is below 1, about (for stalls). Blocked files do not count.
uint64_t CompactionDebtBytes(const TreeShape& tree, const CompactionOptions& options);

enum class CompactionReason : uint8_t { kL0Files, kLevelSize, kDeletes, kManual };
std::string_view CompactionReasonName(CompactionReason reason);

struct CompactionPlan {
  CompactionReason reason = CompactionReason::kL0Files;
  uint32_t level = 0;  // of the first inputs
  uint32_t output_level = 1;
  // Numbers: from `level` (for L0 newest first) and from output_level (by key); see P2. kDeletes in place: output_level == level and no
  // output_inputs.
  std::vector<uint64_t> inputs;
  std::vector<uint64_t> output_inputs;
  // One input, nothing below it to merge with: the file can change its level without being rewritten. Never set for kDeletes, nor into
  // the last level for a file with deletes or several versions of a key: nothing would ever drop them there.
  bool trivial_move = false;
  uint64_t input_bytes = 0;
};

enum class CompactionLane : uint8_t { kAny, kL0Only, kDeepOnly };

// `cursor_keys[level]`: the largest key of the last compaction from that level; ties of overlap go to the first file after it, round
// the end. `oldest_snapshot` (without snapshots: the newest visible sequence): deletes newer than it cannot be dropped, so they do not
// make a kDeletes compaction due.
//
// Order of preference: L0 when its score is at least 1, then the level with the highest score; then deletes: a file below L0 of which at
// least a third (and at least 16) of the entries are deletes or older versions of a key is compacted into the next non-empty level below (or, with none, rewritten
// in place), if no entry of it is newer than oldest_snapshot. Within a level the file with the least (overlapping bytes below / own
// size), among files whose inputs are not busy and not blocked.
//
// From L0 all free files are taken; but the oldest that overlaps neither an older L0 file nor anything in the output level is moved alone
// first (so sequential loads are never rewritten). L0 and the level it goes into need the same files, so the one with the lower score
// waits for the other: L0 only while it has fewer than l0_slowdown files and the other level has a plan that can start now; plans that
// touch that level while L0 is due and waits for files of it. nullopt: nothing is due (or what is due is busy or waits).
std::optional<CompactionPlan> PickCompaction(const TreeShape& tree, const CompactionOptions& options,
                                             const std::vector<std::string>& cursor_keys, SequenceNumber oldest_snapshot,
                                             CompactionLane lane);

// For CompactRange: the next step that brings what lies in [begin, end) (nullopt: open) from `level` into the next level below that is
// at least the base level or not empty. L0 takes all overlapping files and what must go with them; other levels one file a step. In the
// last level: nullopt. nullopt too if nothing of the range is there. Busy inputs: nullopt with *busy = true, if no other step is
// possible; blocked files are left out together with what must not pass them.
std::optional<CompactionPlan> PickManual(const TreeShape& tree, const CompactionOptions& options, uint32_t level,
                                         std::optional<std::string_view> begin, std::optional<std::string_view> end, bool* busy);

}  // namespace tamis::internal
