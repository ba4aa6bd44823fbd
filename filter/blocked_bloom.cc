#include "filter/blocked_bloom.h"

#include <algorithm>
#include <new>

#include "absl/strings/str_cat.h"
#include "filter/filter_format.h"
#include "filter/hash.h"

namespace tamis::internal {
namespace {

inline void SetBits(unsigned char* line, uint32_t probes, uint64_t hash) {
  const auto x = static_cast<uint32_t>(hash);
  for (uint32_t i = 0; i < probes; ++i) {
    const uint32_t bit = (x * kProbeMultipliers[i]) >> 23;
    line[bit >> 3] = static_cast<unsigned char>(line[bit >> 3] | (1U << (bit & 7)));
  }
}

}  // namespace

void BlockedBloomInsert(unsigned char* base, uint64_t lines, uint32_t probes, const uint64_t* hashes, size_t count) {
  // Lines on their way in, a ring. Enough to hide a miss (a core has 10 to 16 line-fill buffers), few enough to be there still when
  // their turn comes. 16 Mi keys at 10 bits: 9.3 ns a key with 16, 10 with 8, 8.4 with 32; in cache 5 ns with any.
  constexpr size_t kAhead = 16;
  unsigned char* ring[kAhead];
  const auto fetch = [&](size_t i) {
    ring[i % kAhead] = base + FilterLineIndex(hashes[i], lines) * kFilterLineBytes;
    __builtin_prefetch(ring[i % kAhead], 1);
  };
  for (size_t i = 0; i < std::min(count, kAhead); ++i) fetch(i);
  for (size_t i = 0; i < count; ++i) {
    unsigned char* line = ring[i % kAhead];
    if (i + kAhead < count) fetch(i + kAhead);
    SetBits(line, probes, hashes[i]);
  }
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

}  // namespace tamis::internal
