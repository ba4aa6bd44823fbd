#include "engine/options_check.h"

#include <cmath>

#include "base/status_util.h"
#include "engine/version/version_edit.h"
#include "tamis/filter_prefix.h"

namespace tamis::internal {
namespace {

absl::Status InRange(std::string_view name, uint64_t value, uint64_t least, uint64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(Concat("Options::", name, " is ", value, ", legal are ", least, " to ", most));
}

absl::Status CheckBits(std::string_view name, double bits) {
  if (bits == 0 || (bits >= kMinBitsPerKey && bits <= kMaxBitsPerKey)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      Concat("Options::", name, " is ", bits, ", legal are 0 (no filter) and ", kMinBitsPerKey, " to ", kMaxBitsPerKey));
}

bool TablesCanHave(FilterKind kind) {
  switch (kind) {
    case FilterKind::kBlockedBloom:
    case FilterKind::kSplitBlockBloom:
    case FilterKind::kClassicBloom:
    case FilterKind::kRibbon:
    case FilterKind::kBinaryFuse:
      return true;
    default:
      return false;
  }
}

absl::Status CheckFilterOptions(const FilterOptions& filter) {
  if (!TablesCanHave(filter.kind) && filter.kind != FilterKind::kNone) {
    return absl::InvalidArgumentError("Options::filter.kind is not a kind that tables can have");
  }
  if (filter.last_level_kind && !TablesCanHave(*filter.last_level_kind)) {
    return absl::InvalidArgumentError("Options::filter.last_level_kind is not a kind of filter that tables can have");
  }
  if (filter.prefix_rule) {
    if (filter.prefix_rule->kind == FilterPrefixKind::kNone || !IsValidPrefixRule(*filter.prefix_rule)) {
      return absl::InvalidArgumentError(
          "Options::filter.prefix_rule is no rule: legal are a fixed length of 1 to 65535, and a delimiter of 0 to 255");
    }
    if (filter.kind == FilterKind::kNone) return absl::InvalidArgumentError("Options::filter.prefix_rule is set, but filter.kind is none");
  }
  TAMIS_RETURN_IF_ERROR(CheckBits("filter.prefix_bits_per_key", filter.prefix_bits_per_key));
  const bool optimal = filter.allocation == FilterAllocation::kOptimal;
  if (!optimal) TAMIS_RETURN_IF_ERROR(CheckBits("filter.bits_per_key", filter.bits_per_key));
  // An average: runs without a filter may bring it below what a filter has.
  if (optimal && !(filter.bits_per_key >= 0 && filter.bits_per_key <= kMaxBitsPerKey)) {
    return absl::InvalidArgumentError(
        Concat("Options::filter.bits_per_key is ", filter.bits_per_key, ", legal are averages of 0 to ", kMaxBitsPerKey));
  }
  if (!(filter.wasted_reads_goal >= 0 && std::isfinite(filter.wasted_reads_goal))) {
    return absl::InvalidArgumentError(
        Concat("Options::filter.wasted_reads_goal is ", filter.wasted_reads_goal, ", legal are finite numbers from 0"));
  }
  for (const double bits : filter.bits_per_level) TAMIS_RETURN_IF_ERROR(CheckBits("filter.bits_per_level", bits));
  if (!optimal && filter.allocation != FilterAllocation::kUniform && filter.allocation != FilterAllocation::kPerLevel) {
    return absl::InvalidArgumentError("Options::filter.allocation is not a known allocation");
  }
  if (filter.allocation == FilterAllocation::kPerLevel && filter.bits_per_level.empty()) {
    return absl::InvalidArgumentError("Options::filter.allocation is per level, but filter.bits_per_level is empty");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckOptions(const Options& options) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  TAMIS_RETURN_IF_ERROR(InRange("memtable_bytes", options.memtable_bytes, 4096, 4 * kGiB));
  TAMIS_RETURN_IF_ERROR(InRange("max_immutable_memtables", options.max_immutable_memtables, 1, 1000));
  TAMIS_RETURN_IF_ERROR(InRange("background_threads", options.background_threads, 0, 64));
  TAMIS_RETURN_IF_ERROR(InRange("max_open_files", options.max_open_files, 8, 1u << 30));
  TAMIS_RETURN_IF_ERROR(InRange("file_mode", options.file_mode, 0, 0777));
  if ((options.file_mode & 0600) != 0600) {
    return absl::InvalidArgumentError("Options::file_mode must let the owner read and write (0600)");
  }
  TAMIS_RETURN_IF_ERROR(InRange("table.block_bytes", options.table.block_bytes, 256, 1u << 20));
  if (options.table.compression != Compression::kNone && options.table.compression != Compression::kLz4) {
    return absl::InvalidArgumentError("Options::table.compression is not a known compression");
  }
  const CompactionOptions& compaction = options.compaction;
  TAMIS_RETURN_IF_ERROR(InRange("compaction.levels", compaction.levels, 2, kMaxLevels));
  TAMIS_RETURN_IF_ERROR(InRange("compaction.level_base_bytes", compaction.level_base_bytes, 4096, kGiB * kGiB));
  TAMIS_RETURN_IF_ERROR(InRange("compaction.size_ratio", compaction.size_ratio, 2, 100));
  TAMIS_RETURN_IF_ERROR(InRange("compaction.target_file_bytes", compaction.target_file_bytes, 4096, 1024 * kGiB));
  TAMIS_RETURN_IF_ERROR(InRange("compaction.l0_trigger", compaction.l0_trigger, 1, compaction.l0_slowdown));
  TAMIS_RETURN_IF_ERROR(InRange("compaction.l0_slowdown", compaction.l0_slowdown, compaction.l0_trigger, compaction.l0_stop));
  return CheckFilterOptions(options.filter);
}

}  // namespace tamis::internal
