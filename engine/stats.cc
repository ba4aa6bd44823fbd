// Gathers the numbers of tamis/stats.h.
#include <algorithm>

#include "base/status_util.h"
#include "engine/compact/filter_runs.h"
#include "engine/db_impl.h"
#include "engine/filter_stats.h"

namespace tamis::internal {
namespace {

void AddTable(const TableFile& file, LevelStats* level, uint64_t* index_bytes) {
  const TableMeta& meta = file.meta();
  ++level->files;
  level->bytes += meta.size;
  level->entries += meta.entries;
  level->keys += meta.distinct_keys;
  level->deletes += meta.deletes;
  const TableReader* const reader = file.LoadedReader();
  if (reader == nullptr) return;
  level->files_with_prefix_filter += reader->prefix_filter().has_filter() ? 1 : 0;
  level->prefix_filter_bytes += reader->prefix_filter_bytes();
  *index_bytes += reader->ResidentBytes() - reader->prefix_filter_bytes();  // its key filter is not the reader's
}

}  // namespace

absl::StatusOr<Stats> DbImpl::GetStats(const StatsOptions& options) {
  const std::shared_ptr<const ReadView> view = PinView();
  if (view == nullptr) return handle_->Check();
  Stats stats;
  const Version& version = *view->version;
  LevelTargets targets;
  std::vector<std::shared_ptr<const Memtable>> memtables;  // released after the lock
  LookupsSeen seen;
  {
    MutexLock lock(mutex_);
    targets = ComputeLevelTargets(version.Shape(), options_.compaction);
    seen.learned = FoldLookups();
    seen.levels = lookups_.Levels();
    filter_ledger_.Settle(seen.levels, RateLimitsOf(version));
    for (uint32_t level = 0; level < kMaxLevels; ++level) seen.limits[level] = filter_ledger_.Limit(level);
    seen.gets = lookups_.Sum(LookupCounters::kGets);
    seen.found = lookups_.Sum(LookupCounters::kFound);
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
  uint64_t last_level_bytes = 0;
  for (LevelStats& level : stats.levels) {
    for (const auto& file : version.levels()[level.level].files()) AddTable(*file, &level, &stats.index_bytes);
    if (level.level < targets.target_bytes.size()) level.target_bytes = targets.target_bytes[level.level];
    if (level.level < targets.score.size()) level.score = targets.score[level.level];
    stats.prefix_filter_bytes += level.prefix_filter_bytes;
    stats.table_bytes += level.bytes;
    if (level.bytes != 0) last_level_bytes = level.bytes;
  }
  AddFilterStats(version, seen, FilterTargets(options_.filter, version, seen.learned), &stats);
  if (options.filter_fill) MeasureFilterFill(version, &stats);
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
