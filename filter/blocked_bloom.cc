#include "filter/blocked_bloom.h"

#include <new>

#include "absl/strings/str_cat.h"
#include "filter/blocked_bloom_kernels.h"
#include "filter/filter_format.h"
#include "filter/hash.h"

namespace tamis::internal {
void BlockedBloomInsert(unsigned char* base, uint64_t lines, uint32_t probes, const uint64_t* hashes, size_t count) {
  ActiveBlockedBloomKernels().insert(base, lines, probes, hashes, count);
}

void BlockedBloomBuilder::NewChunk() {
  chunks_.push_back(std::make_unique_for_overwrite<uint64_t[]>(kChunkHashes));
  chunk_used_ = 0;
}

void BlockedBloomBuilder::Clear() {
  chunks_.clear();
  chunk_used_ = kChunkHashes;
  last_ = 0;
  keys_ = 0;
}

absl::Status BlockedBloomBuilder::SetBitsPerKey(double bits_per_key) {
  absl::StatusOr<uint32_t> eighths = BitsPerKeyEighths(bits_per_key);
  if (!eighths.ok()) return eighths.status();
  eighths_ = *eighths;
  return absl::OkStatus();
}

absl::StatusOr<FilterBytes> BlockedBloomBuilder::Finish() {
  FilterHeader header;
  header.kind = FilterKind::kBlockedBloom;
  header.hash_id = kHashIdXxh3;
  header.seed = options_.seed;
  header.owner = options_.owner;
  header.prefix_rule = options_.prefix_rule;
  header.keys = keys_;
  header.lines = FilterLinesFor(keys_, eighths_);  // without keys: one line, all zero, which answers "certainly not"
  if (header.lines > kMaxFilterLines) {
    Clear();
    return absl::ResourceExhaustedError(absl::StrCat("a filter for ", header.keys, " keys would pass 2^40 lines"));
  }
  // By the bits that there are: rounding up to a line gives a small filter many more than were asked for.
  const double bits_per_key = keys_ == 0 ? kMaxBitsPerKey : 512.0 * static_cast<double>(header.lines) / static_cast<double>(keys_);
  header.probes = static_cast<uint8_t>(fpr_model::BestProbes(FilterKind::kBlockedBloom, bits_per_key));

  FilterBytes bytes;
  try {
    bytes = FilterBytes(kFilterHeaderBytes + header.lines * kFilterLineBytes);
  } catch (const std::bad_alloc&) {
    Clear();
    return absl::ResourceExhaustedError(absl::StrCat("no memory for a filter of ", header.lines, " lines"));
  }
  auto* base = reinterpret_cast<unsigned char*>(bytes.data()) + kFilterHeaderBytes;
  for (size_t i = 0; i < chunks_.size(); ++i) {
    const size_t count = i + 1 == chunks_.size() ? chunk_used_ : kChunkHashes;
    BlockedBloomInsert(base, header.lines, header.probes, chunks_[i].get(), count);
  }
  SealFilter(header, bytes.data(), bytes.size());
  Clear();
  return bytes;
}

absl::StatusOr<FilterBytes> BlockedBloomOf(const FilterBuildOptions& options, uint32_t eighths, const uint64_t* hashes, uint64_t count) {
  FilterBuildOptions blocked = options;
  blocked.kind = FilterKind::kBlockedBloom;
  BlockedBloomBuilder builder(blocked, eighths);
  for (uint64_t i = 0; i < count; ++i) builder.AddHash(hashes[i]);
  return builder.Finish();
}

}  // namespace tamis::internal
