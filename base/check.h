// TAMIS_CHECK: a cheap fact that must hold in every build; if it does not, going on could write wrong data, so the process stops.
// TAMIS_DCHECK: a dear one, checked in debug and sanitizer builds only. Neither is for input: bad input gets a status.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace tamis::internal {
[[noreturn]] inline void CheckFailed(const char* file, int line, const char* text) {
  std::fprintf(stderr, "%s:%d: tamis: check failed: %s\n", file, line, text);
  std::abort();
}
}  // namespace tamis::internal

#define TAMIS_CHECK(condition) \
  (__builtin_expect(!!(condition), 1) ? (void)0 : ::tamis::internal::CheckFailed(__FILE__, __LINE__, #condition))
#ifdef NDEBUG
#define TAMIS_DCHECK(condition) ((void)sizeof(!!(condition)))
#else
#define TAMIS_DCHECK(condition) TAMIS_CHECK(condition)
#endif
