// Builder of kind kBinaryFuse.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "filter/binary_fuse.h"
#include "filter/hash_chunks.h"
#include "tamis/filter.h"

namespace tamis::internal {

// Below this a filter of kind kBlockedBloom is made instead: 11 bits a key and more for 8-bit fingerprints.
inline constexpr uint64_t kMinFuseKeys = 512;
inline constexpr uint32_t kFuseAttempts = 64;  // the format has 256; each costs the whole build
// What the model counts on: enough for 10^5 keys and more, rounded up to whole segments (the worst is 124,000; from 10^6 on it is 1.13).
inline constexpr double kFuseSlotsPerKey = 1.203125;

// The shape of a filter of that width, whatever the bits; nothing if it would pass the limits.
std::optional<FuseShape> FuseShapeFor(uint64_t keys, uint32_t width);
// The shape of the widest fingerprints that fit into the lines of a blocked filter of the same keys and bits; nothing if none fits, or the
// keys are fewer than kMinFuseKeys.
std::optional<FuseShape> FuseShapeWithin(uint64_t keys, uint32_t eighths);

// Three slots a key, each key to be the only one left in one of them: peeling, then assigning in the opposite order.
class FusePeeling {
 public:
  // 17 bytes a slot (of which the stack's 8 are rarely touched) and 9 a key; throws std::bad_alloc.
  FusePeeling(uint64_t slots, uint64_t keys);

  // False if some keys share all their slots with others, or one hash is there twice. The shape may differ in its attempt from call to
  // call.
  bool Peel(const FuseShape& shape, const uint64_t* hashes, uint64_t count);
  // Writes the slots. REQUIRES: Peel was true for the shape, the bytes are zero.
  void Assign(const FuseShape& shape, unsigned char* base) const;

 private:
  void SortByFirstSegment(const FuseShape& shape, const uint64_t* hashes, uint64_t count);
  bool CountSlots(const FuseShape& shape, uint64_t count);

  FilterBytes combined_;  // uint64_t a slot: exclusive or of the mixed hashes that have it
  FilterBytes degrees_;   // uint8_t a slot: how many those are
  FilterBytes order_;     // uint64_t a key: mixed hashes, first sorted, then in the order in which they were peeled
  FilterBytes own_;       // uint8_t a key: which of its three slots was its own
  std::unique_ptr<uint64_t[]> stack_;
  uint64_t peeled_ = 0;
};

class BinaryFuseBuilder final : public CollectingBuilder {
 public:
  BinaryFuseBuilder(const FilterBuildOptions& options, uint32_t eighths, uint32_t attempts = kFuseAttempts)
      : CollectingBuilder(options, eighths), attempts_(attempts) {}
  absl::StatusOr<FilterBytes> Finish() override;

 private:
  // Without a value: no attempt succeeded. Reorders the hashes if there are equal ones.
  absl::StatusOr<std::optional<FilterBytes>> Fuse(FuseShape shape, uint64_t* hashes, uint64_t count) const;

  const uint32_t attempts_;
};

}  // namespace tamis::internal
