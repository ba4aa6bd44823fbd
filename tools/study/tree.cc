#include "tools/study/tree.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/study/workload.h"

namespace tamis::tools {
namespace {

// What a key takes in a table, about: 16 + 100 bytes of which half compress away, and its share of index and filter.
constexpr double kStoredBytesPerKey = 80;
constexpr uint64_t kLeastLevelBase = 4096;  // CompactionOptions::level_base_bytes
constexpr double kFullEnough = 0.65;        // of a level's target: leaves room for what falls from above
constexpr double kLanded = 0.05;            // of a level's target: it grew by a piece
constexpr int kPiecesPerLevel = 5;
constexpr int kMostPieces = 60;
constexpr uint64_t kKeysBetweenProgress = 1024;

double ProcessorNanos() {
  timespec spent;
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent) != 0) return 0;
  return 1e9 * static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec);
}

// Level targets are made from the last level's size S upwards (S, S / ratio, ...); a level is opened while the one below is larger than
// level_base_bytes. So the base S / ratio^(levels - 1.5) gives `levels` levels, and S may be wrong by half the ratio's magnitude.
double LevelBase(const TreeShape& shape) {
  return kStoredBytesPerKey * static_cast<double>(shape.keys) / std::pow(shape.ratio, static_cast<double>(shape.levels) - 1.5);
}

class Builder {
 public:
  Builder(const TreeShape& shape, const Progress& progress, DB* db) : shape_(shape), progress_(progress), db_(db) {}

  absl::Status Build() {
    if (absl::Status s = Load(); !s.ok()) return s;
    if (absl::Status s = DeleteKeys(); !s.ok()) return s;
    for (uint32_t above = 1; above < shape_.levels; ++above) {
      if (absl::Status s = FillLevel(kTreeLevels - 1 - above); !s.ok()) return s;
    }
    return CheckLevels();
  }
  uint64_t operations() const { return operations_; }

 private:
  absl::Status Step() {
    ++operations_;
    if (operations_ % kKeysBetweenProgress != 0 || !progress_ || progress_(operations_, 0)) return absl::OkStatus();
    return absl::CancelledError("stopped");
  }

  absl::Status Put(uint64_t index) {
    StudyKey(shape_.seed, index, &key_);
    StudyValue(shape_.seed, operations_, &value_);
    if (absl::Status s = db_->Put(key_, value_); !s.ok()) return s;
    return Step();
  }

  absl::Status Settle() {
    if (absl::Status s = db_->Flush(); !s.ok()) return s;
    return db_->WaitForBackgroundWork();
  }

  absl::Status Load() {
    for (uint64_t i = 0; i < shape_.keys + shape_.deleted_keys; ++i) {
      if (absl::Status s = Put(i); !s.ok()) return s;
    }
    return Settle();
  }

  absl::Status DeleteKeys() {
    for (uint64_t i = 0; i < shape_.deleted_keys; ++i) {
      StudyKey(shape_.seed, shape_.keys + i, &key_);
      if (absl::Status s = db_->Delete(WriteOptions(), key_); !s.ok()) return s;
      if (absl::Status s = Step(); !s.ok()) return s;
    }
    return shape_.deleted_keys == 0 ? absl::OkStatus() : Settle();
  }

