// Compression of one stored block: varint64 raw size, then one LZ4 block (table_format.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tamis::internal {

// Replaces *to by the compressed form of `raw` and returns true if that saves at least an eighth of the bytes and is legal (at most
// kMaxCompressibleBytes raw, at most kMaxExpansion); false otherwise, *to is then unspecified.
[[nodiscard]] bool CompressLz4(std::string_view raw, std::string* to);

// The raw size that the compressed form `stored` declares: DataLoss beyond kMaxCompressibleBytes or kMaxExpansion times its size. Ask
// before allocating.
absl::StatusOr<size_t> RawSizeOfLz4(std::string_view stored);

// Decompresses into to[0, raw_size), raw_size being what RawSizeOfLz4 said. DataLoss if that is not exactly what comes out.
absl::Status DecompressLz4(std::string_view stored, char* to, size_t raw_size);

}  // namespace tamis::internal
