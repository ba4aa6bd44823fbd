#include "base/coding.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "base/random.h"

namespace tamis::internal {
namespace {

std::vector<uint64_t> InterestingNumbers() {
  std::vector<uint64_t> numbers = {0, 1, std::numeric_limits<uint64_t>::max()};
  for (int bit = 1; bit < 64; ++bit) {
    const uint64_t power = uint64_t{1} << bit;
    numbers.insert(numbers.end(), {power - 1, power, power + 1});
  }
  Random random(1);
  for (int i = 0; i < 1000; ++i) numbers.push_back(random.Next() >> random.Uniform(64));
  return numbers;
}

TEST(Coding, FixedIsLittleEndian) {
  std::string bytes;
  PutFixed16(&bytes, 0x0201);
  PutFixed32(&bytes, 0x06050403);
  PutFixed64(&bytes, 0x0e0d0c0b0a090807);
  EXPECT_EQ(bytes, "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e");
}

TEST(Coding, VarintBytesAreAsDocumented) {
  std::string bytes;
  PutVarint64(&bytes, 300);
  EXPECT_EQ(bytes, "\xac\x02");
  bytes.clear();
  PutVarint32(&bytes, 0xffffffff);
  EXPECT_EQ(bytes, "\xff\xff\xff\xff\x0f");
}

TEST(Coding, Varint64RoundTripsAndRefusesEveryTruncation) {
  for (const uint64_t number : InterestingNumbers()) {
    std::string bytes;
    PutVarint64(&bytes, number);
    ASSERT_EQ(bytes.size(), VarintLength(number)) << number;
    uint64_t decoded = ~number;
    ASSERT_EQ(DecodeVarint64(bytes.data(), bytes.data() + bytes.size(), &decoded), bytes.data() + bytes.size());
    ASSERT_EQ(decoded, number);
    for (size_t length = 0; length < bytes.size(); ++length) {
      ASSERT_EQ(DecodeVarint64(bytes.data(), bytes.data() + length, &decoded), nullptr) << number << " cut to " << length;
    }
  }
}

TEST(Coding, Varint32RoundTripsAndRefusesWhatIsWider) {
  for (const uint64_t number : InterestingNumbers()) {
    std::string bytes;
    PutVarint64(&bytes, number);
    uint32_t decoded = 0;
    const char* const end = DecodeVarint32(bytes.data(), bytes.data() + bytes.size(), &decoded);
    if (number > std::numeric_limits<uint32_t>::max()) {
      ASSERT_EQ(end, nullptr) << number;
    } else {
      ASSERT_EQ(end, bytes.data() + bytes.size()) << number;
      ASSERT_EQ(decoded, number);
    }
  }
}

TEST(Coding, RefusesBitsBeyondTheWidth) {
  uint64_t wide = 0;
  uint32_t narrow = 0;
  const std::string ten("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10);
  EXPECT_EQ(DecodeVarint64(ten.data(), ten.data() + ten.size(), &wide), nullptr);
  const std::string eleven("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 11);
  EXPECT_EQ(DecodeVarint64(eleven.data(), eleven.data() + eleven.size(), &wide), nullptr);
  const std::string five("\xff\xff\xff\xff\x10", 5);
  EXPECT_EQ(DecodeVarint32(five.data(), five.data() + five.size(), &narrow), nullptr);
  const std::string six("\x80\x80\x80\x80\x80\x00", 6);
  EXPECT_EQ(DecodeVarint32(six.data(), six.data() + six.size(), &narrow), nullptr);
}

std::string AllFields() {
  std::string bytes(1, '\x07');
  PutFixed16(&bytes, 1000);
  PutFixed32(&bytes, 100'000);
  PutFixed64(&bytes, 10'000'000'000);
  PutVarint32(&bytes, 300);
  PutVarint64(&bytes, uint64_t{1} << 60);
  bytes += "abc";
  PutLengthPrefixed(&bytes, std::string(200, 'x'));
  PutLengthPrefixed(&bytes, "");
  return bytes;
}

bool ReadAll(Reader* reader) {
  uint8_t a;
  uint16_t b;
  uint32_t c, e;
  uint64_t d, f;
  std::string_view g, h, i;
  if (!reader->Fixed8(&a) || !reader->Fixed16(&b) || !reader->Fixed32(&c) || !reader->Fixed64(&d) || !reader->Varint32(&e) ||
      !reader->Varint64(&f) || !reader->Bytes(3, &g) || !reader->LengthPrefixed(&h) || !reader->LengthPrefixed(&i)) {
    return false;
  }
  EXPECT_EQ(a, 7);
  EXPECT_EQ(b, 1000);
  EXPECT_EQ(c, 100'000u);
  EXPECT_EQ(d, 10'000'000'000u);
  EXPECT_EQ(e, 300u);
  EXPECT_EQ(f, uint64_t{1} << 60);
  EXPECT_EQ(g, "abc");
  EXPECT_EQ(h, std::string(200, 'x'));
  EXPECT_EQ(i, "");
  return true;
}

TEST(Reader, ReadsWhatWasPut) {
  const std::string bytes = AllFields();
  Reader reader(bytes);
  EXPECT_TRUE(ReadAll(&reader));
  EXPECT_TRUE(reader.empty());
}

TEST(Reader, RefusesEveryTruncation) {
  const std::string bytes = AllFields();
  for (size_t length = 0; length < bytes.size(); ++length) {
    const std::string cut = bytes.substr(0, length);  // a buffer of its own, so that AddressSanitizer sees a read too far
    Reader reader(cut);
    EXPECT_FALSE(ReadAll(&reader)) << length;
  }
}

TEST(Reader, ARefusalChangesNothing) {
  std::string bytes;
  PutVarint64(&bytes, 10);
  bytes += "short";
  Reader reader(bytes);
  std::string_view out = "before";
  EXPECT_FALSE(reader.LengthPrefixed(&out));
  EXPECT_FALSE(reader.Bytes(std::numeric_limits<uint64_t>::max(), &out));
  uint64_t number = 77;
  EXPECT_FALSE(reader.Fixed64(&number));
  EXPECT_EQ(out, "before");
  EXPECT_EQ(number, 77u);
  EXPECT_EQ(reader.rest(), bytes);
}

TEST(Coding, BigPrefixOrdersAsBytesDo) {
  const std::vector<std::string> ordered = {"", "\x01", "a", "aa", "ab", "abcdefgh", "abcdefgi", "b", "\x7f", "\x80", "\xff"};
  for (size_t i = 1; i < ordered.size(); ++i) EXPECT_LT(LoadBigPrefix(ordered[i - 1]), LoadBigPrefix(ordered[i])) << i;
  EXPECT_EQ(LoadBigPrefix("abcdefgh1"), LoadBigPrefix("abcdefgh2"));
}

}  // namespace
}  // namespace tamis::internal
