// The test pattern: a small non-zero integer for each (seed, rank, position).
//
// A counter-based hash gives every element on its own, so that any range can be made or checked without the rest. The
// values are integers so small that the sum over all ranks, and over any subset in any order, is exact in the element
// type: then every correct AllReduce gives the same bytes, whatever its order of additions. No value is zero, so a
// contribution that is lost or added twice changes every element it touches.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/convert.hpp"
#include "kernels/dtype.hpp"

namespace railbreak::kernels {

/// What fixes the pattern of one rank within a block of 2^31 positions.
struct PatternKey {
    std::uint32_t first = 0;
    std::uint32_t second = 0;
};

/// Positions that share a key.
inline constexpr std::int64_t kPatternBlock = std::int64_t{1} << 31;

/// Largest magnitude that every integer up to it is exact at, in the given type.
[[nodiscard]] constexpr std::int64_t exact_integer_limit(Dtype dtype) {
    switch (dtype) {
    case Dtype::kFloat32: return std::int64_t{1} << 24;
    case Dtype::kFloat64: return std::int64_t{1} << 53;
    case Dtype::kInt32: return (std::int64_t{1} << 31) - 1;
    case Dtype::kBfloat16: return 256;
    case Dtype::kFloat16: return 2048;
    }
    return 0;
}

/// Key of (seed, rank, number of the block), by the finaliser of SplitMix64.
[[nodiscard]] inline PatternKey pattern_key(std::uint64_t seed, std::int32_t rank, std::int64_t block) {
    std::uint64_t state = seed;
    for (const auto word : {static_cast<std::uint64_t>(rank) + 1, static_cast<std::uint64_t>(block) + 1}) {
        state += word * 0x9e3779b97f4a7c15ULL;
        state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ULL;
        state = (state ^ (state >> 27)) * 0x94d049bb133111ebULL;
        state ^= state >> 31;
    }
    return {static_cast<std::uint32_t>(state), static_cast<std::uint32_t>(state >> 32)};
}

/// The value at a position of the key's block: -limit..-1 or 1..limit, limit < 2^15.
[[gnu::always_inline]] inline std::int32_t pattern_value(PatternKey key, std::uint32_t position, std::uint32_t limit) {
    std::uint32_t hash = position + key.first;
    hash ^= hash >> 16;
    hash *= 0x7feb352dU;
    hash ^= key.second;
    hash ^= hash >> 15;
    hash *= 0x846ca68bU;
    hash ^= hash >> 16;
    const auto magnitude = static_cast<std::int32_t>((((hash >> 16) * limit) >> 16) + 1);
    return (hash & 1U) != 0 ? -magnitude : magnitude;
}

/// Writes an integer within exact_integer_limit(kType) as an element.
template <Dtype kType> [[gnu::always_inline]] inline void store_integer(std::byte* to, std::int32_t value) {
    if constexpr (kType == Dtype::kFloat32) {
        const auto element = static_cast<float>(value);
        std::memcpy(to, &element, sizeof element);
    } else if constexpr (kType == Dtype::kFloat64) {
        const auto element = static_cast<double>(value);
        std::memcpy(to, &element, sizeof element);
    } else if constexpr (kType == Dtype::kInt32) {
        std::memcpy(to, &value, sizeof value);
    } else if constexpr (kType == Dtype::kBfloat16) {
        const auto bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16);
        std::memcpy(to, &bits, sizeof bits);
    } else {
        const std::uint16_t bits = small_integer_to_float16(value);
        std::memcpy(to, &bits, sizeof bits);
    }
}

} // namespace railbreak::kernels
