#include "engine/read/point_get.h"

#include <array>

#include "engine/version/version_edit.h"

namespace tamis::internal {
namespace {

// One table whose key range holds the key. Levels below L0 give at most one each (V1), L0 any number.
struct Candidate {
  const LevelFiles* files;
  uint32_t index;
  uint32_t level;
};

// The candidates of one lookup, newest first. L0 beyond what fits is found again, one by one, by the slow path below: 20 files is where
// writes are slowed, so more are rare.
class Candidates {
 public:
  static constexpr size_t kInline = kMaxLevels + 24;

  void Find(const Version& version, const LookupKey& key, bool prefetch) {
    count_ = 0;
    const auto& levels = version.levels();
    const LevelFiles& l0 = levels[0];
    size_t i = 0;
    for (; i < l0.size(); ++i) {
      if (!l0.RangeHolds(i, key.user_key)) continue;
      if (count_ == kInline - kMaxLevels) break;
      Push(l0, i, 0, key.hash, prefetch);
    }
    l0_rest_ = i;
    l0_end_ = count_;
    for (size_t level = 1; level < levels.size(); ++level) {
      const LevelFiles& files = levels[level];
      if (files.empty()) continue;
      const size_t found = files.Find(key.user_key);
      if (found != LevelFiles::kNone) Push(files, found, static_cast<uint32_t>(level), key.hash, prefetch);
    }
  }

  size_t count() const { return count_; }
  const Candidate& at(size_t i) const { return items_[i]; }
  size_t l0_end() const { return l0_end_; }    // items before it are of L0
  size_t l0_rest() const { return l0_rest_; }  // first L0 file not looked at

 private:
  void Push(const LevelFiles& files, size_t index, uint32_t level, uint64_t hash, bool prefetch) {
    items_[count_++] = {&files, static_cast<uint32_t>(index), level};
    if (prefetch) files.filter(index).Prefetch(hash);
  }

  std::array<Candidate, kInline> items_;
  size_t count_ = 0;
  size_t l0_end_ = 0;
  size_t l0_rest_ = 0;
};

bool AskMemtables(const ReadView& view, const LookupKey& key, PointResult* result) {
  const auto ask = [&](const std::shared_ptr<Memtable>& memtable) {
    const Memtable::Lookup found = memtable->Get(key.user_key, key.sequence);
    if (found.state == LookupState::kAbsent) return false;
    result->state = found.state;
    result->value = found.value;
    result->memtable = &memtable;
    return true;
  };
  if (ask(view.memtable)) return true;
  for (const auto& memtable : view.immutable) {
    if (ask(memtable)) return true;
  }
  return false;
}

// Asks one candidate. True: the lookup is over (found, deleted, or an error in *status).
bool AskTable(const Candidate& candidate, const PointGetOptions& options, const LookupKey& key, LookupCounters::Stripe* stripe,
              PointResult* result, absl::Status* status) {
  const FilterView& filter = candidate.files->filter(candidate.index);
  const bool ask_filter = options.use_filters && filter.has_filter();
  if (ask_filter && !filter.MayContain(key.hash)) {
    stripe->AddSkipped(candidate.level, key.hash);
    return false;
  }
  const absl::StatusOr<const TableReader*> reader = candidate.files->Reader(candidate.index);
  if (!reader.ok()) {
    *status = reader.status();
    return true;
  }
  *status = (*reader)->Get(options.table, key, &result->table);
  if (!status->ok()) return true;
  if (result->table.block_read) stripe->Add(LookupCounters::kBlocksRead);
  result->state = result->table.state;
  result->value = result->table.value;
  const bool met = result->state != LookupState::kAbsent;
  // An entry above the lookup's sequence also makes the filter right, but is not told apart here: snapshots are rare.
  if (ask_filter && !met) {
    stripe->AddFalsePositive(candidate.level, key.hash);
  } else if (ask_filter) {
    stripe->Add(candidate.level, LookupCounters::kTruePositive);
  } else {
    stripe->Add(candidate.level, LookupCounters::kUnfiltered);
    if (!met) stripe->Add(candidate.level, LookupCounters::kUnfilteredMiss);
  }
  return met;
}

absl::Status AskTables(const ReadView& view, const PointGetOptions& options, const LookupKey& key, const Candidates& candidates,
                       LookupCounters::Stripe* stripe, PointResult* result) {
  absl::Status status;
  size_t considered = 0;
  size_t i = 0;
  for (; i < candidates.l0_end(); ++i) {
    ++considered;
    if (AskTable(candidates.at(i), options, key, stripe, result, &status)) {
      stripe->Add(LookupCounters::kConsidered, considered);
      return status;
    }
  }
  const LevelFiles& l0 = view.version->levels()[0];
  for (size_t rest = candidates.l0_rest(); rest < l0.size(); ++rest) {
    if (!l0.RangeHolds(rest, key.user_key)) continue;
    ++considered;
    if (AskTable({&l0, static_cast<uint32_t>(rest), 0}, options, key, stripe, result, &status)) {
      stripe->Add(LookupCounters::kConsidered, considered);
      return status;
    }
  }
  for (; i < candidates.count(); ++i) {
    ++considered;
    if (AskTable(candidates.at(i), options, key, stripe, result, &status)) break;
  }
  stripe->Add(LookupCounters::kConsidered, considered);
  return status;
}

}  // namespace

absl::Status PointGet(const ReadView& view, const PointGetOptions& options, const LookupKey& key, LookupCounters* counters,
                      PointResult* result) {
  LookupCounters::Stripe& stripe = counters->Mine();
  stripe.Add(LookupCounters::kGets);
  Candidates candidates;
  candidates.Find(*view.version, key, options.use_filters);
  absl::Status status;
  if (!AskMemtables(view, key, result)) status = AskTables(view, options, key, candidates, &stripe, result);
  if (result->state == LookupState::kFound) stripe.Add(LookupCounters::kFound);
  return status;
}

void PointMultiGet(const ReadView& view, const PointGetOptions& options, absl::Span<const LookupKey> keys, LookupCounters* counters,
                   absl::Span<PointResult> results, absl::Span<absl::Status> statuses) {
  LookupCounters::Stripe& stripe = counters->Mine();
  std::array<Candidates, kMultiGetGroup> candidates;
  stripe.Add(LookupCounters::kGets, keys.size());
  for (size_t i = 0; i < keys.size(); ++i) candidates[i].Find(*view.version, keys[i], options.use_filters);
  for (size_t i = 0; i < keys.size(); ++i) AskMemtables(view, keys[i], &results[i]);
  for (size_t i = 0; i < keys.size(); ++i) {
    if (results[i].state == LookupState::kAbsent) {
      statuses[i] = AskTables(view, options, keys[i], candidates[i], &stripe, &results[i]);
    }
    if (results[i].state == LookupState::kFound) stripe.Add(LookupCounters::kFound);
  }
}

bool PointMayExist(const ReadView& view, const LookupKey& key) {
  PointResult result;
  if (AskMemtables(view, key, &result)) return result.state == LookupState::kFound;
  const auto may = [&](const LevelFiles& files, size_t i) { return files.filter(i).MayContain(key.hash); };
  const auto& levels = view.version->levels();
  for (size_t i = 0; i < levels[0].size(); ++i) {
    if (levels[0].RangeHolds(i, key.user_key) && may(levels[0], i)) return true;
  }
  for (size_t level = 1; level < levels.size(); ++level) {
    if (levels[level].empty()) continue;
    const size_t found = levels[level].Find(key.user_key);
    if (found != LevelFiles::kNone && may(levels[level], found)) return true;
  }
  return false;
}

}  // namespace tamis::internal
