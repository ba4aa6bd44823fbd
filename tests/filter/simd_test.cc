// Every form of the blocked Bloom's inner loops that runs here, against a second implementation written from the format's description.
#include "filter/simd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "filter/blocked_bloom_kernels.h"
#include "tests/filter/filter_test_util.h"

namespace tamis::internal {
namespace {

using filter_testing::Build;
using filter_testing::Hashes;
using filter_testing::kAbsent;
using filter_testing::kSmall;
using filter_testing::Mix;
using filter_testing::Open;

constexpr size_t kMaxBatch = 70;  // two full groups of lines ahead and a rest

std::vector<const BlockedBloomKernels*> AllKernels() {
  std::vector<const BlockedBloomKernels*> all;
  for (SimdLevel level : kSimdLevels) {
    if (const BlockedBloomKernels* kernels = BlockedBloomKernelsFor(level)) all.push_back(kernels);
  }
  return all;
}

std::vector<SimdLevel> RunningLevels() {
  std::vector<SimdLevel> levels;
  for (const BlockedBloomKernels* kernels : AllKernels()) levels.push_back(kernels->level);
  return levels;
}

// ---- the second implementation: one bit at a time, a chain of multiplications, long division for the line ------------------------------

std::vector<uint32_t> ReferenceBits(uint64_t hash, uint32_t probes) {
  std::vector<uint32_t> bits;
  uint64_t x = hash % (uint64_t{1} << 32);
  for (uint32_t i = 0; i < probes; ++i) {
    x = x * 0x9e3779b9ULL % (uint64_t{1} << 32);
    bits.push_back(static_cast<uint32_t>(x / (uint64_t{1} << 23)));
  }
  return bits;
}

uint64_t ReferenceLine(uint64_t hash, uint64_t lines) {
  // High half of hash * lines from 32-bit halves; lines < 2^31 here.
  return ((hash >> 32) * lines + (((hash & 0xffffffffULL) * lines) >> 32)) >> 32;
}

bool ReferenceMayContain(const std::vector<unsigned char>& lines_bytes, uint32_t probes, uint64_t hash) {
  const uint64_t line = ReferenceLine(hash, lines_bytes.size() / 64);
  for (uint32_t bit : ReferenceBits(hash, probes)) {
    if ((lines_bytes[line * 64 + bit / 8] / (1U << (bit % 8))) % 2 == 0) return false;
  }
  return true;
}

void ReferenceInsert(std::vector<unsigned char>& lines_bytes, uint32_t probes, uint64_t hash) {
  const uint64_t line = ReferenceLine(hash, lines_bytes.size() / 64);
  for (uint32_t bit : ReferenceBits(hash, probes)) lines_bytes[line * 64 + bit / 8] |= static_cast<unsigned char>(1U << (bit % 8));
}

// `of_eight`: how many of eight bits are set, about.
std::vector<unsigned char> RandomLines(uint64_t lines, uint64_t seed, uint64_t of_eight) {
  std::vector<unsigned char> bytes(lines * 64);
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (uint32_t bit = 0; bit < 8; ++bit) {
      if ((Mix(seed + 8 * i + bit) >> 40) % 8 < of_eight) bytes[i] |= static_cast<unsigned char>(1U << bit);
    }
  }
  return bytes;
}

// ---- levels ------------------------------------------------------------------------------------------------------------------------

TEST(SimdLevel, ScalarRunsEverywhereAndTheBestOneRunsHere) {
  EXPECT_TRUE(SimdLevelRuns(SimdLevel::kScalar));
  EXPECT_TRUE(SimdLevelRuns(BestSimdLevel()));
  EXPECT_FALSE(SimdLevelRuns(SimdLevel::kNeon) && SimdLevelRuns(SimdLevel::kAvx2));
#if defined(__aarch64__)
  EXPECT_EQ(BestSimdLevel(), SimdLevel::kNeon);
#endif
}

TEST(SimdLevel, EachHasAName) {
  std::set<std::string> names;
  for (SimdLevel level : kSimdLevels) names.insert(std::string(SimdLevelName(level)));
  EXPECT_EQ(names, (std::set<std::string>{"scalar", "neon", "avx2", "avx512"}));
  EXPECT_EQ(SimdLevelName(static_cast<SimdLevel>(99)), "unknown");
}

TEST(BlockedBloomKernels, ThereAreThoseThatRunAndTheBestAreInUse) {
  for (SimdLevel level : kSimdLevels) {
    const BlockedBloomKernels* kernels = BlockedBloomKernelsFor(level);
    ASSERT_EQ(kernels != nullptr, SimdLevelRuns(level)) << SimdLevelName(level);
    if (kernels != nullptr) {
      EXPECT_EQ(kernels->level, level);
    }
  }
  EXPECT_EQ(ActiveBlockedBloomKernels().level, BestSimdLevel());
  EXPECT_EQ(BlockedBloomKernelsFor(static_cast<SimdLevel>(99)), nullptr);
}

// ---- answers -----------------------------------------------------------------------------------------------------------------------

TEST(BlockedBloomKernels, AnswersAreTheReferenceForEveryNumberOfProbesAndBatchLength) {
  for (uint32_t probes = 1; probes <= kMaxFilterProbes; ++probes) {
    for (uint64_t of_eight : {4, 6, 7}) {  // with 7 of 8 bits set, 12 % still pass 16 probes: no lane hides behind the others
      const std::vector<unsigned char> bytes = RandomLines(37, 1000 * probes + of_eight, of_eight);
      for (size_t count = 0; count <= kMaxBatch; ++count) {
        const std::vector<uint64_t> hashes = Hashes(count, kAbsent * probes + 100 * count);
        std::vector<bool> expected;
        for (uint64_t hash : hashes) expected.push_back(ReferenceMayContain(bytes, probes, hash));
        for (const BlockedBloomKernels* kernels : AllKernels()) {
          bool may[kMaxBatch + 1];
          std::memset(may, 2, sizeof(may));
          kernels->may_contain(bytes.data(), 37, probes, hashes.data(), count, may);
          for (size_t i = 0; i < count; ++i) {
            ASSERT_EQ(may[i], expected[i]) << SimdLevelName(kernels->level) << " k=" << probes << " batch of " << count << " at " << i;
            const unsigned char* line = FilterLine(bytes.data(), 37, hashes[i]);
            ASSERT_EQ(kernels->line_may_contain(line, probes, hashes[i]), expected[i]) << SimdLevelName(kernels->level) << " k=" << probes;
          }
          unsigned char behind = 0;
          std::memcpy(&behind, may + count, 1);
          ASSERT_EQ(behind, 2) << SimdLevelName(kernels->level) << " wrote behind a batch of " << count;
        }
      }
    }
  }
}

TEST(BlockedBloomKernels, EachProbeIsNeededAndNoOtherBitMatters) {
  for (const BlockedBloomKernels* kernels : AllKernels()) {
    for (uint32_t probes = 1; probes <= kMaxFilterProbes; ++probes) {
      for (uint64_t i = 0; i < (kSmall ? 4 : 40); ++i) {
        const uint64_t hash = Mix(i);
        const std::vector<uint32_t> bits = ReferenceBits(hash, probes);
        alignas(64) unsigned char line[64];
        std::memset(line, 0xff, sizeof(line));
        for (uint32_t bit = 0; bit < 512; ++bit) {
          line[bit / 8] ^= static_cast<unsigned char>(1U << (bit % 8));
          const bool expected = std::find(bits.begin(), bits.end(), bit) == bits.end();
          bool may = !expected;
          kernels->may_contain(line, 1, probes, &hash, 1, &may);
          ASSERT_EQ(may, expected) << SimdLevelName(kernels->level) << " k=" << probes << " without bit " << bit;
          ASSERT_EQ(kernels->line_may_contain(line, probes, hash), expected) << SimdLevelName(kernels->level) << " k=" << probes;
          line[bit / 8] ^= static_cast<unsigned char>(1U << (bit % 8));
        }
      }
    }
  }
}

TEST(BlockedBloomKernels, HashesAtTheEdgesHaveTheReferenceAnswers) {
  std::vector<uint64_t> hashes = {0, 1, 0xffffffffULL, 0x80000000ULL, 0xffffffff00000000ULL, ~uint64_t{0}, uint64_t{1} << 63};
  for (uint32_t bit = 0; bit < 64; ++bit) hashes.push_back(uint64_t{1} << bit);
  for (uint32_t probes = 1; probes <= kMaxFilterProbes; ++probes) {
    std::vector<unsigned char> bytes(64 * 5);
    for (size_t i = 0; i < hashes.size(); i += 2) ReferenceInsert(bytes, probes, hashes[i]);
    for (const BlockedBloomKernels* kernels : AllKernels()) {
      const auto may = std::make_unique<bool[]>(hashes.size());
      kernels->may_contain(bytes.data(), 5, probes, hashes.data(), hashes.size(), may.get());
      for (size_t i = 0; i < hashes.size(); ++i) {
        ASSERT_EQ(may[i], ReferenceMayContain(bytes, probes, hashes[i])) << SimdLevelName(kernels->level) << " k=" << probes << ' ' << i;
      }
    }
  }
}

TEST(BlockedBloomKernels, LinesNeedNoAlignment) {
  const std::vector<unsigned char> bytes = RandomLines(9, 5, 7);
  for (size_t offset : {1, 4, 16, 33}) {
    std::vector<unsigned char> shifted(bytes.size() + offset);
    std::copy(bytes.begin(), bytes.end(), shifted.begin() + static_cast<std::ptrdiff_t>(offset));
    for (const BlockedBloomKernels* kernels : AllKernels()) {
      for (uint64_t hash : Hashes(200)) {
        bool may = false;
        kernels->may_contain(shifted.data() + offset, 9, 6, &hash, 1, &may);
        ASSERT_EQ(may, ReferenceMayContain(bytes, 6, hash)) << SimdLevelName(kernels->level) << " offset " << offset;
      }
      const std::vector<uint64_t> added = Hashes(20);
      std::vector<unsigned char> expected(shifted.begin() + static_cast<std::ptrdiff_t>(offset), shifted.end());
      std::vector<unsigned char> target = shifted;
      for (uint64_t hash : added) ReferenceInsert(expected, 6, hash);
      kernels->insert(target.data() + offset, 9, 6, added.data(), added.size());
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), target.begin() + static_cast<std::ptrdiff_t>(offset)));
    }
  }
}

