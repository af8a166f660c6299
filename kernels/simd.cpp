#include "kernels/simd.hpp"

namespace railbreak::kernels {

SimdLevel simd_level() {
#if defined(__x86_64__)
    static const SimdLevel level = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("f16c") != 0
                                       ? SimdLevel::kAvx2
                                       : SimdLevel::kBaseline;
    return level;
#else
    return SimdLevel::kBaseline;
#endif
}

std::string_view to_string(SimdLevel level) {
    switch (level) {
    case SimdLevel::kBaseline: return "baseline";
    case SimdLevel::kAvx2: return "avx2";
    }
    return "";
}

} // namespace railbreak::kernels
