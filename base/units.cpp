#include "base/units.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "base/rational.hpp"

namespace railbreak {

namespace {

struct Unit {
    std::string_view name;
    std::uint64_t scale; // in base units
};

constexpr std::array<Unit, 8> kRateUnits{{{"bit/s", 1},
                                          {"kbit/s", 1'000},
                                          {"Mbit/s", 1'000'000},
                                          {"Gbit/s", 1'000'000'000},
                                          {"B/s", 8},
                                          {"kB/s", 8'000},
                                          {"MB/s", 8'000'000},
                                          {"GB/s", 8'000'000'000}}};
constexpr std::array<Unit, 9> kByteUnits{{{"B", 1},
                                          {"kB", 1'000},
                                          {"MB", 1'000'000},
                                          {"GB", 1'000'000'000},
                                          {"TB", 1'000'000'000'000},
                                          {"KiB", 1ULL << 10},
                                          {"MiB", 1ULL << 20},
                                          {"GiB", 1ULL << 30},
                                          {"TiB", 1ULL << 40}}};
constexpr std::array<Unit, 5> kDurationUnits{
    {{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}, {"min", 60'000'000'000}}};

/// A spelling that people write elsewhere, and what they most likely mean here.
struct Alias {
    std::string_view spelling;
    std::string_view unit;
};

constexpr std::array<Alias, 24> kAliases{
    {{"bps", "bit/s"},   {"bit", "bit/s"},   {"b/s", "bit/s"},   {"kbps", "kbit/s"}, {"kbit", "kbit/s"},
     {"kb/s", "kbit/s"}, {"Mbps", "Mbit/s"}, {"Mbit", "Mbit/s"}, {"Mb/s", "Mbit/s"}, {"Gbps", "Gbit/s"},
     {"Gbit", "Gbit/s"}, {"Gb/s", "Gbit/s"}, {"MBps", "MB/s"},   {"GBps", "GB/s"},   {"K", "KiB"},
     {"M", "MiB"},       {"G", "GiB"},       {"T", "TiB"},       {"bytes", "B"},     {"sec", "s"},
     {"seconds", "s"},   {"m", "min"},       {"minutes", "min"}, {"usec", "us"}}};

bool same_letters(std::string_view a, std::string_view b) {
    return std::ranges::equal(a, b,
                              [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

/// " (did you mean Mbit/s or MB/s?)" for units of this table that `wrong` resembles, or nothing. A spelling that
/// matches letter for letter wins over one that differs in case, since case tells bits from bytes.
template <std::size_t N> std::string did_you_mean(std::string_view wrong, const std::array<Unit, N>& units) {
    std::string near;
    const auto add = [&](std::string_view name) {
        const bool ours = std::ranges::any_of(units, [&](const Unit& unit) { return unit.name == name; });
        if (ours && near.find(name) == std::string::npos) {
            near += fmt::format("{}{}", near.empty() ? "" : " or ", name);
        }
    };
    for (const Alias& alias : kAliases) {
        if (alias.spelling == wrong) {
            add(alias.unit);
        }
    }
    if (near.empty()) {
        for (const Alias& alias : kAliases) {
            if (same_letters(alias.spelling, wrong)) {
                add(alias.unit);
            }
        }
        for (const Unit& unit : units) {
            if (same_letters(unit.name, wrong)) {
                add(unit.name);
            }
        }
    }
    return near.empty() ? "" : fmt::format(" (did you mean {}?)", near);
}

template <std::size_t N> std::string names_of(const std::array<Unit, N>& units) {
    std::string names;
    for (const Unit& unit : units) {
        names += fmt::format("{}{}", names.empty() ? "" : ", ", unit.name);
    }
    return names;
}

template <std::size_t N> Result<std::uint64_t> parse_quantity(std::string_view text, std::string_view what,
                                                              std::string_view example,
                                                              const std::array<Unit, N>& units) {
    const auto bad = [&](std::string_view why) {
        return fail(Error(ErrorKind::kInput, fmt::format("\"{}\" is not a {}: {}", text, what, why))
                        .advise(fmt::format("write a number and a unit without a sign, like {} (units: {})", example,
                                            names_of(units))));
    };
    const std::size_t digits_end = text.find_first_not_of("0123456789.");
    if (text.empty() || digits_end == 0) {
        return bad(text.empty() ? "it is empty" : "it does not start with a digit");
    }
    if (digits_end == std::string_view::npos) {
        return bad("the unit is missing");
    }
    std::string_view unit_name = text.substr(digits_end);
    if (unit_name.starts_with(' ')) {
        unit_name.remove_prefix(1);
    }
    std::optional<std::uint64_t> scale;
    for (const Unit& unit : units) {
        if (unit.name == unit_name) {
            scale = unit.scale;
        }
    }
    if (!scale) {
        return bad(fmt::format("unknown unit \"{}\"{}", unit_name, did_you_mean(unit_name, units)));
    }
    if (digits_end > 24) {
        return bad("the number has too many digits");
    }
    const Result<Rational> number = parse_rational(text.substr(0, digits_end));
    if (!number) {
        return bad("the number is malformed");
    }
    const Rational value = *number * *scale;
    if (denominator(value) != 1) {
        return bad("it is not a whole number of base units");
    }
    if (numerator(value) > std::numeric_limits<std::int64_t>::max()) {
        return bad("it is too large");
    }
    return static_cast<std::uint64_t>(numerator(value));
}

/// Four significant digits and the largest unit that keeps the number at 1 or more.
std::string with_prefix(double value, double step, std::initializer_list<std::string_view> units) {
    const auto digits = [](double number) {
        return number < 10'000 ? fmt::format("{:.4g}", number) : fmt::format("{:.0f}", number); // never "1.2e+04"
    };
    const auto* unit = units.begin();
    while (value >= step && unit + 1 != units.end()) {
        value /= step;
        ++unit;
    }
    if (digits(value) == digits(step) && unit + 1 != units.end()) { // 999.99 us is 1 ms after rounding
        value /= step;
        ++unit;
    }
    return fmt::format("{} {}", digits(value), *unit);
}

} // namespace

Result<BitRate> parse_bit_rate(std::string_view text) {
    return parse_quantity(text, "data rate", "500Mbit/s", kRateUnits).map([](std::uint64_t value) {
        return BitRate::bits_per_s(value);
    });
}

Result<ByteCount> parse_byte_count(std::string_view text) {
    return parse_quantity(text, "size", "32MiB", kByteUnits).map([](std::uint64_t value) {
        return ByteCount::bytes(value);
    });
}

Result<Nanoseconds> parse_duration(std::string_view text) {
    return parse_quantity(text, "duration", "250ms", kDurationUnits).map([](std::uint64_t value) {
        return Nanoseconds(static_cast<std::int64_t>(value));
    });
}

std::string to_string(BitRate rate) {
    return with_prefix(static_cast<double>(rate.bits_per_s()), 1000.0, {"bit/s", "kbit/s", "Mbit/s", "Gbit/s"});
}

std::string to_string(ByteCount size) {
    return with_prefix(static_cast<double>(size.bytes()), 1024.0, {"B", "KiB", "MiB", "GiB", "TiB"});
}

std::string to_string(Nanoseconds duration) {
    const double ns = static_cast<double>(duration.count());
    const std::string sign = ns < 0 ? "-" : "";
    return sign + with_prefix(std::fabs(ns), 1000.0, {"ns", "us", "ms", "s"});
}

} // namespace railbreak
