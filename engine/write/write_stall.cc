#include "engine/write/write_stall.h"

#include <cmath>

namespace tamis::internal {
namespace {

constexpr double kFastestBytesPerSecond = 64.0 * (1 << 20);
constexpr double kSlowestBytesPerSecond = 1.0 * (1 << 20);

// 64 MiB/s at `first`, 1 MiB/s at `second`, exponential between.
uint64_t Rate(double value, double first, double second) {
  const double share = second > first ? (value - first) / (second - first) : 1.0;
  return static_cast<uint64_t>(kFastestBytesPerSecond * std::pow(kSlowestBytesPerSecond / kFastestBytesPerSecond, share));
}

}  // namespace

std::string_view StallReasonName(StallReason reason) {
  switch (reason) {
    case StallReason::kNone: return "none";
    case StallReason::kMemtables: return "immutable memtables wait for their flush";
    case StallReason::kL0Files: return "L0 files wait for compaction";
    case StallReason::kDebt: return "compaction debt";
  }
  return "unknown";
}

StallDecision DecideStall(const StallInputs& inputs, uint32_t max_immutable_memtables, const CompactionOptions& options) {
  using Action = StallDecision::Action;
  if (inputs.memtable_full && inputs.immutable_memtables >= max_immutable_memtables) return {Action::kWait, StallReason::kMemtables, 0};
  if (inputs.memtable_full && inputs.l0_files >= options.l0_stop) return {Action::kWait, StallReason::kL0Files, 0};
  if (inputs.memtable_full && inputs.compaction_debt_bytes >= kDebtStopBytes) return {Action::kWait, StallReason::kDebt, 0};
  StallDecision slow{Action::kGo, StallReason::kNone, 0};
  if (inputs.l0_files >= options.l0_slowdown) {
    slow = {Action::kSlow, StallReason::kL0Files, Rate(inputs.l0_files, options.l0_slowdown, options.l0_stop)};
  }
  if (inputs.compaction_debt_bytes >= kDebtSlowdownBytes) {
    const uint64_t rate = Rate(static_cast<double>(inputs.compaction_debt_bytes), static_cast<double>(kDebtSlowdownBytes),
                               static_cast<double>(kDebtStopBytes));
    if (slow.action == Action::kGo || rate < slow.bytes_per_second) slow = {Action::kSlow, StallReason::kDebt, rate};
  }
  return slow;
}

}  // namespace tamis::internal
