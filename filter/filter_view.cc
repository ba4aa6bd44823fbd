// Reading: parse once, refuse what is not known, answer batches, describe. The single probe is inline (tamis/filter_inline.h).
#include <algorithm>

#include "filter/blocked_bloom_kernels.h"
#include "filter/filter_format.h"
#include "filter/hash.h"
#include "filter/ribbon.h"
#include "tamis/filter.h"

namespace tamis {

std::string_view FilterKindName(FilterKind kind) {
  switch (kind) {
    case FilterKind::kNone:
      return "none";
    case FilterKind::kBlockedBloom:
      return "blocked_bloom";
    case FilterKind::kSplitBlockBloom:
      return "split_block_bloom";
    case FilterKind::kClassicBloom:
      return "classic_bloom";
    case FilterKind::kRibbon:
      return "ribbon";
    case FilterKind::kBinaryFuse:
      return "binary_fuse";
  }
  return "unknown";
}

uint64_t FilterKeyHash(std::string_view key, uint64_t seed) { return internal::KeyHash(key, seed); }

uint64_t SplitBlockKeyHash(std::string_view key) { return XXH64(key.data(), key.size(), 0); }

FilterHash128 FilterKeyHash128(std::string_view key, uint64_t seed) {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(key.data(), key.size(), seed);
  return {hash.low64, hash.high64};
}

absl::StatusOr<FilterView> FilterView::Open(std::string_view bytes, const FilterExpectations& expectations) {
  absl::StatusOr<internal::FilterHeader> header = internal::DecodeFilter(bytes, expectations);
  if (!header.ok()) return header.status();
  FilterView view;
  view.kind_ = header->kind;
  view.probes_ = header->probes;
  view.hash_id_ = header->hash_id & 0xf;
  if (header->kind == FilterKind::kRibbon) {
    view.region_blocks_ = internal::RibbonShape::Of(header->lines, header->probes, header->layout).region_blocks & 0xfff;
  }
  view.layout_ = header->layout;
  view.lines_ = header->kind == FilterKind::kBlockedBloom ? header->lines : 0;
  view.units_ = header->lines;
  view.base_ = reinterpret_cast<const unsigned char*>(bytes.data()) + internal::kFilterHeaderBytes;
  return view;
}

void FilterView::MayContainBatch(absl::Span<const uint64_t> hashes, absl::Span<bool> may) const {
  const size_t count = std::min(hashes.size(), may.size());
  if (lines_ == 0) {
    MayContainBatchOther(hashes, may);
    return;
  }
  internal::ActiveBlockedBloomKernels().may_contain(base_, lines_, probes_, hashes.data(), count, may.data());
}

}  // namespace tamis
