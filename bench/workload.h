// Keys and values of the benchmarks: made from an index and a seed, so that any part of a run can be repeated and checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tamis::bench {

// A bijection of 64-bit numbers that looks random (the finaliser of SplitMix64).
inline uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// A fast generator with 64 bits of state; one a thread.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(Mix(seed)) {}
  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15;
    return Mix(state_);
  }
  // In [0, n), by multiplication: the bias is below n / 2^64.
  uint64_t Uniform(uint64_t n) { return static_cast<uint64_t>((static_cast<Wide>(Next()) * n) >> 64); }

 private:
  __extension__ typedef unsigned __int128 Wide;
  uint64_t state_;
};

// The familiar tool's key: the index as 8 bytes big-endian (its low bytes if the key is shorter), then '0' up to the size. A key one byte
// longer therefore falls right behind the key of the same index.
void IndexKey(uint64_t index, size_t key_bytes, std::string* key);

// 16 bytes that look random. Different indexes give different keys, so indexes past those that were written give absent keys that fall
// anywhere among the present ones.
inline constexpr size_t kHashedKeyBytes = 16;
void HashedKey(uint64_t index, char* key);
inline std::string HashedKey(uint64_t index) {
  std::string key(kHashedKeyBytes, '\0');
  HashedKey(index, key.data());
  return key;
}

// Values that compress to about `compression_ratio` of their size: slices of a buffer that repeats itself in pieces of 100 bytes.
class ValueSource {
 public:
  ValueSource(double compression_ratio, size_t largest_value, uint64_t seed);
  // The next slice; valid as long as the source.
  std::string_view Next(size_t bytes);

 private:
  std::string data_;
  size_t position_ = 0;
};

}  // namespace tamis::bench
