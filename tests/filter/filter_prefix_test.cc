#include "tamis/filter_prefix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/filter/filter_test_util.h"
#include "tests/support/status_matchers.h"

namespace tamis {
namespace {

using filter_testing::Build;
using filter_testing::Copy;
using filter_testing::Hashes;
using filter_testing::Reseal;

FilterPrefixRule Fixed(uint16_t length) { return {FilterPrefixKind::kFixedLength, length}; }
FilterPrefixRule Delimiter(uint8_t byte) { return {FilterPrefixKind::kDelimiter, byte}; }
constexpr FilterPrefixRule kWhole;

TEST(FilterPrefix, PrefixOfIsThePartThatTheRuleNames) {
  EXPECT_EQ(PrefixOf(Fixed(2), "abc"), "ab");
  EXPECT_EQ(PrefixOf(Fixed(3), "abc"), "abc");
  EXPECT_EQ(PrefixOf(Fixed(4), "abc"), std::nullopt);
  EXPECT_EQ(PrefixOf(Fixed(1), ""), std::nullopt);
  EXPECT_EQ(PrefixOf(Delimiter('/'), "a/b/c"), "a/");
  EXPECT_EQ(PrefixOf(Delimiter('/'), "/"), "/");
  EXPECT_EQ(PrefixOf(Delimiter('/'), "abc"), std::nullopt);
  EXPECT_EQ(PrefixOf(Delimiter(0xff), "a\xff z"), "a\xff");
  EXPECT_EQ(PrefixOf(Delimiter(0), std::string_view("a\0b", 3)), std::string_view("a\0", 2));
  EXPECT_EQ(PrefixOf(kWhole, "abc"), std::nullopt);
}

TEST(FilterPrefix, OddRulesHaveNoPrefixesAndAreNotBuilt) {
  for (FilterPrefixRule rule : {FilterPrefixRule{FilterPrefixKind::kNone, 1}, Fixed(0), FilterPrefixRule{FilterPrefixKind::kDelimiter, 256},
                                FilterPrefixRule{static_cast<FilterPrefixKind>(3), 1}}) {
    EXPECT_FALSE(IsValidPrefixRule(rule));
    EXPECT_EQ(PrefixOf(rule, "abc"), std::nullopt);
    std::string_view prefix = "untouched";
    EXPECT_FALSE(SamePrefix(rule, "abc", "abd", &prefix));
    EXPECT_EQ(prefix, "untouched");
    EXPECT_CODE(FilterBuilder::Create({.prefix_rule = rule}), absl::StatusCode::kInvalidArgument);
  }
  for (FilterPrefixRule rule : {kWhole, Fixed(1), Fixed(65535), Delimiter(0), Delimiter(255)}) EXPECT_TRUE(IsValidPrefixRule(rule));
}

TEST(FilterPrefix, SuccessorIsTheLeastStringAboveAllOfThePrefix) {
  EXPECT_EQ(PrefixSuccessor("abc"), "abd");
  EXPECT_EQ(PrefixSuccessor("ab\xff"), "ac");
  EXPECT_EQ(PrefixSuccessor("a\xff\xff"), "b");
  EXPECT_EQ(PrefixSuccessor("a\x7f"), "a\x80");
  EXPECT_EQ(PrefixSuccessor(std::string_view("\0", 1)), "\x01");
  EXPECT_EQ(PrefixSuccessor("\xff\xff"), std::nullopt);
  EXPECT_EQ(PrefixSuccessor(""), std::nullopt);
}

// All strings of up to `length` letters, in order. The alphabet has both ends and 0xfe, so that successors carry and stay inside it.
std::vector<std::string> AllKeys(size_t length, const std::string& letters) {
  std::vector<std::string> keys = {""};
  for (size_t begin = 0, l = 0; l < length; ++l) {
    const size_t end = keys.size();
    for (; begin < end; ++begin) {
      for (char c : letters) keys.push_back(keys[begin] + c);
    }
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

// The answer by looking at each key of the range. Bounds have up to two letters fewer than keys, so that what lies between any two bounds,
// and is not of their common prefix, shows in the keys too.
void ExpectSamePrefixByBruteForce(FilterPrefixRule rule, const std::string& letters) {
  const std::vector<std::string> keys = AllKeys(5, letters);
  uint64_t yes = 0;
  for (size_t l = 0; l < keys.size(); ++l) {
    if (keys[l].size() > 3) continue;
    bool same = true;
    const auto first = PrefixOf(rule, keys[l]);
    for (size_t u = 0; u < keys.size(); ++u) {
      if (u > l) same = same && first.has_value() && PrefixOf(rule, keys[u - 1]) == first;
      if (keys[u].size() > 3) continue;
      std::string_view prefix = "untouched";
      const bool got = SamePrefix(rule, keys[l], keys[u], &prefix);
      ASSERT_EQ(got, u > l && same) << testing::PrintToString(keys[l]) << ' ' << testing::PrintToString(keys[u]);
      ASSERT_EQ(prefix, got ? *first : "untouched");
      yes += got ? 1 : 0;
    }
  }
  EXPECT_GT(yes, 5U);
}

TEST(FilterPrefix, SamePrefixIsExactOverAllShortKeys) {
  // Without 0xff the successor of a prefix ends in a letter that keys may lack ("a" + 1 must be a letter: the three are consecutive), and
  // a range may end above the last key: so the last letter is 0xff.
  const std::string letters = "\xfd\xfe\xff";
  for (uint16_t length : {1, 2, 3}) ExpectSamePrefixByBruteForce(Fixed(length), letters);
  for (uint8_t delimiter : {0xfd, 0xfe, 0xff}) ExpectSamePrefixByBruteForce(Delimiter(delimiter), letters);
}

TEST(FilterPrefix, SamePrefixKnowsKeysThatAreShorterOrBetween) {
  std::string_view prefix;
  EXPECT_TRUE(SamePrefix(Fixed(2), "ab", "ac", &prefix));
  EXPECT_EQ(prefix, "ab");
  EXPECT_TRUE(SamePrefix(Fixed(2), "abx", "aby", &prefix));
  EXPECT_FALSE(SamePrefix(Fixed(2), "ab", std::string_view("ac\0", 3), &prefix));  // "ac" itself
  EXPECT_FALSE(SamePrefix(Fixed(2), "a", "ac", &prefix));                          // "a" has no prefix
  EXPECT_FALSE(SamePrefix(Fixed(2), "a\xff", "c", &prefix));                       // "b" has none
  EXPECT_TRUE(SamePrefix(Fixed(2), "a\xff", "b", &prefix));
  EXPECT_TRUE(SamePrefix(Fixed(2), "\xff\xff", "\xff\xff\xff", &prefix));
  EXPECT_TRUE(SamePrefix(Delimiter('/'), "a/", "a0", &prefix));
  EXPECT_EQ(prefix, "a/");
  EXPECT_TRUE(SamePrefix(Delimiter('/'), "a/1", "a/9/x", &prefix));
  EXPECT_FALSE(SamePrefix(Delimiter('/'), "a", "a/", &prefix));
  EXPECT_FALSE(SamePrefix(Delimiter('/'), "a/1", "b/1", &prefix));
  EXPECT_FALSE(SamePrefix(Delimiter('/'), "a/1", "a/1", &prefix));  // empty
  EXPECT_FALSE(SamePrefix(Delimiter('/'), "a/2", "a/1", &prefix));
}

TEST(FilterPrefix, RuleIsStoredAndOnlyTheExpectedOneOpens) {
  for (FilterPrefixRule rule : {kWhole, Fixed(1), Fixed(0x1234), Fixed(65535), Delimiter(0), Delimiter('/'), Delimiter(255)}) {
    for (FilterKind kind : {FilterKind::kBlockedBloom, FilterKind::kSplitBlockBloom, FilterKind::kClassicBloom, FilterKind::kRibbon,
                            FilterKind::kBinaryFuse}) {
      const FilterBytes bytes = Build(Hashes(600), 10, {.kind = kind, .prefix_rule = rule});
      EXPECT_EQ(FilterView::Open(bytes.view(), {}).ok(), rule == kWhole);
      if (rule != kWhole) EXPECT_CODE(FilterView::Open(bytes.view(), {}), absl::StatusCode::kFailedPrecondition);
      EXPECT_CODE(FilterView::Open(bytes.view(), {.prefix_rule = Fixed(77)}), absl::StatusCode::kFailedPrecondition);
      ASSERT_OK_AND_ASSIGN(const FilterView view, FilterView::Open(bytes.view(), {.prefix_rule = rule}));
      EXPECT_EQ(view.prefix_rule(), rule);
      EXPECT_EQ(view.Info().prefix_rule, rule);
      EXPECT_OK(FilterView::Open(bytes.view(), {.any_prefix_rule = true}));
    }
  }
  EXPECT_EQ(FilterView().prefix_rule(), kWhole);
}

TEST(FilterPrefix, ImpossibleArgumentsAndUnknownRulesAreRefused) {
  const auto with = [](int rule, int argument) {
    FilterBytes bytes = Build(Hashes(10), 10);
    bytes.data()[8] = static_cast<char>(rule);
    bytes.data()[10] = static_cast<char>(argument & 0xff);
    bytes.data()[11] = static_cast<char>(argument >> 8);
    Reseal(bytes);
    return FilterView::Open(bytes.view(), {.any_prefix_rule = true}).status();
  };
  EXPECT_OK(with(0, 0));
  EXPECT_OK(with(1, 1));
  EXPECT_OK(with(2, 0));
  EXPECT_CODE(with(1, 0), absl::StatusCode::kInvalidArgument);
  EXPECT_CODE(with(2, 256), absl::StatusCode::kInvalidArgument);
  EXPECT_CODE(with(0, 1), absl::StatusCode::kUnimplemented);
  for (int rule : {3, 4, 128, 255}) EXPECT_CODE(with(rule, 1), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace tamis
