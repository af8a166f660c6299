// Which vector instructions this processor has, found once at run time: one binary serves every host.
#pragma once

#include <cstdint>
#include <string_view>

namespace railbreak::kernels {

/// Instruction sets for which the kernels have a version.
enum class SimdLevel : std::uint8_t {
    kBaseline, ///< what every x86-64 (or other) processor has
    kAvx2,     ///< AVX2 and F16C
};

/// The best level that this processor has.
[[nodiscard]] SimdLevel simd_level();
/// "baseline", "avx2".
[[nodiscard]] std::string_view to_string(SimdLevel level);

} // namespace railbreak::kernels

// Marks a function body that is compiled anew inside each version's wrapper. The body must be inlined, because the
// instruction set is a property of the function that it ends up in.
#define RB_KERNEL_BODY [[gnu::always_inline]] inline
#if defined(__x86_64__)
#define RB_TARGET_AVX2 [[gnu::target("avx2,f16c")]]
#else
#define RB_TARGET_AVX2
#endif
