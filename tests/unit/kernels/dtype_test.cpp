#include "kernels/dtype.hpp"

#include <gtest/gtest.h>

namespace railbreak {
namespace {

TEST(Dtype, NamesAndSizesAreThoseOfTheScenarioFormat) {
    const std::pair<const char*, std::uint32_t> expected[] = {
        {"float32", 4}, {"float64", 8}, {"int32", 4}, {"bfloat16", 2}, {"float16", 2}};
    for (const auto& [name, size] : expected) {
        const auto dtype = parse_dtype(name);
        ASSERT_TRUE(dtype.has_value()) << name;
        EXPECT_EQ(to_string(*dtype), name);
        EXPECT_EQ(size_of(*dtype), size);
    }
}

TEST(Dtype, UnknownNamesAreNothing) {
    for (const char* name : {"", "float", "FLOAT32", "float32 ", "int64"}) {
        EXPECT_FALSE(parse_dtype(name).has_value()) << name;
    }
}

} // namespace
} // namespace railbreak
