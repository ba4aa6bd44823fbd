#include <gtest/gtest.h>

#include <memory>

#include "tamis/filter.h"
#include "tests/filter/filter_test_util.h"
#include "tests/support/status_matchers.h"

namespace tamis {
namespace {

using filter_testing::Build;
using filter_testing::Hashes;
using filter_testing::kAbsent;
using filter_testing::Mix;
using filter_testing::Open;

TEST(FilterView, NoFilterSaysMaybeToEverything) {
  const FilterView none;
  EXPECT_FALSE(none.has_filter());
  EXPECT_EQ(none.kind(), FilterKind::kNone);
  EXPECT_TRUE(none.MayContain(0));
  EXPECT_TRUE(none.MayContain(Mix(1)));
  none.Prefetch(7);
  bool may[3] = {false, false, false};
  none.MayContainBatch(Hashes(3), may);
  EXPECT_TRUE(may[0] && may[1] && may[2]);
  EXPECT_EQ(none.seed(), 0U);
  EXPECT_EQ(none.MeasuredFill(), 0);
  EXPECT_EQ(none.Info().kind, FilterKind::kNone);
  EXPECT_EQ(none.Info().predicted_fpr, 1);
}

TEST(FilterView, InfoTellsWhatTheHeaderSays) {
  FilterBuildOptions options;
  options.seed = 0x8000000000000001ULL;
  options.owner.fill(0xab);
  const FilterBytes bytes = Build(Hashes(51200), 10, options);
  const FilterView view = Open(bytes);
  const FilterInfo info = view.Info();
  EXPECT_EQ(info.kind, FilterKind::kBlockedBloom);
  EXPECT_EQ(info.hash_id, 1);
  EXPECT_EQ(info.probes, 6U);
  EXPECT_EQ(info.lines, 1000U);
  EXPECT_EQ(info.keys, 51200U);
  EXPECT_EQ(info.seed, options.seed);
  EXPECT_EQ(view.seed(), options.seed);
  EXPECT_EQ(info.owner, options.owner);
  EXPECT_EQ(info.size_bytes, bytes.size());
  EXPECT_EQ(info.bits_per_key, 10);
  EXPECT_NEAR(info.predicted_fpr, .0096647, 1e-7);
}

TEST(FilterView, RawPartsAnswerAsTheView) {
  const FilterBytes bytes = Build(Hashes(10000), 8);
  const FilterView view = Open(bytes);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(view.base()) % 64, 0U);
  EXPECT_EQ(reinterpret_cast<const char*>(view.base()), bytes.data() + 64);
  for (uint64_t i = 0; i < 30000; ++i) {
    const uint64_t hash = Mix(i);
    const unsigned char* line = internal::FilterLine(view.base(), view.lines(), hash);
    ASSERT_EQ(internal::FilterLineMayContain(line, view.probes(), hash), view.MayContain(hash)) << i;
  }
}

TEST(FilterView, BatchEqualsSingle) {
  for (double bits : {2.0, 10.0, 16.0, 24.0}) {
    const FilterBytes bytes = Build(Hashes(5000), bits);
    const FilterView view = Open(bytes);
    for (size_t count : {0, 1, 7, 31, 32, 33, 64, 100, 10000}) {
      const std::vector<uint64_t> hashes = Hashes(count);
      const auto may = std::make_unique<bool[]>(count + 1);
      may[count] = true;
      view.MayContainBatch(hashes, absl::MakeSpan(may.get(), count));
      for (size_t i = 0; i < count; ++i) ASSERT_EQ(may[i], view.MayContain(hashes[i])) << count << ' ' << i;
      EXPECT_TRUE(may[count]);
    }
  }
}

TEST(FilterView, KindsHaveNames) {
  EXPECT_EQ(FilterKindName(FilterKind::kNone), "none");
  EXPECT_EQ(FilterKindName(FilterKind::kBlockedBloom), "blocked_bloom");
  EXPECT_EQ(FilterKindName(FilterKind::kSplitBlockBloom), "split_block_bloom");
  EXPECT_EQ(FilterKindName(FilterKind::kClassicBloom), "classic_bloom");
  EXPECT_EQ(FilterKindName(FilterKind::kRibbon), "ribbon");
  EXPECT_EQ(FilterKindName(FilterKind::kBinaryFuse), "binary_fuse");
  EXPECT_EQ(FilterKindName(static_cast<FilterKind>(200)), "unknown");
}

}  // namespace
}  // namespace tamis
