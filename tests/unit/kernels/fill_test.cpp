#include "kernels/fill.hpp"

#include <cmath>
#include <cstring>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/convert.hpp"

namespace railbreak::kernels {
namespace {

constexpr Dtype kAll[] = {Dtype::kFloat32, Dtype::kFloat64, Dtype::kInt32, Dtype::kBfloat16, Dtype::kFloat16};

double element(const std::vector<std::byte>& bytes, std::size_t index, Dtype dtype) {
    const std::byte* at = bytes.data() + index * size_of(dtype);
    const auto load = [&](auto value) {
        std::memcpy(&value, at, sizeof value);
        return value;
    };
    switch (dtype) {
    case Dtype::kFloat32: return static_cast<double>(load(0.0F));
    case Dtype::kFloat64: return load(0.0);
    case Dtype::kInt32: return load(std::int32_t{});
    case Dtype::kBfloat16: return static_cast<double>(bfloat16_to_float(load(std::uint16_t{})));
    case Dtype::kFloat16: return static_cast<double>(float16_to_float(load(std::uint16_t{})));
    }
    return NAN;
}

std::vector<std::byte> filled(Dtype dtype, std::size_t elements, std::uint64_t seed, std::int32_t rank,
                              std::int32_t ranks) {
    std::vector<std::byte> bytes(elements * size_of(dtype));
    EXPECT_TRUE(fill(bytes, dtype, seed, rank, ranks).has_value());
    return bytes;
}

TEST(Fill, ValuesAreNonZeroIntegersWithinTheLimit) {
    for (const Dtype dtype : kAll) {
        for (const std::int32_t ranks : {1, 2, 8, 200}) {
            const auto limit = pattern_limit(dtype, ranks);
            ASSERT_TRUE(limit.has_value());
            const auto bytes = filled(dtype, 5000, 7, ranks - 1, ranks);
            for (std::size_t i = 0; i < 5000; ++i) {
                const double value = element(bytes, i, dtype);
                ASSERT_EQ(value, std::trunc(value));
                ASSERT_GE(std::abs(value), 1.0);
                ASSERT_LE(std::abs(value), *limit);
            }
        }
    }
}

TEST(Fill, EverySumOfTheLimitIsExact) {
    const std::pair<Dtype, double> exact[] = {
        {Dtype::kFloat32, 16777216.0}, {Dtype::kBfloat16, 256.0}, {Dtype::kFloat16, 2048.0}};
    for (const auto& [dtype, most] : exact) {
        for (const std::int32_t ranks : {1, 2, 3, 7, 8, 64, 255, 256}) {
            const auto limit = pattern_limit(dtype, ranks);
            ASSERT_TRUE(limit.has_value());
            EXPECT_LE(static_cast<double>(*limit) * ranks, most);
        }
    }
}

TEST(Fill, TypesThatCannotHoldTheSumAreRefused) {
    EXPECT_TRUE(pattern_limit(Dtype::kBfloat16, 256).has_value());
    EXPECT_EQ(pattern_limit(Dtype::kBfloat16, 257).error().kind(), ErrorKind::kInput);
    EXPECT_TRUE(pattern_limit(Dtype::kFloat16, 2048).has_value());
    EXPECT_EQ(pattern_limit(Dtype::kFloat16, 2049).error().kind(), ErrorKind::kInput);
    EXPECT_TRUE(pattern_limit(Dtype::kFloat32, 1024).has_value());
    EXPECT_EQ(pattern_limit(Dtype::kFloat32, 0).error().kind(), ErrorKind::kInput);
    std::vector<std::byte> bytes(8);
    EXPECT_EQ(fill(bytes, Dtype::kBfloat16, 1, 0, 300).error().kind(), ErrorKind::kInput);
}

TEST(Fill, DependsOnSeedRankAndPositionOnly) {
    for (const Dtype dtype : kAll) {
        std::set<std::vector<std::byte>> different;
        for (const std::uint64_t seed : {0U, 1U}) {
            for (const std::int32_t rank : {0, 1, 2}) {
                different.insert(filled(dtype, 64, seed, rank, 4));
            }
        }
        EXPECT_EQ(different.size(), 6U) << to_string(dtype);
        const auto all = filled(dtype, 1000, 3, 1, 4);
        const auto part = filled(dtype, 77, 3, 1, 4);
        EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin()));
    }
}

} // namespace
} // namespace railbreak::kernels
