// A small fast generator (xoshiro256**, seeded by splitmix64: prng.di.unimi.it) for tests, sampling and benchmarks.
#pragma once

#include <cstdint>

namespace tamis::internal {

__extension__ typedef unsigned __int128 Wide;  // not ISO, but in every compiler that Tamis supports

class Random {
 public:
  explicit Random(uint64_t seed) {
    for (uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15u;
      uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
      word = z ^ (z >> 31);
    }
  }
  uint64_t Next() {
    const uint64_t result = Rotate(state_[1] * 5, 7) * 9;
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = Rotate(state_[3], 45);
    return result;
  }
  // Below n, n > 0; the bias is below n / 2^64.
  uint64_t Uniform(uint64_t n) { return static_cast<uint64_t>((static_cast<Wide>(Next()) * n) >> 64); }
  bool OneIn(uint64_t n) { return Uniform(n) == 0; }
  double NextDouble() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }  // [0, 1)

 private:
  static uint64_t Rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  uint64_t state_[4];
};

}  // namespace tamis::internal
