// The stored form of a filter.
//
// FORMAT, version 1 (on disk, never change; numbers little-endian; no padding between header and lines):
//
//   offset  size
//        0     4  magic "TFLT"
//        4     1  format version, 1
//        5     1  kind (FilterKind)
//        6     1  hash id (kFilterHash...): 1 = XXH3-64 of the key with the seed; 2 = XXH64, seed 0 (kind 2 only); 3 = XXH3-128 with the
//        seed
//                 (kind 3 only)
//        7     1  k, probes a key: kind 1: 1..16; 2: 8; 3: 1..24; 4: columns, 1..32; 5: bits of a fingerprint, 8 or 16
//        8     1  prefix rule (FilterPrefixKind): 0 = the whole key was hashed
//        9     1  reserved, 0
//       10     2  argument of the prefix rule (0; 1..65535; 0..255)
//       12     4  kind 4: lower blocks, those with one column fewer, less than the blocks; kind 5: log2 of the segment, attempt, 0, 0;
//                 others: reserved, 0
//       16     8  seed of the hash; 0 with hash id 2
//       24     8  units: kind 1: lines of 64 bytes, 1..2^40
//                        kind 2: blocks of 32 bytes, 1..2^31
//                        kind 3: bits m, a multiple of 512, 512..2^49
//                        kind 4: blocks of 128 slots, 2..2^32 - 1
//                        kind 5: slots, of at least three whole segments
//       32     8  keys that were added; 2^64 - 1: not known
//       40    16  owner: the table id, or zero
//       56     8  XXH3-64, seed 0, of bytes [0, 56) and [64, 64 + 64 * lines)
//       64   64n  the lines, as many as the units need; which bits a hash sets: filter_inline.h, split_block_bloom.h, classic_bloom.h,
//                 ribbon.h, binary_fuse.h. An odd number of kind 2's blocks leaves 32 zero bytes at the end.
//
// A reader that does not know the version, kind, hash id or prefix rule, or meets a reserved byte in use, refuses the filter: it may then
// assume nothing about what the bits mean.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tamis/filter.h"

namespace tamis::internal {

inline constexpr size_t kFilterHeaderBytes = 64;
inline constexpr uint8_t kFilterVersion = 1;
inline constexpr uint64_t kMaxFilterLines = uint64_t{1} << 40;
// The block is chosen by a product of the hash's high 32 bits and the number of blocks. It stays below 2^63 up to 2^31 blocks, so that
// implementations with signed 64-bit numbers (Parquet's Java) compute the same.
inline constexpr uint64_t kMaxSplitBlocks = uint64_t{1} << 31;
inline constexpr uint32_t kSplitBlockProbes = 8;
inline constexpr size_t kSplitBlockBytes = 32;
inline constexpr uint32_t kMaxClassicProbes = 24;
inline constexpr uint64_t kMaxRibbonBlocks = (uint64_t{1} << 32) - 1;
inline constexpr uint32_t kMaxRibbonColumns = 32;
static_assert(sizeof(size_t) == 8, "filters are sized in 64 bits");

struct FilterHeader {
  FilterKind kind = FilterKind::kNone;
  uint8_t hash_id = 0;
  uint8_t probes = 0;
  uint64_t seed = 0;
  uint64_t lines = 0;  // units of the kind; of kBlockedBloom those are lines
  uint64_t keys = 0;
  FilterOwner owner{};
  FilterPrefixRule prefix_rule{};
  uint32_t layout = 0;  // kRibbon: lower blocks; kBinaryFuse: FuseShape::layout()
};

// Lines of 64 bytes after the header, or 0 if the kind, units, columns or lower blocks are impossible. 64-bit throughout.
uint64_t FilterBodyLines(const FilterHeader& header);

// Bits that keys are spread over: those of the lines less the padding.
uint64_t FilterBodyBits(const FilterHeader& header);

// The header fields that the options decide.
FilterHeader FilterHeaderOf(FilterKind kind, const FilterBuildOptions& options);

// Memory for header and lines, zeroed; ResourceExhausted if the lines pass 2^40 or there is none.
absl::StatusOr<FilterBytes> AllocateFilter(uint64_t lines);

// Writes the header in front of the finished lines. REQUIRES: `size` == 64 + 64 * FilterBodyLines(header).
void SealFilter(const FilterHeader& header, char* bytes, size_t size);

// Checks everything that can be checked without the keys; the codes are those of FilterView::Open. Reads all bytes once.
absl::StatusOr<FilterHeader> DecodeFilter(std::string_view bytes, const FilterExpectations& expectations);

// The header of bytes that DecodeFilter has accepted.
FilterHeader ParseFilterHeader(const unsigned char* header);

// Lines for `keys` keys at `eighths` / 8 bits a key: rounded up to whole lines, at least one. May exceed kMaxFilterLines; saturates at
// 2^64 - 1.
uint64_t FilterLinesFor(uint64_t keys, uint32_t eighths);

// bits_per_key in eighths, rounded down; InvalidArgument if it is out of the kind's range or not a number.
absl::StatusOr<uint32_t> BitsPerKeyEighths(FilterKind kind, double bits_per_key);
inline absl::StatusOr<uint32_t> BitsPerKeyEighths(double bits_per_key) {
  return BitsPerKeyEighths(FilterKind::kBlockedBloom, bits_per_key);
}
double MinBitsPerKey(FilterKind kind);

// OK for a kind that can be built and opened; InvalidArgument for any other, none included.
absl::Status CheckFilterKind(FilterKind kind);

// All of the options but the bits per key; InvalidArgument.
absl::Status CheckBuildOptions(const FilterBuildOptions& options);

}  // namespace tamis::internal
