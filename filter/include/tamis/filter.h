// tamis::filter: static filters over 64-bit key hashes, usable on their own.
//
//   auto builder = tamis::FilterBuilder::Create({.bits_per_key = 10, .seed = seed}).value();
//   for (std::string_view key : keys) builder->AddHash(tamis::FilterKeyHash(key, seed));
//   tamis::FilterBytes bytes = builder->Finish().value();
//   auto filter = tamis::FilterView::Open(bytes.view(), {}).value();
//   if (!filter.MayContain(tamis::FilterKeyHash("key", seed))) { /* certainly never added */ }
//
// Other kinds are built and opened the same way ({.kind = tamis::FilterKind::kRibbon, ...}); filters of a prefix of the key are described
// in tamis/filter_prefix.h, merging and counting in tamis/filter_merge.h, Apache Parquet's bytes in tamis/filter_parquet.h.
//
// A filter answers "certainly not" or "maybe". It never answers "certainly not" for a hash that was added: bytes that are damaged, or
// of a version, kind or parameters not known here, are refused by Open with the reason, never queried.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
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
  kSplitBlockBloom = 2,  // Apache Parquet's layout: 32-byte blocks, eight probes, one a word
  kClassicBloom = 3,     // bits over the whole array: the lowest rate of a Bloom filter, k memory accesses a present key
  kRibbon = 4,           // linear equations: 30 % less memory than kClassicBloom at an equal rate, slower to build and to ask
  kBinaryFuse = 5,       // fingerprints of 8 or 16 bits (0.39, 0.0015 %): 10 % more memory than kRibbon, asked 4 times as fast
};
std::string_view FilterKindName(FilterKind kind);  // "none", "blocked_bloom", ...

inline constexpr double kMinBitsPerKey = 2.0;        // fewer save nothing worth a probe: use no filter
inline constexpr double kMaxBitsPerKey = 24.0;       // beyond this a cache-line filter wastes memory (FPR .005 % at 24)
inline constexpr double kMinRibbonBitsPerKey = 1.0;  // of kRibbon, whose rate at 1 bit is 52 %; the maximum is the same
inline constexpr double kBitsPerKeyStep = 0.125;

// XXH3-64 of the key with the database's seed (hash id 1): the one key hash. Compute it once per lookup and reuse it for all filters
// of the same seed. Part of the format.
uint64_t FilterKeyHash(std::string_view key, uint64_t seed);

// Which hash of the key a filter was fed. On disk, never renumber. Ids 2 and 3 are for filters used on their own.
inline constexpr uint8_t kFilterHashXxh3 = 1;      // FilterKeyHash; every kind
inline constexpr uint8_t kFilterHashXxh64 = 2;     // SplitBlockKeyHash; kSplitBlockBloom, seed 0
inline constexpr uint8_t kFilterHashXxh3_128 = 3;  // FilterKeyHash128; kClassicBloom

// XXH64 of the key with seed 0 (hash id 2): the hash of Apache Parquet.
uint64_t SplitBlockKeyHash(std::string_view key);

// XXH3-128 of the key with a seed (hash id 3). `low` is not FilterKeyHash.
struct FilterHash128 {
  uint64_t low = 0;
  uint64_t high = 0;
  friend bool operator==(const FilterHash128&, const FilterHash128&) = default;
};
FilterHash128 FilterKeyHash128(std::string_view key, uint64_t seed);

// What of a key was hashed. Values on disk, never renumber. What the rules mean: tamis/filter_prefix.h.
enum class FilterPrefixKind : uint8_t {
  kNone = 0,         // the whole key; argument 0
  kFixedLength = 1,  // its first `argument` bytes, 1..65535
  kDelimiter = 2,    // its bytes up to and including the first byte `argument`, 0..255
};
struct FilterPrefixRule {
  FilterPrefixKind kind = FilterPrefixKind::kNone;
  uint16_t argument = 0;
  friend bool operator==(const FilterPrefixRule&, const FilterPrefixRule&) = default;
};

// The number of keys of a filter made from bits of which nothing else is known.
inline constexpr uint64_t kFilterKeysUnknown = std::numeric_limits<uint64_t>::max();

using FilterOwner = std::array<uint8_t, 16>;  // the table id; all zero when used on its own

