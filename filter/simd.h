// Which vector instructions this processor has: the choice between forms of one computation that give the same bits.
//
// Thread-safe; the answers never change while a process runs.
#pragma once

#include <cstdint>
#include <string_view>

namespace tamis::internal {

enum class SimdLevel : uint8_t {
  kScalar = 0,  // runs everywhere
  kNeon = 1,    // every arm64
  kAvx2 = 2,
  kAvx512 = 3,  // AVX-512F
};
inline constexpr SimdLevel kSimdLevels[] = {SimdLevel::kScalar, SimdLevel::kNeon, SimdLevel::kAvx2, SimdLevel::kAvx512};

std::string_view SimdLevelName(SimdLevel level);  // "scalar", "neon", "avx2", "avx512"

// Whether processor and operating system (which must save the wide registers) run instructions of `level`.
bool SimdLevelRuns(SimdLevel level);

// The level to use here. Not always the widest that runs: see kAvx512 in simd.cc.
SimdLevel BestSimdLevel();

}  // namespace tamis::internal
