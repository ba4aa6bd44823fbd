#include "table/table_format.h"

#include "table/compression.h"
#include "table/table_properties.h"
#include "tests/table/table_test_util.h"

namespace tamis::internal {
namespace {

TableProperties Sample() {
  TableProperties p;
  p.entries = 10;
  p.deletes = 2;
  p.distinct_keys = 9;
  p.smallest_key = std::string("a\0", 2);
  p.largest_key = "zz";
  p.smallest_sequence = 4;
  p.largest_sequence = kMaxSequence;
  p.raw_key_bytes = 77;
  p.raw_value_bytes = 1u << 30;
  p.raw_data_bytes = 5;
  p.stored_data_bytes = 6;
  p.data_blocks = 7;
  p.filter_kind = FilterKind::kBlockedBloom;
  p.filter_bytes = 128;
  p.filter_bits_target = 10.125;
  p.filter_fpr_predicted = 0.0097;
  p.level_at_creation = 3;
  p.unknown = {{1000, "kept"}, {1001, ""}};
  return p;
}

TEST(TablePropertiesTest, AllFieldsAndUnknownTagsRoundTrip) {
  const TableProperties p = Sample();
  ASSERT_OK_AND_ASSIGN(const TableProperties q, DecodeTableProperties(EncodeTableProperties(p)));
  EXPECT_EQ(EncodeTableProperties(q), EncodeTableProperties(p));
  EXPECT_EQ(q.unknown, p.unknown);
  EXPECT_EQ(q.smallest_key, p.smallest_key);
  EXPECT_EQ(q.filter_bits_target, 10.125);
  EXPECT_EQ(q.filter_fpr_predicted, 0.0097);
  EXPECT_EQ(q.largest_sequence, kMaxSequence);
}

TEST(TablePropertiesTest, ContradictionsAndNonsenseAreDataLoss) {
  const auto code = [](const TableProperties& p) { return DecodeTableProperties(EncodeTableProperties(p)).status().code(); };
  TableProperties p = Sample();
  p.deletes = 11;
  EXPECT_EQ(code(p), absl::StatusCode::kDataLoss);
  p = Sample();
  p.smallest_key = "zzz";
  EXPECT_EQ(code(p), absl::StatusCode::kDataLoss);
  p = Sample();
  p.largest_sequence = kMaxSequence + 1;
  EXPECT_EQ(code(p), absl::StatusCode::kDataLoss);
  p = Sample();
  p.filter_fpr_predicted = 1.5;
  EXPECT_EQ(code(p), absl::StatusCode::kDataLoss);
  p = Sample();
  p.unknown = {{1, "twice"}};
  EXPECT_EQ(code(p), absl::StatusCode::kDataLoss);
  EXPECT_CODE(DecodeTableProperties(std::string(1, '\0')), absl::StatusCode::kDataLoss);
}

TEST(TablePropertiesTest, EveryCutIsDataLoss) {
  const std::string bytes = EncodeTableProperties(Sample());
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_CODE(DecodeTableProperties(bytes.substr(0, n)), absl::StatusCode::kDataLoss);
  EXPECT_CODE(DecodeTableProperties(bytes + "x"), absl::StatusCode::kDataLoss);
}

TEST(MetaIndexTest, RoundTripsAndRefusesCutsAndDoubles) {
  const std::vector<MetaBlock> blocks = {
      {1, 1, "", {5, 6}}, {2, 0, "", {UINT64_MAX, UINT64_MAX}}, {77, 0, "name", {1, 2}}, {77, 0, "name", {1, 2}}};
  const std::string bytes = EncodeMetaIndex(blocks);
  ASSERT_OK_AND_ASSIGN(const std::vector<MetaBlock> decoded, DecodeMetaIndex(bytes));
  EXPECT_EQ(EncodeMetaIndex(decoded), bytes);
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_CODE(DecodeMetaIndex(bytes.substr(0, n)), absl::StatusCode::kDataLoss);
  EXPECT_CODE(DecodeMetaIndex(bytes + "x"), absl::StatusCode::kDataLoss);
  EXPECT_CODE(DecodeMetaIndex(EncodeMetaIndex({{2, 0, "", {1, 2}}, {2, 0, "", {3, 4}}})), absl::StatusCode::kDataLoss);
}

TEST(FooterTest, NewerFormatsAreUnimplemented) {
  Footer footer;
  footer.index = {0, 10};
  footer.meta_index = {20, 10};
  footer.table_id = TestId(3);
  footer.file_size = 1000;
  const std::string good = EncodeFooter(footer);
  ASSERT_EQ(good.size(), kFooterBytes);
  ASSERT_OK_AND_ASSIGN(const Footer decoded, DecodeFooter(good, 1000, "t"));
  EXPECT_EQ(decoded.table_id, footer.table_id);
  EXPECT_CODE(DecodeFooter(good, 1001, "t"), absl::StatusCode::kDataLoss);
  const auto with = [&](size_t at, char value) {
    std::string bytes = good;
    bytes[at] = value;
    const std::string_view view(bytes);
    StoreLittle(bytes.data() + 112, Checksum64(view.substr(0, 112), view.substr(120), 0));
    return DecodeFooter(bytes, 1000, "t").status().code();
  };
  EXPECT_EQ(with(64, 2), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(with(66, 2), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(with(68, 2), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(with(48, 1), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(with(56, 1), absl::StatusCode::kOk);
  EXPECT_EQ(with(68, 0), absl::StatusCode::kDataLoss);
  EXPECT_EQ(with(100, 1), absl::StatusCode::kDataLoss);
  EXPECT_EQ(with(120, 'X'), absl::StatusCode::kDataLoss);
}

TEST(CompressionTest, KeepsOnlyWhatSavesAnEighth) {
  std::string out;
  EXPECT_FALSE(CompressLz4("", &out));
  EXPECT_FALSE(CompressLz4("abc", &out));
  Random random(6);
  std::string noise(4096, '\0');
  for (char& c : noise) c = static_cast<char>(random.Next());
  EXPECT_FALSE(CompressLz4(noise, &out));
  const std::string text = noise.substr(0, 1000) + std::string(3096, 'x');
  ASSERT_TRUE(CompressLz4(text, &out));
  EXPECT_LE(out.size(), text.size() - text.size() / 8);
  ASSERT_OK_AND_ASSIGN(const size_t size, RawSizeOfLz4(out));
  ASSERT_EQ(size, text.size());
  std::string back(size, '\0');
  ASSERT_OK(DecompressLz4(out, back.data(), size));
  EXPECT_EQ(back, text);
  EXPECT_FALSE(CompressLz4(std::string(kMaxCompressibleBytes + 1, 'x'), &out));
}

TEST(CompressionTest, DamageIsDataLossOrTheExactSize) {
  Random random(7);
  std::string out;
  ASSERT_TRUE(CompressLz4(std::string(2000, 'x') + "end", &out));
  for (size_t n = 0; n < out.size(); ++n) {
    const std::string cut = out.substr(0, n);
    const absl::StatusOr<size_t> size = RawSizeOfLz4(cut);
    std::string back(2003, '\0');
    if (size.ok()) {
      EXPECT_CODE(DecompressLz4(cut, back.data(), *size), absl::StatusCode::kDataLoss);
    }
  }
  std::string huge;
  PutVarint64(&huge, kMaxCompressibleBytes + 1);
  huge.append(1 << 20, 'x');
  EXPECT_CODE(RawSizeOfLz4(huge), absl::StatusCode::kDataLoss);
  std::string expands;
  PutVarint64(&expands, 3000);
  EXPECT_CODE(RawSizeOfLz4(expands), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace tamis::internal
