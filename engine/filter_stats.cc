#include "engine/filter_stats.h"

#include <algorithm>
#include <map>

namespace tamis::internal {
namespace {

bool Filtered(const TableFile& file) { return file.LoadedReader() != nullptr && file.filter().has_filter(); }

double RateOf(const TableFile& file) { return Filtered(file) ? file.filter_info().predicted_fpr : 1.0; }

// f of one run of the level: the chance that a lookup asks it in vain. In L0 several tables may be asked by one lookup, and the counters do
// not tell which: then it is the share of the probes.
double AbsentProbabilityOf(uint32_t level, LevelMisses learned) {
  if (level == 0) learned.lookups = std::max(learned.lookups, learned.probes);
  return AbsentProbability(learned);
}

void AddFilters(const LevelFiles& files, LevelStats* level) {
  double erring_keys = 0;
  uint64_t filtered_keys = 0;
  std::map<FilterKind, uint64_t> keys_by_kind;
  std::map<FilterKind, uint64_t> files_by_kind;
  for (const auto& file : files.files()) {
    const uint64_t keys = file->meta().distinct_keys;
    erring_keys += RateOf(*file) * static_cast<double>(keys);
    if (!Filtered(*file)) {
      ++level->files_without_filter;
      continue;
    }
    const FilterInfo& info = file->filter_info();
    level->filter_bytes += info.size_bytes;
    filtered_keys += keys;
    keys_by_kind[info.kind] += keys;
    ++files_by_kind[info.kind];
  }
  if (filtered_keys != 0) level->bits_per_key = 8.0 * static_cast<double>(level->filter_bytes) / static_cast<double>(filtered_keys);
  if (level->keys != 0) level->predicted_fpr = erring_keys / static_cast<double>(level->keys);
  if (keys_by_kind.empty()) return;
  level->filter_kind =
      std::max_element(keys_by_kind.begin(), keys_by_kind.end(), [](const auto& a, const auto& b) { return a.second < b.second; })->first;
  level->files_of_other_kinds = level->files - level->files_without_filter - files_by_kind[level->filter_kind];
}

void AddLookups(const LevelLookups& lookups, double limit, LevelStats* level) {
  const ObservedRate observed = ObserveRate(lookups.outcomes);
  level->skipped = lookups.outcomes.skipped_sum();
  level->false_positives = observed.false_positives;
  level->true_positives = lookups.true_positives;
  level->probes = observed.asked + lookups.true_positives;
  level->unfiltered = lookups.unfiltered;
  level->unfiltered_misses = lookups.unfiltered_misses;
  level->observed_fpr = observed.rate;
  level->observed_fpr_lower = observed.lower;
  level->observed_fpr_upper = observed.upper;
  level->fpr_above_prediction = AbovePrediction(lookups.outcomes, limit);
}

}  // namespace

RateLimits RateLimitsOf(const Version& version) {
  RateLimits limits;
  limits.fill(1);
  for (size_t level = 0; level < version.levels().size(); ++level) {
    double greatest = 0;
    for (const auto& file : version.levels()[level].files()) {
      if (Filtered(*file)) greatest = std::max(greatest, file->filter_rate_limit());
    }
    if (greatest > 0) limits[level] = std::min(1.0, greatest);
  }
  return limits;
}

void AddFilterStats(const Version& version, const LookupsSeen& seen, absl::Span<const double> bits_targets, Stats* stats) {
  uint64_t wasted = 0;
  for (LevelStats& level : stats->levels) {
    const LevelFiles& files = version.levels()[level.level];
    AddFilters(files, &level);
    AddLookups(seen.levels[level.level], seen.limits[level.level], &level);
    level.bits_per_key_target = bits_targets[level.level];
    level.learned = seen.learned[level.level];
    level.absent_probability = AbsentProbabilityOf(level.level, level.learned);
    stats->levels_above_prediction += level.fpr_above_prediction ? 1 : 0;
    stats->files_skipped += level.skipped;
    stats->filter_bytes += level.filter_bytes;
    wasted += level.false_positives + level.unfiltered_misses;
    if (level.level == 0) {
      for (const auto& file : files.files()) {
        stats->predicted_wasted_reads_absent += RateOf(*file);
        stats->predicted_wasted_reads += level.absent_probability * RateOf(*file);
      }
    } else if (level.files != 0) {
      stats->predicted_wasted_reads_absent += level.predicted_fpr;
      stats->predicted_wasted_reads += level.absent_probability * level.predicted_fpr;
    }
  }
  stats->gets = seen.gets;
  stats->gets_found = seen.found;
  if (seen.gets == 0) return;
  stats->observed_wasted_reads = static_cast<double>(wasted) / static_cast<double>(seen.gets);
  stats->negative_share = static_cast<double>(seen.gets - std::min(seen.gets, seen.found)) / static_cast<double>(seen.gets);
}

void MeasureFilterFill(const Version& version, Stats* stats) {
  for (LevelStats& level : stats->levels) {
    double bits = 0;
    double measured = 0;
    double predicted = 0;
    for (const auto& file : version.levels()[level.level].files()) {
      if (!Filtered(*file)) continue;
      const FilterInfo& info = file->filter_info();
      const auto weight = static_cast<double>(info.bits);
      bits += weight;
      measured += weight * file->filter().MeasuredFill();
      predicted += weight * (info.keys == 0 ? 0 : fpr_model::ExpectedFill(info.kind, info.bits_per_key, info.probes));
    }
    if (bits == 0) continue;
    level.filter_fill = measured / bits;
    level.predicted_filter_fill = predicted / bits;
  }
}

}  // namespace tamis::internal