struct FilterBuildOptions {
  FilterKind kind = FilterKind::kBlockedBloom;
  // kMinBitsPerKey (kRibbon: kMinRibbonBitsPerKey) .. kMaxBitsPerKey, rounded down to kBitsPerKeyStep; before rounding up to whole lines
  double bits_per_key = 10.0;
  uint64_t seed = 0;                  // that the hashes were made with; stored
  FilterOwner owner{};                // stored
  uint8_t hash_id = kFilterHashXxh3;  // of the hashes that will be added; stored
  FilterPrefixRule prefix_rule{};     // what was hashed; stored
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
  // InvalidArgument for an unknown kind, bits per key out of range or not a number, a hash id that is unknown or not of that kind, a seed
  // with hash id 2, or an impossible prefix rule.
  static absl::StatusOr<std::unique_ptr<FilterBuilder>> Create(const FilterBuildOptions& options);
  virtual ~FilterBuilder() = default;
  // Adding a hash twice changes nothing but the number of keys, unless the two are adjacent (then not even that).
  // Of a builder of hash id 3 this is a mistake: Finish is then FailedPrecondition.
  virtual void AddHash(uint64_t hash) = 0;
  // For hash id 3. Elsewhere it adds the low half.
  virtual void AddHash128(const FilterHash128& hash) { AddHash(hash.low); }
  virtual uint64_t keys() const = 0;
  // Bits per key used by Finish; may be set until then (the engine knows the number of keys only at the end). Same checks as Create.
  virtual absl::Status SetBitsPerKey(double bits_per_key) = 0;
  // The finished bytes; the builder is empty afterwards. With no keys: a valid filter that answers "certainly not" to everything.
  // ResourceExhausted if memory is short or the filter would pass 2^40 lines (kSplitBlockBloom: 2^31 blocks of 32 bytes).
  //
  // A builder of kRibbon gives a filter of kind kBlockedBloom, and its header says so, for fewer than 512 keys, where ribbon saves
  // nothing, and should the equations of some 64 Ki slots have no solution in 256 attempts. That filter has at least kMinBitsPerKey.
  //
  // A builder of kBinaryFuse takes the widest fingerprints, 16 or 8 bits, whose slots fit into the bits asked for, and no more memory than
  // these need: 8 bits take 9.05 bits a key from 10^6 keys on, 9.5 at 10^5, 10.25 at 10^4; 16 bits twice that. Where 8 do not fit, for
  // fewer than 512 keys, and should 64 attempts fail, it gives a filter of kind kBlockedBloom with the bits asked for.
  virtual absl::StatusOr<FilterBytes> Finish() = 0;
};

struct FilterInfo {
  FilterKind kind = FilterKind::kNone;
  uint8_t hash_id = 1;
  uint32_t probes = 0;  // k; kRibbon: columns (its lower part has one fewer); kBinaryFuse: bits of a fingerprint
  uint64_t lines = 0;   // 64-byte lines
  uint64_t bits = 0;    // that keys are spread over: 512 * lines, less the padding of the last line
  uint64_t keys = 0;    // added; of a union the sum, an upper bound; or kFilterKeysUnknown
  uint64_t seed = 0;
  FilterOwner owner{};
  FilterPrefixRule prefix_rule{};
  uint64_t size_bytes = 0;   // header and bits
  double bits_per_key = 0;   // bits / keys; 0 if there are no keys or their number is not known
  double predicted_fpr = 0;  // exact, of the model; 0 without keys, 1 if their number is not known
};

// What the opener knows; each mismatch is refused. The defaults are those of whoever asks with FilterKeyHash of whole keys.
struct FilterExpectations {
  bool check_owner = false;
  FilterOwner owner{};
  uint8_t hash_id = kFilterHashXxh3;
  FilterPrefixRule prefix_rule{};
  bool any_prefix_rule = false;  // accept each valid rule; ask FilterView::prefix_rule
};

// A parsed filter; a small value that points into bytes it does not own. Thread-safe.
class FilterView {
 public:
  FilterView() = default;  // kind none: every key may be there
  // DataLoss for damaged bytes; Unimplemented for an unknown version, kind, hash id or prefix rule; FailedPrecondition for another owner,
  // hash id or prefix rule than expected; InvalidArgument for impossible parameters or a buffer that is not 64-byte aligned. The text
  // says which.
  static absl::StatusOr<FilterView> Open(std::string_view bytes, const FilterExpectations& expectations);

  // A filter of hash id 3 has no answer for 64 bits: maybe.
  bool MayContain(uint64_t hash) const;
  // For hash id 3; of other filters maybe.
  bool MayContain128(const FilterHash128& hash) const;
  // Starts loading what MayContain(hash) will touch (kClassicBloom: the first four probes, which one absent key in 16 passes).
  void Prefetch(uint64_t hash) const {
    if (lines_ != 0) {
      __builtin_prefetch(Line(hash));
    } else {
      PrefetchOther(hash);
    }
  }
  // may[i] = MayContain(hashes[i]), all lines prefetched first. The spans have the same length.
  void MayContainBatch(absl::Span<const uint64_t> hashes, absl::Span<bool> may) const;

