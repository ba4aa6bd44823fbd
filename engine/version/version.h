// One immutable state of the tree of tables, laid out for point reads.
//
// Invariants.
//   V1  Below L0 the files of a level are in key order and their user-key ranges are disjoint: at most one of them can hold a key, and
//       all versions of one user key within a level lie in one file.
//   V2  L0 files are in order of age, newest first, and of any key a newer one holds only newer entries.
//   V3  A level holds only newer entries of any key than every deeper level.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bucket_index.h"
#include "engine/compact/compaction_picker.h"
#include "engine/version/table_file.h"
#include "tamis/filter.h"

namespace tamis::internal {

// The files of one level with, in flat arrays, all that a lookup needs before it must touch a table: fences and filters.
class LevelFiles {
 public:
  LevelFiles() = default;
  // L0: newest first; other levels: by key. Readers that are open now are noted; the others are asked for when they are needed.
  // A filter made with another hash seed than `hash_seed` is not used (its answer would mean nothing).
  LevelFiles(std::vector<std::shared_ptr<TableFile>> files, uint64_t hash_seed);

  static constexpr size_t kNone = static_cast<size_t>(-1);
  // V1 levels: the index of the one file whose range holds `key`, or kNone. REQUIRES: not empty.
  size_t Find(std::string_view key) const;
  // Any level: whether the range of file `i` holds `key`.
  bool RangeHolds(size_t i, std::string_view key) const;
  // V1 levels: the index of the first file whose largest key is >= `key`; size() if none.
  size_t LowerBound(std::string_view key) const;

  size_t size() const { return files_.size(); }
  bool empty() const { return files_.empty(); }
  const std::shared_ptr<TableFile>& file(size_t i) const { return files_[i]; }
  const std::vector<std::shared_ptr<TableFile>>& files() const { return files_; }
  // Kind none (every key may be there) for a table without filter, with a refused one, of another hash seed, or not loaded yet.
  const FilterView& filter(size_t i) const { return filters_[i]; }
  absl::StatusOr<const TableReader*> Reader(size_t i) const {
    if (readers_[i] != nullptr) return readers_[i];
    return files_[i]->Reader();
  }
  uint64_t bytes() const { return bytes_; }

 private:
  // LowerBound for a key that has the common prefix and then `target`. REQUIRES: not empty.
  size_t FirstFence(std::string_view key, uint64_t target) const;

  std::vector<std::shared_ptr<TableFile>> files_;
  // The common prefix of all fence keys, and the 8 bytes after it (big-endian): searched as numbers, with a full compare only on ties.
  // (Of a machine's file paths 98 % start with one of three 8-byte strings: without the prefix nearly all compares would tie.)
  std::string common_prefix_;
  std::vector<uint64_t> largest_;
  BucketIndex largest_buckets_;  // none in L0, where they are in no order
  std::vector<uint64_t> smallest_;
  std::vector<FilterView> filters_;
  std::vector<const TableReader*> readers_;
  uint64_t bytes_ = 0;
};

class Version {
 public:
  // levels[0] newest first, others by key.
  Version(std::vector<std::vector<std::shared_ptr<TableFile>>> levels, uint64_t hash_seed);

  const std::vector<LevelFiles>& levels() const { return levels_; }
  // The shape for the picker; reads the busy and blocked marks, so the engine's mutex must be held.
  TreeShape Shape() const;
  std::shared_ptr<TableFile> FindByNumber(uint64_t number) const;  // linear; nullptr if not there
  uint64_t TotalBytes() const;
  // Whether a level deeper than `level` may hold `key` (by key ranges).
  bool MayExistBelow(uint32_t level, std::string_view key) const;

 private:
  std::vector<LevelFiles> levels_;
};

}  // namespace tamis::internal
