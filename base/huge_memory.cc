#include "base/huge_memory.h"

#include <sys/mman.h>

#include <cstdint>

namespace tamis::internal {
namespace {
constexpr size_t kSmallPageBytes = size_t{64} << 10;  // the largest base page of the supported machines (arm64)

size_t RoundUp(size_t size, size_t unit) { return (size + unit - 1) / unit * unit; }
}  // namespace

size_t HugeMapBytes(size_t size) {
  const size_t tail = size % kHugePageBytes;
  return tail >= kHugePageBytes / 2 ? RoundUp(size, kHugePageBytes) : RoundUp(size, kSmallPageBytes);
}

char* MapHuge(size_t size) {
  if (size > SIZE_MAX / 2) return nullptr;
  const size_t wanted = HugeMapBytes(size);
  // mmap aligns to small pages only: take 2 MiB more and give back what lies before and behind.
  void* const raw = ::mmap(nullptr, wanted + kHugePageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(raw);
  const size_t before = (kHugePageBytes - reinterpret_cast<uintptr_t>(begin) % kHugePageBytes) % kHugePageBytes;
  char* const data = begin + before;
  if (before != 0) ::munmap(begin, before);
  if (before != kHugePageBytes) ::munmap(data + wanted, kHugePageBytes - before);
#ifdef MADV_HUGEPAGE
  ::madvise(data, wanted, MADV_HUGEPAGE);  // a hint: without it everything works, only slower
#endif
  return data;
}

void UnmapHuge(char* data, size_t size) { ::munmap(data, HugeMapBytes(size)); }

}  // namespace tamis::internal
