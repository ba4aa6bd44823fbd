#include "filter/filter_format.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

#include "absl/strings/str_cat.h"
#include "filter/binary_fuse.h"
#include "filter/hash.h"
#include "filter/ribbon.h"
#include "tamis/filter_prefix.h"

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

absl::string_view NameOf(FilterKind kind) {
  const std::string_view name = FilterKindName(kind);
  return {name.data(), name.size()};
}

bool IsKnownKind(FilterKind kind) { return kind >= FilterKind::kBlockedBloom && kind <= FilterKind::kBinaryFuse; }

bool IsKnownHash(uint8_t hash_id) { return hash_id >= kFilterHashXxh3 && hash_id <= kFilterHashXxh3_128; }

// Each kind takes XXH3-64; the other two hashes belong to one kind each, and the second has its seed by definition.
bool IsPossibleHash(FilterKind kind, uint8_t hash_id, uint64_t seed) {
  if (hash_id == kFilterHashXxh64) return kind == FilterKind::kSplitBlockBloom && seed == 0;
  if (hash_id == kFilterHashXxh3_128) return kind == FilterKind::kClassicBloom;
  return hash_id == kFilterHashXxh3;
}

// The bits of the layout that the kind uses.
uint32_t LayoutMask(FilterKind kind) {
  if (kind == FilterKind::kRibbon) return 0xffffffff;
  return kind == FilterKind::kBinaryFuse ? 0xffff : 0;
}

// What is not known here: the rest of the header then cannot be trusted to mean what it says.
absl::Status CheckKnown(const unsigned char* bytes) {
  const FilterHeader header = ParseFilterHeader(bytes);
  if (!IsKnownKind(header.kind)) return absl::UnimplementedError(absl::StrCat("filter of kind ", bytes[5], " is not known here"));
  if (!IsKnownHash(header.hash_id)) {
    return absl::UnimplementedError(absl::StrCat("filter with hash id ", header.hash_id, " is not known here"));
  }
  const FilterPrefixRule rule = header.prefix_rule;
  if (rule.kind > FilterPrefixKind::kDelimiter || (rule.kind == FilterPrefixKind::kNone && rule.argument != 0)) {
    return absl::UnimplementedError(absl::StrCat("filter with prefix rule ", bytes[8], " (", rule.argument, ") is not known here"));
  }
  if (bytes[9] != 0 || (header.layout & ~LayoutMask(header.kind)) != 0) {
    return absl::UnimplementedError("filter uses reserved header bytes");
  }
  return absl::OkStatus();
}

uint32_t MaxProbes(FilterKind kind) {
  switch (kind) {
    case FilterKind::kBlockedBloom:
      return kMaxFilterProbes;
    case FilterKind::kSplitBlockBloom:
      return kSplitBlockProbes;
    case FilterKind::kClassicBloom:
      return kMaxClassicProbes;
    case FilterKind::kRibbon:
      return kMaxRibbonColumns;
    case FilterKind::kBinaryFuse:
      return kFuseWidths[1];
    case FilterKind::kNone:
      break;
  }
  return 0;
}

// Known values that cannot be: every later computation may rely on what this lets through.
absl::Status CheckPossible(const FilterHeader& header, const unsigned char* bytes, size_t size) {
  if (!IsPossibleHash(header.kind, header.hash_id, header.seed)) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(header.kind), " filter with hash id ", header.hash_id, " and seed ", header.seed, " cannot be"));
  }
  if (!IsValidPrefixRule(header.prefix_rule)) {
    return absl::InvalidArgumentError(absl::StrCat("filter with prefix rule ", static_cast<uint8_t>(header.prefix_rule.kind),
                                                   " and the impossible argument ", header.prefix_rule.argument));
  }
  const uint32_t max = MaxProbes(header.kind);
  const uint32_t min = header.kind == FilterKind::kSplitBlockBloom ? max : 1;
  if (header.probes < min || header.probes > max) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(header.kind), " filter with ", header.probes, " probes, possible are ", min, " to ", max));
  }
  const uint64_t lines = FilterBodyLines(header);
  if (lines == 0) {
    return absl::InvalidArgumentError(absl::StrCat(NameOf(header.kind), " filter of impossible size ", header.lines));
  }
  if (size != kFilterHeaderBytes + lines * kFilterLineBytes) {
    return absl::InvalidArgumentError(absl::StrCat("filter of ", size, " bytes declares ", lines, " lines"));
  }
  const size_t padding = static_cast<size_t>(lines * kFilterLineBytes - FilterBodyBits(header) / 8);
  if (std::any_of(bytes + size - padding, bytes + size, [](unsigned char b) { return b != 0; })) {
    return absl::InvalidArgumentError("filter has bits after its last block");
  }
  return absl::OkStatus();
}

