#include "filter/split_block_bloom.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tamis/filter_parquet.h"

namespace tamis {
namespace internal {

void SplitBlockInsert(unsigned char* base, uint64_t blocks, const uint64_t* hashes, size_t count) {
  const auto block_of = [=](size_t i) { return base + SplitBlockIndex(hashes[i], blocks) * kSplitBlockBytes; };
  for (size_t i = 0; i < std::min(count, kInsertAhead); ++i) __builtin_prefetch(block_of(i), 1);
  for (size_t i = 0; i < count; ++i) {
    if (i + kInsertAhead < count) __builtin_prefetch(block_of(i + kInsertAhead), 1);
    unsigned char* block = block_of(i);
    const auto x = static_cast<uint32_t>(hashes[i]);
    for (uint32_t word = 0; word < kSplitBlockProbes; ++word) {
      const uint32_t bit = (x * kSplitBlockSalts[word]) >> 27;
      unsigned char& byte = block[4 * word + (bit >> 3)];
      byte = static_cast<unsigned char>(byte | (1U << (bit & 7)));
    }
  }
}

uint64_t SplitBlocksFor(uint64_t keys, uint32_t eighths) {
  constexpr uint64_t kEighthsPerBlock = 256 * 8;
  const FilterUint128 blocks = (static_cast<FilterUint128>(keys) * eighths + (kEighthsPerBlock - 1)) / kEighthsPerBlock;
  if (blocks > std::numeric_limits<uint64_t>::max()) return std::numeric_limits<uint64_t>::max();
  return std::max<uint64_t>(1, static_cast<uint64_t>(blocks));
}

absl::StatusOr<FilterBytes> SplitBlockBloomBuilder::Finish() {
  const HashChunks<uint64_t> hashes = std::exchange(hashes_, {});
  FilterHeader header = FilterHeaderOf(FilterKind::kSplitBlockBloom, options_);
  header.probes = kSplitBlockProbes;
  header.keys = hashes.size();
  header.lines = SplitBlocksFor(header.keys, eighths_);
  if (header.lines > kMaxSplitBlocks) {
    return absl::ResourceExhaustedError(absl::StrCat("a split-block filter for ", header.keys, " keys would pass 2^31 blocks"));
  }
  absl::StatusOr<FilterBytes> bytes = AllocateFilter(FilterBodyLines(header));
  if (!bytes.ok()) return bytes.status();
  auto* base = reinterpret_cast<unsigned char*>(bytes->data()) + kFilterHeaderBytes;
  hashes.ForEachChunk([&](const uint64_t* first, size_t count) { SplitBlockInsert(base, header.lines, first, count); });
  SealFilter(header, bytes->data(), bytes->size());
  return bytes;
}

}  // namespace internal

absl::StatusOr<std::string_view> SplitBlockBits(const FilterView& filter) {
  if (filter.kind() != FilterKind::kSplitBlockBloom) return absl::InvalidArgumentError("not a split-block filter");
  if (filter.hash_id() != kFilterHashXxh64) {
    return absl::FailedPreconditionError(
        absl::StrCat("split-block filter of hash id ", filter.hash_id(), " is not Parquet's: that is XXH64"));
  }
  return std::string_view(reinterpret_cast<const char*>(filter.base()), static_cast<size_t>(filter.Info().bits / 8));
}

absl::StatusOr<FilterBytes> SplitBlockFromBits(std::string_view bits, uint64_t keys) {
  if (bits.empty() || bits.size() % internal::kSplitBlockBytes != 0 ||
      bits.size() / internal::kSplitBlockBytes > internal::kMaxSplitBlocks) {
    return absl::InvalidArgumentError(absl::StrCat("a bitset of ", bits.size(), " bytes is not 1 to 2^31 blocks of 32"));
  }
  internal::FilterHeader header;
  header.kind = FilterKind::kSplitBlockBloom;
  header.hash_id = kFilterHashXxh64;
  header.probes = internal::kSplitBlockProbes;
  header.lines = bits.size() / internal::kSplitBlockBytes;
  header.keys = keys;
  absl::StatusOr<FilterBytes> bytes = internal::AllocateFilter(internal::FilterBodyLines(header));
  if (!bytes.ok()) return bytes.status();
  std::memcpy(bytes->data() + internal::kFilterHeaderBytes, bits.data(), bits.size());
  internal::SealFilter(header, bytes->data(), bytes->size());
  return bytes;
}

}  // namespace tamis
