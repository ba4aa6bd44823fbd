// FORMAT: the table file. On disk, never renumber. Little-endian.
//
//   data blocks, in key order      filter blocks      properties block      index block      meta index block      footer (128 bytes)
//
//   stored block = bytes, then trailer of 5:
//      0  compression u8 (tamis::Compression)      1  checksum u32: low half of XXH3-64 over the bytes and the compression byte,
//         seeded with (table id, offset of the block in the file)
//     A compressed block is: varint64 raw size, then one LZ4 block. A block of more than 64 MiB raw is stored uncompressed; one that
//     declares more than 64 MiB, or more than 255 times its stored size, is DataLoss.
//     The filter block is stored raw, and padded before so that it begins at a multiple of 64 in the file; its own header carries a
//     full checksum, and its block trailer follows it like any other. A table has at most one over its keys and one over their prefixes.
//     Padding bytes are zero and checked: no byte of the file is uncovered.
//
//   block handle = varint64 offset, varint64 size (of the bytes, without the trailer).
//
//   data block and index block (the "prefix array" form, format id 1; block_builder.h draws it).
//
//   meta index block = varint32 count, then for each: varint32 type, varint32 flags (bit 0: a reader must understand it),
//     length-prefixed name, handle. Types below. An unknown type with bit 0 is Unimplemented, without it is skipped.
//
//   properties block = varint32 count, then for each: varint32 tag (table_properties.h), length-prefixed bytes. Unknown tags are kept
//     and skipped.
//
//   footer, the last 128 bytes:
//      0  meta index offset u64     8  meta index size u64      16  index offset u64    24  index size u64
//     32  table id (16)            48  required features u64    56  optional features u64
//     64  data block format u16 = 1    66  index format u16 = 1    68  format version u32 = 1
//     72  file size u64 (bytes, this footer included)      80  reserved, zero (32)
//    112  XXH3-64 over [0, 112) and [120, 128), seed 0     120  magic "TAMISTBL"
//   An unknown required feature, or a newer version or block format, is Unimplemented naming it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/checksum.h"
#include "base/coding.h"

namespace tamis::internal {

inline constexpr size_t kFooterBytes = 128;
inline constexpr size_t kBlockTrailerBytes = 5;
inline constexpr uint64_t kMaxCompressibleBytes = uint64_t{64} << 20;
inline constexpr uint64_t kMaxExpansion = 255;
inline constexpr uint32_t kTableFormatVersion = 1;
inline constexpr uint64_t kKnownRequiredTableFeatures = 0;

enum class MetaBlockType : uint32_t {
  kProperties = 1,    // name empty
  kKeyFilter = 2,     // whole-key filter; name empty
  kPrefixFilter = 3,  // filter over prefixes, its rule in its header; name empty (other names are left for further rules)
  kRangeDeletes = 4,  // reserved
};

struct BlockHandle {
  uint64_t offset = 0;
  uint64_t size = 0;  // without the trailer
};
void EncodeBlockHandle(const BlockHandle& handle, std::string* to);
[[nodiscard]] bool DecodeBlockHandle(Reader* from, BlockHandle* handle);

struct Footer {
  BlockHandle meta_index;
  BlockHandle index;
  Id128 table_id{};
  uint64_t required_features = 0;
  uint64_t optional_features = 0;
  uint64_t file_size = 0;
};
std::string EncodeFooter(const Footer& footer);
// `bytes`: the last kFooterBytes of a file of `file_size` bytes. `path` is for the text of errors.
absl::StatusOr<Footer> DecodeFooter(std::string_view bytes, uint64_t file_size, std::string_view path);

struct MetaBlock {
  uint32_t type = 0;  // MetaBlockType, or unknown
  uint32_t flags = 0;
  std::string name;
  BlockHandle handle;
};
inline constexpr uint32_t kMetaBlockRequired = 1;  // flag: a reader must understand the block

std::string EncodeMetaIndex(const std::vector<MetaBlock>& blocks);
// Unimplemented for an unknown required block, DataLoss for bytes that are none or a known block named twice. Handles are not checked.
absl::StatusOr<std::vector<MetaBlock>> DecodeMetaIndex(std::string_view bytes);

}  // namespace tamis::internal
