// Elementwise sum, the only arithmetic of AllReduce.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/dtype.hpp"
#include "kernels/simd.hpp"

namespace railbreak::kernels {

/// into[i] += from[i] for every element. Both spans have the same size, a multiple of the element size; they need no
/// alignment and must not overlap. float32, float64: IEEE addition. int32: modulo 2^32. bfloat16, float16: added in
/// float32 and rounded to nearest even, which equals correct rounding of the exact sum for float16.
void reduce_sum(std::span<std::byte> into, std::span<const std::byte> from, Dtype dtype);

/// As reduce_sum(), by the version of one level. The processor must have it (level <= simd_level()).
void reduce_sum_at(SimdLevel level, std::span<std::byte> into, std::span<const std::byte> from, Dtype dtype);

/// As reduce_sum(), element by element and without vector instructions: the reference that the others are tested
/// against.
void reduce_sum_scalar(std::span<std::byte> into, std::span<const std::byte> from, Dtype dtype);

} // namespace railbreak::kernels
