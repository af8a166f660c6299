// Quantities: what is read, what is refused and with which words, and how they are printed.
#include "base/units.hpp"

#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

using namespace std::chrono_literals;

namespace railbreak {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();

struct RateCase {
    std::string text;
    std::uint64_t bits_per_s;
};

TEST(ParseBitRate, ReadsEveryUnitExactly) {
    const std::vector<RateCase> cases{{"0bit/s", 0},
                                      {"1bit/s", 1},
                                      {"800kbit/s", 800'000},
                                      {"500Mbit/s", 500'000'000},
                                      {"500 Mbit/s", 500'000'000},
                                      {"0500Mbit/s", 500'000'000},
                                      {"1.5Gbit/s", 1'500'000'000},
                                      {"400Gbit/s", 400'000'000'000},
                                      {"1B/s", 8},
                                      {"0.125B/s", 1},
                                      {"3kB/s", 24'000},
                                      {"2MB/s", 16'000'000},
                                      {"12.5GB/s", 100'000'000'000},
                                      {"0.000000001Gbit/s", 1},
                                      {"9223372036854775807bit/s", kMost}};
    for (const RateCase& c : cases) {
        const Result<BitRate> rate = parse_bit_rate(c.text);
        ASSERT_TRUE(rate.has_value()) << c.text << ": " << rate.error().to_line();
        EXPECT_EQ(rate->bits_per_s(), c.bits_per_s) << c.text;
    }
}

TEST(ParseByteCount, ReadsEveryUnitExactly) {
    const std::vector<std::pair<std::string, std::uint64_t>> cases{{"0B", 0},
                                                                   {"1000B", 1000},
                                                                   {"1kB", 1000},
                                                                   {"1MB", 1'000'000},
                                                                   {"1GB", 1'000'000'000},
                                                                   {"1TB", 1'000'000'000'000},
                                                                   {"4KiB", 4096},
                                                                   {"32MiB", 33'554'432},
                                                                   {"1GiB", 1ULL << 30},
                                                                   {"1TiB", 1ULL << 40},
                                                                   {"0.5KiB", 512},
                                                                   {"1.5 MiB", 1'572'864}};
    for (const auto& [text, bytes] : cases) {
        const Result<ByteCount> size = parse_byte_count(text);
        ASSERT_TRUE(size.has_value()) << text << ": " << size.error().to_line();
        EXPECT_EQ(size->bytes(), bytes) << text;
    }
}

TEST(ParseDuration, ReadsEveryUnitExactly) {
    const std::vector<std::pair<std::string, Nanoseconds>> cases{
        {"0s", 0ns},      {"100ns", 100ns}, {"10us", 10us},  {"250ms", 250ms},
        {"1.5s", 1500ms}, {"2min", 120s},   {"0.5min", 30s}, {"1.000000001s", 1'000'000'001ns}};
    for (const auto& [text, duration] : cases) {
        const Result<Nanoseconds> parsed = parse_duration(text);
        ASSERT_TRUE(parsed.has_value()) << text << ": " << parsed.error().to_line();
        EXPECT_EQ(*parsed, duration) << text;
    }
}

struct BadCase {
    std::string text;
    std::string reason;
};

template <class T> void expect_refused(Result<T> (*parse)(std::string_view), const std::vector<BadCase>& cases) {
    for (const BadCase& c : cases) {
        const Result<T> result = parse(c.text);
        ASSERT_FALSE(result.has_value()) << c.text;
        EXPECT_EQ(result.error().kind(), ErrorKind::kInput) << c.text;
        EXPECT_NE(result.error().message().find("\"" + c.text + "\""), std::string::npos) << result.error().message();
        EXPECT_NE(result.error().message().find(c.reason), std::string::npos)
            << "\"" << c.reason << "\" is not in: " << result.error().message();
        EXPECT_NE(result.error().advice().find("units: "), std::string::npos) << c.text;
    }
}

TEST(ParseBitRate, RefusesWhatIsNotARateAndSaysWhy) {
    expect_refused<BitRate>(&parse_bit_rate, {{"", "it is empty"},
                                              {"500", "the unit is missing"},
                                              {"5.", "the unit is missing"},
                                              {"-5Mbit/s", "does not start with a digit"},
                                              {"+5Mbit/s", "does not start with a digit"},
                                              {" 5Mbit/s", "does not start with a digit"},
                                              {"Mbit/s", "does not start with a digit"},
                                              {"1e3bit/s", "unknown unit \"e3bit/s\""},
                                              {"1e3", "unknown unit \"e3\""},
                                              {"0x10bit/s", "unknown unit \"x10bit/s\""},
                                              {"5 Mbit/s ", "unknown unit \"Mbit/s \""},
                                              {"5  Mbit/s", "unknown unit \" Mbit/s\""},
                                              {"5MiB", "unknown unit \"MiB\""},
                                              {"1.2.3Mbit/s", "the number is malformed"},
                                              {"5.Mbit/s", "the number is malformed"},
                                              {"0.5bit/s", "not a whole number of base units"},
                                              {"9223372036854775808bit/s", "it is too large"},
                                              {"99999999999Gbit/s", "it is too large"},
                                              {std::string(1000, '9') + "bit/s", "too many digits"}});
}

TEST(ParseBitRate, SuggestsTheUnitThatWasMeant) {
    expect_refused<BitRate>(&parse_bit_rate, {{"500mbps", "did you mean Mbit/s or MB/s?"},
                                              {"500Mbps", "did you mean Mbit/s?"},
                                              {"500MBps", "did you mean MB/s?"},
                                              {"500Mbit", "did you mean Mbit/s?"},
                                              {"500mbit", "did you mean Mbit/s?"},
                                              {"500mbit/s", "did you mean Mbit/s?"},
                                              {"500Mb/s", "did you mean Mbit/s?"},
                                              {"500mb/s", "did you mean Mbit/s or MB/s?"},
                                              {"1GBIT/S", "did you mean Gbit/s?"},
                                              {"1gbps", "did you mean Gbit/s or GB/s?"}});
}

TEST(ParseByteCount, RefusesWhatIsNotASizeAndSaysWhy) {
    expect_refused<ByteCount>(&parse_byte_count, {{"4096", "the unit is missing"},
                                                  {"-1B", "does not start with a digit"},
                                                  {"0.5B", "not a whole number of base units"},
                                                  {"0.0001KiB", "not a whole number of base units"},
                                                  {"32M", "did you mean MiB?"},
                                                  {"32mb", "did you mean MB?"},
                                                  {"32mib", "did you mean MiB?"},
                                                  {"5Mbit/s", "unknown unit \"Mbit/s\""},
                                                  {"8388608TiB", "it is too large"}});
}

TEST(ParseDuration, RefusesWhatIsNotADurationAndSaysWhy) {
    expect_refused<Nanoseconds>(&parse_duration, {{"250", "the unit is missing"},
                                                  {"-1s", "does not start with a digit"},
                                                  {"0.1ns", "not a whole number of base units"},
                                                  {"5m", "did you mean min?"},
                                                  {"5sec", "did you mean s?"},
                                                  {"5MS", "did you mean ms?"},
                                                  {"5kB", "unknown unit \"kB\""},
                                                  {"9223372037s", "it is too large"}});
}

RC_GTEST_PROP(ParseBitRate, GivesBackAnyWholeNumberOfBits, (std::uint64_t number)) {
    const std::uint64_t bits = number % (kMost + 1);
    const Result<BitRate> rate = parse_bit_rate(std::to_string(bits) + "bit/s");
    RC_ASSERT(rate.has_value());
    RC_ASSERT(rate->bits_per_s() == bits);
}

RC_GTEST_PROP(ParseDuration, NeverCrashesOnAnyText, (const std::string& text)) {
    const Result<Nanoseconds> duration = parse_duration(text);
    RC_ASSERT(duration.has_value() || duration.error().kind() == ErrorKind::kInput);
}

TEST(PrintQuantity, ChoosesThePrefixAndFourDigits) {
    EXPECT_EQ(to_string(BitRate::bits_per_s(0)), "0 bit/s");
    EXPECT_EQ(to_string(BitRate::bits_per_s(999)), "999 bit/s");
    EXPECT_EQ(to_string(BitRate::bits_per_s(500'000'000)), "500 Mbit/s");
    EXPECT_EQ(to_string(BitRate::bits_per_s(478'123'456)), "478.1 Mbit/s");
    EXPECT_EQ(to_string(BitRate::bits_per_s(400'000'000'000)), "400 Gbit/s");
    EXPECT_EQ(to_string(ByteCount::bytes(0)), "0 B");
    EXPECT_EQ(to_string(ByteCount::bytes(1023)), "1023 B");
    EXPECT_EQ(to_string(ByteCount::bytes(33'554'432)), "32 MiB");
    EXPECT_EQ(to_string(ByteCount::bytes(1'289'749)), "1.23 MiB");
    EXPECT_EQ(to_string(45us), "45 us");
    EXPECT_EQ(to_string(Nanoseconds(12'300'000)), "12.3 ms");
    EXPECT_EQ(to_string(Nanoseconds(1'234'000'000)), "1.234 s");
    EXPECT_EQ(to_string(Nanoseconds(-1'500'000)), "-1.5 ms");
}

TEST(PrintQuantity, RoundsIntoTheNextPrefix) {
    EXPECT_EQ(to_string(Nanoseconds(999'999)), "1 ms");
    EXPECT_EQ(to_string(BitRate::bits_per_s(999'999'999)), "1 Gbit/s");
    EXPECT_EQ(to_string(ByteCount::bytes((1ULL << 20) - 1)), "1 MiB");
}

TEST(PrintQuantity, NeverUsesAnExponent) {
    EXPECT_EQ(to_string(BitRate::bits_per_s(12'345'000'000'000)), "12345 Gbit/s");
    EXPECT_EQ(to_string(Nanoseconds(86'400s)), "86400 s");
    EXPECT_EQ(to_string(ByteCount::bytes(20'000ULL << 40)), "20000 TiB");
}

TEST(BitRate, GivesWholeBytesPerSecondRoundedDown) {
    EXPECT_EQ(BitRate::bits_per_s(15).bytes_per_s(), 1U);
    EXPECT_EQ(BitRate::bits_per_s(400'000'000'000).bytes_per_s(), 50'000'000'000U);
}

} // namespace
} // namespace railbreak
