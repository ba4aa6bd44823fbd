#include "base/checksum.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/random.h"

namespace tamis::internal {
namespace {

// The buffer of xxHash's own sanity check (cli/xsum_sanity_check.c).
std::string SanityBuffer(size_t size) {
  std::string bytes;
  uint64_t generator = 2654435761u;
  for (size_t i = 0; i < size; ++i) {
    bytes.push_back(static_cast<char>(generator >> 56));
    generator *= 11400714785074694797u;
  }
  return bytes;
}

TEST(Checksum, IsXxh3) {
  const struct {
    size_t length;
    uint64_t hash;
  } kVectors[] = {{0, 0x2D06800538D394C2},   {1, 0xC44BDFF4074EECDB},   {6, 0x27B56A84CD2D7325},    {12, 0xA713DAF0DFBB77E7},
                  {24, 0xA3FE70BF9D3510EB},  {48, 0x397DA259ECBA1F11},  {80, 0xBCDEFBBB2C47C90A},   {195, 0xCD94217EE362EC3A},
                  {403, 0xCDEB804D65C6DEA4}, {512, 0x617E49599013CB6B}, {2048, 0xDD59E2C3A5F038E0}, {2367, 0xCB37AEB9E5D361ED}};
  const std::string bytes = SanityBuffer(2367);
  for (const auto& vector : kVectors) {
    EXPECT_EQ(Checksum64(std::string_view(bytes).substr(0, vector.length)), vector.hash) << vector.length;
  }
}

TEST(Checksum, OfTwoPiecesIsThatOfTheirConcatenation) {
  const std::string bytes = SanityBuffer(3000);
  Random random(7);
  for (const size_t length : {0, 1, 16, 17, 128, 129, 240, 241, 511, 512, 513, 1024, 1025, 3000}) {
    const std::string_view whole = std::string_view(bytes).substr(0, length);
    for (int i = 0; i < 50; ++i) {
      const size_t cut = i == 0 ? 0 : i == 1 ? length : random.Uniform(length + 1);
      const uint64_t seed = i % 3 == 0 ? 0 : random.Next();
      ASSERT_EQ(Checksum64(whole.substr(0, cut), whole.substr(cut), seed), Checksum64(whole, seed)) << length << " cut at " << cut;
    }
  }
}

TEST(Checksum, AcceptsNoBytesAtNullptr) { EXPECT_EQ(Checksum64(std::string_view(), std::string_view(), 5), Checksum64("", 5)); }

TEST(ChecksumSeed, DiffersByFileAndPlace) {
  std::set<uint64_t> seeds;
  for (uint64_t id = 0; id < 64; ++id) {
    for (uint64_t offset = 0; offset < 64; ++offset) seeds.insert(ChecksumSeed(id, offset << 12));
  }
  EXPECT_EQ(seeds.size(), 64u * 64);
  Id128 id{};
  for (size_t i = 0; i < id.size(); ++i) {
    id[i] = 1;
    seeds.insert(ChecksumSeed(id, 0));
    seeds.insert(ChecksumSeed(id, 1));
  }
  EXPECT_EQ(seeds.size(), 64u * 64 + 32);
}

TEST(ChecksumSeed, DoesNotCancelOut) { EXPECT_NE(ChecksumSeed(1, 2), ChecksumSeed(2, 1)); }

// On disk: a change would make every existing file unreadable.
TEST(ChecksumSeed, NeverChanges) {
  EXPECT_EQ(ChecksumSeed(uint64_t{1}, 4096), Checksum64(std::string_view("\x01\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0", 16)));
  Id128 id{};
  id[0] = 9;
  std::string name(24, '\0');
  name[0] = 9;
  name[16] = 5;
  EXPECT_EQ(ChecksumSeed(id, 5), Checksum64(name));
}

}  // namespace
}  // namespace tamis::internal
