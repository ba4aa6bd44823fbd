#include "table/table_format.h"

#include <algorithm>

#include "base/status_util.h"
#include "table/block_io.h"

namespace tamis::internal {
namespace {

constexpr std::string_view kMagic = "TAMISTBL";
constexpr size_t kChecksumOffset = 112;
constexpr size_t kMagicOffset = 120;
constexpr size_t kReservedOffset = 80;
constexpr uint16_t kPrefixArrayFormat = 1;

uint64_t FooterChecksum(std::string_view footer) { return Checksum64(footer.substr(0, kChecksumOffset), footer.substr(kMagicOffset), 0); }

}  // namespace

void EncodeBlockHandle(const BlockHandle& handle, std::string* to) {
  PutVarint64(to, handle.offset);
  PutVarint64(to, handle.size);
}

bool DecodeBlockHandle(Reader* from, BlockHandle* handle) { return from->Varint64(&handle->offset) && from->Varint64(&handle->size); }

std::string EncodeFooter(const Footer& footer) {
  std::string bytes;
  bytes.reserve(kFooterBytes);
  PutFixed64(&bytes, footer.meta_index.offset);
  PutFixed64(&bytes, footer.meta_index.size);
  PutFixed64(&bytes, footer.index.offset);
  PutFixed64(&bytes, footer.index.size);
  bytes.append(reinterpret_cast<const char*>(footer.table_id.data()), footer.table_id.size());
  PutFixed64(&bytes, footer.required_features);
  PutFixed64(&bytes, footer.optional_features);
  PutFixed16(&bytes, kPrefixArrayFormat);  // data blocks
  PutFixed16(&bytes, kPrefixArrayFormat);  // index
  PutFixed32(&bytes, kTableFormatVersion);
  PutFixed64(&bytes, footer.file_size);
  bytes.resize(kMagicOffset);
  bytes.append(kMagic);
  StoreLittle(bytes.data() + kChecksumOffset, FooterChecksum(bytes));
  return bytes;
}

absl::StatusOr<Footer> DecodeFooter(std::string_view bytes, uint64_t file_size, std::string_view path) {
  const auto damaged = [&](std::string_view what) {
    return absl::DataLossError(
        Concat(path, ": table footer at offset ", file_size - std::min<uint64_t>(file_size, kFooterBytes), ": ", what));
  };
  const auto newer = [&](std::string_view what, uint64_t value) {
    return absl::UnimplementedError(Concat(path, ": written by a newer version: ", what, " ", value));
  };
  if (bytes.size() != kFooterBytes || file_size < kFooterBytes) return damaged("file too short");
  if (bytes.substr(kMagicOffset) != kMagic) return damaged("no magic: not a table, or cut short");
  if (LoadLittle<uint64_t>(bytes.data() + kChecksumOffset) != FooterChecksum(bytes)) return damaged("checksum mismatch");
  const auto at = [&](size_t offset) { return LoadLittle<uint64_t>(bytes.data() + offset); };
  const uint16_t block_format = LoadLittle<uint16_t>(bytes.data() + 64);
  const uint16_t index_format = LoadLittle<uint16_t>(bytes.data() + 66);
  const uint32_t version = LoadLittle<uint32_t>(bytes.data() + 68);
  Footer footer;
  footer.meta_index = {at(0), at(8)};
  footer.index = {at(16), at(24)};
  std::copy_n(bytes.data() + 32, footer.table_id.size(), reinterpret_cast<char*>(footer.table_id.data()));
  footer.required_features = at(48);
  footer.optional_features = at(56);
  footer.file_size = at(72);
  if (version > kTableFormatVersion) return newer("table format version", version);
  if (const uint64_t unknown = footer.required_features & ~kKnownRequiredTableFeatures; unknown != 0) {
    return newer("required table features", unknown);
  }
  if (block_format > kPrefixArrayFormat) return newer("data block format", block_format);
  if (index_format > kPrefixArrayFormat) return newer("index format", index_format);
  if (version == 0 || block_format == 0 || index_format == 0) return damaged("format number 0");
  if (footer.file_size != file_size) return damaged(Concat("made for a file of ", footer.file_size, " bytes, not ", file_size));
  const std::string_view reserved = bytes.substr(kReservedOffset, kChecksumOffset - kReservedOffset);
  if (reserved.find_first_not_of('\0') != std::string_view::npos) return damaged("reserved bytes are not zero");
  const uint64_t end = file_size - kFooterBytes;
  if (!HandleFits(footer.meta_index, end)) return damaged("meta index lies outside the file");
  if (!HandleFits(footer.index, end)) return damaged("index lies outside the file");
  return footer;
}

std::string EncodeMetaIndex(const std::vector<MetaBlock>& blocks) {
  std::string bytes;
  PutVarint32(&bytes, static_cast<uint32_t>(blocks.size()));
  for (const MetaBlock& block : blocks) {
    PutVarint32(&bytes, block.type);
    PutVarint32(&bytes, block.flags);
    PutLengthPrefixed(&bytes, block.name);
    EncodeBlockHandle(block.handle, &bytes);
  }
  return bytes;
}

absl::StatusOr<std::vector<MetaBlock>> DecodeMetaIndex(std::string_view bytes) {
  Reader reader(bytes);
  uint32_t count = 0;
  if (!reader.Varint32(&count)) return absl::DataLossError("meta index: no count");
  std::vector<MetaBlock> blocks;  // not reserved: `count` is not proven
  for (uint32_t i = 0; i < count; ++i) {
    MetaBlock block;
    std::string_view name;
    if (!reader.Varint32(&block.type) || !reader.Varint32(&block.flags) || !reader.LengthPrefixed(&name) ||
        !DecodeBlockHandle(&reader, &block.handle)) {
      return absl::DataLossError(Concat("meta index: entry ", i));
    }
    block.name = name;
    const bool known = (block.type == static_cast<uint32_t>(MetaBlockType::kProperties) ||
                        block.type == static_cast<uint32_t>(MetaBlockType::kKeyFilter) ||
                        block.type == static_cast<uint32_t>(MetaBlockType::kPrefixFilter)) &&
                       name.empty();
    if (!known && (block.flags & kMetaBlockRequired) != 0) {
      return absl::UnimplementedError(
          Concat("written by a newer version: required meta block of type ", block.type, " named '", name, "'"));
    }
    for (const MetaBlock& other : blocks) {
      if (known && other.type == block.type && other.name.empty())
        return absl::DataLossError(Concat("meta index: two of type ", block.type));
    }
    blocks.push_back(std::move(block));
  }
  if (!reader.empty()) return absl::DataLossError("meta index: bytes behind the last entry");
  return blocks;
}

}  // namespace tamis::internal
