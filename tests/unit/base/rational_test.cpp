// Exact numbers.
#include "base/rational.hpp"

#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace railbreak {
namespace {

TEST(ParseRational, ReadsWholeNumbersDecimalsAndFractionsExactly) {
    EXPECT_EQ(parse_rational("0").value(), Rational(0));
    EXPECT_EQ(parse_rational("2").value(), Rational(2));
    EXPECT_EQ(parse_rational("8/7").value(), Rational(8, 7));
    EXPECT_EQ(parse_rational("16/14").value(), Rational(8, 7));
    EXPECT_EQ(parse_rational("1.25").value(), Rational(5, 4));
    EXPECT_EQ(parse_rational("0.1").value(), Rational(1, 10));
    EXPECT_EQ(parse_rational("010").value(), Rational(10)); // decimal, not octal
    EXPECT_EQ(parse_rational("1.010").value(), Rational(101, 100));
    EXPECT_EQ(parse_rational("0/5").value(), Rational(0));
}

TEST(ParseRational, RefusesEverythingElse) {
    for (const std::string text : {"", ".", "/", "1/0", "1/00", "-1", "+1", "1.", ".5", "1/2/3", "1.5/2", "1,5", "1e3",
                                   "0x10", " 1", "1 ", "inf", "nan", "8 / 7"}) {
        const Result<Rational> result = parse_rational(text);
        ASSERT_FALSE(result.has_value()) << text;
        EXPECT_EQ(result.error().kind(), ErrorKind::kInput);
        EXPECT_EQ(result.error().message(), "\"" + text + "\" is not a number");
        EXPECT_FALSE(result.error().advice().empty());
    }
}

TEST(ParseRational, RefusesMoreThanFortyDigits) {
    EXPECT_TRUE(parse_rational(std::string(40, '9')).has_value());
    EXPECT_FALSE(parse_rational(std::string(41, '9')).has_value());
    EXPECT_FALSE(parse_rational("1/" + std::string(41, '9')).has_value());
    EXPECT_FALSE(parse_rational("0." + std::string(41, '9')).has_value());
}

RC_GTEST_PROP(ParseRational, ReadsAnyFractionInLowestTerms, (std::uint32_t above, std::uint32_t below)) {
    RC_PRE(below > 0U);
    const Result<Rational> result = parse_rational(std::to_string(above) + "/" + std::to_string(below));
    RC_ASSERT(result.has_value());
    RC_ASSERT(*result * below == Rational(above));
}

TEST(ToDouble, GivesTheNearestDouble) {
    EXPECT_EQ(to_double(Rational(1, 3)), 1.0 / 3.0);
    EXPECT_EQ(to_double(Rational(8, 7)), 8.0 / 7.0);
    EXPECT_EQ(to_double(Rational(0)), 0.0);
}

} // namespace
} // namespace railbreak
