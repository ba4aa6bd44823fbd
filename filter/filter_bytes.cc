// The memory of a filter.
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "tamis/filter.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace tamis {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kHugePage = size_t{2} << 20;
// From here on huge pages: a dependent probe of 80 MiB costs 290 to 330 ns with them and 370 to 400 ns without, for page walks (shared
// virtual machine, loaded). A last huge page is used when at least half of it is needed.
constexpr size_t kHugeFrom = kHugePage / 2;

}  // namespace

FilterBytes::FilterBytes(size_t size) {
  if (size == 0) return;
  if (size > std::numeric_limits<size_t>::max() - kHugePage) throw std::bad_alloc();
  const bool huge = size >= kHugeFrom;
  // A general allocator returns 16 modulo 64 for large blocks: each probe would touch two lines.
  const size_t alignment = huge ? kHugePage : kLine;
  const size_t huge_bytes = huge ? (size + kHugeFrom) / kHugePage * kHugePage : 0;
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, huge_bytes > size ? huge_bytes : size) != 0) throw std::bad_alloc();
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  // Before the first touch. Advice only: a kernel without huge pages says no, and small pages do.
  if (huge) (void)madvise(memory, huge_bytes, MADV_HUGEPAGE);
#endif
  std::memset(memory, 0, size);
  data_ = static_cast<char*>(memory);
  size_ = size;
}

FilterBytes::FilterBytes(FilterBytes&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

FilterBytes& FilterBytes::operator=(FilterBytes&& other) noexcept {
  if (this != &other) {
    std::free(data_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

FilterBytes::~FilterBytes() { std::free(data_); }

}  // namespace tamis
