#include "kernels/reduce.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/convert.hpp"

namespace railbreak::kernels {
namespace {

constexpr Dtype kAll[] = {Dtype::kFloat32, Dtype::kFloat64, Dtype::kInt32, Dtype::kBfloat16, Dtype::kFloat16};

/// Random finite elements, subnormals included. No NaN: which NaN comes out of a sum is not fixed by IEEE 754.
std::vector<std::byte> random_elements(std::size_t bytes, Dtype dtype, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<std::byte> out(bytes);
    for (auto& byte : out) {
        byte = static_cast<std::byte>(random());
    }
    const std::size_t size = size_of(dtype);
    for (std::size_t at = 0; dtype != Dtype::kInt32 && at + size <= bytes; at += size) {
        // With one exponent bit cleared no infinity or NaN remains.
        out[at + size - 1] &= std::byte{0xbf};
    }
    return out;
}

TEST(Reduce, EveryVersionGivesTheBytesOfTheScalarReference) {
    for (const Dtype dtype : kAll) {
        const std::size_t size = size_of(dtype);
        for (const std::size_t count : {0U, 1U, 2U, 3U, 7U, 8U, 9U, 15U, 16U, 17U, 31U, 33U, 63U, 65U, 1000U, 4097U}) {
            for (const std::size_t shift_into : {0U, 1U, 2U, 5U}) {
                for (const std::size_t shift_from : {0U, 3U, 4U}) {
                    auto start = random_elements(count * size, dtype, static_cast<std::uint32_t>(count + 1));
                    start.insert(start.begin(), shift_into, std::byte{0x11});
                    start.push_back(std::byte{0x22});
                    auto from = random_elements(count * size, dtype, static_cast<std::uint32_t>(count + 99));
                    from.insert(from.begin(), shift_from, std::byte{0});
                    const auto source = std::span<const std::byte>(from).subspan(shift_from);
                    auto wanted = start;
                    reduce_sum_scalar(std::span(wanted).subspan(shift_into, count * size), source, dtype);
                    for (int level = 0; level <= static_cast<int>(simd_level()); ++level) {
                        auto got = start;
                        reduce_sum_at(static_cast<SimdLevel>(level), std::span(got).subspan(shift_into, count * size),
                                      source, dtype);
                        ASSERT_EQ(got, wanted) << to_string(dtype) << " count " << count << " level " << level;
                    }
                }
            }
        }
    }
}

TEST(Reduce, AddsInEachType) {
    const auto sum = [](auto a, auto b, Dtype dtype) {
        std::vector<std::byte> into(sizeof a);
        std::vector<std::byte> from(sizeof b);
        std::memcpy(into.data(), &a, sizeof a);
        std::memcpy(from.data(), &b, sizeof b);
        reduce_sum(into, from, dtype);
        std::memcpy(&a, into.data(), sizeof a);
        return a;
    };
    EXPECT_EQ(sum(1.5F, 2.25F, Dtype::kFloat32), 3.75F);
    EXPECT_EQ(sum(1.5, -2.25, Dtype::kFloat64), -0.75);
    EXPECT_EQ(sum(std::int32_t{7}, std::int32_t{-9}, Dtype::kInt32), -2);
    EXPECT_EQ(sum(std::numeric_limits<std::int32_t>::max(), std::int32_t{1}, Dtype::kInt32),
              std::numeric_limits<std::int32_t>::min());
    EXPECT_EQ(sum(std::uint16_t{0x3f80}, std::uint16_t{0x4000}, Dtype::kBfloat16), 0x4040); // 1 + 2
    EXPECT_EQ(sum(std::uint16_t{0x4380}, std::uint16_t{0x3f80}, Dtype::kBfloat16), 0x4380); // 256 + 1: tie to even
    EXPECT_EQ(sum(std::uint16_t{0x3c00}, std::uint16_t{0x4000}, Dtype::kFloat16), 0x4200);  // 1 + 2
    EXPECT_EQ(sum(std::uint16_t{0x7bff}, std::uint16_t{0x7bff}, Dtype::kFloat16), 0x7c00);  // overflow: infinity
    EXPECT_EQ(sum(std::uint16_t{0x0001}, std::uint16_t{0x0001}, Dtype::kFloat16), 0x0002);  // subnormal
}

TEST(Convert, EveryFloat16SurvivesTheWayToFloat32AndBack) {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
        const float wide = float16_to_float(static_cast<std::uint16_t>(bits));
        if (std::isnan(wide)) {
            EXPECT_EQ(float_to_float16(wide), bits | 0x200U);
        } else {
            ASSERT_EQ(float_to_float16(wide), bits);
        }
    }
}

TEST(Convert, Float16RoundsToTheNearestNeighbourTiesToEven) {
    for (std::uint32_t bits = 0; bits < 0x7bff; ++bits) {
        const float low = float16_to_float(static_cast<std::uint16_t>(bits));
        const float high = float16_to_float(static_cast<std::uint16_t>(bits + 1));
        const float middle = low + (high - low) / 2;
        ASSERT_EQ(float_to_float16(middle), bits + (bits & 1U));
        ASSERT_EQ(float_to_float16(std::nextafter(middle, low)), bits);
        ASSERT_EQ(float_to_float16(std::nextafter(middle, high)), bits + 1);
    }
}

TEST(Convert, SmallIntegersAreExactInFloat16) {
    for (std::int32_t value = -2048; value <= 2048; ++value) {
        ASSERT_EQ(float16_to_float(small_integer_to_float16(value)), static_cast<float>(value));
    }
}

} // namespace
} // namespace railbreak::kernels
