#include "engine/version/version.h"

#include <algorithm>
#include <cstring>

#include "base/coding.h"

namespace tamis::internal {
namespace {

size_t CommonPrefixLength(std::string_view a, std::string_view b) {
  const size_t limit = std::min(a.size(), b.size());
  size_t i = 0;
  while (i < limit && a[i] == b[i]) ++i;
  return i;
}

}  // namespace

LevelFiles::LevelFiles(std::vector<std::shared_ptr<TableFile>> files, uint64_t hash_seed) : files_(std::move(files)) {
  if (files_.empty()) return;
  std::string_view common = files_[0]->meta().smallest;
  for (const auto& file : files_) {
    common = common.substr(0, CommonPrefixLength(common, file->meta().smallest));
    common = common.substr(0, CommonPrefixLength(common, file->meta().largest));
  }
  common_prefix_ = std::string(common);
  for (const auto& file : files_) {
    const TableMeta& meta = file->meta();
    largest_.push_back(LoadBigPrefix(std::string_view(meta.largest).substr(common_prefix_.size())));
    smallest_.push_back(LoadBigPrefix(std::string_view(meta.smallest).substr(common_prefix_.size())));
    const TableReader* reader = file->LoadedReader();
    readers_.push_back(reader);
    const bool usable = reader != nullptr && file->filter().has_filter() && file->filter_info().seed == hash_seed;
    filters_.push_back(usable ? file->filter() : FilterView());
    bytes_ += meta.size;
  }
  if (std::is_sorted(largest_.begin(), largest_.end())) {
    largest_buckets_ = BucketIndex(largest_.size(), [this](size_t i) { return largest_[i]; });
  }
}

size_t LevelFiles::FirstFence(std::string_view key, uint64_t target) const {
  const size_t count = files_.size();
  const BucketIndex::Range range = largest_buckets_.Find(target);
  size_t i = range.begin;
  for (size_t left = range.end - range.begin; left != 0;) {
    const size_t half = (left + 1) / 2;
    // A mask, lest the compiler make it a branch: at random keys every second one would be mispredicted.
    const size_t below = largest_[i + half - 1] < target ? 1 : 0;
    i += half & (0 - below);
    left -= half;
  }
  while (i < count && largest_[i] == target && std::string_view(files_[i]->meta().largest) < key) ++i;
  return i;
}

size_t LevelFiles::LowerBound(std::string_view key) const {
  if (files_.empty()) return 0;
  // Against the common prefix first: a key without it lies before or after every fence.
  const size_t shared = common_prefix_.size();
  const int by_prefix = key.substr(0, shared).compare(common_prefix_);
  if (by_prefix != 0) return by_prefix < 0 ? 0 : files_.size();
  return FirstFence(key, LoadBigPrefix(key.substr(shared)));
}

size_t LevelFiles::Find(std::string_view key) const {
  const size_t shared = common_prefix_.size();
  if (key.size() < shared || std::memcmp(key.data(), common_prefix_.data(), shared) != 0) return kNone;
  const uint64_t target = LoadBigPrefix(key.substr(shared));
  const size_t i = FirstFence(key, target);
  if (i == files_.size()) return kNone;
  if (smallest_[i] != target) return smallest_[i] < target ? i : kNone;
  return std::string_view(files_[i]->meta().smallest) <= key ? i : kNone;
}

bool LevelFiles::RangeHolds(size_t i, std::string_view key) const {
  const size_t shared = common_prefix_.size();
  if (key.size() < shared || std::memcmp(key.data(), common_prefix_.data(), shared) != 0) return false;
  const uint64_t target = LoadBigPrefix(key.substr(shared));
  if (target < smallest_[i] || target > largest_[i]) return false;
  const TableMeta& meta = files_[i]->meta();
  if (target == smallest_[i] && key < std::string_view(meta.smallest)) return false;
  return target != largest_[i] || key <= std::string_view(meta.largest);
}

Version::Version(std::vector<std::vector<std::shared_ptr<TableFile>>> levels, uint64_t hash_seed) {
  levels_.reserve(levels.size());
  for (auto& files : levels) levels_.emplace_back(std::move(files), hash_seed);
}

TreeShape Version::Shape() const {
  TreeShape shape(levels_.size());
  for (size_t level = 0; level < levels_.size(); ++level) {
    for (const auto& file : levels_[level].files()) {
      shape[level].push_back({.meta = &file->meta(), .busy = file->marks().busy, .blocked = file->marks().blocked});
    }
  }
  return shape;
}

std::shared_ptr<TableFile> Version::FindByNumber(uint64_t number) const {
  for (const LevelFiles& level : levels_) {
    for (const auto& file : level.files()) {
      if (file->meta().number == number) return file;
    }
  }
  return nullptr;
}

uint64_t Version::TotalBytes() const {
  uint64_t total = 0;
  for (const LevelFiles& level : levels_) total += level.bytes();
  return total;
}

bool Version::MayExistBelow(uint32_t level, std::string_view key) const {
  for (size_t deeper = level + 1; deeper < levels_.size(); ++deeper) {
    if (!levels_[deeper].empty() && levels_[deeper].Find(key) != LevelFiles::kNone) return true;
  }
  return false;
}

}  // namespace tamis::internal
