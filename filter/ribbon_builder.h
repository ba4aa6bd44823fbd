// Builder of kind kRibbon.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "filter/hash_chunks.h"
#include "filter/ribbon.h"
#include "tamis/filter.h"

namespace tamis::internal {

// Below this a filter of kind kBlockedBloom is made instead: whole blocks of slots then cost a third and more.
inline constexpr uint64_t kMinRibbonKeys = 512;
inline constexpr uint32_t kRibbonAttempts = 256;  // of a region: its attempt is a byte
// One region in six (of 64 Ki slots) then fails an attempt: measured 65 % at 1.0156, 31 % at 1.0215, 16 % at 1.0254, 7 % at 1.031.
inline constexpr double kRibbonSlotsPerKey = 1.025;

// The shape that fills the lines that a blocked filter of the same keys and bits would have; nothing if it would pass the limits.
std::optional<RibbonShape> RibbonShapeFor(uint64_t keys, uint32_t eighths);
// Bits per key times 8 of the filter that is made instead.
inline uint32_t RibbonFallbackEighths(uint32_t eighths) {
  return std::max(eighths, static_cast<uint32_t>(kMinBitsPerKey / kBitsPerKeyStep));
}

// Gaussian elimination on the fly: rows are kept with their first coefficient in the slot that they solve. Region by region, upwards.
class RibbonBanding {
 public:
  // 20 bytes a slot; throws std::bad_alloc.
  explicit RibbonBanding(const RibbonShape& shape);

  // Adds all hashes of the region, each of which is in it, with the first of `attempts` attempts in which they do not contradict each other
  // or what the regions below have left in its first slots; that attempt, or nothing. REQUIRES: the regions below have been added.
  std::optional<uint8_t> AddRegion(uint64_t region, const uint64_t* hashes, size_t count, uint32_t attempts);

  // Writes the segments of all blocks.
  void Solve(unsigned char* base) const;

 private:
  // False if the row contradicts those before it. A row that follows from them, such as an equal one, is accepted.
  bool Add(uint64_t start, FilterUint128 coefficients, uint32_t result);
  bool TryRegion(uint64_t region, const uint64_t* hashes, size_t count, uint32_t attempt);

  FilterUint128* coefficients() { return reinterpret_cast<FilterUint128*>(coefficients_.data()); }
  uint32_t* results() { return reinterpret_cast<uint32_t*>(results_.data()); }

  const RibbonShape shape_;
  const uint32_t result_mask_;
  FilterBytes coefficients_;  // FilterUint128 a slot, 0 = free
  FilterBytes results_;       // uint32_t a slot
  uint64_t end_ = 0;          // no slot from here on is used
  std::vector<uint64_t> sorted_;
};

class RibbonBuilder final : public CollectingBuilder {
 public:
  RibbonBuilder(const FilterBuildOptions& options, uint32_t eighths, uint32_t attempts = kRibbonAttempts)
      : CollectingBuilder(options, eighths), attempts_(attempts) {}
  absl::StatusOr<FilterBytes> Finish() override;

 private:
  // Without a value: no solution in attempts_.
  absl::StatusOr<std::optional<FilterBytes>> Ribbon(const RibbonShape& shape, uint64_t* hashes, uint64_t count) const;

  const uint32_t attempts_;
};

}  // namespace tamis::internal
