#include "kernels/simd.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace railbreak::kernels {

#if defined(__x86_64__)
namespace {

/// The builtin does not know "f16c" in every compiler, so the processor is asked (leaf 1, ECX bit 29). That the kernel
/// saves the wide registers, which f16c needs too, the builtin's answer for AVX2 has made sure of.
bool has_f16c() {
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

} // namespace
#endif

SimdLevel simd_level() {
#if defined(__x86_64__)
    static const SimdLevel level =
        __builtin_cpu_supports("avx2") != 0 && has_f16c() ? SimdLevel::kAvx2 : SimdLevel::kBaseline;
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
