#include "base/arena.h"

#include <algorithm>
#include <new>

#include "base/huge_memory.h"

namespace tamis::internal {
namespace {

constexpr size_t kLargestSize = SIZE_MAX / 4;  // beyond this no system gives memory; below, the sums here cannot overflow

// What a chunk with `room` bytes is sure to serve: it is left only for a piece of at most `largest` bytes that does not fit, and all
// sizes are multiples of 8, so at most `largest` - 8 bytes of it stay unused.
size_t Sure(size_t room, size_t largest) { return room + 8 > largest ? room + 8 - largest : 0; }

}  // namespace

Arena::~Arena() {
  for (const Chunk& chunk : chunks_) {
    if (chunk.mapped) {
      UnmapHuge(chunk.data, chunk.size);
    } else {
      ::operator delete(chunk.data);
    }
  }
}

bool Arena::Reserve(size_t total, size_t largest) {
  if (total > kLargestSize || largest > kLargestSize) return false;
  largest = std::max((largest + 7) & ~size_t{7}, size_t{8});
  total = (total + 7) & ~size_t{7};
  size_t sure = std::min(Sure(static_cast<size_t>(limit_ - next_), largest), total);
  for (size_t i = fresh_; i < chunks_.size() && sure < total; ++i) sure += Sure(chunks_[i].size, largest);
  return sure >= total || AddChunk(total - sure + largest - 8);
}

char* Arena::AllocateSlow(size_t size) {
  if (size > kLargestSize) throw std::bad_alloc();
  const size_t rounded = (size + 7) & ~size_t{7};
  size_t i = fresh_;
  while (i < chunks_.size() && chunks_[i].size < rounded) ++i;
  if (i == chunks_.size() && !AddChunk(rounded)) throw std::bad_alloc();
  next_ = chunks_[i].data;
  limit_ = next_ + chunks_[i].size;
  fresh_ = i + 1;
  return Take(rounded);
}

bool Arena::AddChunk(size_t least) {
  size_t size = std::max(next_chunk_bytes_, least);
  const bool mapped = size >= kHugePageBytes;
  if (mapped) size = HugeMapBytes(size);
  try {
    if (chunks_.size() == chunks_.capacity()) chunks_.reserve(std::max<size_t>(16, 2 * chunks_.size()));
  } catch (const std::bad_alloc&) {
    return false;
  }
  char* const data = mapped ? MapHuge(size) : static_cast<char*>(::operator new(size, std::nothrow));
  if (data == nullptr) return false;
  chunks_.push_back({data, size, mapped});
  next_chunk_bytes_ = std::min(2 * next_chunk_bytes_, kHugePageBytes);
  footprint_.store(footprint_.load(std::memory_order_relaxed) + size, std::memory_order_relaxed);
  return true;
}

}  // namespace tamis::internal
