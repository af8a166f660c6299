// Input of a collective: a pattern whose sums are exact in every element type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.hpp"
#include "kernels/dtype.hpp"

namespace railbreak::kernels {

/// Largest magnitude of the pattern's values for this many ranks, at least 1. Every sum over any subset of the ranks
/// is then exact. Error (kInput) when there is none: fewer than 1 rank, or more ranks than the type counts exactly
/// (bfloat16: 256, float16: 2048).
[[nodiscard]] Result<std::uint32_t> pattern_limit(Dtype dtype, std::int32_t ranks);

/// Fills the whole vector with rank's values (0 <= rank < ranks). The vector's size must be a multiple of the element
/// size; it needs no alignment. Errors as pattern_limit().
[[nodiscard]] Result<void> fill(std::span<std::byte> vector, Dtype dtype, std::uint64_t seed, std::int32_t rank,
                                std::int32_t ranks);

} // namespace railbreak::kernels
