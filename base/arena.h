// Bump allocation for a memtable: memory is given back only with the whole arena.
//
// One writer allocates; readers only follow pointers that the writer published. Chunks grow from 4 KiB to 2 MiB; chunks of 2 MiB are
// aligned to and ask for huge pages.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tamis::internal {

class Arena {
 public:
  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Makes sure that any sequence of Allocate calls, each for at most `largest` bytes and together (every size rounded up to 8) for at
  // most `total`, succeeds without asking the system for memory. False, with the arena usable as before, if memory is short. This is
  // how a write group gets its memory before its log record is written.
  [[nodiscard]] bool Reserve(size_t total, size_t largest);

  // `size` bytes at 8-byte alignment, from reserved memory if any is left, else from the system (throws std::bad_alloc).
  char* Allocate(size_t size) {
    const size_t rounded = (size + 7) & ~size_t{7};
    if (rounded < size || rounded > static_cast<size_t>(limit_ - next_)) [[unlikely]]
      return AllocateSlow(size);
    return Take(rounded);
  }

  // Bytes handed out, and bytes taken from the system (readable from any thread).
  size_t used() const { return used_.load(std::memory_order_relaxed); }
  size_t footprint() const { return footprint_.load(std::memory_order_relaxed); }

 private:
  struct Chunk {
    char* data;
    size_t size;
    bool mapped;  // by MapHuge rather than operator new
  };

  char* Take(size_t rounded) {
    char* const result = next_;
    next_ += rounded;
    // One writer: a plain addition, without the locked instruction of fetch_add.
    used_.store(used_.load(std::memory_order_relaxed) + rounded, std::memory_order_relaxed);
    return result;
  }
  char* AllocateSlow(size_t size);
  // Appends a chunk with room for `least` bytes (a multiple of 8). False if memory is short.
  bool AddChunk(size_t least);

  std::vector<Chunk> chunks_;  // all; those from fresh_ on are untouched
  size_t fresh_ = 0;           // next_ and limit_ lie in the chunk before this one, if any
  char* next_ = nullptr;
  char* limit_ = nullptr;
  size_t next_chunk_bytes_ = 4096;
  std::atomic<size_t> used_{0};
  std::atomic<size_t> footprint_{0};
};

}  // namespace tamis::internal
