// What the tests of filter/ share: hashes, building, and resealing of edited filters.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "filter/hash.h"
#include "tamis/filter.h"

namespace tamis::filter_testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSmall = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
inline constexpr bool kSmall = true;
#else
inline constexpr bool kSmall = false;
#endif
#else
inline constexpr bool kSmall = false;
#endif

// SplitMix64: i -> hash, one to one. Distinct `i` give distinct hashes; the tests number their hashes from ranges that do not overlap.
inline uint64_t Mix(uint64_t i) {
  uint64_t x = i + 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}
inline constexpr uint64_t kAbsent = uint64_t{1} << 48;  // Mix(kAbsent + i) was never added

inline FilterBytes Build(const std::vector<uint64_t>& hashes, double bits, const FilterBuildOptions& base = {}) {
  FilterBuildOptions options = base;
  options.bits_per_key = bits;
  auto builder = FilterBuilder::Create(options);
  EXPECT_TRUE(builder.ok()) << builder.status().ToString();
  for (uint64_t hash : hashes) (*builder)->AddHash(hash);
  auto bytes = (*builder)->Finish();
  EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
  return *std::move(bytes);
}

inline FilterView Open(const FilterBytes& bytes) {
  auto view = FilterView::Open(bytes.view(), {});
  EXPECT_TRUE(view.ok()) << view.status().ToString();
  return *view;
}

inline std::vector<uint64_t> Hashes(uint64_t count, uint64_t first = 0) {
  std::vector<uint64_t> out(count);
  for (uint64_t i = 0; i < count; ++i) out[i] = Mix(first + i);
  return out;
}

inline uint64_t CountMissing(const FilterView& view, const std::vector<uint64_t>& hashes) {
  uint64_t missing = 0;
  for (uint64_t hash : hashes) missing += view.MayContain(hash) ? 0 : 1;
  return missing;
}

inline FilterBytes Copy(std::string_view bytes) {
  FilterBytes copy(bytes.size());
  if (!bytes.empty()) std::memcpy(copy.data(), bytes.data(), bytes.size());
  return copy;
}

// Writes the right checksum for whatever else the bytes say: in one piece, unlike the code under test.
inline void Reseal(FilterBytes& bytes) {
  std::string covered(bytes.data(), 56);
  covered.append(bytes.data() + 64, bytes.size() - 64);
  const uint64_t checksum = XXH3_64bits(covered.data(), covered.size());
  for (int i = 0; i < 8; ++i) bytes.data()[56 + i] = static_cast<char>(checksum >> (8 * i));
}

}  // namespace tamis::filter_testing
