// Gives heap memory that was freed back to the system.
//
// glibc keeps freed small blocks for later use. After a compaction that is the cache's blocks of the tables it replaced and its own working
// memory, all at once: 93 MiB were measured to stay behind where 12 MiB were in use. Elsewhere this does nothing. Costs milliseconds.
#pragma once

#include <cstdlib>  // defines __GLIBC__
#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace tamis::internal {

inline void ReturnFreeMemory() {
#if defined(__GLIBC__)
  ::malloc_trim(0);
#endif
}

}  // namespace tamis::internal
