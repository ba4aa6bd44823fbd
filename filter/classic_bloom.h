// Kind kClassicBloom: k bits over the whole array.
//
// FORMAT of the bits (on disk, never change): m bits, bit b being bit (b & 7) of byte b >> 3. A key has two 64-bit values:
//   hash id 1   h1 = hash, h2 = Mix64(hash + 0x9e3779b97f4a7c15) | 1   (hash.h: SplitMix64's finaliser)
//   hash id 3   h1 = low half of XXH3-128, h2 = high half | 1
// Probe i = 0..k-1 is bit ((h1 + i * h2 mod 2^64) * m) >> 64, the product taken in 128 bits. So a key steps around a circle of 2^64 points
// that is then scaled to m: double hashing, without the division of "mod m" and without its favour for the low bits when m > 2^32.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "filter/filter_format.h"
#include "filter/hash.h"
#include "filter/hash_chunks.h"
#include "tamis/filter.h"

namespace tamis::internal {

struct ClassicProbes {
  uint64_t next;  // h1 + i * h2
  uint64_t step;  // h2

  explicit ClassicProbes(uint64_t hash) : next(hash), step(Mix64(hash + kGoldenGamma) | 1) {}
  explicit ClassicProbes(const FilterHash128& hash) : next(hash.low), step(hash.high | 1) {}

  // The next probe's bit, below `bits`.
  uint64_t Next(uint64_t bits) {
    const uint64_t at = FilterLineIndex(next, bits);  // the same scaling, of bits instead of lines
    next += step;
    return at;
  }
};

inline bool ClassicMayContain(const unsigned char* base, uint64_t bits, uint32_t probes, ClassicProbes key) {
  for (uint32_t i = 0; i < probes; ++i) {
    const uint64_t bit = key.Next(bits);
    if ((base[bit >> 3] >> (bit & 7) & 1) == 0) return false;
  }
  return true;
}

class ClassicBloomBuilder final : public CollectingBuilder {
 public:
  using CollectingBuilder::CollectingBuilder;
  void AddHash(uint64_t hash) override;
  void AddHash128(const FilterHash128& hash) override;
  uint64_t keys() const override { return hashes_.size() + wide_.size(); }
  absl::StatusOr<FilterBytes> Finish() override;

 private:
  bool is_wide() const { return options_.hash_id == kFilterHashXxh3_128; }

  HashChunks<FilterHash128> wide_;  // used instead of hashes_ with hash id 3
  bool misused_ = false;            // a 64-bit hash was added to a filter of hash id 3
};

}  // namespace tamis::internal
