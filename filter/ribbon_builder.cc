#include "filter/ribbon_builder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "filter/blocked_bloom.h"

namespace tamis::internal {
namespace {

// Puts the hashes in the order of their regions, in place, each swapped to the next free place of its region; where each region ends.
std::vector<uint64_t> SortByRegion(uint64_t* hashes, uint64_t count, uint64_t regions) {
  const auto region_of = [regions](uint64_t hash) { return FilterLineIndex(Mix64(hash), regions); };
  std::vector<uint64_t> end(regions, 0);
  if (regions == 1) return {count};
  for (uint64_t i = 0; i < count; ++i) ++end[region_of(hashes[i])];
  std::vector<uint64_t> next(regions, 0);
  for (uint64_t r = 1; r < regions; ++r) {
    next[r] = end[r - 1];
    end[r] += end[r - 1];
  }
  for (uint64_t r = 0; r < regions; ++r) {
    while (next[r] < end[r]) {
      uint64_t hash = hashes[next[r]];
      for (uint64_t region = region_of(hash); region != r; region = region_of(hash)) std::swap(hash, hashes[next[region]++]);
      hashes[next[r]++] = hash;
    }
  }
  return end;
}

uint32_t TrailingZeros(FilterUint128 v) {
  const auto low = static_cast<uint64_t>(v);
  return static_cast<uint32_t>(low != 0 ? std::countr_zero(low) : 64 + std::countr_zero(static_cast<uint64_t>(v >> 64)));
}

void StoreLittle64(unsigned char* p, uint64_t v) {
  if constexpr (std::endian::native == std::endian::big) v = __builtin_bswap64(v);
  std::memcpy(p, &v, sizeof(v));
}

}  // namespace

RibbonBanding::RibbonBanding(const RibbonShape& shape)
    : shape_(shape),
      result_mask_(static_cast<uint32_t>((uint64_t{1} << shape.columns) - 1)),
      coefficients_(shape.slots() * sizeof(FilterUint128)),
      results_(shape.slots() * sizeof(uint32_t)) {}

bool RibbonBanding::Add(uint64_t start, FilterUint128 coefficients, uint32_t result) {
  FilterUint128* const rows = this->coefficients();
  uint32_t* const row_results = results();
  uint64_t slot = start;
  while (rows[slot] != 0) {
    coefficients ^= rows[slot];
    result ^= row_results[slot];
    if (coefficients == 0) return result == 0;
    const uint32_t shift = TrailingZeros(coefficients);
    coefficients >>= shift;
    slot += shift;
  }
  rows[slot] = coefficients;
  row_results[slot] = result;
  end_ = std::max(end_, slot + 1);
  return true;
}

bool RibbonBanding::TryRegion(uint64_t region, const uint64_t* hashes, size_t count, uint32_t attempt) {
  // Block by block of the starts (counting sort), so that the rows in use stay in the first-level cache.
  const uint64_t regions = shape_.regions();
  const uint64_t region_slots = shape_.region_slots();
  const uint64_t first_block = region * shape_.region_blocks;
  std::array<uint32_t, kMaxRibbonRegionBlocks + 1> next{};
  const auto block_of = [&](uint64_t hash) { return RibbonHash(hash, regions).Start(region_slots, attempt) / kRibbonWidth - first_block; };
  for (size_t i = 0; i < count; ++i) ++next[block_of(hashes[i]) + 1];
  for (size_t b = 1; b < next.size(); ++b) next[b] += next[b - 1];
  sorted_.resize(count);
  for (size_t i = 0; i < count; ++i) sorted_[next[block_of(hashes[i])]++] = hashes[i];
  return std::all_of(sorted_.begin(), sorted_.end(), [&](uint64_t hash) {
    const RibbonHash row(hash, regions);
    return Add(row.Start(region_slots, attempt), row.Coefficients(), row.result & result_mask_);
  });
}

std::optional<uint8_t> RibbonBanding::AddRegion(uint64_t region, const uint64_t* hashes, size_t count, uint32_t attempts) {
  // What the regions below have put into this one, to go back to.
  const uint64_t first = region * shape_.region_slots();
  const uint64_t below_end = std::max(first, end_);
  const std::vector<FilterUint128> below_coefficients(coefficients() + first, coefficients() + below_end);
  const std::vector<uint32_t> below_results(results() + first, results() + below_end);
  for (uint32_t attempt = 0; attempt < attempts; ++attempt) {
    if (TryRegion(region, hashes, count, attempt)) return static_cast<uint8_t>(attempt);
    std::fill(coefficients() + first, coefficients() + std::max(first, end_), FilterUint128{0});
    std::copy(below_coefficients.begin(), below_coefficients.end(), coefficients() + first);
    std::copy(below_results.begin(), below_results.end(), results() + first);
    end_ = below_end;
  }
  return std::nullopt;
}

void RibbonBanding::Solve(unsigned char* base) const {
  const auto* coefficients = reinterpret_cast<const FilterUint128*>(coefficients_.data());
  const auto* results = reinterpret_cast<const uint32_t*>(results_.data());
  // Of each column the solution of the 128 slots from the current one on: low and high half. From the last slot to the first; each slot's
  // bit follows from those after it. Free slots are zero.
  std::array<uint64_t, kMaxRibbonColumns> low{};
  std::array<uint64_t, kMaxRibbonColumns> high{};
  for (uint64_t block = shape_.blocks; block-- > 0;) {
    const uint32_t columns = shape_.ColumnsOf(block);
    for (uint64_t slot = (block + 1) * kRibbonWidth; slot-- > block * kRibbonWidth;) {
      const auto row_low = static_cast<uint64_t>(coefficients[slot]);
      const auto row_high = static_cast<uint64_t>(coefficients[slot] >> 64);
      const uint32_t result = row_low != 0 ? results[slot] : 0;
      for (uint32_t c = 0; c < columns; ++c) {
        const uint64_t moved_high = (high[c] << 1) | (low[c] >> 63);
        const uint64_t moved_low = low[c] << 1;
        const auto parity = static_cast<uint32_t>(__builtin_parityll((moved_low & row_low) ^ (moved_high & row_high)));
        high[c] = moved_high;
        low[c] = moved_low | ((parity ^ (result >> c)) & 1);
      }
    }
    unsigned char* segment = base + shape_.FirstSegment(block) * kRibbonSegmentBytes;
    for (uint32_t c = 0; c < columns; ++c, segment += kRibbonSegmentBytes) {
      StoreLittle64(segment, low[c]);
      StoreLittle64(segment + 8, high[c]);
    }
  }
}

bool IsPossibleRibbonShape(const RibbonShape& shape) {
  if (shape.blocks < 2 || shape.blocks > kMaxRibbonBlocks || (shape.blocks - 1) % shape.regions() != 0) return false;
  if (shape.columns == 0 || shape.columns > kMaxRibbonColumns || shape.lower_blocks >= shape.blocks) return false;
  return (shape.segments() + RibbonAttemptSegments(shape.regions())) % (kFilterLineBytes / kRibbonSegmentBytes) == 0;
}

std::optional<RibbonShape> RibbonShapeFor(uint64_t keys, uint32_t eighths) {
  const uint64_t lines = FilterLinesFor(keys, eighths);
  if (lines > kMaxFilterLines || keys > kMaxRibbonBlocks * kRibbonWidth) return std::nullopt;
  // Of the slots rounded up to blocks, all blocks but one, in which no row starts.
  const double slots = static_cast<double>(keys) * kRibbonSlotsPerKey;
  const uint64_t wanted = std::max<uint64_t>(1, static_cast<uint64_t>(slots / static_cast<double>(kRibbonWidth)));
  const uint64_t regions = (wanted + kMaxRibbonRegionBlocks - 1) / kMaxRibbonRegionBlocks;
  const uint64_t blocks = (wanted + regions - 1) / regions * regions + 1;
  const uint64_t attempts = RibbonAttemptSegments(regions);
  const uint64_t all = lines * (kFilterLineBytes / kRibbonSegmentBytes);
  if (all <= attempts) return std::nullopt;
  const uint64_t columns = std::min<uint64_t>((all - attempts + blocks - 1) / blocks, kMaxRibbonColumns + 1);
  const RibbonShape shape = RibbonShape::Of(blocks, static_cast<uint32_t>(columns), blocks * columns - (all - attempts));
  if (!IsPossibleRibbonShape(shape)) return std::nullopt;
  return shape;
}

double RibbonShape::Rate() const {
  const double lower = static_cast<double>(std::min(lower_blocks, blocks - 1)) / static_cast<double>(blocks - 1);
  return std::ldexp(1 + lower, -static_cast<int>(columns));
}

absl::StatusOr<std::optional<FilterBytes>> RibbonBuilder::Ribbon(const RibbonShape& shape, uint64_t* hashes, uint64_t count) const {
  FilterHeader header = FilterHeaderOf(FilterKind::kRibbon, options_);
  header.keys = count;
  header.lines = shape.blocks;
  header.probes = static_cast<uint8_t>(shape.columns);
  header.layout = static_cast<uint32_t>(shape.lower_blocks);
  const std::vector<uint64_t> ends = SortByRegion(hashes, count, shape.regions());
  RibbonBanding banding(shape);
  std::vector<unsigned char> attempts;
  uint64_t begin = 0;
  for (const uint64_t end : ends) {
    const std::optional<uint8_t> attempt = banding.AddRegion(attempts.size(), hashes + begin, end - begin, attempts_);
    if (!attempt) return std::nullopt;
    attempts.push_back(*attempt);
    begin = end;
  }
  absl::StatusOr<FilterBytes> bytes = AllocateFilter(FilterBodyLines(header));
  if (!bytes.ok()) return bytes.status();
  auto* base = reinterpret_cast<unsigned char*>(bytes->data()) + kFilterHeaderBytes;
  banding.Solve(base);
  std::copy(attempts.begin(), attempts.end(), base + shape.segments() * kRibbonSegmentBytes);
  SealFilter(header, bytes->data(), bytes->size());
  return *std::move(bytes);
}

absl::StatusOr<FilterBytes> RibbonBuilder::Finish() {
  HashChunks<uint64_t> chunks = std::exchange(hashes_, {});
  const uint64_t keys = chunks.size();
  try {
    const auto hashes = std::make_unique_for_overwrite<uint64_t[]>(keys);
    chunks.MoveTo(hashes.get());
    const std::optional<RibbonShape> shape = RibbonShapeFor(keys, eighths_);
    if (keys >= kMinRibbonKeys && shape) {
      absl::StatusOr<std::optional<FilterBytes>> ribbon = Ribbon(*shape, hashes.get(), keys);
      if (!ribbon.ok()) return ribbon.status();
      if (*ribbon) return **std::move(ribbon);
    }
    return BlockedBloomOf(options_, RibbonFallbackEighths(eighths_), hashes.get(), keys);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory for the equations of ", keys, " keys"));
  }
}

}  // namespace tamis::internal
