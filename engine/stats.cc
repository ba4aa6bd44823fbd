// Gathers the numbers of tamis/stats.h.
#include <algorithm>

#include "base/status_util.h"
#include "engine/compact/filter_runs.h"
#include "engine/db_impl.h"

namespace tamis::internal {
namespace {

void AddTable(const TableFile& file, LevelStats* level, double* fpr_keys, uint64_t* filtered_keys, uint64_t* index_bytes) {
  const TableMeta& meta = file.meta();
  ++level->files;
  level->bytes += meta.size;
  level->entries += meta.entries;
  level->keys += meta.distinct_keys;
  level->deletes += meta.deletes;
  const TableReader* reader = file.LoadedReader();
  const bool filtered = reader != nullptr && file.filter().has_filter();
  if (!filtered) {
    ++level->files_without_filter;
    *fpr_keys += static_cast<double>(meta.distinct_keys);
  } else {
    const FilterInfo& info = file.filter_info();
    level->filter_bytes += info.size_bytes;
    *filtered_keys += meta.distinct_keys;
    *fpr_keys += info.predicted_fpr * static_cast<double>(meta.distinct_keys);
  }
  if (reader == nullptr) return;
  level->files_with_prefix_filter += reader->prefix_filter().has_filter() ? 1 : 0;
  level->prefix_filter_bytes += reader->prefix_filter_bytes();
  *index_bytes += reader->ResidentBytes() - reader->prefix_filter_bytes();  // its key filter is not the reader's
}

double FprOf(const TableFile& file) {
  return file.LoadedReader() != nullptr ? file.filter_info().predicted_fpr : 1.0;
}

}  // namespace

absl::StatusOr<Stats> DbImpl::GetStats() {
  const std::shared_ptr<const ReadView> view = PinView();
  if (view == nullptr) return handle_->Check();
  Stats stats;
  const Version& version = *view->version;
  LevelTargets targets;
  std::vector<std::shared_ptr<const Memtable>> memtables;  // released after the lock
  std::vector<LevelMisses> learned;
  {
    MutexLock lock(mutex_);
    targets = ComputeLevelTargets(version.Shape(), options_.compaction);
    learned = FoldLookups();
    for (const LevelFiles& level : version.levels()) {
      for (const auto& file : level.files()) stats.blocked_files += file->marks().blocked ? 1 : 0;
    }
    for (size_t i = 0; i < version.levels().size(); ++i) {
      LevelStats level;
      level.level = static_cast<uint32_t>(i);
      level.bytes_read = level_work_[i].bytes_read;
      level.bytes_written = level_work_[i].bytes_written;
      level.moved_bytes = level_work_[i].moved_bytes;
      level.compactions = level_work_[i].compactions;
      level.compaction_micros = level_work_[i].micros;
      stats.compaction_bytes_read += level.bytes_read;
      stats.compaction_bytes_written += level.bytes_written;
      stats.levels.push_back(level);
    }
    for (const auto& memtable : memtables_alive_) memtables.push_back(memtable.lock());
    stats.immutable_memtables = static_cast<uint32_t>(immutable_.size());
    stats.stalls = stalls_;
    stats.flushes = flushes_;
    stats.compactions = compactions_;
    stats.trivial_moves = trivial_moves_;
    stats.flush_bytes_written = flush_bytes_;
    stats.filters_rebuilt = filters_rebuilt_;
    stats.filter_bytes_written = filter_file_bytes_;
    stats.background_errors = background_errors_;
    if (!background_error_.ok()) stats.background_error = background_error_.ToString();
  }
  const std::vector<double> bits_targets = FilterTargets(options_.filter, version, learned);
  uint64_t last_level_bytes = 0;
  for (LevelStats& level : stats.levels) {
    const LevelFiles& files = version.levels()[level.level];
    double fpr_keys = 0;
    uint64_t filtered_keys = 0;
    for (const auto& file : files.files()) AddTable(*file, &level, &fpr_keys, &filtered_keys, &stats.index_bytes);
    if (level.level < targets.target_bytes.size()) level.target_bytes = targets.target_bytes[level.level];
    if (level.level < targets.score.size()) level.score = targets.score[level.level];
    level.bits_per_key_target = bits_targets[level.level];
    if (filtered_keys != 0) level.bits_per_key = 8.0 * static_cast<double>(level.filter_bytes) / static_cast<double>(filtered_keys);
    if (level.keys != 0) level.predicted_fpr = fpr_keys / static_cast<double>(level.keys);
    const LevelLookups lookups = lookups_.Level(level.level);
    level.probes = lookups.probes;
    level.skipped = lookups.skipped;
    level.true_positives = lookups.true_positives;
    level.false_positives = lookups.false_positives;
    const uint64_t negatives = level.skipped + level.false_positives;
    if (negatives != 0) level.observed_fpr = static_cast<double>(level.false_positives) / static_cast<double>(negatives);
    stats.files_skipped += level.skipped;
    stats.filter_bytes += level.filter_bytes;
    stats.prefix_filter_bytes += level.prefix_filter_bytes;
    stats.table_bytes += level.bytes;
    if (level.level == 0) {
      for (const auto& file : files.files()) stats.predicted_wasted_reads += FprOf(*file);
    } else if (level.files != 0) {
      stats.predicted_wasted_reads += level.predicted_fpr;
    }
    if (level.bytes != 0) last_level_bytes = level.bytes;
  }
  stats.last_sequence = visible_.load(std::memory_order_acquire);
  for (const auto& memtable : memtables) stats.memtable_bytes += memtable != nullptr ? memtable->footprint_bytes() : 0;
  stats.memtable_entries = view->memtable->entries();
  for (const auto& memtable : view->immutable) stats.memtable_entries += memtable->entries();
  if (context_->block_cache != nullptr) {
    const BlockCacheStats cache = context_->block_cache->GetStats();
    stats.block_cache_capacity = cache.capacity;
    stats.block_cache_bytes = cache.bytes;
  }
  if (logs_ != nullptr) {
    stats.log_bytes = logs_->allocated_bytes();
    stats.log_bytes_written = logs_->bytes_written();
  }
  stats.manifest_bytes_written = versions_->manifest_bytes_written();
  stats.obsolete_bytes = obsolete_->pending_bytes() + context_->kept_bytes->load(std::memory_order_relaxed);
  stats.snapshots = snapshots_->count();
  stats.oldest_snapshot_sequence = snapshots_->OldestOr(0);
  stats.puts = puts_.load(std::memory_order_relaxed);
  stats.deletes = deletes_.load(std::memory_order_relaxed);
  stats.user_bytes_written = user_bytes_.load(std::memory_order_relaxed);
  if (stats.user_bytes_written != 0) {
    stats.write_amplification =
        static_cast<double>(stats.log_bytes_written + stats.flush_bytes_written + stats.compaction_bytes_written) /
        static_cast<double>(stats.user_bytes_written);
  }
  if (last_level_bytes != 0) {
    stats.space_amplification = static_cast<double>(stats.table_bytes) / static_cast<double>(last_level_bytes);
  }
  stats.gets = lookups_.Sum(LookupCounters::kGets);
  stats.gets_found = lookups_.Sum(LookupCounters::kFound);
  stats.files_considered = lookups_.Sum(LookupCounters::kConsidered);
  stats.blocks_read = lookups_.Sum(LookupCounters::kBlocksRead);
  stats.prefix_probes = lookups_.Sum(LookupCounters::kPrefixProbes);
  stats.prefix_skipped = lookups_.Sum(LookupCounters::kPrefixSkips);
  stats.filters_refused = filters_refused_->load(std::memory_order_relaxed);
  stats.recovery = recovery_;
  return stats;
}

absl::StatusOr<uint64_t> DbImpl::Approximate(std::optional<std::string_view> begin, std::optional<std::string_view> end,
                                             bool count_entries) {
  const std::shared_ptr<const ReadView> view = PinView();
  if (view == nullptr) return handle_->Check();
  double total = 0;
  for (const LevelFiles& level : view->version->levels()) {
    for (const auto& file : level.files()) {
      const TableMeta& meta = file->meta();
      if ((end && std::string_view(meta.smallest) >= *end) || (begin && std::string_view(meta.largest) < *begin)) continue;
      double share = 1.0;
      const bool inside = (!begin || *begin <= std::string_view(meta.smallest)) && (!end || *end > std::string_view(meta.largest));
      if (!inside) {
        TAMIS_ASSIGN_OR_RETURN(const TableReader* reader, file->Reader());
        const double data = static_cast<double>(std::max<uint64_t>(1, reader->properties().stored_data_bytes));
        const double from = begin ? static_cast<double>(reader->ApproximateOffsetOf(*begin)) : 0.0;
        const double to = end ? static_cast<double>(reader->ApproximateOffsetOf(*end)) : data;
        share = std::clamp((to - from) / data, 0.0, 1.0);
      }
      total += share * static_cast<double>(count_entries ? meta.entries : meta.size);
    }
  }
  return static_cast<uint64_t>(total);
}

}  // namespace tamis::internal
