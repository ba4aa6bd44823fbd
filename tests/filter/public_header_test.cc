// Each public header is the first include of some test, so that it compiles alone: this one here, filter.h in filter_builder_test.cc,
// filter_inline.h in blocked_bloom_test.cc, filter_prefix.h and filter_merge.h in theirs.
#include "tamis/filter_options.h"

#include <gtest/gtest.h>

namespace tamis {
namespace {

TEST(FilterOptions, DefaultsAreTenBitsOfBlockedBloom) {
  const FilterOptions options;
  EXPECT_EQ(options.kind, FilterKind::kBlockedBloom);
  EXPECT_EQ(options.allocation, FilterAllocation::kOptimal);
  EXPECT_EQ(options.bits_per_key, 10.0);
  EXPECT_FALSE(options.hash_seed.has_value());
}

TEST(FilterKind, ValuesOnDiskNeverChange) {
  EXPECT_EQ(static_cast<int>(FilterKind::kNone), 0);
  EXPECT_EQ(static_cast<int>(FilterKind::kBlockedBloom), 1);
  EXPECT_EQ(static_cast<int>(FilterKind::kSplitBlockBloom), 2);
  EXPECT_EQ(static_cast<int>(FilterKind::kClassicBloom), 3);
  EXPECT_EQ(static_cast<int>(FilterKind::kRibbon), 4);
  EXPECT_EQ(static_cast<int>(FilterKind::kBinaryFuse), 5);
}

}  // namespace
}  // namespace tamis
