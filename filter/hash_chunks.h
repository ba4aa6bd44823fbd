// The hashes that a builder has collected, and the builder that does nothing but collect them until Finish.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "filter/filter_format.h"
#include "tamis/filter.h"

namespace tamis::internal {

// Chunks, not one vector: growing never copies, and the peak is the hashes plus one chunk instead of three times the hashes. 64 KiB is
// below the size from which malloc maps and unmaps (128 KiB), so that the pages are reused.
template <typename Hash>
class HashChunks {
 public:
  static constexpr size_t kChunkHashes = (size_t{1} << 16) / sizeof(Hash);

  // A hash equal to the one before is left out.
  void Add(const Hash& hash) {
    if (size_ != 0 && hash == last_) return;
    if (used_ == kChunkHashes) {
      chunks_.push_back(std::make_unique_for_overwrite<Hash[]>(kChunkHashes));
      used_ = 0;
    }
    chunks_.back()[used_++] = hash;
    last_ = hash;
    ++size_;
  }

  uint64_t size() const { return size_; }

  // use(first, count) for each chunk.
  template <typename Use>
  void ForEachChunk(const Use& use) const {
    for (size_t i = 0; i < chunks_.size(); ++i) use(chunks_[i].get(), i + 1 == chunks_.size() ? used_ : kChunkHashes);
  }

  // Copies all to `out`, freeing each chunk after it, and is empty afterwards.
  void MoveTo(Hash* out) {
    for (size_t i = 0; i < chunks_.size(); ++i) {
      out = std::copy_n(chunks_[i].get(), i + 1 == chunks_.size() ? used_ : kChunkHashes, out);
      chunks_[i].reset();
    }
    *this = HashChunks();
  }

 private:
  std::vector<std::unique_ptr<Hash[]>> chunks_;
  size_t used_ = kChunkHashes;  // of the last chunk
  Hash last_{};
  uint64_t size_ = 0;
};

// How far ahead of its turn a line is loaded while bits are set (measured for the blocked kind, blocked_bloom.cc).
inline constexpr size_t kInsertAhead = 16;

class CollectingBuilder : public FilterBuilder {
 public:
  CollectingBuilder(const FilterBuildOptions& options, uint32_t eighths) : options_(options), eighths_(eighths) {}

  void AddHash(uint64_t hash) override { hashes_.Add(hash); }
  uint64_t keys() const override { return hashes_.size(); }
  absl::Status SetBitsPerKey(double bits_per_key) override {
    absl::StatusOr<uint32_t> eighths = BitsPerKeyEighths(options_.kind, bits_per_key);
    if (!eighths.ok()) return eighths.status();
    eighths_ = *eighths;
    return absl::OkStatus();
  }

 protected:
  const FilterBuildOptions options_;
  uint32_t eighths_;  // bits per key times 8, in range
  HashChunks<uint64_t> hashes_;
};

}  // namespace tamis::internal
