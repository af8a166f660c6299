#include "kernels/fill.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.hpp"
#include "kernels/pattern.hpp"
#include "kernels/simd.hpp"

namespace railbreak::kernels {

namespace {

/// The multiply-shift that maps a hash to a magnitude takes 15 bits.
constexpr std::int64_t kMaxLimit = 32767;

template <Dtype kType>
RB_KERNEL_BODY void fill_body(std::byte* to, std::uint32_t count, PatternKey key, std::uint32_t limit) {
    constexpr std::size_t kSize = kType == Dtype::kFloat64                                ? 8
                                  : kType == Dtype::kBfloat16 || kType == Dtype::kFloat16 ? 2
                                                                                          : 4;
    for (std::uint32_t i = 0; i < count; ++i) {
        store_integer<kType>(to + i * kSize, pattern_value(key, i, limit));
    }
}

template <Dtype kType> void fill_baseline(std::byte* to, std::uint32_t count, PatternKey key, std::uint32_t limit) {
    fill_body<kType>(to, count, key, limit);
}

template <Dtype kType>
RB_TARGET_AVX2 void fill_avx2(std::byte* to, std::uint32_t count, PatternKey key, std::uint32_t limit) {
    fill_body<kType>(to, count, key, limit);
}

using FillFunction = void (*)(std::byte*, std::uint32_t, PatternKey, std::uint32_t);

template <Dtype kType> FillFunction pick() {
    return simd_level() == SimdLevel::kAvx2 ? fill_avx2<kType> : fill_baseline<kType>;
}

FillFunction pick(Dtype dtype) {
    switch (dtype) {
    case Dtype::kFloat32: return pick<Dtype::kFloat32>();
    case Dtype::kFloat64: return pick<Dtype::kFloat64>();
    case Dtype::kInt32: return pick<Dtype::kInt32>();
    case Dtype::kBfloat16: return pick<Dtype::kBfloat16>();
    case Dtype::kFloat16: return pick<Dtype::kFloat16>();
    }
    return nullptr;
}

} // namespace

Result<std::uint32_t> pattern_limit(Dtype dtype, std::int32_t ranks) {
    if (ranks < 1) {
        return fail(ErrorKind::kInput, fmt::format("a collective needs at least 1 rank, not {}", ranks));
    }
    const std::int64_t exact = exact_integer_limit(dtype);
    if (ranks > exact) {
        return fail(Error(ErrorKind::kInput, fmt::format("{} cannot hold the sum over {} ranks exactly (at most {})",
                                                         to_string(dtype), ranks, exact))
                        .advise("take float32, or fewer ranks"));
    }
    return static_cast<std::uint32_t>(std::min(exact / ranks, kMaxLimit));
}

Result<void> fill(std::span<std::byte> vector, Dtype dtype, std::uint64_t seed, std::int32_t rank, std::int32_t ranks) {
    RB_CHECK(rank >= 0 && rank < ranks, "rank outside the collective");
    RB_CHECK(vector.size() % size_of(dtype) == 0, "a vector must hold whole elements");
    const Result<std::uint32_t> limit = pattern_limit(dtype, ranks);
    if (!limit) {
        return tl::unexpected<Error>(limit.error());
    }
    const FillFunction function = pick(dtype);
    const auto elements = static_cast<std::int64_t>(vector.size() / size_of(dtype));
    for (std::int64_t start = 0, block = 0; start < elements; start += kPatternBlock, ++block) {
        const auto count = static_cast<std::uint32_t>(std::min(elements - start, kPatternBlock));
        function(vector.data() + static_cast<std::size_t>(start) * size_of(dtype), count,
                 pattern_key(seed, rank, block), *limit);
    }
    return {};
}

} // namespace railbreak::kernels
