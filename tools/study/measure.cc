#include "tools/study/measure.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/study/workload.h"

namespace tamis::tools {
namespace {

constexpr uint64_t kColdShare = 50;
constexpr uint64_t kColdLookupsBetweenDrops = 16;
constexpr uint64_t kLookupsBetweenProgress = 256;
constexpr size_t kMostKeysAgainst = 2000;
constexpr uint64_t kMostTrials = 2000000;

// Streams of a seed: what they are for is in the upper digits.
constexpr uint64_t kTrainingStream = 1000;
constexpr uint64_t kWarmUpStream = 2000;
constexpr uint64_t kTrialStream = 3000;
constexpr uint64_t kMeasuredStream = 10000;  // and up, one a repeat

bool GoOn(const Progress& progress, uint64_t done) { return done % kLookupsBetweenProgress != 0 || !progress || progress(done, 0); }

absl::Status Stopped() { return absl::CancelledError("stopped"); }

// The pages of all files of a database, which the system may drop at once because tables were synced.
class PageDropper {
 public:
  explicit PageDropper(const std::string& path) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
      const int descriptor = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
      if (descriptor >= 0) descriptors_.push_back(descriptor);
    }
  }
  ~PageDropper() {
    for (const int descriptor : descriptors_) ::close(descriptor);
  }
  PageDropper(const PageDropper&) = delete;
  PageDropper& operator=(const PageDropper&) = delete;
  void Drop() const {
    for (const int descriptor : descriptors_) ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
  }

 private:
  std::vector<int> descriptors_;
};

// Keys of a level's tables that have a filter.
double FilteredKeys(const LevelStats& level) {
  return level.bits_per_key == 0
             ? 0
             : std::min(static_cast<double>(level.keys), 8.0 * static_cast<double>(level.filter_bytes) / level.bits_per_key);
}

// The model's rate of those tables: LevelStats counts tables without filter as 1.
double FilteredRate(const LevelStats& level) {
  const double filtered = FilteredKeys(level);
  if (filtered < 0.5) return 1;
  const double keys = static_cast<double>(level.keys);
  return std::clamp((level.predicted_fpr * keys - (keys - filtered)) / filtered, 0.0, 1.0);
}

struct Counted {
  uint64_t absent_lookups = 0;
  uint64_t found = 0;
};

// What happened between two readings of the statistics.
void AddCounters(const Stats& before, const Stats& after, const StudyCell& cell, uint64_t deleted_keys, const Counted& counted,
                 StudyRun* run) {
  run->found = counted.found;
  run->considered = after.files_considered - before.files_considered;
  run->skipped = after.files_skipped - before.files_skipped;
  run->blocks_read = after.blocks_read - before.blocks_read;
  run->filter_bytes = after.filter_bytes;
  uint64_t probes = 0;
  uint64_t true_positives = 0;
  uint64_t deletes = 0;
  uint64_t unfiltered_files = 0;
  for (size_t i = 0; i < after.levels.size(); ++i) {
    const LevelStats& now = after.levels[i];
    if (now.files == 0) continue;
    const LevelStats& then = before.levels[i];
    StudyLevel level{.level = now.level, .keys = now.keys, .filter_bytes = now.filter_bytes, .predicted_fpr = now.predicted_fpr};
    level.skipped = now.skipped - then.skipped;
    level.false_positives = now.false_positives - then.false_positives;
    level.true_positives = now.true_positives - then.true_positives;
    probes += now.probes - then.probes;
    true_positives += level.true_positives;
    deletes += now.deletes;
    unfiltered_files += now.files_without_filter;
    run->tree_keys += now.keys;
    run->predicted_wasted += static_cast<double>(level.skipped + level.false_positives) * FilteredRate(now);
    run->levels.push_back(level);
  }
  uint64_t met = counted.found;
  if (unfiltered_files == 0) {
    met = true_positives;
  } else if (cell.absent_kind == AbsentKind::kDeleted && deleted_keys != 0) {
    const double alive = std::min(1.0, static_cast<double>(deletes) / static_cast<double>(deleted_keys));
    met += static_cast<uint64_t>(alive * static_cast<double>(counted.absent_lookups));
  }
  run->wasted = run->considered - std::min(run->considered, run->skipped + met);
  // A table without filter is certain to be read: what it was asked for nothing is predicted as it happens.
  const uint64_t unfiltered_asks = run->considered - std::min(run->considered, probes);
  run->predicted_wasted += static_cast<double>(unfiltered_asks - std::min(unfiltered_asks, met - std::min(met, true_positives)));
}

class Measurement {
 public:
  Measurement(const StudyCell& cell, const TreeShape& shape, const MeasureSettings& settings, const Progress& progress, const DB& db,
              const std::string& path)
      : cell_(cell), shape_(shape), settings_(settings), progress_(progress), db_(db), path_(path) {
    read_.fill_cache = !cell.cold;
    mix_ = {.keys = shape.keys,
            .deleted_keys = shape.deleted_keys,
            .absent_percent = cell.absent_percent,
            .absent_kind = cell.absent_kind,
            .zipf_theta = cell.zipf_theta};
  }

  absl::StatusOr<std::vector<StudyRun>> Run() {
    if (cell_.absent_kind == AbsentKind::kAgainst) {
      absl::StatusOr<std::vector<std::string>> against = KeysAgainst(db_, shape_.seed, progress_);
      if (!against.ok()) return against.status();
      against_ = *std::move(against);
      mix_.against = &against_;
    }
    if (!cell_.cold) {
      StudyRun ignored;
      LookupStream stream(mix_, shape_.seed, kWarmUpStream);
      if (absl::Status s = Lookups(&stream, &ignored); !s.ok()) return s;
    }
    std::vector<StudyRun> runs;
    for (uint32_t repeat = 0; repeat < settings_.repeats; ++repeat) {
      StudyRun run{.seed = settings_.seed, .repeat = repeat};
      LookupStream stream(mix_, shape_.seed, kMeasuredStream + repeat);
      if (absl::Status s = Lookups(&stream, &run); !s.ok()) return s;
      runs.push_back(std::move(run));
    }
    return runs;
  }

