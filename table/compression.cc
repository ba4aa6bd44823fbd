#include "table/compression.h"

#include <lz4.h>

#include "base/coding.h"
#include "base/status_util.h"
#include "table/table_format.h"

namespace tamis::internal {

static_assert(kMaxCompressibleBytes <= LZ4_MAX_INPUT_SIZE);

bool CompressLz4(std::string_view raw, std::string* to) {
  if (raw.empty() || raw.size() > kMaxCompressibleBytes) return false;
  const uint64_t most = raw.size() - (raw.size() + 7) / 8;  // stored bytes, the size field included
  const size_t header = VarintLength(raw.size());
  if (most <= header) return false;
  to->resize(most);
  EncodeVarint64(to->data(), raw.size());
  // LZ4 gives up, with 0, once its output would pass the room it is given.
  const int written = LZ4_compress_default(raw.data(), to->data() + header, static_cast<int>(raw.size()), static_cast<int>(most - header));
  if (written <= 0) return false;
  to->resize(header + static_cast<size_t>(written));
  return raw.size() <= kMaxExpansion * to->size();
}

absl::StatusOr<size_t> RawSizeOfLz4(std::string_view stored) {
  Reader reader(stored);
  uint64_t raw_size = 0;
  if (!reader.Varint64(&raw_size)) return absl::DataLossError("compressed block without a size");
  if (raw_size > kMaxCompressibleBytes || raw_size > kMaxExpansion * static_cast<uint64_t>(stored.size())) {
    return absl::DataLossError(Concat("a compressed block of ", stored.size(), " bytes declares ", raw_size));
  }
  return static_cast<size_t>(raw_size);
}

absl::Status DecompressLz4(std::string_view stored, char* to, size_t raw_size) {
  Reader reader(stored);
  uint64_t declared = 0;
  // What follows is at most what LZ4 can have made of 64 MiB, unless the block is damaged.
  if (!reader.Varint64(&declared) || declared != raw_size ||
      reader.remaining() > static_cast<size_t>(LZ4_COMPRESSBOUND(kMaxCompressibleBytes))) {
    return absl::DataLossError("compressed block of impossible size");
  }
  const int got = LZ4_decompress_safe(reader.rest().data(), to, static_cast<int>(reader.remaining()), static_cast<int>(raw_size));
  if (got < 0 || static_cast<size_t>(got) != raw_size) return absl::DataLossError("compressed block does not decompress to its size");
  return absl::OkStatus();
}

}  // namespace tamis::internal