  // Overwrites keys in pieces of a fifth of the level, which come to lie in it or, of smaller levels above, in these first. The last piece
  // has to stay: a level that gave a table to the next one lacks that table's range of keys, until the next piece closes the gap.
  absl::Status FillLevel(uint32_t level) {
    double before = 0;
    for (int piece = 0; piece < kMostPieces; ++piece) {
      const absl::StatusOr<Stats> stats = db_->GetStats();
      if (!stats.ok()) return stats.status();
      const auto bytes = static_cast<double>(stats->levels[level].bytes);
      const auto target = static_cast<double>(stats->levels[level].target_bytes);
      if (piece != 0 && bytes >= kFullEnough * target && bytes >= before + kLanded * target) break;
      before = bytes;
      for (auto i = static_cast<uint64_t>(std::max(target / kStoredBytesPerKey / kPiecesPerLevel, 2.0)); i > 0; --i) {
        if (absl::Status s = Put(next_overwrite_++ % shape_.keys); !s.ok()) return s;
      }
      if (absl::Status s = Settle(); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  absl::Status CheckLevels() {
    const absl::StatusOr<Stats> stats = db_->GetStats();
    if (!stats.ok()) return stats.status();
    uint32_t populated = 0;
    bool filled = stats->levels[0].files == 0;
    for (const LevelStats& level : stats->levels) {
      populated += level.files != 0 ? 1 : 0;
      const bool upper = level.level + shape_.levels >= kTreeLevels && level.level + 1 < kTreeLevels;
      if (upper) filled = filled && 2 * level.bytes >= level.target_bytes;
    }
    if (populated == shape_.levels && filled) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(shape_.keys, " keys at a size ratio of ", shape_.ratio, " did not make ",
                                                      shape_.levels, " full levels:\n",
                                                      db_->GetProperty("tamis.levels").value_or("").c_str()));
  }

  const TreeShape shape_;
  const Progress& progress_;
  DB* const db_;
  uint64_t operations_ = 0;
  uint64_t next_overwrite_ = 0;
  std::string key_;
  std::string value_;
};

}  // namespace

absl::Status CheckShape(const TreeShape& shape) {
  if (shape.levels < 1 || shape.levels >= kTreeLevels) {
    return absl::InvalidArgumentError(absl::StrCat("levels must be 1 to ", kTreeLevels - 1, ", not ", shape.levels));
  }
  if (shape.ratio < 2 || shape.ratio > 100) return absl::InvalidArgumentError(absl::StrCat("ratio must be 2 to 100, not ", shape.ratio));
  if (shape.keys == 0) return absl::InvalidArgumentError("keys must be at least 1");
  const double base = LevelBase(shape);
  if (base >= static_cast<double>(kLeastLevelBase)) return absl::OkStatus();
  const double needed = std::ceil(static_cast<double>(shape.keys) * static_cast<double>(kLeastLevelBase) / base);
  return absl::InvalidArgumentError(absl::StrCat(shape.levels, " levels of ratio ", shape.ratio, " take at least ",
                                                 static_cast<uint64_t>(needed), " keys, not ", shape.keys));
}

Options TreeOptions(const TreeShape& shape, const FilterOptions& filter) {
  const auto stored = static_cast<uint64_t>(kStoredBytesPerKey * static_cast<double>(shape.keys));
  Options options;
  options.background_threads = 0;
  options.filter = filter;
  options.memtable_bytes = std::clamp<uint64_t>(stored / 4, 64 << 10, 64 << 20);
  options.max_open_files = 100000;
  options.compaction.levels = kTreeLevels;
  options.compaction.size_ratio = shape.ratio;
  options.compaction.level_base_bytes = std::max(kLeastLevelBase, static_cast<uint64_t>(LevelBase(shape)));
  options.compaction.target_file_bytes = std::clamp<uint64_t>(stored / 64, 64 << 10, 4 << 20);
  options.compaction.l0_trigger = 1;  // nothing stays in L0
  options.logger = [](LogLevel, std::string_view) {};
  return options;
}

absl::StatusOr<BuiltTree> BuildTree(const TreeShape& shape, const FilterOptions& filter, const std::string& path,
                                    const Progress& progress) {
  const double begin = ProcessorNanos();
  Options options = TreeOptions(shape, filter);
  options.error_if_exists = true;
  absl::StatusOr<std::unique_ptr<DB>> db = DB::Open(options, path);
  if (!db.ok()) return db.status();
  Builder builder(shape, progress, db->get());
  if (absl::Status s = builder.Build(); !s.ok()) return s;
  BuiltTree built;
  built.nanos_per_key = (ProcessorNanos() - begin) / static_cast<double>(builder.operations());
  built.db = *std::move(db);
  return built;
}

absl::Status RegrowTree(DB* db, const TreeShape& shape, const Progress& progress) { return Builder(shape, progress, db).Build(); }

}  // namespace tamis::tools
