// Builder of kind kBlockedBloom.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tamis/filter.h"

namespace tamis::internal {

class BlockedBloomBuilder final : public FilterBuilder {
 public:
  // `eighths`: bits per key times 8, in range.
  BlockedBloomBuilder(const FilterBuildOptions& options, uint32_t eighths) : options_(options), eighths_(eighths) {}

  void AddHash(uint64_t hash) override {
    if (hash == last_ && keys_ != 0) return;
    if (chunk_used_ == kChunkHashes) NewChunk();
    chunks_.back()[chunk_used_++] = hash;
    last_ = hash;
    ++keys_;
  }
  uint64_t keys() const override { return keys_; }
  absl::Status SetBitsPerKey(double bits_per_key) override;
  absl::StatusOr<FilterBytes> Finish() override;

 private:
  // Chunks, not one vector: growing never copies, and the peak is 8 bytes a key plus one chunk instead of 24 bytes a key. 64 KiB is below
  // the size from which malloc maps and unmaps (128 KiB), so that the pages are reused.
  static constexpr size_t kChunkHashes = size_t{1} << 13;

  void NewChunk();
  void Clear();

  const FilterBuildOptions options_;
  uint32_t eighths_;
  std::vector<std::unique_ptr<uint64_t[]>> chunks_;
  size_t chunk_used_ = kChunkHashes;  // of the last chunk
  uint64_t last_ = 0;
  uint64_t keys_ = 0;
};

// The filter of these hashes, for builders of other kinds that cannot make their own; `options.kind` does not count.
absl::StatusOr<FilterBytes> BlockedBloomOf(const FilterBuildOptions& options, uint32_t eighths, const uint64_t* hashes, uint64_t count);

// Sets the bits of `count` hashes in `lines` lines.
void BlockedBloomInsert(unsigned char* base, uint64_t lines, uint32_t probes, const uint64_t* hashes, size_t count);

}  // namespace tamis::internal
