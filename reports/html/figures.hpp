// Numbers as people read them, with their units, the same on every machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace railbreak::reports::html {

/// "261.2 ms": four significant digits.
[[nodiscard]] std::string duration(double nanoseconds);
/// "261 234 567 ns", digits in groups of three.
[[nodiscard]] std::string exact_duration(std::int64_t nanoseconds);
/// The same digits without a unit.
[[nodiscard]] std::string grouped(std::int64_t value);
/// "478.1 Mbit/s"; "not measured" for 0 and less.
[[nodiscard]] std::string rate(std::int64_t bits_per_s);
/// "32 MiB".
[[nodiscard]] std::string size(std::int64_t bytes);
/// "1.078×"; a dash for nothing.
[[nodiscard]] std::string times(const std::optional<double>& ratio);
/// A value divided by `unit`, with `decimals` digits; a dash for nothing.
[[nodiscard]] std::string figure(const std::optional<double>& value, double unit, int decimals);
/// "2026-01-31 12:34:56 UTC".
[[nodiscard]] std::string moment(std::int64_t realtime_ns);
/// A coordinate or a plain number: at most two decimals, no trailing zeros.
[[nodiscard]] std::string plain(double value);
/// "1 iteration", "3 iterations".
[[nodiscard]] std::string counted(std::int64_t count, std::string_view noun);

/// What stands for a value that there is none of.
inline constexpr std::string_view kNone = "\u2013";

} // namespace railbreak::reports::html
