#include "base/rational.hpp"

#include <cstdint>

#include <fmt/format.h>

namespace railbreak {

namespace {

using boost::multiprecision::cpp_int;

bool all_digits(std::string_view text) {
    return !text.empty() && text.size() <= 40 && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// cpp_int reads a leading zero as octal, which no user means.
cpp_int decimal(std::string_view digits) {
    const std::size_t first = digits.find_first_not_of('0');
    return first == std::string_view::npos ? cpp_int(0) : cpp_int(std::string(digits.substr(first)));
}

} // namespace

Result<Rational> parse_rational(std::string_view text) {
    const auto bad = [&] {
        return fail(Error(ErrorKind::kInput, fmt::format("\"{}\" is not a number", text))
                        .advise("write a whole number, a decimal like 1.25 or a fraction like 8/7"));
    };
    if (const std::size_t slash = text.find('/'); slash != std::string_view::npos) {
        const std::string_view above = text.substr(0, slash);
        const std::string_view below = text.substr(slash + 1);
        if (!all_digits(above) || !all_digits(below) || decimal(below) == 0) {
            return bad();
        }
        return Rational(decimal(above), decimal(below));
    }
    const std::size_t dot = text.find('.');
    const std::string_view whole = text.substr(0, dot);
    if (dot == std::string_view::npos) {
        return all_digits(whole) ? Result<Rational>(Rational(decimal(whole))) : bad();
    }
    const std::string_view decimals = text.substr(dot + 1);
    if (!all_digits(whole) || !all_digits(decimals)) {
        return bad();
    }
    const cpp_int scale = boost::multiprecision::pow(cpp_int(10), static_cast<unsigned>(decimals.size()));
    return Rational(decimal(whole) * scale + decimal(decimals), scale);
}

double to_double(const Rational& value) {
    constexpr std::int64_t kExact = std::int64_t{1} << 53;
    const cpp_int above = numerator(value);
    const cpp_int below = denominator(value);
    if (above <= kExact && above >= -kExact && below <= kExact) { // one division of exact doubles rounds correctly
        return static_cast<double>(static_cast<std::int64_t>(above)) /
               static_cast<double>(static_cast<std::int64_t>(below));
    }
    return value.convert_to<double>();
}

} // namespace railbreak
