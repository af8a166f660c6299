// Was the result right? A digest of what a rank holds, and the digest that it must have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.hpp"
#include "kernels/dtype.hpp"

namespace railbreak::kernels {

/// XXH3 (128 bits) of the bytes, as 32 lower-case hexadecimal digits in canonical (big-endian) order: what
/// `xxhsum -H2` prints.
[[nodiscard]] std::string digest(std::span<const std::byte> bytes);

/// Digest of the sum over all ranks of the pattern that fill() writes, computed from the pattern's definition in
/// integers, block by block: neither a collective nor the reduce kernel takes part. Errors as fill().
[[nodiscard]] Result<std::string> expected_digest(std::uint64_t seed, std::int32_t ranks, std::int64_t elements,
                                                  Dtype dtype);

} // namespace railbreak::kernels
