#include "kernels/digest.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include <fmt/format.h>

#define XXH_INLINE_ALL // header-only, so that the binary needs no further library
#include <xxhash.h>

#include "base/check.hpp"
#include "kernels/fill.hpp"
#include "kernels/pattern.hpp"
#include "kernels/simd.hpp"

namespace railbreak::kernels {

namespace {

/// Elements summed at a time: sums and bytes stay in the first-level cache.
constexpr std::size_t kBlock = 2048;

std::string to_hex(const XXH128_hash_t& hash) {
    return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

struct StateFree {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

RB_KERNEL_BODY void add_pattern_body(std::int32_t* sums, std::size_t count, PatternKey key, std::uint32_t position,
                                     std::uint32_t limit) {
    for (std::size_t i = 0; i < count; ++i) {
        sums[i] += pattern_value(key, position + static_cast<std::uint32_t>(i), limit);
    }
}

void add_pattern_baseline(std::int32_t* sums, std::size_t count, PatternKey key, std::uint32_t position,
                          std::uint32_t limit) {
    add_pattern_body(sums, count, key, position, limit);
}

RB_TARGET_AVX2 void add_pattern_avx2(std::int32_t* sums, std::size_t count, PatternKey key, std::uint32_t position,
                                     std::uint32_t limit) {
    add_pattern_body(sums, count, key, position, limit);
}

template <Dtype kType> void store(std::byte* to, const std::int32_t* sums, std::size_t count, std::size_t size) {
    for (std::size_t i = 0; i < count; ++i) {
        store_integer<kType>(to + i * size, sums[i]);
    }
}

void store(Dtype dtype, std::byte* to, const std::int32_t* sums, std::size_t count) {
    switch (dtype) {
    case Dtype::kFloat32: return store<Dtype::kFloat32>(to, sums, count, 4);
    case Dtype::kFloat64: return store<Dtype::kFloat64>(to, sums, count, 8);
    case Dtype::kInt32: return store<Dtype::kInt32>(to, sums, count, 4);
    case Dtype::kBfloat16: return store<Dtype::kBfloat16>(to, sums, count, 2);
    case Dtype::kFloat16: return store<Dtype::kFloat16>(to, sums, count, 2);
    }
}

} // namespace

std::string digest(std::span<const std::byte> bytes) {
    return to_hex(XXH3_128bits(bytes.data(), bytes.size()));
}

Result<std::string> expected_digest(std::uint64_t seed, std::int32_t ranks, std::int64_t elements, Dtype dtype) {
    RB_CHECK(elements >= 0, "a vector cannot have a negative length");
    const Result<std::uint32_t> limit = pattern_limit(dtype, ranks);
    if (!limit) {
        return tl::unexpected<Error>(limit.error());
    }
    const auto add_pattern = simd_level() == SimdLevel::kAvx2 ? add_pattern_avx2 : add_pattern_baseline;
    const std::unique_ptr<XXH3_state_t, StateFree> state(XXH3_createState());
    RB_CHECK(state != nullptr && XXH3_128bits_reset(state.get()) == XXH_OK, "no memory for a hash state");
    std::array<std::int32_t, kBlock> sums{};
    std::array<std::byte, kBlock * 8> bytes{};
    std::vector<PatternKey> keys(static_cast<std::size_t>(ranks));
    for (std::int64_t start = 0; start < elements; start += static_cast<std::int64_t>(kBlock)) {
        if (start % kPatternBlock == 0) {
            for (std::int32_t rank = 0; rank < ranks; ++rank) {
                keys[static_cast<std::size_t>(rank)] = pattern_key(seed, rank, start / kPatternBlock);
            }
        }
        const auto count = static_cast<std::size_t>(std::min<std::int64_t>(elements - start, kBlock));
        sums.fill(0);
        for (const PatternKey key : keys) {
            add_pattern(sums.data(), count, key, static_cast<std::uint32_t>(start % kPatternBlock), *limit);
        }
        store(dtype, bytes.data(), sums.data(), count);
        XXH3_128bits_update(state.get(), bytes.data(), count * size_of(dtype));
    }
    return to_hex(XXH3_128bits_digest(state.get()));
}

} // namespace railbreak::kernels
