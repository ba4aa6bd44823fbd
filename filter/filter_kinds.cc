// Reading, of all kinds alike: the probes of kinds other than kBlockedBloom (whose are inline), and what a filter says of itself.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "filter/binary_fuse.h"
#include "filter/classic_bloom.h"
#include "filter/filter_format.h"
#include "filter/ribbon.h"
#include "filter/split_block_bloom.h"
#include "tamis/filter.h"

namespace tamis {
namespace {

// Of the filter as it is: the model knows only bits per key.
double PredictedRate(const internal::FilterHeader& header, double bits_per_key) {
  if (header.kind == FilterKind::kRibbon) return internal::RibbonShape::Of(header.lines, header.probes, header.layout).Rate();
  if (header.kind == FilterKind::kBinaryFuse) return std::ldexp(1.0, -int{header.probes});
  return fpr_model::FalsePositiveRate(header.kind, bits_per_key, header.probes);
}

}  // namespace

bool FilterView::MayContainOther(uint64_t hash) const {
  switch (kind_) {
    case FilterKind::kSplitBlockBloom:
      return internal::SplitBlockMayContain(base_ + internal::SplitBlockIndex(hash, units_) * internal::kSplitBlockBytes, hash);
    case FilterKind::kClassicBloom:
      if (hash_id_ == kFilterHashXxh3_128) return true;
      return internal::ClassicMayContain(base_, units_, probes_, internal::ClassicProbes(hash));
    case FilterKind::kRibbon: {
      const internal::RibbonShape shape{units_, probes_, layout_, region_blocks_};
      return internal::RibbonMayContain(internal::RibbonProbe(base_, shape, hash));
    }
    case FilterKind::kBinaryFuse:
      return internal::FuseMayContain(base_, internal::FuseShape::Of(units_, probes_, layout_), hash);
    case FilterKind::kNone:
    case FilterKind::kBlockedBloom:
      break;
  }
  return true;
}

bool FilterView::MayContain128(const FilterHash128& hash) const {
  if (hash_id_ != kFilterHashXxh3_128) return true;
  return internal::ClassicMayContain(base_, units_, probes_, internal::ClassicProbes(hash));
}

void FilterView::PrefetchOther(uint64_t hash) const {
  switch (kind_) {
    case FilterKind::kSplitBlockBloom:
      __builtin_prefetch(base_ + internal::SplitBlockIndex(hash, units_) * internal::kSplitBlockBytes);
      break;
    case FilterKind::kClassicBloom: {
      internal::ClassicProbes key(hash);
      for (uint32_t i = 0; i < std::min<uint32_t>(probes_, 4); ++i) __builtin_prefetch(base_ + (key.Next(units_) >> 3));
      break;
    }
    case FilterKind::kRibbon: {
      const internal::RibbonShape shape{units_, probes_, layout_, region_blocks_};
      internal::RibbonPrefetch(internal::RibbonProbe(base_, shape, hash));
      break;
    }
    case FilterKind::kBinaryFuse:
      internal::FusePrefetch(base_, internal::FuseShape::Of(units_, probes_, layout_), hash);
      break;
    case FilterKind::kNone:
    case FilterKind::kBlockedBloom:
      break;
  }
}

void FilterView::MayContainBatchOther(absl::Span<const uint64_t> hashes, absl::Span<bool> may) const {
  const size_t count = std::min(hashes.size(), may.size());
  if (kind_ == FilterKind::kRibbon) {
    internal::RibbonMayContainBatch(base_, {units_, probes_, layout_, region_blocks_}, hashes.data(), may.data(), count);
    return;
  }
  if (kind_ == FilterKind::kBinaryFuse) {
    internal::FuseMayContainBatch(base_, internal::FuseShape::Of(units_, probes_, layout_), hashes.data(), may.data(), count);
    return;
  }
  // Smaller groups than the blocked kind's 32: a key of kClassicBloom is four lines at first.
  constexpr size_t kGroup = 8;
  for (size_t begin = 0; begin < count; begin += kGroup) {
    const size_t end = std::min(count, begin + kGroup);
    for (size_t i = begin; i < end; ++i) PrefetchOther(hashes[i]);
    for (size_t i = begin; i < end; ++i) may[i] = MayContainOther(hashes[i]);
  }
}

FilterInfo FilterView::Info() const {
  FilterInfo info;
  if (!has_filter()) {
    info.predicted_fpr = 1.0;
    return info;
  }
  const internal::FilterHeader header = internal::ParseFilterHeader(base_ - internal::kFilterHeaderBytes);
  info.kind = header.kind;
  info.hash_id = header.hash_id;
  info.probes = header.probes;
  info.lines = internal::FilterBodyLines(header);
  info.bits = internal::FilterBodyBits(header);
  info.keys = header.keys;
  info.seed = header.seed;
  info.owner = header.owner;
  info.prefix_rule = header.prefix_rule;
  info.size_bytes = internal::kFilterHeaderBytes + info.lines * internal::kFilterLineBytes;
  if (header.keys == kFilterKeysUnknown) {
    info.predicted_fpr = 1;
  } else if (header.keys != 0) {
    info.bits_per_key = static_cast<double>(info.bits) / static_cast<double>(header.keys);
    info.predicted_fpr = PredictedRate(header, info.bits_per_key);
  }
  return info;
}

double FilterView::MeasuredFill() const {
  if (!has_filter()) return 0;
  const internal::FilterHeader header = internal::ParseFilterHeader(base_ - internal::kFilterHeaderBytes);
  uint64_t set = 0;
  const size_t size = static_cast<size_t>(internal::FilterBodyLines(header) * internal::kFilterLineBytes);
  for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, base_ + i, sizeof(word));
    set += static_cast<uint64_t>(std::popcount(word));
  }
  return static_cast<double>(set) / static_cast<double>(internal::FilterBodyBits(header));
}

uint64_t FilterView::seed() const { return has_filter() ? internal::ParseFilterHeader(base_ - internal::kFilterHeaderBytes).seed : 0; }

FilterPrefixRule FilterView::prefix_rule() const {
  return has_filter() ? internal::ParseFilterHeader(base_ - internal::kFilterHeaderBytes).prefix_rule : FilterPrefixRule();
}

}  // namespace tamis
