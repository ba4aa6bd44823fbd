#include "tools/study/study.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/study/workload.h"

namespace tamis::tools {
namespace {

constexpr uint64_t kBuildWeight = 5;  // a Put with its flushes and compactions takes about as long as five lookups

class WorkFolder {
 public:
  static absl::StatusOr<std::unique_ptr<WorkFolder>> Make(const std::string& parent) {
    std::string path = parent + "/tamis-study-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat("making a folder in ", parent));
    return std::make_unique<WorkFolder>(std::move(path));
  }
  explicit WorkFolder(std::string path) : path_(std::move(path)) {}
  ~WorkFolder() { Remove(path_); }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  const std::string& path() const { return path_; }
  static void Remove(const std::string& path) {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }

 private:
  const std::string path_;
};

TreeShape ShapeOf(const StudyDatabase& database, const StudyPlan& plan, uint64_t seed) {
  return {.keys = plan.keys,
          .deleted_keys = database.deletes ? DeletedKeysOf(plan.keys) : 0,
          .levels = database.levels,
          .ratio = plan.ratio,
          .seed = seed};
}

std::string CellText(const StudyCell& cell) {
  std::string text;
  for (size_t axis = 0; axis < kAxes; ++axis) text += absl::StrCat(axis == 0 ? "" : " ", kAxisNames[axis], "=", AxisText(cell, axis));
  return text;
}

bool Trains(const StudyDatabase& database) { return database.allocation.mode == FilterAllocation::kOptimal; }

class Runner {
 public:
  Runner(const StudyPlan& plan, const StudyPart& part, const Progress& progress, std::vector<StudyGroup> groups, StudyResult* result)
      : plan_(plan), part_(part), progress_(progress), groups_(std::move(groups)), result_(result) {
    settings_ = {.lookups = plan.lookups, .repeats = part.repeats, .seed = part.seed};
    for (const StudyGroup& group : groups_) {
      total_ += BuildWork(group.database);
      for (const size_t cell : group.cells) total_ += CellWork(cell);
    }
  }

  absl::Status Run() {
    const auto folder = WorkFolder::Make(part_.parent_directory);
    if (!folder.ok()) return folder.status();
    for (const StudyGroup& group : groups_) {
      const std::string path = (*folder)->path() + "/db";
      const absl::Status s = RunGroup(group, path);
      if (absl::IsCancelled(s)) return s;
      if (!s.ok()) return absl::Status(s.code(), absl::StrCat(CellText(result_->cells[group.cells[0]].cell), ": ", s.message()));
      WorkFolder::Remove(path);
    }
    return absl::OkStatus();
  }

 private:
  uint64_t BuildWork(const StudyDatabase& database) const { return kBuildWeight * plan_.keys + (Trains(database) ? kTrainingLookups : 0); }
  uint64_t CellWork(size_t cell) const {
    const StudyCell& its = result_->cells[cell].cell;
    return LookupsOf(its, settings_) * (part_.repeats + (its.cold ? 0 : 1));
  }
  // Of a step that is worth `work` operations in all and counts its own.
  Progress StepProgress(uint64_t weight, uint64_t work) const {
    return [this, weight, work](uint64_t done, uint64_t) { return !progress_ || progress_(done_ + std::min(work, weight * done), total_); };
  }

