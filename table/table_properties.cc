#include "table/table_properties.h"

#include <bit>
#include <cmath>

#include "base/coding.h"
#include "base/status_util.h"

namespace tamis::internal {
namespace {

absl::Status Damaged(std::string_view what) { return absl::DataLossError(Concat("properties: ", what)); }

class Encoder {
 public:
  void Bytes(PropertyTag tag, std::string_view bytes) { Raw(static_cast<uint32_t>(tag), bytes); }
  void Number(PropertyTag tag, uint64_t value) {
    char bytes[kMaxVarint64Bytes];
    Bytes(tag, {bytes, static_cast<size_t>(EncodeVarint64(bytes, value) - bytes)});
  }
  void Raw(uint32_t tag, std::string_view bytes) {
    PutVarint32(&fields_, tag);
    PutLengthPrefixed(&fields_, bytes);
    ++count_;
  }
  std::string Finish() const {
    std::string bytes;
    PutVarint32(&bytes, count_);
    return bytes + fields_;
  }

 private:
  uint32_t count_ = 0;
  std::string fields_;
};

bool WholeNumber(std::string_view bytes, uint64_t* value) {
  Reader reader(bytes);
  return reader.Varint64(value) && reader.empty();
}

bool Key(std::string_view bytes, std::string* key) {
  if (bytes.size() > kMaxKeyBytes) return false;
  key->assign(bytes);
  return true;
}

bool FilterKindOf(std::string_view bytes, FilterKind* kind) {
  uint64_t value = 0;
  if (!WholeNumber(bytes, &value) || value > UINT8_MAX) return false;
  *kind = static_cast<FilterKind>(value);  // a kind not known here is for the filter's own header to refuse
  return true;
}

bool BitsTarget(std::string_view bytes, double* bits) {
  uint64_t eighths = 0;
  if (!WholeNumber(bytes, &eighths) || eighths > UINT16_MAX) return false;
  *bits = static_cast<double>(eighths) / 8;
  return true;
}

bool Rate(std::string_view bytes, double* rate) {
  if (bytes.size() != sizeof(uint64_t)) return false;
  *rate = std::bit_cast<double>(LoadLittle<uint64_t>(bytes.data()));
  return *rate >= 0 && *rate <= 1;  // false for NaN
}

// Whether the field is well formed; unknown tags are.
bool DecodeField(uint32_t tag, std::string_view bytes, TableProperties* p) {
  switch (static_cast<PropertyTag>(tag)) {
    case PropertyTag::kEntries:
      return WholeNumber(bytes, &p->entries);
    case PropertyTag::kDeletes:
      return WholeNumber(bytes, &p->deletes);
    case PropertyTag::kDistinctKeys:
      return WholeNumber(bytes, &p->distinct_keys);
    case PropertyTag::kSmallestKey:
      return Key(bytes, &p->smallest_key);
    case PropertyTag::kLargestKey:
      return Key(bytes, &p->largest_key);
    case PropertyTag::kSmallestSequence:
      return WholeNumber(bytes, &p->smallest_sequence);
    case PropertyTag::kLargestSequence:
      return WholeNumber(bytes, &p->largest_sequence);
    case PropertyTag::kRawKeyBytes:
      return WholeNumber(bytes, &p->raw_key_bytes);
    case PropertyTag::kRawValueBytes:
      return WholeNumber(bytes, &p->raw_value_bytes);
    case PropertyTag::kRawDataBytes:
      return WholeNumber(bytes, &p->raw_data_bytes);
    case PropertyTag::kStoredDataBytes:
      return WholeNumber(bytes, &p->stored_data_bytes);
    case PropertyTag::kDataBlocks:
      return WholeNumber(bytes, &p->data_blocks);
    case PropertyTag::kFilterKind:
      return FilterKindOf(bytes, &p->filter_kind);
    case PropertyTag::kFilterBytes:
      return WholeNumber(bytes, &p->filter_bytes);
    case PropertyTag::kFilterBitsTarget:
      return BitsTarget(bytes, &p->filter_bits_target);
    case PropertyTag::kFilterFprPredicted:
      return Rate(bytes, &p->filter_fpr_predicted);
    case PropertyTag::kLevelAtCreation:
      return WholeNumber(bytes, &p->level_at_creation);
  }
  p->unknown.emplace_back(tag, bytes);
  return true;
}

constexpr uint32_t kLastTag = static_cast<uint32_t>(PropertyTag::kLevelAtCreation);
// Entries to largest sequence, and data blocks: without these a table cannot be placed or checked. A set bit for each tag.
constexpr uint64_t kNeeded = 0xfeu | uint64_t{1} << static_cast<uint32_t>(PropertyTag::kDataBlocks);
static_assert(static_cast<uint32_t>(PropertyTag::kLargestSequence) == 7);

}  // namespace

std::string EncodeTableProperties(const TableProperties& p) {
  Encoder to;
  to.Number(PropertyTag::kEntries, p.entries);
  to.Number(PropertyTag::kDeletes, p.deletes);
  to.Number(PropertyTag::kDistinctKeys, p.distinct_keys);
  to.Bytes(PropertyTag::kSmallestKey, p.smallest_key);
  to.Bytes(PropertyTag::kLargestKey, p.largest_key);
  to.Number(PropertyTag::kSmallestSequence, p.smallest_sequence);
  to.Number(PropertyTag::kLargestSequence, p.largest_sequence);
  to.Number(PropertyTag::kRawKeyBytes, p.raw_key_bytes);
  to.Number(PropertyTag::kRawValueBytes, p.raw_value_bytes);
  to.Number(PropertyTag::kRawDataBytes, p.raw_data_bytes);
  to.Number(PropertyTag::kStoredDataBytes, p.stored_data_bytes);
  to.Number(PropertyTag::kDataBlocks, p.data_blocks);
  to.Number(PropertyTag::kFilterKind, static_cast<uint64_t>(p.filter_kind));
  to.Number(PropertyTag::kFilterBytes, p.filter_bytes);
  to.Number(PropertyTag::kFilterBitsTarget, static_cast<uint64_t>(p.filter_bits_target * 8));
  std::string rate;
  PutFixed64(&rate, std::bit_cast<uint64_t>(p.filter_fpr_predicted));
  to.Bytes(PropertyTag::kFilterFprPredicted, rate);
  to.Number(PropertyTag::kLevelAtCreation, p.level_at_creation);
  for (const auto& [tag, bytes] : p.unknown) to.Raw(tag, bytes);
  return to.Finish();
}

absl::StatusOr<TableProperties> DecodeTableProperties(std::string_view bytes) {
  Reader reader(bytes);
  uint32_t count = 0;
  if (!reader.Varint32(&count)) return Damaged("no count");
  TableProperties properties;
  uint64_t seen = 0;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t tag = 0;
    std::string_view field;
    if (!reader.Varint32(&tag) || !reader.LengthPrefixed(&field)) return Damaged(Concat("field number ", i));
    if (!DecodeField(tag, field, &properties)) return Damaged(Concat("tag ", tag));
    if (tag > kLastTag) continue;
    if ((seen >> tag & 1) != 0) return Damaged(Concat("tag ", tag, " twice"));
    seen |= uint64_t{1} << tag;
  }
  if (!reader.empty()) return Damaged("bytes behind the last field");
  if ((seen & kNeeded) != kNeeded) return Damaged("a field is missing");
  const TableProperties& p = properties;
  if (p.deletes > p.entries || p.distinct_keys > p.entries || p.smallest_key > p.largest_key || p.smallest_sequence > p.largest_sequence ||
      p.largest_sequence > kMaxSequence) {
    return Damaged("fields contradict each other");
  }
  return properties;
}

}  // namespace tamis::internal