 private:
  absl::Status Lookups(LookupStream* stream, StudyRun* run) {
    const absl::StatusOr<Stats> before = db_.GetStats();
    if (!before.ok()) return before.status();
    std::unique_ptr<PageDropper> dropper;
    if (cell_.cold) dropper = std::make_unique<PageDropper>(path_);
    Counted counted;
    PinnedValue value;
    std::string key;
    run->lookups = LookupsOf(cell_, settings_);
    for (uint64_t i = 0; i < run->lookups; ++i) {
      if (!GoOn(progress_, done_++)) return Stopped();
      if (dropper != nullptr && i % kColdLookupsBetweenDrops == 0) dropper->Drop();
      const bool present = stream->Next(&key);
      const auto begin = std::chrono::steady_clock::now();
      const absl::Status status = db_.Get(read_, key, &value);
      const auto end = std::chrono::steady_clock::now();
      if (!status.ok() && !absl::IsNotFound(status)) return status;
      if (status.ok() != present) return absl::InternalError(present ? "a present key was not found" : "an absent key was found");
      run->latency.Add(static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count()));
      ++(present ? counted.found : counted.absent_lookups);
    }
    const absl::StatusOr<Stats> after = db_.GetStats();
    if (!after.ok()) return after.status();
    AddCounters(*before, *after, cell_, shape_.deleted_keys, counted, run);
    return absl::OkStatus();
  }

  const StudyCell& cell_;
  const TreeShape& shape_;
  const MeasureSettings& settings_;
  const Progress& progress_;
  const DB& db_;
  const std::string& path_;
  ReadOptions read_;
  LookupMix mix_;
  std::vector<std::string> against_;
  uint64_t done_ = 0;
};

}  // namespace

uint64_t LookupsOf(const StudyCell& cell, const MeasureSettings& settings) {
  return cell.cold ? std::max<uint64_t>(1, settings.lookups / kColdShare) : settings.lookups;
}

FilterOptions FilterOptionsOf(const StudyDatabase& database, uint64_t seed) {
  FilterOptions filter;
  filter.kind = database.kind;
  filter.allocation = database.allocation.mode;
  filter.bits_per_key = database.bits_per_key;
  filter.wasted_reads_goal = database.allocation.goal;
  filter.hash_seed = Mix(seed ^ 0x5bd1e995);
  const std::vector<double>& bits = database.allocation.bits_by_level;
  if (!bits.empty()) {
    filter.bits_per_level.assign(kTreeLevels - database.levels, bits.front());  // L0 and the levels that stay empty
    filter.bits_per_level.insert(filter.bits_per_level.end(), bits.begin(), bits.end());
  }
  return filter;
}

uint64_t DeletedKeysOf(uint64_t keys) { return std::max<uint64_t>(1, keys / 50); }

absl::Status LearnFromLookups(DB* db, const TreeShape& shape, double absent_percent, uint64_t lookups, const Progress& progress) {
  const LookupMix mix{.keys = shape.keys, .absent_percent = absent_percent};
  LookupStream stream(mix, shape.seed, kTrainingStream);
  std::string key;
  PinnedValue value;
  for (uint64_t i = 0; i < lookups; ++i) {
    if (!GoOn(progress, i)) return Stopped();
    stream.Next(&key);
    const absl::Status status = db->Get(ReadOptions(), key, &value);
    if (!status.ok() && !absl::IsNotFound(status)) return status;
  }
  return absl::OkStatus();
}

absl::Status TrainTree(DB* db, const TreeShape& shape, double absent_percent, const Progress& progress) {
  if (absl::Status s = LearnFromLookups(db, shape, absent_percent, kTrainingLookups, progress); !s.ok()) return s;
  return db->RebuildFilters([&](uint64_t, uint64_t) { return !progress || progress(kTrainingLookups, 0); });
}

absl::StatusOr<std::vector<std::string>> KeysAgainst(const DB& db, uint64_t seed, const Progress& progress) {
  std::vector<std::string> found;
  std::string key;
  for (uint64_t trial = 0; trial < kMostTrials && found.size() < kMostKeysAgainst; ++trial) {
    if (trial % kLookupsBetweenProgress == 0 && progress && !progress(0, 0)) return Stopped();
    StudyKey(seed, kFirstAbsentKey + (kTrialStream << 32) + trial, &key);
    const absl::StatusOr<bool> may = db.MayExist(ReadOptions(), key);
    if (!may.ok()) return may.status();
    if (*may) found.push_back(key);
  }
  if (found.empty()) {
    StudyKey(seed, kFirstAbsentKey + (kTrialStream << 32), &key);
    found.push_back(key);
  }
  return found;
}

absl::StatusOr<std::vector<StudyRun>> MeasureCell(const StudyCell& cell, const TreeShape& shape, const std::string& path,
                                                  const MeasureSettings& settings, const Progress& progress) {
  // Filter settings are for tables that are written, of which there are none: read-only, nothing that lookups teach changes the tree.
  Options options = TreeOptions(shape, FilterOptions());
  options.read_only = true;
  options.create_if_missing = false;
  options.block_cache_bytes = cell.cache_bytes;
  const absl::StatusOr<std::unique_ptr<DB>> db = DB::Open(options, path);
  if (!db.ok()) return db.status();
  return Measurement(cell, shape, settings, progress, **db, path).Run();
}

}  // namespace tamis::tools
