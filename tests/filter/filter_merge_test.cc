#include "tamis/filter_merge.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tests/filter/filter_test_util.h"
#include "tests/support/status_matchers.h"

namespace tamis {
namespace {

using filter_testing::Build;
using filter_testing::Copy;
using filter_testing::CountMissing;
using filter_testing::Hashes;
using filter_testing::kAbsent;
using filter_testing::Open;
using filter_testing::Reseal;

constexpr FilterKind kBlooms[] = {FilterKind::kBlockedBloom, FilterKind::kSplitBlockBloom, FilterKind::kClassicBloom};

TEST(FilterMerge, UnionHoldsBothAndEveryBitOfEither) {
  const std::vector<uint64_t> first = Hashes(5000);
  const std::vector<uint64_t> second = Hashes(5000, 4000);
  for (FilterKind kind : kBlooms) {
    const FilterBytes a = Build(first, 10, {.kind = kind, .seed = 9});
    const FilterBytes b = Build(second, 10, {.kind = kind, .seed = 9});
    FilterOwner owner{};
    owner[3] = 7;
    ASSERT_OK_AND_ASSIGN(const FilterBytes both, UnionFilters(Open(a), Open(b), owner));
    const FilterView view = Open(both);
    EXPECT_EQ(CountMissing(view, first), 0U);
    EXPECT_EQ(CountMissing(view, second), 0U);
    for (size_t i = 64; i < both.size(); ++i) ASSERT_EQ(both.data()[i], static_cast<char>(a.data()[i] | b.data()[i]));
    const FilterInfo info = view.Info();
    EXPECT_EQ(info.kind, kind);
    EXPECT_EQ(info.keys, 10000U);  // the sum: an upper bound of the 9,000
    EXPECT_EQ(info.owner, owner);
    EXPECT_EQ(info.seed, 9U);
    ASSERT_OK_AND_ASSIGN(const FilterKeyEstimate estimate, EstimateFilterKeys(view));
    EXPECT_NEAR(estimate.keys, 9000, 5 * estimate.standard_error);
    EXPECT_LT(estimate.standard_error, 90);
    ASSERT_OK_AND_ASSIGN(const FilterBytes again, UnionFilters(view, Open(b)));
    EXPECT_EQ(std::string_view(again.data() + 64, again.size() - 64), std::string_view(both.data() + 64, both.size() - 64));
  }
}

TEST(FilterMerge, IntersectionKeepsTheCommonKeysAsAHint) {
  for (FilterKind kind : kBlooms) {
    const FilterBytes a = Build(Hashes(5000), 10, {.kind = kind});
    const FilterBytes b = Build(Hashes(5000, 4000), 10, {.kind = kind});
    ASSERT_OK_AND_ASSIGN(const FilterBytes common, IntersectFiltersHint(Open(a), Open(b)));
    const FilterView view = Open(common);
    EXPECT_EQ(CountMissing(view, Hashes(1000, 4000)), 0U);
    for (uint64_t hash : Hashes(2000, kAbsent)) {
      if (view.MayContain(hash)) {
        ASSERT_TRUE(Open(a).MayContain(hash) && Open(b).MayContain(hash));
      }
    }
    EXPECT_GT(CountMissing(view, Hashes(4000)), 3000U);
    EXPECT_EQ(view.Info().keys, kFilterKeysUnknown);
    EXPECT_EQ(view.Info().predicted_fpr, 1);
    // Unknown stays unknown.
    ASSERT_OK_AND_ASSIGN(const FilterBytes sum, UnionFilters(view, Open(a)));
    EXPECT_EQ(Open(sum).Info().keys, kFilterKeysUnknown);
  }
}

TEST(FilterMerge, DifferentParametersAreNamedAndRefused) {
  const auto text = [](const FilterView& a, const FilterView& b) {
    EXPECT_CODE(UnionFilters(a, b), absl::StatusCode::kInvalidArgument);
    EXPECT_CODE(IntersectFiltersHint(a, b), absl::StatusCode::kInvalidArgument);
    return std::string(UnionFilters(a, b).status().message());
  };
  const FilterBytes bytes = Build(Hashes(1000), 10, {.kind = FilterKind::kSplitBlockBloom});
  const FilterView base = Open(bytes);
  const FilterBytes kind = Build(Hashes(1000), 10, {.kind = FilterKind::kClassicBloom});
  EXPECT_NE(text(base, Open(kind)).find("kinds"), std::string::npos);
  const FilterBytes seed = Build(Hashes(1000), 10, {.kind = FilterKind::kSplitBlockBloom, .seed = 1});
  EXPECT_NE(text(base, Open(seed)).find("seeds"), std::string::npos);
  const FilterBytes size = Build(Hashes(1030), 10, {.kind = FilterKind::kSplitBlockBloom});
  EXPECT_NE(text(base, Open(size)).find("sizes"), std::string::npos);
  const FilterBytes hash = Build(Hashes(1000), 10, {.kind = FilterKind::kSplitBlockBloom, .hash_id = kFilterHashXxh64});
  ASSERT_OK_AND_ASSIGN(const FilterView hash_view, FilterView::Open(hash.view(), {.hash_id = kFilterHashXxh64}));
  EXPECT_NE(text(base, hash_view).find("hash ids"), std::string::npos);
  const auto with_rule = [](uint8_t rule, uint16_t argument) {
    return Build(Hashes(1000), 10, {.kind = FilterKind::kSplitBlockBloom, .prefix_rule = {static_cast<FilterPrefixKind>(rule), argument}});
  };
  const FilterBytes fixed4 = with_rule(1, 4);
  const FilterBytes fixed5 = with_rule(1, 5);
  const FilterView view4 = *FilterView::Open(fixed4.view(), {.any_prefix_rule = true});
  EXPECT_NE(text(base, view4).find("prefix rules"), std::string::npos);
  EXPECT_NE(text(view4, *FilterView::Open(fixed5.view(), {.any_prefix_rule = true})).find("prefix arguments"), std::string::npos);
  // 1000 and 990 keys at 10 bits are 20 lines either way, but 990 keys have 10.34 bits and seven probes.
  const FilterBytes six = Build(Hashes(1024), 10);
  const FilterBytes seven = Build(Hashes(985), 10);
  ASSERT_EQ(Open(six).lines(), Open(seven).lines());
  EXPECT_NE(text(Open(six), Open(seven)).find("probes"), std::string::npos);
  text(FilterView(), base);
  text(base, FilterView());
}

TEST(FilterMerge, RibbonAndBinaryFuseAreUnimplemented) {
  for (FilterKind kind : {FilterKind::kRibbon, FilterKind::kBinaryFuse}) {
    const FilterBytes bytes = Build(Hashes(1000), 12, {.kind = kind});
    ASSERT_EQ(Open(bytes).kind(), kind);
    EXPECT_CODE(UnionFilters(Open(bytes), Open(bytes)), absl::StatusCode::kUnimplemented);
    EXPECT_CODE(IntersectFiltersHint(Open(bytes), Open(bytes)), absl::StatusCode::kUnimplemented);
    EXPECT_CODE(EstimateFilterKeys(Open(bytes)), absl::StatusCode::kUnimplemented);
  }
}

TEST(FilterMerge, EstimateIsRightWithinItsError) {
  // Its error, too: over 60 filters the deviations have a standard deviation near one.
  for (FilterKind kind : kBlooms) {
    for (double bits : {4.0, 10.0, 20.0}) {
      double squares = 0;
      constexpr int kFilters = 60;
      for (uint64_t i = 0; i < kFilters; ++i) {
        const FilterBytes bytes = Build(Hashes(3000, i * 10000), bits, {.kind = kind});
        ASSERT_OK_AND_ASSIGN(const FilterKeyEstimate estimate, EstimateFilterKeys(Open(bytes)));
        const double deviation = (estimate.keys - 3000) / estimate.standard_error;
        ASSERT_LT(std::abs(deviation), 5) << FilterKindName(kind) << ' ' << bits;
        squares += deviation * deviation;
      }
      // Chi-squared with 60 degrees of freedom: sd .18 of its mean.
      EXPECT_NEAR(squares / kFilters, 1, .75) << FilterKindName(kind) << ' ' << bits;
    }
  }
}

TEST(FilterMerge, EstimateOfEmptyFullAndNone) {
  for (FilterKind kind : kBlooms) {
    const FilterBytes none = Build({}, 10, {.kind = kind});
    ASSERT_OK_AND_ASSIGN(const FilterKeyEstimate estimate, EstimateFilterKeys(Open(none)));
    EXPECT_EQ(estimate.keys, 0);
    EXPECT_EQ(estimate.standard_error, 0);
    FilterBytes full = Build(Hashes(20), 25.6 / 2, {.kind = kind});
    std::memset(full.data() + 64, 0xff, Open(full).Info().bits / 8);
    Reseal(full);
    EXPECT_CODE(EstimateFilterKeys(Open(full)), absl::StatusCode::kOutOfRange);
  }
  EXPECT_CODE(EstimateFilterKeys(FilterView()), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tamis
