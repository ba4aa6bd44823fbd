// Reading: parse once, refuse what is not known, answer batches, describe. The single probe is inline (tamis/filter_inline.h).
#include <algorithm>
#include <bit>
#include <cstring>

#include "filter/blocked_bloom_kernels.h"
#include "filter/filter_format.h"
#include "filter/hash.h"
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
  }
  return "unknown";
}

uint64_t FilterKeyHash(std::string_view key, uint64_t seed) { return internal::KeyHash(key, seed); }

absl::StatusOr<FilterView> FilterView::Open(std::string_view bytes, const FilterExpectations& expectations) {
  absl::StatusOr<internal::FilterHeader> header = internal::DecodeFilter(bytes, expectations);
  if (!header.ok()) return header.status();
  FilterView view;
  view.kind_ = header->kind;
  view.probes_ = header->probes;
  view.lines_ = header->lines;
  view.header_ = reinterpret_cast<const unsigned char*>(bytes.data());
  view.base_ = view.header_ + internal::kFilterHeaderBytes;
  return view;
}

void FilterView::MayContainBatch(absl::Span<const uint64_t> hashes, absl::Span<bool> may) const {
  const size_t count = std::min(hashes.size(), may.size());
  if (lines_ == 0) {
    std::fill_n(may.begin(), count, true);
    return;
  }
  internal::ActiveBlockedBloomKernels().may_contain(base_, lines_, probes_, hashes.data(), count, may.data());
}

FilterInfo FilterView::Info() const {
  FilterInfo info;
  if (!has_filter()) {
    info.predicted_fpr = 1.0;
    return info;
  }
  const internal::FilterHeader header = internal::ParseFilterHeader(header_);
  info.kind = header.kind;
  info.hash_id = header.hash_id;
  info.probes = header.probes;
  info.lines = header.lines;
  info.keys = header.keys;
  info.seed = header.seed;
  info.owner = header.owner;
  info.size_bytes = internal::kFilterHeaderBytes + header.lines * internal::kFilterLineBytes;
  if (header.keys != 0) {
    info.bits_per_key = 512.0 * static_cast<double>(header.lines) / static_cast<double>(header.keys);
    info.predicted_fpr = fpr_model::FalsePositiveRate(header.kind, info.bits_per_key, header.probes);
  }
  return info;
}

double FilterView::MeasuredFill() const {
  if (!has_filter()) return 0;
  uint64_t set = 0;
  const size_t size = lines_ * internal::kFilterLineBytes;
  for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, base_ + i, sizeof(word));
    set += static_cast<uint64_t>(std::popcount(word));
  }
  return static_cast<double>(set) / (8.0 * static_cast<double>(size));
}

uint64_t FilterView::seed() const { return has_filter() ? internal::ParseFilterHeader(header_).seed : 0; }

}  // namespace tamis
