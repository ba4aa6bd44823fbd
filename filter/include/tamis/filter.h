// tamis::filter: static filters over 64-bit key hashes, usable on their own.
//
//   auto builder = tamis::FilterBuilder::Create({.bits_per_key = 10, .seed = seed}).value();
//   for (std::string_view key : keys) builder->AddHash(tamis::FilterKeyHash(key, seed));
//   tamis::FilterBytes bytes = builder->Finish().value();
//   auto filter = tamis::FilterView::Open(bytes.view(), {}).value();
//   if (!filter.MayContain(tamis::FilterKeyHash("key", seed))) { /* certainly never added */ }
//
// A filter answers "certainly not" or "maybe". It never answers "certainly not" for a hash that was added: bytes that are damaged, or
// of a version, kind or parameters not known here, are refused by Open with the reason, never queried.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace tamis {

// Kinds of filter. On disk, never renumber.
enum class FilterKind : uint8_t {
  kNone = 0,
  kBlockedBloom = 1,     // cache-line blocked Bloom: one memory access a probe
  kSplitBlockBloom = 2,  // Apache Parquet's layout (reserved, later)
  kClassicBloom = 3,     // (reserved, later)
  kRibbon = 4,           // (reserved, later)
};
std::string_view FilterKindName(FilterKind kind);  // "none", "blocked_bloom", ...

inline constexpr double kMinBitsPerKey = 2.0;   // fewer save nothing worth a probe: use no filter
inline constexpr double kMaxBitsPerKey = 24.0;  // beyond this a cache-line filter wastes memory (FPR .005 % at 24)
inline constexpr double kBitsPerKeyStep = 0.125;

// XXH3-64 of the key with the database's seed (hash id 1): the one key hash. Compute it once per lookup and reuse it for all filters
// of the same seed. Part of the format.
uint64_t FilterKeyHash(std::string_view key, uint64_t seed);

using FilterOwner = std::array<uint8_t, 16>;  // the table id; all zero when used on its own

struct FilterBuildOptions {
  FilterKind kind = FilterKind::kBlockedBloom;
  double bits_per_key = 10.0;  // kMinBitsPerKey .. kMaxBitsPerKey, rounded down to kBitsPerKeyStep; before rounding up to whole lines
  uint64_t seed = 0;           // that the hashes were made with; stored
  FilterOwner owner{};         // stored
};

// The finished filter: 64-byte header and bits, 64-byte aligned, so that a line of the filter is a line of the cache.
class FilterBytes {
 public:
  FilterBytes() = default;
  explicit FilterBytes(size_t size);  // zeroed; throws std::bad_alloc
  FilterBytes(FilterBytes&& other) noexcept;
  FilterBytes& operator=(FilterBytes&& other) noexcept;
  ~FilterBytes();
  char* data() { return data_; }
  const char* data() const { return data_; }
  size_t size() const { return size_; }
  std::string_view view() const { return {data_, size_}; }

 private:
  char* data_ = nullptr;
  size_t size_ = 0;
};

// Collects hashes, then builds. Not thread-safe.
class FilterBuilder {
 public:
  // InvalidArgument for an unknown kind, or bits per key out of range or not a number; Unimplemented for a reserved kind.
  static absl::StatusOr<std::unique_ptr<FilterBuilder>> Create(const FilterBuildOptions& options);
  virtual ~FilterBuilder() = default;
  // Adding a hash twice changes nothing but the number of keys, unless the two are adjacent (then not even that).
  virtual void AddHash(uint64_t hash) = 0;
  virtual uint64_t keys() const = 0;
  // Bits per key used by Finish; may be set until then (the engine knows the number of keys only at the end). Same checks as Create.
  virtual absl::Status SetBitsPerKey(double bits_per_key) = 0;
  // The finished bytes; the builder is empty afterwards. With no keys: a valid filter that answers "certainly not" to everything.
  // ResourceExhausted if memory is short or the filter would pass 2^40 lines.
  virtual absl::StatusOr<FilterBytes> Finish() = 0;
};

struct FilterInfo {
  FilterKind kind = FilterKind::kNone;
  uint8_t hash_id = 1;
  uint32_t probes = 0;       // k
  uint64_t lines = 0;        // 64-byte lines
  uint64_t keys = 0;
  uint64_t seed = 0;
  FilterOwner owner{};
  uint64_t size_bytes = 0;   // header and bits
  double bits_per_key = 0;   // 512 * lines / keys; 0 if there are no keys
  double predicted_fpr = 0;  // exact, of the model
};

// What the opener knows; each mismatch is refused.
struct FilterExpectations {
  bool check_owner = false;
  FilterOwner owner{};
};

// A parsed filter; a small value that points into bytes it does not own. Thread-safe.
class FilterView {
 public:
  FilterView() = default;  // kind none: every key may be there
  // DataLoss for damaged bytes; Unimplemented for an unknown version, kind or hash id; FailedPrecondition for another owner;
  // InvalidArgument for impossible parameters or a buffer that is not 64-byte aligned. The text says which.
  static absl::StatusOr<FilterView> Open(std::string_view bytes, const FilterExpectations& expectations);

  bool MayContain(uint64_t hash) const;
  // Starts loading what MayContain(hash) will touch.
  void Prefetch(uint64_t hash) const {
    if (lines_ != 0) __builtin_prefetch(Line(hash));
  }
  // may[i] = MayContain(hashes[i]), all lines prefetched first. The spans have the same length.
  void MayContainBatch(absl::Span<const uint64_t> hashes, absl::Span<bool> may) const;

  FilterInfo Info() const;
  double MeasuredFill() const;  // share of set bits; reads the whole filter
  bool has_filter() const { return kind_ != FilterKind::kNone; }
  FilterKind kind() const { return kind_; }
  uint64_t seed() const;

  // The raw parts, for flat arrays that keep {base, lines, k} of many filters (kind kBlockedBloom only).
  const unsigned char* base() const { return base_; }
  uint64_t lines() const { return lines_; }
  uint32_t probes() const { return probes_; }

 private:
  const unsigned char* Line(uint64_t hash) const;

  FilterKind kind_ = FilterKind::kNone;
  uint8_t probes_ = 0;
  uint64_t lines_ = 0;
  const unsigned char* base_ = nullptr;    // first line
  const unsigned char* header_ = nullptr;
};

// The exact model (a Poisson mixture over the keys in a line; DESIGN notes in filter/README.md).
namespace fpr_model {
// False-positive rate at `bits_per_key` with `probes` probes. 1.0 for kind none. bits_per_key > 0.
double FalsePositiveRate(FilterKind kind, double bits_per_key, uint32_t probes);
// With the number of probes that the builder would choose.
double FalsePositiveRate(FilterKind kind, double bits_per_key);
uint32_t BestProbes(FilterKind kind, double bits_per_key);
// Least bits per key (in steps of kBitsPerKeyStep, within the limits) whose rate is at most `rate`; OutOfRange if none reaches it;
// InvalidArgument unless 0 < rate < 1.
absl::StatusOr<double> BitsForRate(FilterKind kind, double rate);
// Expected share of set bits.
double ExpectedFill(FilterKind kind, double bits_per_key, uint32_t probes);
// Size in bytes (header and lines) of a filter for `keys` keys; InvalidArgument if it would pass 2^40 lines. 64-bit throughout.
absl::StatusOr<uint64_t> SizeBytes(FilterKind kind, uint64_t keys, double bits_per_key);
}  // namespace fpr_model

}  // namespace tamis

#include "tamis/filter_inline.h"  // the probing itself, inlined into callers
