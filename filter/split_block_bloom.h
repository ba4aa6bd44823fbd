// Kind kSplitBlockBloom: the split-block Bloom filter of Apache Parquet (BloomFilter.md of apache/parquet-format).
//
// FORMAT of the bits (on disk, never change): z blocks of 32 bytes, a block being eight little-endian 32-bit words. Of a 64-bit hash
//   block   ((hash >> 32) * z) >> 32
//   bit     of word i = 0..7: ((hash mod 2^32) * salt[i] mod 2^32) >> 27
#pragma once

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "filter/filter_format.h"
#include "filter/hash_chunks.h"
#include "tamis/filter.h"

namespace tamis::internal {

inline constexpr std::array<uint32_t, kSplitBlockProbes> kSplitBlockSalts = {0x47b6137bU, 0x44974d91U, 0x8824ad5bU, 0xa2b7289dU,
                                                                             0x705495c7U, 0x2df1424bU, 0x9efc4947U, 0x5c6bfb31U};

// Below `blocks` for 1 <= blocks <= kMaxSplitBlocks.
inline uint64_t SplitBlockIndex(uint64_t hash, uint64_t blocks) { return ((hash >> 32) * blocks) >> 32; }

// One exit, after four words, as in FilterLineMayContain and for the same reason.
inline bool SplitBlockMayContain(const unsigned char* block, uint64_t hash) {
  const auto x = static_cast<uint32_t>(hash);
  const auto probe = [block, x](uint32_t i) {
    const uint32_t bit = (x * kSplitBlockSalts[i]) >> 27;
    return static_cast<uint32_t>(block[4 * i + (bit >> 3)]) >> (bit & 7);
  };
  if ((probe(0) & probe(1) & probe(2) & probe(3) & 1) == 0) return false;
  return (probe(4) & probe(5) & probe(6) & probe(7) & 1) != 0;
}

// Sets the bits of `count` hashes in `blocks` blocks.
void SplitBlockInsert(unsigned char* base, uint64_t blocks, const uint64_t* hashes, size_t count);

// Blocks for `keys` keys at `eighths` / 8 bits a key, rounded up, at least one; saturates at 2^64 - 1.
uint64_t SplitBlocksFor(uint64_t keys, uint32_t eighths);

class SplitBlockBloomBuilder final : public CollectingBuilder {
 public:
  using CollectingBuilder::CollectingBuilder;
  absl::StatusOr<FilterBytes> Finish() override;
};

}  // namespace tamis::internal