  absl::Status RunGroup(const StudyGroup& group, const std::string& path) {
    const TreeShape shape = ShapeOf(group.database, plan_, part_.seed);
    absl::StatusOr<double> build_nanos = Build(group.database, shape, path);
    if (!build_nanos.ok()) return build_nanos.status();
    for (const size_t cell : group.cells) {
      CellResult& result = result_->cells[cell];
      absl::StatusOr<std::vector<StudyRun>> runs = MeasureCell(result.cell, shape, path, settings_, StepProgress(1, CellWork(cell)));
      if (!runs.ok()) return runs.status();
      for (StudyRun& run : *runs) run.build_nanos_per_key = *build_nanos;
      result.runs = *std::move(runs);
      done_ += CellWork(cell);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<double> Build(const StudyDatabase& database, const TreeShape& shape, const std::string& path) {
    const uint64_t building = kBuildWeight * plan_.keys;
    absl::StatusOr<BuiltTree> built = BuildTree(shape, FilterOptionsOf(database, part_.seed), path, StepProgress(kBuildWeight, building));
    if (!built.ok()) return built.status();
    done_ += building;
    if (Trains(database)) {
      if (absl::Status s = TrainTree(built->db.get(), shape, database.trained_absent_percent, StepProgress(1, kTrainingLookups)); !s.ok()) {
        return s;
      }
      done_ += kTrainingLookups;
    }
    if (absl::Status s = built->db->Close(); !s.ok()) return s;
    return built->nanos_per_key;
  }

  const StudyPlan& plan_;
  const StudyPart& part_;
  const Progress& progress_;
  const std::vector<StudyGroup> groups_;
  StudyResult* const result_;
  MeasureSettings settings_;
  uint64_t total_ = 0;
  uint64_t done_ = 0;
};

}  // namespace

absl::StatusOr<StudyResult> EmptyResult(const StudyPlan& plan) {
  absl::StatusOr<std::vector<StudyCell>> cells = CellsOf(plan.sections);
  if (!cells.ok()) return cells.status();
  StudyResult result{.plan = plan, .cells = {}};
  for (StudyCell& cell : *cells) result.cells.push_back({.cell = std::move(cell)});
  return result;
}

absl::StatusOr<StudyResult> RunStudy(const StudyPlan& plan, const StudyPart& part, const Progress& progress) {
  if (part.shards == 0 || part.shard == 0 || part.shard > part.shards) {
    return absl::InvalidArgumentError(absl::StrCat("shard ", part.shard, "/", part.shards, " is none: 1/", part.shards, " is the first"));
  }
  if (part.repeats == 0 || plan.lookups == 0) return absl::InvalidArgumentError("repeats and lookups must be at least 1");
  absl::StatusOr<StudyResult> result = EmptyResult(plan);
  if (!result.ok()) return result.status();
  std::vector<StudyCell> cells;
  for (const CellResult& cell : result->cells) {
    const absl::Status possible = CheckShape(ShapeOf(DatabaseOf(cell.cell), plan, part.seed));
    if (!possible.ok()) return possible;
    cells.push_back(cell.cell);
  }
  Runner runner(plan, part, progress, GroupsOf(cells, part.shard, part.shards), &*result);
  if (absl::Status s = runner.Run(); !s.ok()) return s;
  return result;
}

absl::StatusOr<StudyResult> MergeResults(absl::Span<const StudyResult> parts) {
  if (parts.empty()) return absl::InvalidArgumentError("nothing to merge");
  StudyResult all = parts[0];
  for (const StudyResult& part : parts.subspan(1)) {
    if (!(part.plan == all.plan))
      return absl::InvalidArgumentError("these are parts of different studies: their axes, keys, lookups or ratio differ");
    for (size_t i = 0; i < all.cells.size(); ++i) {
      all.cells[i].runs.insert(all.cells[i].runs.end(), part.cells[i].runs.begin(), part.cells[i].runs.end());
    }
  }
  for (CellResult& cell : all.cells) {
    const auto identity = [](const StudyRun& run) { return std::tuple(run.seed, run.repeat); };
    std::stable_sort(cell.runs.begin(), cell.runs.end(), [&](const auto& a, const auto& b) { return identity(a) < identity(b); });
    const auto twice =
        std::adjacent_find(cell.runs.begin(), cell.runs.end(), [&](const auto& a, const auto& b) { return identity(a) == identity(b); });
    if (twice == cell.runs.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(CellText(cell.cell), " with seed ", twice->seed, " is in two of the files: it would count twice"));
  }
  return all;
}

}  // namespace tamis::tools
