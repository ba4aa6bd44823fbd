// Settings of sorted tables: plain values.
#pragma once

#include <cstdint>

namespace tamis {

// How blocks are stored. On disk, never renumber.
enum class Compression : uint8_t {
  kNone = 0,
  kLz4 = 1,  // block by block, where it saves at least an eighth; raw otherwise
};

struct TableOptions {
  // Target for the raw size of a data block, bytes; 256 to 1 MiB. Larger: smaller index, more bytes read for a point read.
  uint32_t block_bytes = 4096;
  Compression compression = Compression::kLz4;
  // Levels below this number are stored uncompressed (0: all levels are compressed). The upper levels hold a tenth of the data and are
  // rewritten most often; LZ4 costs 125 of the 200 ns per entry and compaction pass.
  uint32_t first_compressed_level = 0;
};

}  // namespace tamis
