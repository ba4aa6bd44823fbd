// Stored blocks (table_format.h) to and from files: place, trailer, checksum, compression.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/aligned_buffer.h"
#include "base/checksum.h"
#include "table/table_format.h"
#include "tamis/file_system.h"
#include "tamis/table_options.h"

namespace tamis::internal {

// Where the blocks of a table are read from.
struct BlockSource {
  const RandomAccessFile* file;
  Id128 table_id;
  uint64_t end;  // blocks, trailers included, lie below this offset
};

// Whether the block and its trailer lie below `end`.
inline bool HandleFits(const BlockHandle& handle, uint64_t end) {
  return handle.offset <= end && end - handle.offset >= kBlockTrailerBytes && handle.size <= end - handle.offset - kBlockTrailerBytes;
}

// Bytes of a block as they were before compression.
struct BlockBytes {
  AlignedBuffer buffer;
  size_t size = 0;  // of the block; the buffer may be longer
  std::string_view view() const { return buffer.view().substr(0, size); }
};

// Reads one block: the handle is checked before anything is allocated, the checksum (if `verify`) before anything is looked at. Errors
// name path and offset.
absl::StatusOr<BlockBytes> ReadBlock(const BlockSource& source, const BlockHandle& handle, bool verify);

// The same into memory of the caller's: `allocate(n)` gives room for n bytes; it is called once or twice, and what an earlier call gave is
// not used any more. Returns the size of the block, which is at the front of the last room.
absl::StatusOr<size_t> ReadBlockInto(const BlockSource& source, const BlockHandle& handle, bool verify,
                                     absl::FunctionRef<char*(size_t)> allocate);

// The same for a block that must be stored raw, without the last copy: buffer = bytes and trailer as in the file.
absl::StatusOr<BlockBytes> ReadRawBlock(const BlockSource& source, const BlockHandle& handle);

// The same for stored bytes, trailer included, that are in memory already: points into `stored`, or into *scratch, which is replaced when
// it is too small.
absl::StatusOr<std::string_view> DecodeStoredBlock(const BlockSource& source, uint64_t offset, std::string_view stored, bool verify,
                                                   AlignedBuffer* scratch);

// `status` with path and offset before its text.
absl::Status AtBlock(const BlockSource& source, uint64_t offset, const absl::Status& status);

// Appends blocks to a new file. Not thread-safe.
class BlockWriter {
 public:
  BlockWriter(AppendFile* file, const Id128& table_id) : file_(file), table_id_(table_id) {}
  absl::StatusOr<BlockHandle> Write(std::string_view bytes, Compression compression);
  // Zeros up to a multiple of `alignment`.
  absl::Status Pad(size_t alignment);
  absl::Status WriteFooter(std::string_view footer);
  uint64_t offset() const { return offset_; }

 private:
  absl::Status Append(std::string_view bytes);

  AppendFile* const file_;
  const Id128 table_id_;
  uint64_t offset_ = 0;
  uint64_t writeback_started_ = 0;  // bytes for which it was asked
  std::string stored_;
};

}  // namespace tamis::internal