  FilterInfo Info() const;
  double MeasuredFill() const;  // share of set bits; reads the whole filter
  bool has_filter() const { return kind_ != FilterKind::kNone; }
  FilterKind kind() const { return kind_; }
  uint64_t seed() const;
  uint8_t hash_id() const { return hash_id_; }  // 0 for kind none
  FilterPrefixRule prefix_rule() const;

  // The raw parts, for flat arrays that keep {base, lines, k} of many filters (kind kBlockedBloom only: lines are 0 for every other).
  const unsigned char* base() const { return base_; }
  uint64_t lines() const { return lines_; }
  uint32_t probes() const { return probes_; }

 private:
  const unsigned char* Line(uint64_t hash) const;
  // For kinds other than kBlockedBloom, none included: out of line, so that the inline part stays what that kind needs.
  bool MayContainOther(uint64_t hash) const;
  void PrefetchOther(uint64_t hash) const;
  void MayContainBatchOther(absl::Span<const uint64_t> hashes, absl::Span<bool> may) const;

  FilterKind kind_ = FilterKind::kNone;
  uint8_t probes_ = 0;
  uint16_t hash_id_ : 4 = 0;
  uint16_t region_blocks_ : 12 = 0;      // kRibbon
  uint32_t layout_ = 0;                  // kRibbon, kBinaryFuse
  uint64_t lines_ = 0;                   // kBlockedBloom; 0 for all other kinds
  uint64_t units_ = 0;                   // what the kind counts (filter/filter_format.h)
  const unsigned char* base_ = nullptr;  // first line; the header is right before it
};

// The exact model. Of the blocked kinds: a Poisson mixture over the keys in a line or block (filter/README.md). Of kClassicBloom: the
// limit of many keys; stepping makes a filter of few keys worse (1.2 times the rate in 512 bits, 1.002 in 51,200). Of kRibbon: powers of
// two by the number of columns, at 1.025 slots a key; FilterView::Info knows those of the filter (more for fewer than 10^5 keys). Of
// kBinaryFuse: 2^-8 from 9.625 bits per key on and 2^-16 from 19.25, which is enough for any 10^5 keys or more; below that kBlockedBloom's,
// as the builder makes one then (it takes 8 bits from 9.125 on if the keys are a million).
namespace fpr_model {
// False-positive rate at `bits_per_key` with `probes` probes. 1.0 for kind none. bits_per_key > 0. kSplitBlockBloom always has eight
// probes, kRibbon and kBinaryFuse what their bits give: any `probes` but 0 is as good as another.
double FalsePositiveRate(FilterKind kind, double bits_per_key, uint32_t probes);
// With the number of probes that the builder would choose.
double FalsePositiveRate(FilterKind kind, double bits_per_key);
uint32_t BestProbes(FilterKind kind, double bits_per_key);  // kRibbon: columns; kBinaryFuse: bits of a fingerprint
// Least bits per key (in steps of kBitsPerKeyStep, within the limits) whose rate is at most `rate`; OutOfRange if none reaches it;
// InvalidArgument unless 0 < rate < 1.
absl::StatusOr<double> BitsForRate(FilterKind kind, double rate);
// Expected share of set bits (kRibbon, kBinaryFuse: half of the bits of the slots that are used).
double ExpectedFill(FilterKind kind, double bits_per_key, uint32_t probes);
// The kind of the filter that a builder of `kind` makes: kBlockedBloom where a kRibbon has too few keys, or a kBinaryFuse too few keys or
// bits; else `kind`. (A build that failed in all its attempts is of kBlockedBloom too.)
FilterKind BuiltKind(FilterKind kind, uint64_t keys, double bits_per_key);
// Standard deviation of the real rate of a filter around the predicted one, over filters of as many other keys: the smaller the filter, the
// more it depends on which keys it got (10 bits per key, kBlockedBloom: 6 % of the rate in 100 lines). Of the blocked kinds an upper
// estimate, two to three times the measured deviation. 0 where the rate is 0 or 1.
double RateDeviation(const FilterInfo& info);
// Size in bytes (header and lines) of a filter for `keys` keys; InvalidArgument if it would pass the limit of FilterBuilder::Finish.
// 64-bit throughout.
absl::StatusOr<uint64_t> SizeBytes(FilterKind kind, uint64_t keys, double bits_per_key);
}  // namespace fpr_model

}  // namespace tamis

#include "tamis/filter_inline.h"  // the probing itself, inlined into callers
