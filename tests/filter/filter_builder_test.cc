#include "tamis/filter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/filter/filter_test_util.h"
#include "tests/support/status_matchers.h"

namespace tamis {
namespace {

using filter_testing::CountMissing;
using filter_testing::Hashes;
using filter_testing::kAbsent;
using filter_testing::Mix;
using filter_testing::Open;

constexpr double kOddBits[] = {-1,
                               0,
                               1,
                               1.999,
                               24.0001,
                               1e9,
                               std::numeric_limits<double>::quiet_NaN(),
                               std::numeric_limits<double>::infinity(),
                               -std::numeric_limits<double>::infinity()};

TEST(FilterBuilder, CreateRefusesWhatItCannotBuild) {
  for (FilterKind kind :
       {FilterKind::kBlockedBloom, FilterKind::kSplitBlockBloom, FilterKind::kClassicBloom, FilterKind::kRibbon, FilterKind::kBinaryFuse}) {
    EXPECT_OK(FilterBuilder::Create({.kind = kind}));
    // Hash ids that there are not, or not for this kind, or not with a seed.
    for (int hash_id = 0; hash_id < 256; ++hash_id) {
      const bool possible =
          hash_id == 1 || (hash_id == 2 && kind == FilterKind::kSplitBlockBloom) || (hash_id == 3 && kind == FilterKind::kClassicBloom);
      for (uint64_t seed : {0, 5}) {
        EXPECT_CODE(FilterBuilder::Create({.kind = kind, .seed = seed, .hash_id = static_cast<uint8_t>(hash_id)}),
                    possible && (hash_id != 2 || seed == 0) ? absl::StatusCode::kOk : absl::StatusCode::kInvalidArgument);
      }
    }
  }
  for (int kind : {0, 6, 255}) {
    EXPECT_CODE(FilterBuilder::Create({.kind = static_cast<FilterKind>(kind)}), absl::StatusCode::kInvalidArgument);
  }
  for (double bits : kOddBits) EXPECT_CODE(FilterBuilder::Create({.bits_per_key = bits}), absl::StatusCode::kInvalidArgument);
  EXPECT_OK(FilterBuilder::Create({.bits_per_key = 2}));
  EXPECT_OK(FilterBuilder::Create({.bits_per_key = 24}));
}

TEST(FilterBuilder, BitsMaySetUntilFinishAndBadOnesChangeNothing) {
  ASSERT_OK_AND_ASSIGN(auto builder, FilterBuilder::Create({.bits_per_key = 4}));
  for (uint64_t hash : Hashes(1024)) builder->AddHash(hash);
  EXPECT_OK(builder->SetBitsPerKey(16));
  for (double bits : kOddBits) EXPECT_CODE(builder->SetBitsPerKey(bits), absl::StatusCode::kInvalidArgument);
  ASSERT_OK_AND_ASSIGN(const FilterBytes bytes, builder->Finish());
  const FilterInfo info = Open(bytes).Info();
  EXPECT_EQ(info.lines, 32U);
  EXPECT_EQ(info.probes, 9U);
  EXPECT_EQ(info.bits_per_key, 16);
}

TEST(FilterBuilder, BitsAreRoundedDownToEighths) {
  for (double bits : {10.0, 10.06, 10.124}) EXPECT_EQ(Open(filter_testing::Build(Hashes(5120), bits)).lines(), 100U) << bits;
  EXPECT_EQ(Open(filter_testing::Build(Hashes(5120), 10.125)).lines(), 102U);
}

TEST(FilterBuilder, ProbesFollowTheBitsThatThereAre) {
  // 52 keys at 10 bits need two lines: 19.7 bits a key, eleven probes; 51 keys fit in one: 10.04 and six.
  EXPECT_EQ(Open(filter_testing::Build(Hashes(52), 10)).probes(), 11U);
  EXPECT_EQ(Open(filter_testing::Build(Hashes(51), 10)).probes(), 6U);
  EXPECT_EQ(Open(filter_testing::Build(Hashes(1), 2)).probes(), 12U);
  // 100 lines either way: 10.061 and 10.059 bits, on both sides of the step at 10.06.
  EXPECT_EQ(Open(filter_testing::Build(Hashes(5089), 10)).probes(), 7U);
  EXPECT_EQ(Open(filter_testing::Build(Hashes(5090), 10)).probes(), 6U);
}

TEST(FilterBuilder, CountsKeysButNotAdjacentRepeats) {
  ASSERT_OK_AND_ASSIGN(auto builder, FilterBuilder::Create({}));
  EXPECT_EQ(builder->keys(), 0U);
  builder->AddHash(0);  // also the initial value of "the last hash"
  EXPECT_EQ(builder->keys(), 1U);
  builder->AddHash(0);
  builder->AddHash(5);
  builder->AddHash(5);
  EXPECT_EQ(builder->keys(), 2U);
  builder->AddHash(0);
  EXPECT_EQ(builder->keys(), 3U);
  ASSERT_OK_AND_ASSIGN(const FilterBytes bytes, builder->Finish());
  EXPECT_EQ(Open(bytes).Info().keys, 3U);
}

TEST(FilterBuilder, IsEmptyAfterFinishAndBuildsAgain) {
  FilterOwner owner{};
  owner[15] = 9;
  ASSERT_OK_AND_ASSIGN(auto builder, FilterBuilder::Create({.bits_per_key = 10, .seed = 3, .owner = owner}));
  for (uint64_t hash : Hashes(100000)) builder->AddHash(hash);
  ASSERT_OK_AND_ASSIGN(const FilterBytes first, builder->Finish());
  EXPECT_EQ(builder->keys(), 0U);
  ASSERT_OK_AND_ASSIGN(const FilterBytes none, builder->Finish());
  EXPECT_EQ(CountMissing(Open(none), Hashes(1000)), 1000U);
  for (uint64_t hash : Hashes(100000)) builder->AddHash(hash);
  ASSERT_OK_AND_ASSIGN(const FilterBytes again, builder->Finish());
  EXPECT_EQ(first.view(), again.view());
  EXPECT_EQ(Open(again).seed(), 3U);
  EXPECT_EQ(Open(again).Info().owner, owner);
}

TEST(FilterBuilder, NoKeysAnswerCertainlyNot) {
  for (double bits : {2.0, 10.0, 24.0}) {
    const FilterBytes bytes = filter_testing::Build({}, bits);
    EXPECT_EQ(bytes.size(), 128U);
    const FilterView view = Open(bytes);
    EXPECT_TRUE(view.has_filter());
    EXPECT_EQ(view.lines(), 1U);  // a line that is all zero, so that callers of the raw parts need no special case
    for (uint64_t i = 0; i < 10000; ++i) ASSERT_FALSE(view.MayContain(Mix(i)));
    EXPECT_FALSE(view.MayContain(0));
    EXPECT_FALSE(view.MayContain(~uint64_t{0}));
    EXPECT_EQ(view.MeasuredFill(), 0);
    const FilterInfo info = view.Info();
    EXPECT_EQ(info.keys, 0U);
    EXPECT_EQ(info.bits_per_key, 0);
    EXPECT_EQ(info.predicted_fpr, 0);
  }
}

TEST(FilterBuilder, OneKeyIsFoundAndMostOthersAreNot) {
  for (uint64_t key : {uint64_t{0}, ~uint64_t{0}, Mix(1)}) {
    const FilterBytes bytes = filter_testing::Build({key}, 2);
    const FilterView view = Open(bytes);
    EXPECT_TRUE(view.MayContain(key));
    uint64_t maybe = 0;
    for (uint64_t i = 0; i < 10000; ++i) maybe += view.MayContain(Mix(kAbsent + i)) ? 1 : 0;
    EXPECT_EQ(maybe, 0U);
  }
}

TEST(FilterBuilder, PredictedSizeIsTheSize) {
  for (uint64_t keys : {0, 1, 51, 52, 1000, 123457}) {
    for (double bits : {2.0, 7.375, 10.0, 24.0}) {
      ASSERT_OK_AND_ASSIGN(const uint64_t size, fpr_model::SizeBytes(FilterKind::kBlockedBloom, keys, bits));
      const FilterBytes bytes = filter_testing::Build(Hashes(keys), bits);
      EXPECT_EQ(bytes.size(), size);
      EXPECT_EQ(Open(bytes).Info().size_bytes, size);
    }
  }
}

}  // namespace
}  // namespace tamis