// ---- bits --------------------------------------------------------------------------------------------------------------------------

TEST(BlockedBloomKernels, BitsAreTheReferenceForEveryNumberOfProbesAndBatchLength) {
  constexpr size_t kGuard = 64;
  for (uint32_t probes = 1; probes <= kMaxFilterProbes; ++probes) {
    for (size_t count = 0; count <= kMaxBatch; ++count) {
      for (uint64_t lines : {1, 11}) {
        const std::vector<uint64_t> hashes = Hashes(count, 1000000 * probes + 100 * count);
        std::vector<unsigned char> expected(64 * lines);
        for (uint64_t hash : hashes) ReferenceInsert(expected, probes, hash);
        for (const BlockedBloomKernels* kernels : AllKernels()) {
          std::vector<unsigned char> bytes(64 * lines + 2 * kGuard);
          kernels->insert(bytes.data() + kGuard, lines, probes, hashes.data(), count);
          ASSERT_EQ(std::memcmp(bytes.data() + kGuard, expected.data(), expected.size()), 0)
              << SimdLevelName(kernels->level) << " k=" << probes << " batch of " << count << " in " << lines << " lines";
          const std::vector<unsigned char> zero(kGuard);
          ASSERT_EQ(std::memcmp(bytes.data(), zero.data(), kGuard), 0);
          ASSERT_EQ(std::memcmp(bytes.data() + kGuard + expected.size(), zero.data(), kGuard), 0);
        }
      }
    }
  }
}

