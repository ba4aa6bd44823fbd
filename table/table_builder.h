// Writes one table file: entries in internal-key order -> blocks, filters, properties, index, footer (table_format.h). Not thread-safe.
//
// Life: construct -> Add* -> Finish, or destroy to abandon (the file stays; its owner removes it). The caller syncs and closes the file
// after Finish, and then the directory. The first error is sticky.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "table/internal_key.h"
#include "table/table_format.h"
#include "table/table_properties.h"
#include "tamis/file_system.h"
#include "tamis/filter.h"
#include "tamis/table_options.h"

namespace tamis::internal {

struct TableBuildOptions {
  Id128 table_id{};  // random
  uint32_t block_bytes = 4096;
  Compression compression = Compression::kLz4;
  FilterKind filter_kind = FilterKind::kBlockedBloom;
  double bits_per_key = 10.0;                     // 0: no filter
  std::optional<FilterPrefixRule> prefix_rule{};  // set: a second filter, over the prefixes of keys; needs a filter kind
  double prefix_bits_per_key = 10.0;              // for each distinct prefix; 0: no such filter
  uint64_t hash_seed = 0;                         // of both
  uint32_t level = 0;                             // for the properties
};

struct TableSummary {
  uint64_t file_size = 0;
  TableProperties properties;
};

class TableBuilder {
 public:
  // `file` (not owned) is empty and outlives the builder.
  TableBuilder(const TableBuildOptions& options, AppendFile* file);
  ~TableBuilder();
  TableBuilder(const TableBuilder&) = delete;
  TableBuilder& operator=(const TableBuilder&) = delete;

  // REQUIRES: after every entry added before (checked: Internal otherwise).
  absl::Status Add(std::string_view user_key, SequenceNumber sequence, EntryKind kind, std::string_view value);
  uint64_t entries() const;
  // Bytes the file would have if finished now, about.
  uint64_t EstimatedFileBytes() const;
  // Replaces the bits per key; legal until Finish.
  void SetBitsPerKey(double bits_per_key);
  // REQUIRES: at least one entry.
  absl::StatusOr<TableSummary> Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tamis::internal
