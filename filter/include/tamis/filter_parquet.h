// The bitset of Apache Parquet's split-block Bloom filter (BloomFilter.md of apache/parquet-format), to and from filters of kind
// kSplitBlockBloom and hash id 2. The Thrift header before the bitset in a Parquet file is not handled here.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "tamis/filter.h"

namespace tamis {

// The bitset, 32 bytes a block; points into the filter. InvalidArgument for another kind; FailedPrecondition for another hash id: a reader
// of Parquet hashes with XXH64 and would not find the keys.
absl::StatusOr<std::string_view> SplitBlockBits(const FilterView& filter);

// A filter from such a bitset, whoever made it. `keys`: as many as were added, if that is known; with kFilterKeysUnknown the filter's
// predicted rate is 1 (EstimateFilterKeys has a better one). 0 is a number: do not say it of bits that are set.
// InvalidArgument unless the bitset is 1 to 2^31 blocks of 32 bytes. ResourceExhausted without memory.
absl::StatusOr<FilterBytes> SplitBlockFromBits(std::string_view bits, uint64_t keys = kFilterKeysUnknown);

}  // namespace tamis
