#include "filter/filter_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>

#include "tests/filter/filter_test_util.h"
#include "tests/support/status_matchers.h"

namespace tamis {
namespace {

using filter_testing::Build;
using filter_testing::Copy;
using filter_testing::Hashes;
using filter_testing::Mix;
using filter_testing::Reseal;

constexpr FilterOwner kOwner = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

FilterBytes Stored() {  // three lines
  FilterBuildOptions options;
  options.seed = 77;
  options.owner = kOwner;
  return Build(Hashes(120), 10, options);
}

absl::Status OpenStatus(std::string_view bytes, const FilterExpectations& expectations = {}) {
  return FilterView::Open(bytes, expectations).status();
}

// Sets one byte, repairs the checksum, opens.
absl::Status WithByte(size_t offset, int value) {
  FilterBytes bytes = Stored();
  bytes.data()[offset] = static_cast<char>(value);
  Reseal(bytes);
  return OpenStatus(bytes.view());
}

absl::Status WithField64(size_t offset, uint64_t value) {
  FilterBytes bytes = Stored();
  for (int i = 0; i < 8; ++i) bytes.data()[offset + i] = static_cast<char>(value >> (8 * i));
  Reseal(bytes);
  return OpenStatus(bytes.view());
}

TEST(FilterFormat, ResealingAnUntouchedFilterChangesNothing) {
  FilterBytes bytes = Stored();
  const std::string before(bytes.view());
  Reseal(bytes);
  EXPECT_EQ(bytes.view(), before);
  EXPECT_OK(OpenStatus(bytes.view()));
}

TEST(FilterFormat, EveryByteChangedToEveryValueIsRefused) {
  FilterBytes bytes = Stored();
  ASSERT_EQ(bytes.size(), 256U);
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int change = 1; change < 256; ++change) {
      bytes.data()[i] = static_cast<char>(bytes.data()[i] ^ change);
      const absl::Status s = OpenStatus(bytes.view());
      bytes.data()[i] = static_cast<char>(bytes.data()[i] ^ change);
      ASSERT_FALSE(s.ok()) << "byte " << i << " xor " << change;
      if (i != 4) {  // 4: another version
        ASSERT_EQ(s.code(), absl::StatusCode::kDataLoss) << "byte " << i << ": " << s.ToString();
      }
    }
  }
  EXPECT_OK(OpenStatus(bytes.view()));
}

TEST(FilterFormat, EveryTruncationAndExtensionIsDataLoss) {
  const FilterBytes whole = Stored();
  for (size_t size = 0; size < whole.size(); ++size) {
    const FilterBytes part = Copy(whole.view().substr(0, size));  // its own block: a read past the end is seen by ASan
    EXPECT_CODE(OpenStatus(part.view()), absl::StatusCode::kDataLoss);
  }
  for (size_t more : {size_t{1}, size_t{63}, size_t{64}}) {
    EXPECT_CODE(OpenStatus(Copy(std::string(whole.view()) + std::string(more, '\0')).view()), absl::StatusCode::kDataLoss);
  }
  EXPECT_CODE(OpenStatus(std::string_view()), absl::StatusCode::kDataLoss);
}

TEST(FilterFormat, MisalignedBufferIsInvalidArgument) {
  const FilterBytes whole = Stored();
  FilterBytes room(whole.size() + 64);
  for (size_t shift = 1; shift < 64; ++shift) {
    std::copy(whole.view().begin(), whole.view().end(), room.data() + shift);
    EXPECT_CODE(OpenStatus({room.data() + shift, whole.size()}), absl::StatusCode::kInvalidArgument);
  }
}

