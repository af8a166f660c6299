#include "reports/html/figures.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/units.hpp"

namespace railbreak::reports::html {

std::string duration(double nanoseconds) {
    std::string text = to_string(Nanoseconds(std::llround(nanoseconds)));
    if (const std::size_t at = text.find(" us"); at != std::string::npos) {
        text.replace(at, 3, " \u00B5s");
    }
    return text;
}

std::string grouped(std::int64_t value) {
    std::string text = std::to_string(value);
    const std::size_t first = value < 0 ? 1 : 0;
    for (std::size_t at = text.size(); at > first + 3;) {
        at -= 3;
        text.insert(at, "\u202F"); // narrow, and no place to break a line
    }
    return text;
}

std::string exact_duration(std::int64_t nanoseconds) {
    return grouped(nanoseconds) + " ns";
}

std::string rate(std::int64_t bits_per_s) {
    return bits_per_s > 0 ? to_string(BitRate::bits_per_s(static_cast<std::uint64_t>(bits_per_s))) : "not measured";
}

std::string size(std::int64_t bytes) {
    return to_string(ByteCount::bytes(static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0))));
}

std::string times(const std::optional<double>& ratio) {
    return ratio ? fmt::format("{:.3f}\u00D7", *ratio) : std::string(kNone);
}

std::string figure(const std::optional<double>& value, double unit, int decimals) {
    return value ? fmt::format("{:.{}f}", *value / unit, decimals) : std::string(kNone);
}

std::string moment(std::int64_t realtime_ns) {
    std::string text = to_iso8601(Nanoseconds(realtime_ns)).substr(0, 19) + " UTC";
    text[10] = ' ';
    return text;
}

std::string plain(double value) {
    std::string text = fmt::format("{:.2f}", value);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') {
        text.pop_back();
    }
    return text == "-0" ? "0" : text;
}

std::string counted(std::int64_t count, std::string_view noun) {
    return fmt::format("{} {}{}", grouped(count), noun, count == 1 ? "" : "s");
}

} // namespace railbreak::reports::html
