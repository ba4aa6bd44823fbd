#include "base/aligned_buffer.h"

#include <cstdint>
#include <new>

#include "base/huge_memory.h"

namespace tamis::internal {
namespace {

// AddressSanitizer sees reads past the end only of memory that came from operator new.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kMapLarge = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool kMapLarge = false;
#else
constexpr bool kMapLarge = true;
#endif
#else
constexpr bool kMapLarge = true;
#endif

bool Mapped(size_t size) { return kMapLarge && size >= kHugePageBytes / 2; }
size_t Alignment(size_t size) { return size >= kHugePageBytes / 2 ? kHugePageBytes : kCacheLineBytes; }

}  // namespace

AlignedBuffer::AlignedBuffer(size_t size) : size_(size) {
  if (size == 0) return;
  if (Mapped(size)) {
    data_ = MapHuge(size);
    if (data_ == nullptr) throw std::bad_alloc();
  } else if (kMapLarge) {
    // Aligned by hand: glibc's aligned allocation cuts and joins chunks at every call, a sixth of the cost of loading a block.
    block_ = ::operator new(size + kCacheLineBytes);
    const uintptr_t at = reinterpret_cast<uintptr_t>(block_);
    data_ = static_cast<char*>(block_) + (kCacheLineBytes - at % kCacheLineBytes) % kCacheLineBytes;
  } else {
    data_ = static_cast<char*>(::operator new(size, std::align_val_t(Alignment(size))));
  }
}

AlignedBuffer::~AlignedBuffer() {
  if (data_ == nullptr) return;
  if (Mapped(size_)) {
    UnmapHuge(data_, size_);
  } else if (block_ != nullptr) {
    ::operator delete(block_);
  } else {
    ::operator delete(data_, std::align_val_t(Alignment(size_)));
  }
}

}  // namespace tamis::internal
