#include "engine/compact/filter_runs.h"

#include <algorithm>

namespace tamis::internal {

std::vector<RunSize> RunsAfter(const Version& version, absl::Span<const uint64_t> inputs, uint32_t level, uint64_t keys) {
  std::vector<RunSize> runs;
  const auto is_last = [&](uint32_t at) { return at + 1 == version.levels().size(); };
  RunSize written{.level = level, .last_level = is_last(level), .keys = keys};
  for (uint32_t at = 0; at < version.levels().size(); ++at) {
    uint64_t sum = 0;
    for (const auto& file : version.levels()[at].files()) {
      const TableMeta& meta = file->meta();
      if (std::find(inputs.begin(), inputs.end(), meta.number) != inputs.end()) continue;
      if (at == 0) runs.push_back({.level = 0, .keys = meta.distinct_keys});
      sum += meta.distinct_keys;
    }
    if (at == 0) continue;
    if (at == level) {
      written.keys += sum;
    } else if (sum != 0) {
      runs.push_back({.level = at, .last_level = is_last(at), .keys = sum});
    }
  }
  runs.push_back(written);
  return runs;
}

std::vector<RunSize> RunsAfter(const ManifestState& state, absl::Span<const std::shared_ptr<TableFile>> recovered, uint64_t keys) {
  std::vector<RunSize> runs;
  for (uint32_t level = 0; level < state.levels.size(); ++level) {
    uint64_t sum = 0;
    for (const auto& [number, meta] : state.levels[level]) {
      if (level == 0) runs.push_back({.level = 0, .keys = meta.distinct_keys});
      sum += meta.distinct_keys;
    }
    if (level != 0 && sum != 0) runs.push_back({.level = level, .last_level = level + 1 == state.levels.size(), .keys = sum});
  }
  for (const auto& table : recovered) runs.push_back({.level = 0, .keys = table->meta().distinct_keys});
  runs.push_back({.level = 0, .keys = keys});
  return runs;
}

namespace {

// One for each table of L0, newest first, then one for each further level with keys. (The last run of the allocation is the last one with
// keys: an empty level below it must not take its place.)
std::vector<RunSize> RunsOf(const Version& version) {
  std::vector<RunSize> runs;
  for (uint32_t level = 0; level < version.levels().size(); ++level) {
    uint64_t keys = 0;
    for (const auto& file : version.levels()[level].files()) {
      if (level == 0) runs.push_back({.level = 0, .keys = file->meta().distinct_keys});
      keys += file->meta().distinct_keys;
    }
    if (level != 0 && keys != 0) runs.push_back({.level = level, .last_level = level + 1 == version.levels().size(), .keys = keys});
  }
  return runs;
}

}  // namespace

std::vector<std::vector<double>> TableTargets(const FilterOptions& options, const Version& version, absl::Span<const LevelMisses> lookups) {
  std::vector<std::vector<double>> targets(version.levels().size());
  const std::vector<RunSize> runs = RunsOf(version);
  const std::vector<FilterBits> bits = AllocateFilterBits(options, runs, lookups);
  for (size_t i = 0; i < runs.size(); ++i) {
    const uint32_t level = runs[i].level;
    const auto& files = version.levels()[level].files();
    FilterDivider divider(bits[i]);
    const size_t count = level == 0 ? 1 : files.size();
    for (size_t n = 0; n < count; ++n) targets[level].push_back(divider.Take(files[targets[level].size()]->meta().distinct_keys));
  }
  for (uint32_t level = 0; level < targets.size(); ++level) targets[level].resize(version.levels()[level].size());  // levels without keys
  return targets;
}

std::vector<double> FilterTargets(const FilterOptions& options, const Version& version, absl::Span<const LevelMisses> lookups) {
  const size_t levels = version.levels().size();
  const std::vector<RunSize> runs = RunsOf(version);
  std::vector<double> sums(levels);
  std::vector<double> weights(levels);
  const std::vector<FilterBits> bits = AllocateFilterBits(options, runs, lookups);
  for (size_t i = 0; i < runs.size(); ++i) {
    const double weight = std::max(1.0, static_cast<double>(runs[i].keys));
    sums[runs[i].level] += weight * bits[i].average();
    weights[runs[i].level] += weight;
  }
  for (uint32_t level = 0; level < levels; ++level) {
    if (weights[level] == 0) {
      sums[level] = AllocateFilterBits(options, {{.level = level, .last_level = level + 1 == levels, .keys = 0}}, lookups)[0].average();
    } else {
      sums[level] /= weights[level];
    }
  }
  return sums;
}

}  // namespace tamis::internal