TEST(FilterFormat, AnotherOwnerIsFailedPrecondition) {
  const FilterBytes bytes = Stored();
  EXPECT_OK(OpenStatus(bytes.view(), {.check_owner = true, .owner = kOwner}));
  EXPECT_OK(OpenStatus(bytes.view(), {.check_owner = false, .owner = {}}));
  for (size_t i = 0; i < kOwner.size(); ++i) {
    FilterOwner other = kOwner;
    other[i] ^= 1;
    EXPECT_CODE(OpenStatus(bytes.view(), {.check_owner = true, .owner = other}), absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_CODE(OpenStatus(bytes.view(), {.check_owner = true, .owner = {}}), absl::StatusCode::kFailedPrecondition);
}

TEST(FilterFormat, UnknownVersionKindHashAndRulesAreUnimplemented) {
  for (int value : {0, 2, 3, 255}) EXPECT_CODE(WithByte(4, value), absl::StatusCode::kUnimplemented);  // version
  for (int kind = 0; kind < 256; ++kind) {
    // A blocked filter called another kind has impossible probes or an impossible size for it.
    const bool known = kind >= 2 && kind <= 5;
    if (kind != 1) {
      EXPECT_CODE(WithByte(5, kind), known ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kUnimplemented);
    }
  }
  for (int hash_id = 0; hash_id < 256; ++hash_id) {
    const bool known = hash_id == 2 || hash_id == 3;
    if (hash_id != 1) {
      EXPECT_CODE(WithByte(6, hash_id), known ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kUnimplemented);
    }
  }
  for (size_t offset : {9, 10, 11, 12, 13, 14, 15}) {  // argument of rule 0, reserved
    for (int value : {1, 128, 255}) EXPECT_CODE(WithByte(offset, value), absl::StatusCode::kUnimplemented);
  }
  for (int rule = 3; rule < 256; ++rule) EXPECT_CODE(WithByte(8, rule), absl::StatusCode::kUnimplemented);
  EXPECT_CODE(WithByte(8, 1), absl::StatusCode::kInvalidArgument);     // a fixed length of 0
  EXPECT_CODE(WithByte(8, 2), absl::StatusCode::kFailedPrecondition);  // a delimiter of 0 is possible, and not expected
  EXPECT_CODE(WithByte(0, 'X'), absl::StatusCode::kDataLoss);
}

TEST(FilterFormat, ImpossibleProbesAndLinesAreInvalidArgument) {
  for (int k = 0; k < 256; ++k) {
    EXPECT_CODE(WithByte(7, k), k >= 1 && k <= 16 ? absl::StatusCode::kOk : absl::StatusCode::kInvalidArgument);
  }
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  // The last five times 64 wrap around to the right size or nearly so.
  for (uint64_t lines : {uint64_t{0}, uint64_t{1}, uint64_t{2}, uint64_t{4}, uint64_t{1} << 32, uint64_t{1} << 40, (uint64_t{1} << 40) + 1,
                         uint64_t{1} << 63, kMax, kMax / 2, (uint64_t{1} << 58) + 3, (uint64_t{1} << 59) + 3, (uint64_t{3} << 58) + 3}) {
    EXPECT_CODE(WithField64(24, lines), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_OK(WithField64(24, 3));
}

absl::Status KindWith64(FilterKind kind, uint64_t hashes, size_t offset, uint64_t value, size_t width) {
  FilterBytes bytes = Build(Hashes(hashes), kind == FilterKind::kBinaryFuse ? 12 : 10, {.kind = kind});
  EXPECT_EQ(FilterView::Open(bytes.view(), {})->kind(), kind);
  for (size_t i = 0; i < width; ++i) bytes.data()[offset + i] = static_cast<char>(value >> (8 * i));
  Reseal(bytes);
  return OpenStatus(bytes.view());
}

TEST(FilterFormat, ImpossibleSizesOfEachKindAreInvalidArgument) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  // 120 keys at 10 bits: five blocks (an odd number) in three lines; 1,536 bits in three lines.
  for (uint64_t blocks : {uint64_t{0}, uint64_t{4}, uint64_t{7}, uint64_t{1} << 31, (uint64_t{1} << 31) + 1, uint64_t{1} << 32, kMax,
                          kMax - 1, (uint64_t{1} << 59) + 5}) {
    EXPECT_CODE(KindWith64(FilterKind::kSplitBlockBloom, 120, 24, blocks, 8), kInvalid);
  }
  EXPECT_OK(KindWith64(FilterKind::kSplitBlockBloom, 120, 24, 5, 8));
  for (uint64_t bits : {uint64_t{0}, uint64_t{1535}, uint64_t{1537}, uint64_t{1024}, uint64_t{2048}, uint64_t{1} << 49,
                        (uint64_t{1} << 49) + 512, uint64_t{1} << 63, kMax, kMax - 511}) {
    EXPECT_CODE(KindWith64(FilterKind::kClassicBloom, 120, 24, bits, 8), kInvalid);
  }
  EXPECT_OK(KindWith64(FilterKind::kClassicBloom, 120, 24, 1536, 8));
  // 5,120 keys at 10 bits: 100 lines, 43 blocks, ten columns.
  for (uint64_t blocks : {uint64_t{0}, uint64_t{1}, uint64_t{2}, uint64_t{41}, uint64_t{1} << 32, uint64_t{1} << 60, kMax}) {
    EXPECT_CODE(KindWith64(FilterKind::kRibbon, 5120, 24, blocks, 8), kInvalid);
  }
  // 1,000 keys: 11 segments of 128 slots.
  EXPECT_OK(KindWith64(FilterKind::kBinaryFuse, 1000, 24, 1408, 8));
  for (uint64_t slots : {uint64_t{0}, uint64_t{1}, uint64_t{128}, uint64_t{256}, uint64_t{1280}, uint64_t{1407}, uint64_t{1536},
                         uint64_t{1} << 46, (uint64_t{1} << 46) + 128, uint64_t{1} << 60, kMax, kMax - 127}) {
    EXPECT_CODE(KindWith64(FilterKind::kBinaryFuse, 1000, 24, slots, 8), kInvalid);
  }
  for (uint64_t log2 = 0; log2 < 256; ++log2) {  // 1,408 is 11 times 128
    EXPECT_CODE(KindWith64(FilterKind::kBinaryFuse, 1000, 12, log2, 1), log2 <= 7 ? absl::StatusCode::kOk : kInvalid);
  }
  for (size_t at : {14, 15}) EXPECT_CODE(KindWith64(FilterKind::kBinaryFuse, 1000, at, 1, 1), absl::StatusCode::kUnimplemented);
  for (uint64_t lower : {uint64_t{0}, uint64_t{1}, uint64_t{42}, uint64_t{1000}, uint64_t{0xffffffff}}) {
    EXPECT_CODE(KindWith64(FilterKind::kRibbon, 5120, 12, lower, 4), kInvalid);
  }
}

TEST(FilterFormat, ImpossibleProbesOfEachKindAreInvalidArgument) {
  for (int k = 0; k < 256; ++k) {
    const auto code = [](bool possible) { return possible ? absl::StatusCode::kOk : absl::StatusCode::kInvalidArgument; };
    EXPECT_CODE(KindWith64(FilterKind::kSplitBlockBloom, 120, 7, static_cast<uint64_t>(k), 1), code(k == 8));
    EXPECT_CODE(KindWith64(FilterKind::kClassicBloom, 120, 7, static_cast<uint64_t>(k), 1), code(k >= 1 && k <= 24));
    EXPECT_CODE(KindWith64(FilterKind::kRibbon, 5120, 7, static_cast<uint64_t>(k), 1), code(k == 10));
    EXPECT_CODE(KindWith64(FilterKind::kBinaryFuse, 1000, 7, static_cast<uint64_t>(k), 1), code(k == 8));
  }
}

TEST(FilterFormat, BitsAfterTheEndAreRefused) {
  FilterBytes bytes = Build(Hashes(5120), 10, {.kind = FilterKind::kRibbon});
  bytes.data()[bytes.size() - 1] = 1;  // one attempt byte and 15 zeros
  Reseal(bytes);
  EXPECT_CODE(OpenStatus(bytes.view()), absl::StatusCode::kInvalidArgument);
}

TEST(FilterFormat, KeyCountIsInformationAndNeverTrusted) {
  for (uint64_t keys : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 63, std::numeric_limits<uint64_t>::max()}) {
    FilterBytes bytes = Stored();
    for (int i = 0; i < 8; ++i) bytes.data()[32 + i] = static_cast<char>(keys >> (8 * i));
    Reseal(bytes);
    ASSERT_OK_AND_ASSIGN(const FilterView view, FilterView::Open(bytes.view(), {}));
    EXPECT_EQ(filter_testing::CountMissing(view, Hashes(120)), 0U);
    const FilterInfo info = view.Info();
    EXPECT_EQ(info.keys, keys);
    EXPECT_TRUE(info.predicted_fpr >= 0 && info.predicted_fpr <= 1) << info.predicted_fpr;
    EXPECT_TRUE(info.bits_per_key >= 0);
  }
}

TEST(FilterFormat, RandomBytesNeverOpen) {
  FilterBytes bytes(192);
  for (uint64_t round = 0; round < 20000; ++round) {
    for (size_t i = 0; i < bytes.size(); ++i) bytes.data()[i] = static_cast<char>(Mix(round * 1000 + i));
    if (round % 2 == 1) std::copy_n("TFLT\x01\x01\x01\x06", 8, bytes.data());
    ASSERT_FALSE(OpenStatus(bytes.view()).ok()) << round;
  }
}

TEST(FilterFormat, LinesAreRoundedUpIn128Bits) {
  using internal::FilterLinesFor;
  EXPECT_EQ(FilterLinesFor(0, 80), 1U);
  EXPECT_EQ(FilterLinesFor(1, 16), 1U);
  EXPECT_EQ(FilterLinesFor(256, 16), 1U);
  EXPECT_EQ(FilterLinesFor(257, 16), 2U);
  EXPECT_EQ(FilterLinesFor(uint64_t{1} << 50, 80), uint64_t{80} << 38);
  EXPECT_EQ(FilterLinesFor(std::numeric_limits<uint64_t>::max(), 16), uint64_t{1} << 56);
  EXPECT_EQ(FilterLinesFor(std::numeric_limits<uint64_t>::max(), 192), (uint64_t{192} << 52));
}

}  // namespace
}  // namespace tamis