absl::Status CheckExpected(const FilterHeader& header, const FilterExpectations& expectations) {
  if (expectations.check_owner && header.owner != expectations.owner) {
    return absl::FailedPreconditionError("filter belongs to another table");
  }
  if (header.hash_id != expectations.hash_id) {
    return absl::FailedPreconditionError(absl::StrCat("filter has hash id ", header.hash_id, ", expected is ", expectations.hash_id));
  }
  if (!expectations.any_prefix_rule && header.prefix_rule != expectations.prefix_rule) {
    return absl::FailedPreconditionError(
        absl::StrCat("filter has prefix rule ", static_cast<uint8_t>(header.prefix_rule.kind), " (", header.prefix_rule.argument,
                     "), expected is ", static_cast<uint8_t>(expectations.prefix_rule.kind), " (", expectations.prefix_rule.argument, ")"));
  }
  return absl::OkStatus();
}

}  // namespace

uint64_t FilterBodyLines(const FilterHeader& header) {
  uint64_t lines = 0;
  switch (header.kind) {
    case FilterKind::kNone:
      return 0;
    case FilterKind::kBlockedBloom:
      lines = header.lines;
      break;
    case FilterKind::kSplitBlockBloom:
      lines = header.lines <= kMaxSplitBlocks ? (header.lines + 1) / 2 : 0;
      break;
    case FilterKind::kClassicBloom:
      lines = header.lines % 512 == 0 ? header.lines / 512 : 0;
      break;
    case FilterKind::kRibbon: {
      const RibbonShape shape = RibbonShape::Of(header.lines, header.probes, header.layout);
      if (!IsPossibleRibbonShape(shape)) return 0;
      lines = (shape.segments() + RibbonAttemptSegments(shape.regions())) * kRibbonSegmentBytes / kFilterLineBytes;
      break;
    }
    case FilterKind::kBinaryFuse: {
      const FuseShape shape = FuseShape::Of(header.lines, header.probes, header.layout);
      lines = IsPossibleFuseShape(shape) ? shape.lines() : 0;
      break;
    }
  }
  return lines <= kMaxFilterLines ? lines : 0;
}

uint64_t FilterBodyBits(const FilterHeader& header) {
  if (header.kind == FilterKind::kSplitBlockBloom) return header.lines * kSplitBlockBytes * 8;
  if (header.kind == FilterKind::kRibbon) return RibbonShape::Of(header.lines, header.probes, header.layout).body_bytes() * 8;
  if (header.kind == FilterKind::kBinaryFuse) return FuseShape::Of(header.lines, header.probes, header.layout).bits();
  return FilterBodyLines(header) * 512;
}

FilterHeader FilterHeaderOf(FilterKind kind, const FilterBuildOptions& options) {
  FilterHeader header;
  header.kind = kind;
  header.hash_id = options.hash_id;
  header.seed = options.seed;
  header.owner = options.owner;
  header.prefix_rule = options.prefix_rule;
  return header;
}

