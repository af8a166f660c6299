// Conversions between float32 and the two 16-bit formats, on bit patterns. All round to nearest, ties to even, as the
// hardware does; NaNs stay NaNs (quiet).
#pragma once

#include <bit>
#include <cstdint>

namespace railbreak::kernels {

/// bfloat16 is the upper half of a float32.
[[gnu::always_inline]] inline float bfloat16_to_float(std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

[[gnu::always_inline]] inline std::uint16_t float_to_bfloat16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
    const std::uint32_t quiet_nan = (bits >> 16) | 0x40U;
    return static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? quiet_nan : rounded);
}

/// Exact for every float16, subnormals included: scaling by a power of two moves the exponent's bias.
[[gnu::always_inline]] inline float float16_to_float(std::uint16_t bits) {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
    const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7fffU) << 13;
    if (magnitude >= 0x0f800000U) { // infinity, NaN (made quiet)
        const std::uint32_t quiet = magnitude > 0x0f800000U ? 0x00400000U : 0U;
        return std::bit_cast<float>(sign | 0x7f800000U | quiet | magnitude);
    }
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p112F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(scaled));
}

[[gnu::always_inline]] inline std::uint16_t float_to_float16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 16) & 0x8000U;
    const std::uint32_t magnitude = bits & 0x7fffffffU;
    std::uint32_t half = 0;
    if (magnitude > 0x7f800000U) { // NaN: keep the upper payload bits, make it quiet
        half = 0x7e00U | ((magnitude >> 13) & 0x3ffU);
    } else if (magnitude >= 0x477ff000U) { // rounds to 65536 or more: infinity
        half = 0x7c00U;
    } else if (magnitude < 0x38800000U) { // below 2^-14: adding 0.5 lets the FPU round at float16's last place, 2^-24
        const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
        half = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5F);
    } else {
        half = (magnitude - (112U << 23) + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
    }
    return static_cast<std::uint16_t>(sign | half);
}

/// float16 of an integer of at most 2048 in magnitude, which is exact. Without branches, so that it vectorises.
[[gnu::always_inline]] inline std::uint16_t small_integer_to_float16(std::int32_t value) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    const std::uint32_t sign = (bits >> 16) & 0x8000U;
    const std::uint32_t magnitude = ((bits & 0x7fffffffU) >> 13) - (112U << 10);
    return static_cast<std::uint16_t>(value == 0 ? 0U : (sign | magnitude));
}

} // namespace railbreak::kernels
