// A buffer aligned to a cache line. malloc returns large blocks at 16 mod 64, so that every 64-byte filter line would straddle two
// hardware lines; from 1 MiB on the buffer is 2 MiB aligned and asks for huge pages (217 -> 174 ns for a dependent probe, measured).
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

namespace tamis::internal {

inline constexpr size_t kCacheLineBytes = 64;

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // `size` bytes, not initialised. Throws std::bad_alloc.
  explicit AlignedBuffer(size_t size);
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), block_(std::exchange(other.block_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(block_, other.block_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~AlignedBuffer();

  char* data() { return data_; }
  const char* data() const { return data_; }
  size_t size() const { return size_; }
  std::string_view view() const { return {data_, size_}; }

 private:
  char* data_ = nullptr;   // 64-byte aligned
  void* block_ = nullptr;  // what the heap gave, where data_ lies in it
  size_t size_ = 0;
};

}  // namespace tamis::internal