absl::StatusOr<FilterBytes> AllocateFilter(uint64_t lines) {
  if (lines > kMaxFilterLines) return absl::ResourceExhaustedError(absl::StrCat("a filter of ", lines, " lines would pass 2^40"));
  try {
    return FilterBytes(kFilterHeaderBytes + lines * kFilterLineBytes);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory for a filter of ", lines, " lines"));
  }
}

void SealFilter(const FilterHeader& header, char* data, size_t size) {
  auto* bytes = reinterpret_cast<unsigned char*>(data);
  std::memset(bytes, 0, kFilterHeaderBytes);
  std::memcpy(bytes, kMagic, sizeof(kMagic));
  bytes[4] = kFilterVersion;
  bytes[5] = static_cast<uint8_t>(header.kind);
  bytes[6] = header.hash_id;
  bytes[7] = header.probes;
  bytes[8] = static_cast<uint8_t>(header.prefix_rule.kind);
  for (int i = 0; i < 2; ++i) bytes[10 + i] = static_cast<unsigned char>(header.prefix_rule.argument >> (8 * i));
  for (int i = 0; i < 4; ++i) bytes[12 + i] = static_cast<unsigned char>(header.layout >> (8 * i));
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
  header.prefix_rule.kind = static_cast<FilterPrefixKind>(bytes[8]);
  header.prefix_rule.argument = static_cast<uint16_t>(bytes[10] | (bytes[11] << 8));
  for (int i = 0; i < 4; ++i) header.layout |= uint32_t{bytes[12 + i]} << (8 * i);
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
  if (absl::Status s = CheckKnown(bytes); !s.ok()) return s;
  const FilterHeader header = ParseFilterHeader(bytes);
  if (absl::Status s = CheckPossible(header, bytes, data.size()); !s.ok()) return s;
  if (absl::Status s = CheckExpected(header, expectations); !s.ok()) return s;
  return header;
}

uint64_t FilterLinesFor(uint64_t keys, uint32_t eighths) {
  constexpr uint64_t kEighthsPerLine = 512 * 8;
  const FilterUint128 lines = (static_cast<FilterUint128>(keys) * eighths + (kEighthsPerLine - 1)) / kEighthsPerLine;
  if (lines > std::numeric_limits<uint64_t>::max()) return std::numeric_limits<uint64_t>::max();
  return std::max<uint64_t>(1, static_cast<uint64_t>(lines));
}

double MinBitsPerKey(FilterKind kind) { return kind == FilterKind::kRibbon ? kMinRibbonBitsPerKey : kMinBitsPerKey; }

absl::StatusOr<uint32_t> BitsPerKeyEighths(FilterKind kind, double bits_per_key) {
  const double min = MinBitsPerKey(kind);
  // Written so that NaN fails it.
  if (!(bits_per_key >= min && bits_per_key <= kMaxBitsPerKey)) {
    return absl::InvalidArgumentError(
        absl::StrCat("filter bits per key ", bits_per_key, " are not between ", min, " and ", kMaxBitsPerKey));
  }
  return static_cast<uint32_t>(bits_per_key / kBitsPerKeyStep);
}

absl::Status CheckFilterKind(FilterKind kind) {
  if (IsKnownKind(kind)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("no filter can be built of kind ", static_cast<uint8_t>(kind)));
}

absl::Status CheckBuildOptions(const FilterBuildOptions& options) {
  if (absl::Status s = CheckFilterKind(options.kind); !s.ok()) return s;
  if (!IsPossibleHash(options.kind, options.hash_id, options.seed)) {
    return absl::InvalidArgumentError(absl::StrCat("a filter of kind ", NameOf(options.kind), " cannot be built of hash id ",
                                                   options.hash_id, " with seed ", options.seed));
  }
  if (!IsValidPrefixRule(options.prefix_rule)) {
    return absl::InvalidArgumentError(absl::StrCat("prefix rule ", static_cast<uint8_t>(options.prefix_rule.kind),
                                                   " does not take the argument ", options.prefix_rule.argument));
  }
  return absl::OkStatus();
}

}  // namespace tamis::internal
