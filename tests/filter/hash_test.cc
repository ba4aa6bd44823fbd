#include "filter/hash.h"

#include <gtest/gtest.h>

#include <string>

#include "tamis/filter.h"

namespace tamis {
namespace {

// The buffer and the values of xxHash's own sanity check (cli/xsum_sanity_check.c, XXH3 64 bits).
std::string SanityBuffer(size_t size) {
  std::string buffer;
  uint64_t generator = 2654435761U;
  for (size_t i = 0; i < size; ++i) {
    buffer.push_back(static_cast<char>(generator >> 56));
    generator *= 11400714785074694797ULL;
  }
  return buffer;
}

struct Vector {
  size_t size;
  uint64_t seed0;
  uint64_t seed_prime64;
};
constexpr Vector kVectors[] = {
    {0, 0x2D06800538D394C2, 0xA8A6B918B2F0364A},    {1, 0xC44BDFF4074EECDB, 0x032BE332DD766EF8},
    {6, 0x27B56A84CD2D7325, 0x84589C116AB59AB9},    {12, 0xA713DAF0DFBB77E7, 0xE7303E1B2336DE0E},
    {24, 0xA3FE70BF9D3510EB, 0x850E80FC35BDD690},   {48, 0x397DA259ECBA1F11, 0xADC2CBAA44ACC616},
    {80, 0xBCDEFBBB2C47C90A, 0xC6DD0CB699532E73},   {195, 0xCD94217EE362EC3A, 0xBA68003D370CB3D9},
    {403, 0xCDEB804D65C6DEA4, 0x6259F6ECFD6443FD},  {512, 0x617E49599013CB6B, 0x3CE457DE14C27708},
    {2048, 0xDD59E2C3A5F038E0, 0x66F81670669ABABC}, {2367, 0xCB37AEB9E5D361ED, 0xD2DB3415B942B42A},
};

TEST(FilterKeyHash, IsXxh3OfThePublishedVectors) {
  const std::string buffer = SanityBuffer(4096);
  EXPECT_EQ(buffer.substr(0, 8), std::string("\x00\x52\x92\x9b\xb7\x32\xa3\x24", 8));
  for (const Vector& v : kVectors) {
    const std::string_view key(buffer.data(), v.size);
    EXPECT_EQ(FilterKeyHash(key, 0), v.seed0) << v.size;
    EXPECT_EQ(FilterKeyHash(key, 0x9E3779B185EBCA8DULL), v.seed_prime64) << v.size;
    EXPECT_EQ(internal::KeyHash(key, 0), v.seed0) << v.size;
  }
}

TEST(SplitBlockKeyHash, IsXxh64OfThePublishedVectors) {
  const std::string buffer = SanityBuffer(256);
  constexpr Vector kXxh64[] = {{0, 0xEF46DB3751D8E999, 0xAC75FDA2929B17EF},
                               {1, 0xE934A84ADB052768, 0},
                               {4, 0x9136A0DCA57457EE, 0},
                               {14, 0x8282DCC4994E35C8, 0},
                               {222, 0xB641AE8CB691C174, 0x20CB8AB7AE10C14A}};
  for (const Vector& v : kXxh64) {
    EXPECT_EQ(SplitBlockKeyHash(std::string_view(buffer.data(), v.size)), v.seed0) << v.size;
    if (v.seed_prime64 != 0) {
      EXPECT_EQ(XXH64(buffer.data(), v.size, 2654435761U), v.seed_prime64) << v.size;  // that the library is the published one
    }
  }
}

TEST(FilterKeyHash128, IsXxh3WithBothHalves) {
  // Above 240 bytes the low half is XXH3-64 of the same seed; up to there it is another hash.
  const std::string key = SanityBuffer(512);
  EXPECT_EQ(FilterKeyHash128(key, 0).low, 0x617E49599013CB6BULL);
  EXPECT_EQ(FilterKeyHash128(key, 7).low, FilterKeyHash(key, 7));
  EXPECT_NE(FilterKeyHash128("0123456789", 0).low, FilterKeyHash("0123456789", 0));
  EXPECT_NE(FilterKeyHash128("a", 0), FilterKeyHash128("a", 1));
  EXPECT_NE(FilterKeyHash128("a", 0).high, FilterKeyHash128("b", 0).high);
}

TEST(FilterKeyHash, TakesEmptyKeysAndNulBytes) {
  EXPECT_EQ(FilterKeyHash(std::string_view(), 0), FilterKeyHash("", 0));
  EXPECT_NE(FilterKeyHash(std::string_view("\0", 1), 0), FilterKeyHash("", 0));
  EXPECT_NE(FilterKeyHash(std::string_view("a\0", 2), 0), FilterKeyHash("a", 0));
  EXPECT_NE(FilterKeyHash("a", 0), FilterKeyHash("a", 1));
}

}  // namespace
}  // namespace tamis
