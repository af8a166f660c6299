#include "kernels/reduce.hpp"

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/check.hpp"
#include "kernels/convert.hpp"

namespace railbreak::kernels {

namespace {

struct AddFloat32 {
    using Element = float;
    static float apply(float a, float b) { return a + b; }
};
struct AddFloat64 {
    using Element = double;
    static double apply(double a, double b) { return a + b; }
};
struct AddInt32 {
    using Element = std::uint32_t; // unsigned: overflow wraps instead of being undefined
    static std::uint32_t apply(std::uint32_t a, std::uint32_t b) { return a + b; }
};
struct AddBfloat16 {
    using Element = std::uint16_t;
    [[gnu::always_inline]] static std::uint16_t apply(std::uint16_t a, std::uint16_t b) {
        return float_to_bfloat16(bfloat16_to_float(a) + bfloat16_to_float(b));
    }
};
struct AddFloat16 {
    using Element = std::uint16_t;
    [[gnu::always_inline]] static std::uint16_t apply(std::uint16_t a, std::uint16_t b) {
        return float_to_float16(float16_to_float(a) + float16_to_float(b));
    }
};

/// Loads and stores through memcpy: a slice that starts at any byte is fine, and the vectoriser sees plain accesses.
template <class Add>
RB_KERNEL_BODY void add_body(std::byte* __restrict into, const std::byte* __restrict from, std::size_t count) {
    using Element = typename Add::Element;
    for (std::size_t i = 0; i < count; ++i) {
        Element a;
        Element b;
        std::memcpy(&a, into + i * sizeof(Element), sizeof(Element));
        std::memcpy(&b, from + i * sizeof(Element), sizeof(Element));
        const Element sum = Add::apply(a, b);
        std::memcpy(into + i * sizeof(Element), &sum, sizeof(Element));
    }
}

template <class Add>
[[gnu::optimize("no-tree-vectorize")]] void add_scalar(std::byte* into, const std::byte* from, std::size_t count) {
    add_body<Add>(into, from, count);
}

template <class Add> void add_baseline(std::byte* into, const std::byte* from, std::size_t count) {
    add_body<Add>(into, from, count);
}

template <class Add> RB_TARGET_AVX2 void add_avx2(std::byte* into, const std::byte* from, std::size_t count) {
    add_body<Add>(into, from, count);
}

#if defined(__x86_64__)
/// The conversions of F16C are what makes float16 fast; the compiler does not find them by itself.
template <> RB_TARGET_AVX2 void add_avx2<AddFloat16>(std::byte* into, const std::byte* from, std::size_t count) {
    constexpr std::size_t kWidth = 8;
    std::size_t i = 0;
    for (; i + kWidth <= count; i += kWidth) {
        auto* to = reinterpret_cast<__m128i*>(into + 2 * i);
        const __m256 a = _mm256_cvtph_ps(_mm_loadu_si128(to));
        const __m256 b = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 2 * i)));
        _mm_storeu_si128(to, _mm256_cvtps_ph(_mm256_add_ps(a, b), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
    add_body<AddFloat16>(into + 2 * i, from + 2 * i, count - i);
}
#endif

using AddFunction = void (*)(std::byte*, const std::byte*, std::size_t);

template <class Add> AddFunction pick(SimdLevel level) {
    switch (level) {
    case SimdLevel::kBaseline: return add_baseline<Add>;
    case SimdLevel::kAvx2: return add_avx2<Add>;
    }
    return add_baseline<Add>;
}

AddFunction pick(SimdLevel level, Dtype dtype) {
    switch (dtype) {
    case Dtype::kFloat32: return pick<AddFloat32>(level);
    case Dtype::kFloat64: return pick<AddFloat64>(level);
    case Dtype::kInt32: return pick<AddInt32>(level);
    case Dtype::kBfloat16: return pick<AddBfloat16>(level);
    case Dtype::kFloat16: return pick<AddFloat16>(level);
    }
    return nullptr;
}

AddFunction pick_scalar(Dtype dtype) {
    switch (dtype) {
    case Dtype::kFloat32: return add_scalar<AddFloat32>;
    case Dtype::kFloat64: return add_scalar<AddFloat64>;
    case Dtype::kInt32: return add_scalar<AddInt32>;
    case Dtype::kBfloat16: return add_scalar<AddBfloat16>;
    case Dtype::kFloat16: return add_scalar<AddFloat16>;
    }
    return nullptr;
}

void run(AddFunction add, std::span<std::byte> into, std::span<const std::byte> from, Dtype dtype) {
    RB_CHECK(into.size() == from.size(), "operands of a sum differ in size");
    RB_CHECK(into.size() % size_of(dtype) == 0, "a sum takes whole elements");
    add(into.data(), from.data(), into.size() / size_of(dtype));
}

} // namespace

void reduce_sum(std::span<std::byte> into, std::span<const std::byte> from, Dtype dtype) {
    run(pick(simd_level(), dtype), into, from, dtype);
}

void reduce_sum_at(SimdLevel level, std::span<std::byte> into, std::span<const std::byte> from, Dtype dtype) {
    RB_CHECK(level <= simd_level(), "this processor lacks the instructions asked for");
    run(pick(level, dtype), into, from, dtype);
}

void reduce_sum_scalar(std::span<std::byte> into, std::span<const std::byte> from, Dtype dtype) {
    run(pick_scalar(dtype), into, from, dtype);
}

} // namespace railbreak::kernels
