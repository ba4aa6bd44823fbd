// Memory straight from the system, aligned to and asking for 2 MiB pages.
#pragma once

#include <cstddef>

namespace tamis::internal {

inline constexpr size_t kHugePageBytes = size_t{2} << 20;

// `size` zero bytes, 2 MiB aligned, or nullptr if memory is short. A huge page is used only where it lies wholly inside, so a tail of
// 1 MiB and more is rounded up to one; the shorter tail stays in small pages. HugeMapBytes is what is really taken.
char* MapHuge(size_t size);
void UnmapHuge(char* data, size_t size);
size_t HugeMapBytes(size_t size);

}  // namespace tamis::internal
