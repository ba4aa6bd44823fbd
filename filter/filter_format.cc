#include "filter/filter_format.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "filter/hash.h"

namespace tamis::internal {
namespace {

constexpr char kMagic[4] = {'T', 'F', 'L', 'T'};
constexpr size_t kChecksumOffset = 56;

uint64_t Load64(const unsigned char* p) {
  uint64_t v = 0;
  for (int i = 0; i < 8; ++i) v |= uint64_t{p[i]} << (8 * i);
  return v;
}

void Store64(unsigned char* p, uint64_t v) {
  for (int i = 0; i < 8; ++i) p[i] = static_cast<unsigned char>(v >> (8 * i));
}

uint64_t Checksum(const unsigned char* bytes, size_t size) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, bytes, kChecksumOffset);
  XXH3_64bits_update(&state, bytes + kFilterHeaderBytes, size - kFilterHeaderBytes);
  return XXH3_64bits_digest(&state);
}

absl::Status CheckMeaning(const unsigned char* bytes) {
  const uint8_t kind = bytes[5];
  if (kind != static_cast<uint8_t>(FilterKind::kBlockedBloom)) {
    return absl::UnimplementedError(absl::StrCat("filter of kind ", kind, " is not known here"));
  }
  if (bytes[6] != kHashIdXxh3) return absl::UnimplementedError(absl::StrCat("filter with hash id ", bytes[6], " is not known here"));
  if (bytes[8] != 0 || bytes[10] != 0 || bytes[11] != 0) {
    return absl::UnimplementedError(absl::StrCat("filter with prefix rule ", bytes[8], " is not known here"));
  }
  if (bytes[9] != 0 || bytes[12] != 0 || bytes[13] != 0 || bytes[14] != 0 || bytes[15] != 0) {
    return absl::UnimplementedError("filter uses reserved header bytes");
  }
  return absl::OkStatus();
}

}  // namespace

void SealFilter(const FilterHeader& header, char* data, size_t size) {
  auto* bytes = reinterpret_cast<unsigned char*>(data);
  std::memset(bytes, 0, kFilterHeaderBytes);
  std::memcpy(bytes, kMagic, sizeof(kMagic));
  bytes[4] = kFilterVersion;
  bytes[5] = static_cast<uint8_t>(header.kind);
  bytes[6] = header.hash_id;
  bytes[7] = header.probes;
  Store64(bytes + 16, header.seed);
  Store64(bytes + 24, header.lines);
  Store64(bytes + 32, header.keys);
  std::copy(header.owner.begin(), header.owner.end(), bytes + 40);
  Store64(bytes + kChecksumOffset, Checksum(bytes, size));
}

FilterHeader ParseFilterHeader(const unsigned char* bytes) {
  FilterHeader header;
  header.kind = static_cast<FilterKind>(bytes[5]);
  header.hash_id = bytes[6];
  header.probes = bytes[7];
  header.seed = Load64(bytes + 16);
  header.lines = Load64(bytes + 24);
  header.keys = Load64(bytes + 32);
  std::copy(bytes + 40, bytes + 40 + header.owner.size(), header.owner.begin());
  return header;
}

absl::StatusOr<FilterHeader> DecodeFilter(std::string_view data, const FilterExpectations& expectations) {
  if (data.size() < kFilterHeaderBytes) {
    return absl::DataLossError(absl::StrCat("filter of ", data.size(), " bytes is shorter than its header"));
  }
  if (reinterpret_cast<uintptr_t>(data.data()) % kFilterLineBytes != 0) {
    return absl::InvalidArgumentError("filter is not in a 64-byte aligned buffer");
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(data.data());
  if (std::memcmp(bytes, kMagic, sizeof(kMagic)) != 0) return absl::DataLossError("filter does not begin with its magic");
  // Before the checksum: another version may compute it otherwise.
  if (bytes[4] != kFilterVersion) return absl::UnimplementedError(absl::StrCat("filter of format version ", bytes[4], ", known is 1"));
  // Before the fields: damage is then called damage, whatever field it hit.
  if (const uint64_t stored = Load64(bytes + kChecksumOffset), found = Checksum(bytes, data.size()); stored != found) {
    return absl::DataLossError(absl::StrCat("filter checksum ", absl::Hex(found), ", stored ", absl::Hex(stored)));
  }
  if (absl::Status s = CheckMeaning(bytes); !s.ok()) return s;
  const FilterHeader header = ParseFilterHeader(bytes);
  if (header.probes == 0 || header.probes > kMaxFilterProbes) {
    return absl::InvalidArgumentError(absl::StrCat("filter with ", header.probes, " probes, possible are 1 to ", kMaxFilterProbes));
  }
  if (header.lines == 0 || header.lines > kMaxFilterLines) {
    return absl::InvalidArgumentError(absl::StrCat("filter with ", header.lines, " lines, possible are 1 to 2^40"));
  }
  if (data.size() != kFilterHeaderBytes + header.lines * kFilterLineBytes) {
    return absl::InvalidArgumentError(absl::StrCat("filter of ", data.size(), " bytes declares ", header.lines, " lines"));
  }
  if (expectations.check_owner && header.owner != expectations.owner) {
    return absl::FailedPreconditionError("filter belongs to another table");
  }
  return header;
}

uint64_t FilterLinesFor(uint64_t keys, uint32_t eighths) {
  constexpr uint64_t kEighthsPerLine = 512 * 8;
  const FilterUint128 lines = (static_cast<FilterUint128>(keys) * eighths + (kEighthsPerLine - 1)) / kEighthsPerLine;
  if (lines > std::numeric_limits<uint64_t>::max()) return std::numeric_limits<uint64_t>::max();
  return std::max<uint64_t>(1, static_cast<uint64_t>(lines));
}

absl::StatusOr<uint32_t> BitsPerKeyEighths(double bits_per_key) {
  // Written so that NaN fails it.
  if (!(bits_per_key >= kMinBitsPerKey && bits_per_key <= kMaxBitsPerKey)) {
    return absl::InvalidArgumentError(
        absl::StrCat("filter bits per key ", bits_per_key, " are not between ", kMinBitsPerKey, " and ", kMaxBitsPerKey));
  }
  return static_cast<uint32_t>(bits_per_key / kBitsPerKeyStep);
}

absl::Status CheckFilterKind(FilterKind kind) {
  switch (kind) {
    case FilterKind::kBlockedBloom:
      return absl::OkStatus();
    case FilterKind::kSplitBlockBloom:
    case FilterKind::kClassicBloom:
    case FilterKind::kRibbon: {
      const std::string_view name = FilterKindName(kind);
      return absl::UnimplementedError(absl::StrCat("filter kind ", absl::string_view(name.data(), name.size()), " is reserved"));
    }
    case FilterKind::kNone:
      break;
  }
  return absl::InvalidArgumentError(absl::StrCat("no filter can be built of kind ", static_cast<uint8_t>(kind)));
}

}  // namespace tamis::internal
