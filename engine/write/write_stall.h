// Whether a write may go on, must be slowed, or must wait for background work: a pure function of counters.
//
// Slowing is gradual: from the first threshold on, writes are limited to a rate that falls exponentially from 64 MiB/s to 1 MiB/s at the
// second, so that there is no cliff; only at the second do they wait.
#pragma once

#include <cstdint>
#include <string_view>

#include "tamis/options.h"

namespace tamis::internal {

struct StallInputs {
  uint32_t immutable_memtables = 0;
  bool memtable_full = false;          // the next write needs a new memtable
  uint32_t l0_files = 0;               // blocked ones not counted
  uint64_t compaction_debt_bytes = 0;
};

enum class StallReason : uint8_t { kNone, kMemtables, kL0Files, kDebt };
std::string_view StallReasonName(StallReason reason);

struct StallDecision {
  enum class Action : uint8_t { kGo, kSlow, kWait } action = Action::kGo;
  StallReason reason = StallReason::kNone;
  uint64_t bytes_per_second = 0;  // for kSlow
};

inline constexpr uint64_t kDebtSlowdownBytes = uint64_t{16} << 30;
inline constexpr uint64_t kDebtStopBytes = uint64_t{256} << 30;

StallDecision DecideStall(const StallInputs& inputs, uint32_t max_immutable_memtables, const CompactionOptions& options);

}  // namespace tamis::internal
