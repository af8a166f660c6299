// Quantities that carry their unit in the type. A bare number never stands for a rate, a size or a time.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace railbreak {

/// A data rate in bits per second (line rate or goodput; the variable's name says which). 64 bits: 400 Gbit/s fits.
class BitRate {
public:
    constexpr BitRate() = default;
    [[nodiscard]] static constexpr BitRate bits_per_s(std::uint64_t value) { return BitRate(value); }
    [[nodiscard]] constexpr std::uint64_t bits_per_s() const { return bits_per_s_; }
    /// Whole bytes per second, rounded down: what tc attributes take.
    [[nodiscard]] constexpr std::uint64_t bytes_per_s() const { return bits_per_s_ / 8; }
    constexpr auto operator<=>(const BitRate&) const = default;

private:
    explicit constexpr BitRate(std::uint64_t value) : bits_per_s_(value) {}
    std::uint64_t bits_per_s_ = 0;
};

/// A size in bytes.
class ByteCount {
public:
    constexpr ByteCount() = default;
    [[nodiscard]] static constexpr ByteCount bytes(std::uint64_t value) { return ByteCount(value); }
    [[nodiscard]] constexpr std::uint64_t bytes() const { return bytes_; }
    constexpr auto operator<=>(const ByteCount&) const = default;

private:
    explicit constexpr ByteCount(std::uint64_t value) : bytes_(value) {}
    std::uint64_t bytes_ = 0;
};

/// Reads "500Mbit/s", "1.5Gbit/s", "12.5GB/s", "800kbit/s", "0bit/s" (decimal prefixes; B is bytes). A bare number,
/// an unknown unit, a negative value or overflow is an ErrorKind::kInput error that says what is allowed.
[[nodiscard]] Result<BitRate> parse_bit_rate(std::string_view text);
/// Reads "32MiB", "4KiB", "1GiB", "1000B", "1MB" (binary prefixes with i, decimal without). Must be a whole number of
/// bytes. Errors as above.
[[nodiscard]] Result<ByteCount> parse_byte_count(std::string_view text);
/// Reads "250ms", "1.5s", "10us", "100ns", "2min". Errors as above.
[[nodiscard]] Result<Nanoseconds> parse_duration(std::string_view text);

/// "500 Mbit/s": up to four significant digits, decimal prefix.
[[nodiscard]] std::string to_string(BitRate rate);
/// "32 MiB" when exact in a binary prefix, otherwise bytes with a decimal of the nearest prefix ("1.23 MiB").
[[nodiscard]] std::string to_string(ByteCount size);
/// "12.3 ms", "1.234 s", "45 us": four significant digits.
[[nodiscard]] std::string to_string(Nanoseconds duration);

} // namespace railbreak
