// Exact fractions, for bounds and for schedules whose sizes must not depend on rounding.
#pragma once

#include <string>
#include <string_view>

#include <boost/multiprecision/cpp_int.hpp>

#include "base/error.hpp"

namespace railbreak {

/// An exact rational number of unlimited size.
using Rational = boost::multiprecision::cpp_rational;

/// Reads "8/7", "2" or "1.25" exactly. Error (kInput) on anything else.
[[nodiscard]] Result<Rational> parse_rational(std::string_view text);

/// Nearest double, for output.
[[nodiscard]] double to_double(const Rational& value);

} // namespace railbreak
