#include "kernels/digest.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "kernels/fill.hpp"
#include "kernels/reduce.hpp"

namespace railbreak::kernels {
namespace {

constexpr Dtype kAll[] = {Dtype::kFloat32, Dtype::kFloat64, Dtype::kInt32, Dtype::kBfloat16, Dtype::kFloat16};

TEST(Digest, IsTheCanonicalXxh3) {
    EXPECT_EQ(digest({}), "99aa06d3014798d86001c324468d497f"); // published value of XXH3-128 for no input
    const std::vector<std::byte> one(1, std::byte{1});
    EXPECT_EQ(digest(one).size(), 32U);
    EXPECT_NE(digest(one), digest({}));
}

TEST(Digest, ExpectedValueIsThatOfTheSumOfAllRanksInAnyOrder) {
    for (const Dtype dtype : kAll) {
        for (const std::int32_t ranks : {1, 2, 3, 8, 33}) {
            for (const std::int64_t elements : {0, 1, 5, 2047, 2048, 2049, 10001}) {
                const auto bytes = static_cast<std::size_t>(elements) * size_of(dtype);
                for (const bool backwards : {false, true}) {
                    std::vector<std::byte> sum(bytes);
                    std::vector<std::byte> own(bytes);
                    for (std::int32_t step = 0; step < ranks; ++step) {
                        const std::int32_t rank = backwards ? ranks - 1 - step : step;
                        ASSERT_TRUE(fill(own, dtype, 42, rank, ranks).has_value());
                        reduce_sum(sum, own, dtype);
                    }
                    ASSERT_EQ(expected_digest(42, ranks, elements, dtype).value(), digest(sum))
                        << to_string(dtype) << " ranks " << ranks << " elements " << elements;
                }
            }
        }
    }
}

TEST(Digest, OneMissingContributionIsSeen) {
    std::vector<std::byte> sum(4000);
    std::vector<std::byte> own(4000);
    for (std::int32_t rank = 0; rank < 4; ++rank) {
        ASSERT_TRUE(fill(own, Dtype::kFloat32, 1, rank, 4).has_value());
        const std::size_t length = rank == 2 ? 3996 : 4000; // the last element of rank 2 is lost
        reduce_sum(std::span(sum).first(length), std::span(own).first(length), Dtype::kFloat32);
    }
    EXPECT_NE(expected_digest(1, 4, 1000, Dtype::kFloat32).value(), digest(sum));
}

TEST(Digest, ErrorsOfThePatternArePassedOn) {
    EXPECT_EQ(expected_digest(1, 257, 10, Dtype::kBfloat16).error().kind(), ErrorKind::kInput);
}

} // namespace
} // namespace railbreak::kernels
