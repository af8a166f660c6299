#include <array>

#include <gtest/gtest.h>

#include "scenarios/suggest.hpp"

namespace railbreak::scenarios {
namespace {

constexpr std::array<std::string_view, 4> kWords{"rate", "hosts", "nics_per_host", "at"};

TEST(Nearest, FindsSlipsOfTheFinger) {
    EXPECT_EQ(nearest("rat", kWords), "rate");
    EXPECT_EQ(nearest("raet", kWords), "rate");
    EXPECT_EQ(nearest("host", kWords), "hosts");
    EXPECT_EQ(nearest("nics_per_hots", kWords), "nics_per_host");
}

TEST(Nearest, SuggestsNothingForOtherWords) {
    EXPECT_EQ(nearest("bandwidth", kWords), "");
    EXPECT_EQ(nearest("", kWords), "");
    EXPECT_EQ(nearest("x", kWords), "");
    EXPECT_EQ(nearest(std::string(1000, 'r'), kWords), "");
}

} // namespace
} // namespace railbreak::scenarios
