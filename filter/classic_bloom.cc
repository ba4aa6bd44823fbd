#include "filter/classic_bloom.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tamis::internal {
namespace {

// The bits of each of the next keys are computed and their lines fetched when they enter the ring, and set when they leave it: a key
// touches k lines, so a ring of kInsertAhead probes' worth of keys keeps as many lines in flight as a core can.
template <typename Hash>
void Insert(unsigned char* base, uint64_t bits, uint32_t probes, const Hash* hashes, size_t count) {
  constexpr size_t kAheadKeys = 4;
  uint64_t ring[kAheadKeys][kMaxClassicProbes];
  const auto fetch = [&](size_t i) {
    ClassicProbes key(hashes[i]);
    for (uint32_t p = 0; p < probes; ++p) {
      const uint64_t bit = key.Next(bits);
      ring[i % kAheadKeys][p] = bit;
      __builtin_prefetch(base + (bit >> 3), 1);
    }
  };
  for (size_t i = 0; i < std::min(count, kAheadKeys); ++i) fetch(i);
  for (size_t i = 0; i < count; ++i) {
    for (uint32_t p = 0; p < probes; ++p) {
      const uint64_t bit = ring[i % kAheadKeys][p];
      base[bit >> 3] = static_cast<unsigned char>(base[bit >> 3] | (1U << (bit & 7)));
    }
    if (i + kAheadKeys < count) fetch(i + kAheadKeys);
  }
}

}  // namespace

void ClassicBloomBuilder::AddHash(uint64_t hash) {
  if (is_wide()) {
    misused_ = true;
  } else {
    hashes_.Add(hash);
  }
}

void ClassicBloomBuilder::AddHash128(const FilterHash128& hash) {
  if (is_wide()) {
    wide_.Add(hash);
  } else {
    hashes_.Add(hash.low);
  }
}

absl::StatusOr<FilterBytes> ClassicBloomBuilder::Finish() {
  const HashChunks<uint64_t> hashes = std::exchange(hashes_, {});
  const HashChunks<FilterHash128> wide = std::exchange(wide_, {});
  if (std::exchange(misused_, false)) {
    return absl::FailedPreconditionError("a 64-bit hash was added to a filter of 128-bit hashes (hash id 3)");
  }
  FilterHeader header = FilterHeaderOf(FilterKind::kClassicBloom, options_);
  header.keys = hashes.size() + wide.size();
  const uint64_t lines = FilterLinesFor(header.keys, eighths_);
  absl::StatusOr<FilterBytes> bytes = AllocateFilter(lines);
  if (!bytes.ok()) return bytes.status();
  header.lines = lines * 512;
  const double bits_per_key = header.keys == 0 ? kMaxBitsPerKey : static_cast<double>(header.lines) / static_cast<double>(header.keys);
  header.probes = static_cast<uint8_t>(fpr_model::BestProbes(FilterKind::kClassicBloom, bits_per_key));
  auto* base = reinterpret_cast<unsigned char*>(bytes->data()) + kFilterHeaderBytes;
  hashes.ForEachChunk([&](const uint64_t* first, size_t count) { Insert(base, header.lines, header.probes, first, count); });
  wide.ForEachChunk([&](const FilterHash128* first, size_t count) { Insert(base, header.lines, header.probes, first, count); });
  SealFilter(header, bytes->data(), bytes->size());
  return bytes;
}

}  // namespace tamis::internal
