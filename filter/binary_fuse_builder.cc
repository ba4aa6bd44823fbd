#include "filter/binary_fuse_builder.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "filter/blocked_bloom.h"

namespace tamis::internal {
namespace {

// Both after the paper's measurements. A segment that is too long for its keys leaves too few segments to peel from the ends, one that is
// too short has too few keys to be like the average.
uint32_t SegmentLog2(uint64_t keys) {
  const double log2 = std::floor(std::log(static_cast<double>(keys)) / std::log(3.33) + 2.25);
  return static_cast<uint32_t>(std::clamp(log2, 0.0, double{kMaxFuseSegmentLog2}));
}

constexpr uint64_t kLeastSegments = 32;

// 1.125 from a million keys on, 1.175 at 10^5, 1.25 at 10^4.
double SlotsPerKey(uint64_t keys) {
  return std::max(1.125, 0.875 + 0.25 * std::log(1e6) / std::log(static_cast<double>(std::max<uint64_t>(keys, 2))));
}

uint64_t* Words(FilterBytes& bytes) { return reinterpret_cast<uint64_t*>(bytes.data()); }
uint8_t* Bytes(FilterBytes& bytes) { return reinterpret_cast<uint8_t*>(bytes.data()); }

}  // namespace

std::optional<FuseShape> FuseShapeFor(uint64_t keys, uint32_t width) {
  const double wanted = static_cast<double>(keys) * SlotsPerKey(keys);
  if (wanted > static_cast<double>(kMaxFilterLines) * kFilterLineBytes) return std::nullopt;  // before it is converted
  FuseShape shape;
  shape.width = width;
  shape.segment_log2 = SegmentLog2(std::max<uint64_t>(keys, 1));
  // At some sizes below 10^5 keys that leaves 8 to 24 segments, and most attempts, at 11,470 keys all, would fail; half the length peels
  // in more than nine attempts of ten at all of them (512 to 120,000 keys in steps of 1.2 %).
  if (shape.segment_log2 > 0 && static_cast<uint64_t>(wanted) >> shape.segment_log2 < kLeastSegments) --shape.segment_log2;
  const uint64_t segments = (static_cast<uint64_t>(wanted) + shape.segment() - 1) / shape.segment();
  shape.slots = std::max<uint64_t>(3, segments) * shape.segment();
  if (!IsPossibleFuseShape(shape)) return std::nullopt;
  return shape;
}

std::optional<FuseShape> FuseShapeWithin(uint64_t keys, uint32_t eighths) {
  if (keys < kMinFuseKeys) return std::nullopt;
  const uint64_t lines = std::min(FilterLinesFor(keys, eighths), kMaxFilterLines);
  for (const uint32_t width : {kFuseWidths[1], kFuseWidths[0]}) {
    const std::optional<FuseShape> shape = FuseShapeFor(keys, width);
    if (shape && shape->lines() <= lines) return shape;
  }
  return std::nullopt;
}

FusePeeling::FusePeeling(uint64_t slots, uint64_t keys)
    : combined_(slots * sizeof(uint64_t)),
      degrees_(slots),
      order_(keys * sizeof(uint64_t)),
      own_(keys),
      stack_(std::make_unique_for_overwrite<uint64_t[]>(slots)) {}

// Then the slots in use while counting are those of three segments, which stay in the second-level cache.
void FusePeeling::SortByFirstSegment(const FuseShape& shape, const uint64_t* hashes, uint64_t count) {
  const uint64_t starts = shape.starts();
  const auto segment_of = [&](uint64_t mixed) { return FilterLineIndex(mixed, starts) >> shape.segment_log2; };
  std::vector<uint64_t> next(shape.slots >> shape.segment_log2, 0);
  for (uint64_t i = 0; i < count; ++i) ++next[segment_of(FuseMixed(hashes[i], shape.attempt)) + 1];
  for (size_t s = 1; s < next.size(); ++s) next[s] += next[s - 1];
  uint64_t* const sorted = Words(order_);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t mixed = FuseMixed(hashes[i], shape.attempt);
    sorted[next[segment_of(mixed)]++] = mixed;
  }
}

// False if a slot has more keys than a byte counts: such a slot could pass for one with a single key.
bool FusePeeling::CountSlots(const FuseShape& shape, uint64_t count) {
  std::memset(combined_.data(), 0, shape.slots * sizeof(uint64_t));
  std::memset(degrees_.data(), 0, shape.slots);
  uint64_t* const combined = Words(combined_);
  uint8_t* const degrees = Bytes(degrees_);
  const uint64_t* const sorted = Words(order_);
  bool overflow = false;
  for (uint64_t i = 0; i < count; ++i) {
    const FuseProbe probe(sorted[i], shape);
    for (const uint64_t slot : probe.slot) {
      combined[slot] ^= sorted[i];
      overflow |= ++degrees[slot] == 0;
    }
  }
  return !overflow;
}

