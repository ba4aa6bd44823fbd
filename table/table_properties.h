// What a table says of itself. FORMAT: tagged fields (see table_format.h); tags are on disk, never renumber.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "table/internal_key.h"
#include "tamis/filter.h"

namespace tamis::internal {

enum class PropertyTag : uint32_t {
  kEntries = 1,       // varint64
  kDeletes = 2,       // varint64: entries of kind kDelete
  kDistinctKeys = 3,  // varint64: distinct user keys
  kSmallestKey = 4,   // user key bytes
  kLargestKey = 5,
  kSmallestSequence = 6,  // varint64
  kLargestSequence = 7,
  kRawKeyBytes = 8,  // varint64: sum of user key lengths
  kRawValueBytes = 9,
  kRawDataBytes = 10,        // varint64: data blocks before compression
  kStoredDataBytes = 11,     // varint64: data blocks with trailers as stored
  kDataBlocks = 12,          // varint64
  kFilterKind = 13,          // varint64: tamis::FilterKind
  kFilterBytes = 14,         // varint64
  kFilterBitsTarget = 15,    // varint64: bits per key asked for, in eighths
  kFilterFprPredicted = 16,  // u64: bits of an IEEE double
  kLevelAtCreation = 17,     // varint64
};

struct TableProperties {
  uint64_t entries = 0;
  uint64_t deletes = 0;
  uint64_t distinct_keys = 0;
  std::string smallest_key;  // user keys
  std::string largest_key;
  SequenceNumber smallest_sequence = 0;
  SequenceNumber largest_sequence = 0;
  uint64_t raw_key_bytes = 0;
  uint64_t raw_value_bytes = 0;
  uint64_t raw_data_bytes = 0;
  uint64_t stored_data_bytes = 0;
  uint64_t data_blocks = 0;
  FilterKind filter_kind = FilterKind::kNone;
  uint64_t filter_bytes = 0;
  double filter_bits_target = 0;
  double filter_fpr_predicted = 1.0;
  uint64_t level_at_creation = 0;
  std::vector<std::pair<uint32_t, std::string>> unknown;  // kept as found
};

std::string EncodeTableProperties(const TableProperties& properties);
absl::StatusOr<TableProperties> DecodeTableProperties(std::string_view bytes);

}  // namespace tamis::internal