TEST(BlockedBloomKernels, BitsThatAreThereStay) {
  for (const BlockedBloomKernels* kernels : AllKernels()) {
    std::vector<unsigned char> bytes = RandomLines(7, 99, 3);
    std::vector<unsigned char> expected = bytes;
    const std::vector<uint64_t> hashes = Hashes(50);
    for (uint64_t hash : hashes) ReferenceInsert(expected, 9, hash);
    kernels->insert(bytes.data(), 7, 9, hashes.data(), hashes.size());
    ASSERT_EQ(bytes, expected) << SimdLevelName(kernels->level);
  }
}

// ---- what is in use ----------------------------------------------------------------------------------------------------------------

class BlockedBloomKernelsInUse : public testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override { SetBlockedBloomKernelsForTesting(BlockedBloomKernelsFor(GetParam())); }
  void TearDown() override {
    SetBlockedBloomKernelsForTesting(nullptr);
    ASSERT_EQ(ActiveBlockedBloomKernels().level, BestSimdLevel());
  }
};

TEST_P(BlockedBloomKernelsInUse, BuilderViewAndInlineProbeAreThoseOfScalar) {
  ASSERT_EQ(ActiveBlockedBloomKernels().level, GetParam());
  for (double bits : {2.0, 5.0, 10.0, 14.0, 24.0}) {
    SetBlockedBloomKernelsForTesting(BlockedBloomKernelsFor(SimdLevel::kScalar));
    const FilterBytes scalar = Build(Hashes(20000), bits);
    SetBlockedBloomKernelsForTesting(BlockedBloomKernelsFor(GetParam()));
    const FilterBytes bytes = Build(Hashes(20000), bits);
    ASSERT_EQ(bytes.view(), scalar.view()) << bits;
    const FilterView view = Open(bytes);
    const std::vector<uint64_t> queries = Hashes(40000);
    const auto may = std::make_unique<bool[]>(queries.size());
    view.MayContainBatch(queries, absl::MakeSpan(may.get(), queries.size()));
    for (size_t i = 0; i < queries.size(); ++i) {
      const unsigned char* line = FilterLine(view.base(), view.lines(), queries[i]);
      const bool expected = FilterLineMayContainScalar(line, view.probes(), queries[i]);
      ASSERT_EQ(may[i], expected) << bits << ' ' << i;
      ASSERT_EQ(view.MayContain(queries[i]), expected) << bits << ' ' << i;
      ASSERT_TRUE(expected || i >= 20000) << bits << ' ' << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, BlockedBloomKernelsInUse, testing::ValuesIn(RunningLevels()),
                         [](const testing::TestParamInfo<SimdLevel>& level) { return std::string(SimdLevelName(level.param)); });

}  // namespace
}  // namespace tamis::internal