bool FusePeeling::Peel(const FuseShape& shape, const uint64_t* hashes, uint64_t count) {
  SortByFirstSegment(shape, hashes, count);
  if (!CountSlots(shape, count)) return false;
  uint64_t* const combined = Words(combined_);
  uint8_t* const degrees = Bytes(degrees_);
  uint64_t* const order = Words(order_);
  uint8_t* const own = Bytes(own_);
  // A slot comes to have one key at most once while it is looked for, so the stack never holds one twice.
  uint64_t* const stack = stack_.get();
  uint64_t waiting = 0;
  peeled_ = 0;
  for (uint64_t from = 0; from < shape.slots; ++from) {
    if (degrees[from] != 1) continue;
    stack[waiting++] = from;
    while (waiting != 0) {
      const uint64_t slot = stack[--waiting];
      if (degrees[slot] != 1) continue;  // its key was peeled from another slot
      const uint64_t mixed = combined[slot];
      const FuseProbe probe(mixed, shape);
      uint8_t which = 0;
      for (uint8_t i = 0; i < 3; ++i) {
        const uint64_t at = probe.slot[i];
        which = at == slot ? i : which;
        combined[at] ^= mixed;
        stack[waiting] = at;  // without a branch: kept only if one key is left there
        waiting += --degrees[at] == 1 ? 1 : 0;
      }
      order[peeled_] = mixed;
      own[peeled_++] = which;
    }
  }
  return peeled_ == count;
}

void FusePeeling::Assign(const FuseShape& shape, unsigned char* base) const {
  const auto* const order = reinterpret_cast<const uint64_t*>(order_.data());
  const auto* const own = reinterpret_cast<const uint8_t*>(own_.data());
  for (uint64_t i = peeled_; i-- > 0;) {
    const FuseProbe probe(order[i], shape);
    const uint64_t slot = probe.slot[own[i]];  // still zero: no key after this one has it
    if (shape.width == 8) {
      base[slot] = static_cast<unsigned char>(probe.fingerprint ^ base[probe.slot[0]] ^ base[probe.slot[1]] ^ base[probe.slot[2]]);
    } else {
      const uint32_t v = static_cast<uint32_t>(probe.fingerprint) ^ LoadFuse16(base, probe.slot[0]) ^ LoadFuse16(base, probe.slot[1]) ^
                         LoadFuse16(base, probe.slot[2]);
      base[2 * slot] = static_cast<unsigned char>(v);
      base[2 * slot + 1] = static_cast<unsigned char>(v >> 8);
    }
  }
}

absl::StatusOr<std::optional<FilterBytes>> BinaryFuseBuilder::Fuse(FuseShape shape, uint64_t* hashes, uint64_t count) const {
  FusePeeling peeling(shape.slots, count);
  uint64_t distinct = count;
  bool done = false;
  for (shape.attempt = 0; shape.attempt < attempts_; ++shape.attempt) {
    done = peeling.Peel(shape, hashes, distinct);
    if (done) break;
    // Equal hashes fail every attempt. They are rare, so they are looked for only now.
    if (shape.attempt == 0) {
      std::sort(hashes, hashes + count);
      distinct = static_cast<uint64_t>(std::unique(hashes, hashes + count) - hashes);
    }
  }
  if (!done) return std::nullopt;
  FilterHeader header = FilterHeaderOf(FilterKind::kBinaryFuse, options_);
  header.keys = count;
  header.lines = shape.slots;
  header.probes = static_cast<uint8_t>(shape.width);
  header.layout = shape.layout();
  absl::StatusOr<FilterBytes> bytes = AllocateFilter(FilterBodyLines(header));
  if (!bytes.ok()) return bytes.status();
  peeling.Assign(shape, reinterpret_cast<unsigned char*>(bytes->data()) + kFilterHeaderBytes);
  SealFilter(header, bytes->data(), bytes->size());
  return *std::move(bytes);
}

absl::StatusOr<FilterBytes> BinaryFuseBuilder::Finish() {
  HashChunks<uint64_t> chunks = std::exchange(hashes_, {});
  const uint64_t keys = chunks.size();
  try {
    const auto hashes = std::make_unique_for_overwrite<uint64_t[]>(keys);
    chunks.MoveTo(hashes.get());
    if (const std::optional<FuseShape> shape = FuseShapeWithin(keys, eighths_)) {
      absl::StatusOr<std::optional<FilterBytes>> fuse = Fuse(*shape, hashes.get(), keys);
      if (!fuse.ok()) return fuse.status();
      if (*fuse) return **std::move(fuse);
    }
    return BlockedBloomOf(options_, eighths_, hashes.get(), keys);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory for the slots of ", keys, " keys"));
  }
}

}  // namespace tamis::internal
