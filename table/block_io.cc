#include "table/block_io.h"

#include <cstring>
#include <utility>

#include "base/coding.h"
#include "base/status_util.h"
#include "table/compression.h"

namespace tamis::internal {
namespace {

constexpr size_t kStackBytes = 8192;  // stored blocks up to this size are read onto the stack, to allocate only the exact raw size
constexpr uint64_t kWritebackStep = uint64_t{8} << 20;

absl::Status CheckPlace(const BlockSource& source, const BlockHandle& handle) {
  if (HandleFits(handle, source.end)) return absl::OkStatus();
  return AtBlock(source, handle.offset, absl::DataLossError(Concat("block of ", handle.size, " bytes ends behind ", source.end)));
}

// `stored` includes the trailer.
absl::Status CheckChecksum(const BlockSource& source, uint64_t offset, std::string_view stored) {
  const std::string_view covered = stored.substr(0, stored.size() - 4);
  if (LoadLittle<uint32_t>(stored.data() + covered.size()) == Checksum32(covered, ChecksumSeed(source.table_id, offset))) {
    return absl::OkStatus();
  }
  return AtBlock(source, offset, absl::DataLossError("block checksum mismatch"));
}

uint8_t CompressionOf(std::string_view stored) { return static_cast<uint8_t>(stored[stored.size() - kBlockTrailerBytes]); }

// The raw size of a compressed block, or an error for a compression that is not known.
absl::StatusOr<size_t> RawSize(const BlockSource& source, uint64_t offset, std::string_view stored) {
  const uint8_t compression = CompressionOf(stored);
  if (compression != static_cast<uint8_t>(Compression::kLz4)) {
    return AtBlock(source, offset, absl::UnimplementedError(Concat("block compression ", static_cast<uint32_t>(compression))));
  }
  absl::StatusOr<size_t> size = RawSizeOfLz4(stored.substr(0, stored.size() - kBlockTrailerBytes));
  if (!size.ok()) return AtBlock(source, offset, size.status());
  return size;
}

// Writes the block in `stored` to what `allocate` gives.
absl::StatusOr<size_t> Unpack(const BlockSource& source, uint64_t offset, std::string_view stored,
                              absl::FunctionRef<char*(size_t)> allocate) {
  const std::string_view bytes = stored.substr(0, stored.size() - kBlockTrailerBytes);
  if (CompressionOf(stored) == static_cast<uint8_t>(Compression::kNone)) {
    char* const to = allocate(bytes.size());
    if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
    return bytes.size();
  }
  TAMIS_ASSIGN_OR_RETURN(const size_t size, RawSize(source, offset, stored));
  TAMIS_RETURN_IF_ERROR(AtBlock(source, offset, DecompressLz4(bytes, allocate(size), size)));
  return size;
}

}  // namespace

absl::Status AtBlock(const BlockSource& source, uint64_t offset, const absl::Status& status) {
  if (status.ok()) return status;
  return Annotate(status, Concat(source.file->path(), ": block at offset ", offset));
}

absl::StatusOr<size_t> ReadBlockInto(const BlockSource& source, const BlockHandle& handle, bool verify,
                                     absl::FunctionRef<char*(size_t)> allocate) {
  TAMIS_RETURN_IF_ERROR(CheckPlace(source, handle));
  const size_t stored_size = static_cast<size_t>(handle.size) + kBlockTrailerBytes;
  if (stored_size <= kStackBytes) {
    char stored[kStackBytes];
    TAMIS_RETURN_IF_ERROR(source.file->Read(handle.offset, absl::Span<char>(stored, stored_size)));
    if (verify) TAMIS_RETURN_IF_ERROR(CheckChecksum(source, handle.offset, {stored, stored_size}));
    return Unpack(source, handle.offset, {stored, stored_size}, allocate);
  }
  // Large blocks are mostly one value that does not compress: that needs no copy.
  char* const room = allocate(stored_size);
  TAMIS_RETURN_IF_ERROR(source.file->Read(handle.offset, absl::Span<char>(room, stored_size)));
  const std::string_view stored(room, stored_size);
  if (verify) TAMIS_RETURN_IF_ERROR(CheckChecksum(source, handle.offset, stored));
  if (CompressionOf(stored) == static_cast<uint8_t>(Compression::kNone)) return static_cast<size_t>(handle.size);
  const std::string packed(stored);  // the room is given up by the next allocate
  return Unpack(source, handle.offset, packed, allocate);
}

absl::StatusOr<BlockBytes> ReadBlock(const BlockSource& source, const BlockHandle& handle, bool verify) {
  BlockBytes block;
  TAMIS_ASSIGN_OR_RETURN(block.size, ReadBlockInto(source, handle, verify, [&block](size_t size) {
                           block.buffer = AlignedBuffer(size);
                           return block.buffer.data();
                         }));
  return block;
}

absl::StatusOr<BlockBytes> ReadRawBlock(const BlockSource& source, const BlockHandle& handle) {
  TAMIS_RETURN_IF_ERROR(CheckPlace(source, handle));
  BlockBytes block;
  block.size = static_cast<size_t>(handle.size);
  block.buffer = AlignedBuffer(block.size + kBlockTrailerBytes);
  TAMIS_RETURN_IF_ERROR(source.file->Read(handle.offset, absl::Span<char>(block.buffer.data(), block.buffer.size())));
  TAMIS_RETURN_IF_ERROR(CheckChecksum(source, handle.offset, block.buffer.view()));
  if (CompressionOf(block.buffer.view()) != static_cast<uint8_t>(Compression::kNone)) {
    return AtBlock(source, handle.offset, absl::DataLossError("block must be stored uncompressed"));
  }
  return block;
}

absl::StatusOr<std::string_view> DecodeStoredBlock(const BlockSource& source, uint64_t offset, std::string_view stored, bool verify,
                                                   AlignedBuffer* scratch) {
  if (verify) TAMIS_RETURN_IF_ERROR(CheckChecksum(source, offset, stored));
  const std::string_view bytes = stored.substr(0, stored.size() - kBlockTrailerBytes);
  if (CompressionOf(stored) == static_cast<uint8_t>(Compression::kNone)) return bytes;
  TAMIS_ASSIGN_OR_RETURN(const size_t raw_size, RawSize(source, offset, stored));
  if (scratch->size() < raw_size) *scratch = AlignedBuffer(raw_size);
  TAMIS_RETURN_IF_ERROR(AtBlock(source, offset, DecompressLz4(bytes, scratch->data(), raw_size)));
  return scratch->view().substr(0, raw_size);
}

absl::StatusOr<BlockHandle> BlockWriter::Write(std::string_view bytes, Compression compression) {
  Compression used = Compression::kNone;
  if (compression == Compression::kLz4 && CompressLz4(bytes, &stored_)) {
    used = Compression::kLz4;
  } else {
    stored_.assign(bytes);
  }
  const BlockHandle handle{offset_, stored_.size()};
  stored_.push_back(static_cast<char>(used));
  PutFixed32(&stored_, Checksum32(stored_, ChecksumSeed(table_id_, offset_)));
  TAMIS_RETURN_IF_ERROR(Append(stored_));
  return handle;
}

absl::Status BlockWriter::Pad(size_t alignment) {
  const size_t behind = static_cast<size_t>(offset_ % alignment);
  return behind == 0 ? absl::OkStatus() : Append(std::string(alignment - behind, '\0'));
}

absl::Status BlockWriter::WriteFooter(std::string_view footer) { return Append(footer); }

absl::Status BlockWriter::Append(std::string_view bytes) {
  TAMIS_RETURN_IF_ERROR(file_->Append(bytes));
  offset_ += bytes.size();
  if (offset_ - writeback_started_ >= kWritebackStep) {
    file_->StartWriteback();
    writeback_started_ = offset_;
  }
  return absl::OkStatus();
}

}  // namespace tamis::internal
