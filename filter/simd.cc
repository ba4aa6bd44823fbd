#include "filter/simd.h"

namespace tamis::internal {

std::string_view SimdLevelName(SimdLevel level) {
  switch (level) {
    case SimdLevel::kScalar:
      return "scalar";
    case SimdLevel::kNeon:
      return "neon";
    case SimdLevel::kAvx2:
      return "avx2";
    case SimdLevel::kAvx512:
      return "avx512";
  }
  return "unknown";
}

#if defined(__x86_64__)

bool SimdLevelRuns(SimdLevel level) {
  __builtin_cpu_init();  // start-up code may ask before the compiler's own constructor has run
  switch (level) {
    case SimdLevel::kScalar:
      return true;
    case SimdLevel::kNeon:
      return false;
    case SimdLevel::kAvx2:
      return __builtin_cpu_supports("avx2") != 0;
    case SimdLevel::kAvx512:
      return __builtin_cpu_supports("avx512f") != 0;
  }
  return false;
}

SimdLevel BestSimdLevel() {
  // The first servers with AVX-512 (Skylake, Cascade Lake: no VBMI) lower the clock of the whole core for 512-bit multiplications; the
  // gain over AVX2, a few tenths of a nanosecond up to eight probes, does not pay for that. Ice Lake and Zen 4 do not.
  if (SimdLevelRuns(SimdLevel::kAvx512) && __builtin_cpu_supports("avx512vbmi") != 0) return SimdLevel::kAvx512;
  return SimdLevelRuns(SimdLevel::kAvx2) ? SimdLevel::kAvx2 : SimdLevel::kScalar;
}

#elif defined(__aarch64__)

bool SimdLevelRuns(SimdLevel level) { return level == SimdLevel::kScalar || level == SimdLevel::kNeon; }

SimdLevel BestSimdLevel() { return SimdLevel::kNeon; }

#else

bool SimdLevelRuns(SimdLevel level) { return level == SimdLevel::kScalar; }

SimdLevel BestSimdLevel() { return SimdLevel::kScalar; }

#endif

}  // namespace tamis::internal
