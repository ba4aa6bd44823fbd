// Keys, values and lookups of a study: made from numbers and a seed, so that any part of it can be repeated.
//
// A key is 16 bytes: 'k' and 15 that look random. Key i exists for i < keys; the deleted keys follow; absent keys come from far beyond.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/study/cells.h"

namespace tamis::tools {

// A bijection of 64-bit numbers that looks random (the finaliser of SplitMix64).
inline uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

class Random {
 public:
  explicit Random(uint64_t seed) : state_(Mix(seed)) {}
  uint64_t Next() { return Mix(state_ += 0x9e3779b97f4a7c15); }
  // In [0, n), by multiplication: the bias is below n / 2^64.
  uint64_t Uniform(uint64_t n) { return static_cast<uint64_t>((static_cast<Wide>(Next()) * n) >> 64); }
  double UniformReal() { return static_cast<double>(Next() >> 11) * 0x1p-53; }  // [0, 1)

 private:
  __extension__ typedef unsigned __int128 Wide;
  uint64_t state_;
};

// Ranks 0..n-1 with probabilities proportional to 1 / (rank + 1)^theta; theta 0 is uniform. By rejection inversion (Hörmann and Derflinger
// 1996): no table, exact for any n >= 1 and theta >= 0.
class ZipfRanks {
 public:
  ZipfRanks(uint64_t n, double theta);
  uint64_t Next(Random* random) const;

 private:
  double Integral(double x) const;
  double InverseIntegral(double y) const;

  uint64_t n_;
  double theta_;
  double first_ = 0;
  double last_ = 0;
  double accept_ = 0;
};

inline constexpr size_t kStudyKeyBytes = 16;
inline constexpr size_t kStudyValueBytes = 100;  // half of it compresses away
void StudyKey(uint64_t seed, uint64_t index, std::string* key);
void StudyValue(uint64_t seed, uint64_t index, std::string* value);

// Absent keys of the kind "between": StudyKey of this and above.
inline constexpr uint64_t kFirstAbsentKey = uint64_t{1} << 40;

struct LookupMix {
  uint64_t keys = 0;          // that exist
  uint64_t deleted_keys = 0;  // that existed; for AbsentKind::kDeleted
  double absent_percent = 0;
  AbsentKind absent_kind = AbsentKind::kBetween;
  double zipf_theta = 0;
  // For AbsentKind::kAgainst: not empty, not owned.
  const std::vector<std::string>* against = nullptr;
};

// An endless sequence of lookups. Uniform absent keys of the kinds far and between never repeat; skewed ones do, as present ones.
class LookupStream {
 public:
  // Different `stream` numbers of a seed give different lookups of the same keys.
  LookupStream(const LookupMix& mix, uint64_t seed, uint64_t stream);
  // True if the key exists.
  bool Next(std::string* key);

 private:
  void NextAbsent(std::string* key);

  LookupMix mix_;
  uint64_t seed_;
  Random random_;
  ZipfRanks present_;
  ZipfRanks absent_;
  uint64_t fresh_;  // next absent key that was not used yet
};

}  // namespace tamis::tools
