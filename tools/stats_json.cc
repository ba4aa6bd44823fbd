#include "tools/stats_json.h"

#include <string>

namespace tamis::tools {

Json LevelJson(const LevelStats& level) {
  return Json{{"level", level.level},
              {"files", level.files},
              {"bytes", level.bytes},
              {"target_bytes", level.target_bytes},
              {"entries", level.entries},
              {"keys", level.keys},
              {"deletes", level.deletes},
              {"score", level.score},
              {"filter_kind", std::string(FilterKindName(level.filter_kind))},
              {"files_of_other_kinds", level.files_of_other_kinds},
              {"filter_bytes", level.filter_bytes},
              {"files_without_filter", level.files_without_filter},
              {"bits_per_key_target", level.bits_per_key_target},
              {"bits_per_key", level.bits_per_key},
              {"predicted_fpr", level.predicted_fpr},
              {"files_with_prefix_filter", level.files_with_prefix_filter},
              {"prefix_filter_bytes", level.prefix_filter_bytes},
              {"filter_fill", level.filter_fill},
              {"predicted_filter_fill", level.predicted_filter_fill},
              {"probes", level.probes},
              {"skipped", level.skipped},
              {"true_positives", level.true_positives},
              {"false_positives", level.false_positives},
              {"observed_fpr", level.observed_fpr},
              {"observed_fpr_lower", level.observed_fpr_lower},
              {"observed_fpr_upper", level.observed_fpr_upper},
              {"fpr_above_prediction", level.fpr_above_prediction},
              {"unfiltered", level.unfiltered},
              {"unfiltered_misses", level.unfiltered_misses},
              {"learned_lookups", level.learned.lookups},
              {"learned_probes", level.learned.probes},
              {"learned_misses", level.learned.misses},
              {"absent_probability", level.absent_probability},
              {"bytes_read", level.bytes_read},
              {"bytes_written", level.bytes_written},
              {"moved_bytes", level.moved_bytes},
              {"compactions", level.compactions},
              {"compaction_micros", level.compaction_micros}};
}

Json LevelsJson(const Stats& stats) {
  Json levels = Json::array();
  for (const LevelStats& level : stats.levels) levels.push_back(LevelJson(level));
  return levels;
}

}  // namespace tamis::tools
