// The stored form of a filter.
//
// FORMAT, version 1 (on disk, never change; numbers little-endian; no padding between header and lines):
//
//   offset  size
//        0     4  magic "TFLT"
//        4     1  format version, 1
//        5     1  kind (FilterKind)
//        6     1  hash id: 1 = XXH3-64 of the key with the seed
//        7     1  k, probes a key, 1..16
//        8     1  prefix rule: 0 = the whole key was hashed
//        9     1  reserved, 0
//       10     2  argument of the prefix rule, 0
//       12     4  reserved, 0
//       16     8  seed of the hash
//       24     8  lines of 64 bytes, 1..2^40
//       32     8  keys that were added
//       40    16  owner: the table id, or zero
//       56     8  XXH3-64, seed 0, of bytes [0, 56) and [64, 64 + 64 * lines)
//       64   64n  the lines; filter_inline.h says which bits a hash sets
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
static_assert(sizeof(size_t) == 8, "filters are sized in 64 bits");

struct FilterHeader {
  FilterKind kind = FilterKind::kNone;
  uint8_t hash_id = 0;
  uint8_t probes = 0;
  uint64_t seed = 0;
  uint64_t lines = 0;
  uint64_t keys = 0;
  FilterOwner owner{};
};

// Writes the header in front of the finished lines. REQUIRES: `size` == 64 + 64 * header.lines.
void SealFilter(const FilterHeader& header, char* bytes, size_t size);

// Checks everything that can be checked without the keys; the codes are those of FilterView::Open. Reads all bytes once.
absl::StatusOr<FilterHeader> DecodeFilter(std::string_view bytes, const FilterExpectations& expectations);

// The header of bytes that DecodeFilter has accepted.
FilterHeader ParseFilterHeader(const unsigned char* header);

// Lines for `keys` keys at `eighths` / 8 bits a key: rounded up to whole lines, at least one. May exceed kMaxFilterLines; saturates at
// 2^64 - 1.
uint64_t FilterLinesFor(uint64_t keys, uint32_t eighths);

// bits_per_key in eighths, rounded down; InvalidArgument if it is out of range or not a number.
absl::StatusOr<uint32_t> BitsPerKeyEighths(double bits_per_key);

// OK for a kind that can be built and opened; Unimplemented for a reserved one; InvalidArgument for any other, none included.
absl::Status CheckFilterKind(FilterKind kind);

}  // namespace tamis::internal
