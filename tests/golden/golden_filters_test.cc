// A filter of each kind, written once, is kept in tests/golden/filters and must answer the same for ever: the format is what readers of old
// bytes rely on, while builders may come to choose other shapes.
//
// With TAMIS_REWRITE=1 in the environment files that are missing are written: only for a new kind.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/filter/filter_test_util.h"

namespace tamis {
namespace {

using filter_testing::Build;
using filter_testing::CountMissing;
using filter_testing::Hashes;
using filter_testing::kAbsent;

constexpr uint64_t kKeys = 700;
constexpr uint64_t kQueries = 200'000;

struct GoldenFilter {
  const char* file;
  FilterKind kind;
  double bits_per_key;
  uint64_t false_positives;  // of kQueries absent hashes, exactly
};

constexpr GoldenFilter kGolden[] = {
    {"blocked_bloom", FilterKind::kBlockedBloom, 8, 4318}, {"split_block_bloom", FilterKind::kSplitBlockBloom, 8, 6228},
    {"classic_bloom", FilterKind::kClassicBloom, 8, 3902}, {"ribbon", FilterKind::kRibbon, 8.5, 922},
    {"binary_fuse_8", FilterKind::kBinaryFuse, 13, 779},   {"binary_fuse_16", FilterKind::kBinaryFuse, 24, 1},
};

std::string PathOf(const GoldenFilter& golden) { return std::string(TAMIS_SOURCE_DIR) + "/tests/golden/filters/" + golden.file; }

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

TEST(GoldenFilters, AnswerAsWhenTheyWereWritten) {
  for (const GoldenFilter& golden : kGolden) {
    SCOPED_TRACE(golden.file);
    std::string stored = ReadFile(PathOf(golden));
    if (stored.empty() && std::getenv("TAMIS_REWRITE") != nullptr) {
      stored = std::string(Build(Hashes(kKeys), golden.bits_per_key, {.kind = golden.kind, .seed = 5}).view());
      std::ofstream(PathOf(golden), std::ios::binary) << stored;
    }
    const FilterBytes bytes = filter_testing::Copy(stored);
    const auto view = FilterView::Open(bytes.view(), {});
    ASSERT_TRUE(view.ok()) << view.status();
    EXPECT_EQ(view->kind(), golden.kind);
    EXPECT_EQ(view->seed(), 5u);
    EXPECT_EQ(view->Info().keys, kKeys);
    EXPECT_EQ(CountMissing(*view, Hashes(kKeys)), 0u);
    EXPECT_EQ(kQueries - CountMissing(*view, Hashes(kQueries, kAbsent)), golden.false_positives);
  }
}

}  // namespace
}  // namespace tamis
