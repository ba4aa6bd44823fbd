// The engine's part of a point read: one key, or many, against one read view.
//
// Order of work: candidates of all levels are found from flat arrays and their filter lines prefetched; then the memtables are asked;
// then the filters are tested and the tables read, newest first (V2, V3), until an entry of the key is met. So a lookup of an absent
// key costs one hash and about one memory latency, not one per level.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/read/lookup_counters.h"
#include "engine/read/read_view.h"
#include "table/table_reader.h"

namespace tamis::internal {

struct PointGetOptions {
  TableReadOptions table;
  bool use_filters = true;
};

// Where the value was found. The bytes are good while the caller's EpochGuard is held; `memtable` or the block in `table` say what to
// hold to keep them longer.
struct PointResult {
  LookupState state = LookupState::kAbsent;
  std::string_view value;
  const std::shared_ptr<Memtable>* memtable = nullptr;
  TableLookup table;
};

// REQUIRES: an EpochGuard that protects `view`.
absl::Status PointGet(const ReadView& view, const PointGetOptions& options, const LookupKey& key, LookupCounters* counters,
                      PointResult* result);

// The same for up to kMultiGetGroup keys at once. statuses[i] and results[i] belong to keys[i].
inline constexpr size_t kMultiGetGroup = 32;
void PointMultiGet(const ReadView& view, const PointGetOptions& options, absl::Span<const LookupKey> keys, LookupCounters* counters,
                   absl::Span<PointResult> results, absl::Span<absl::Status> statuses);

// False if the key certainly has no value: asks memtables and filters only.
bool PointMayExist(const ReadView& view, const LookupKey& key);

}  // namespace tamis::internal
