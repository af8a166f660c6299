#include "reports/escape.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace railbreak::reports {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD"; // U+FFFD

/// A character at the beginning of a text; bytes is 0 where there is no well-formed one.
struct Character {
    std::size_t bytes = 0;
    std::uint32_t code = 0;
};

/// The shape of a sequence by its first byte: how long it is, which bits of the first byte count, and the least code
/// that may be written with so many bytes (a longer form of a smaller one is malformed).
struct Shape {
    unsigned char mask;
    unsigned char lead;
    std::size_t bytes;
    std::uint32_t least;
};
constexpr std::array<Shape, 4> kShapes{
    {{0x80, 0x00, 1, 0}, {0xE0, 0xC0, 2, 0x80}, {0xF0, 0xE0, 3, 0x800}, {0xF8, 0xF0, 4, 0x10000}}};

Character first_of(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const auto* const shape =
        std::find_if(kShapes.begin(), kShapes.end(), [&](const Shape& s) { return (byte(0) & s.mask) == s.lead; });
    if (shape == kShapes.end() || text.size() < shape->bytes) {
        return {};
    }
    std::uint32_t code = byte(0) & static_cast<unsigned char>(~shape->mask);
    for (std::size_t i = 1; i < shape->bytes; ++i) {
        if ((byte(i) & 0xC0) != 0x80) {
            return {};
        }
        code = code << 6 | (byte(i) & 0x3FU);
    }
    const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    return code >= shape->least && code <= 0x10FFFF && !surrogate ? Character{shape->bytes, code} : Character{};
}

bool surprises(std::uint32_t code) {
    const bool control = (code < 0x20 && code != '\t' && code != '\n') || (code >= 0x7F && code <= 0x9F);
    const bool turns = (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
    return control || turns || code == 0xFFFE || code == 0xFFFF;
}

} // namespace

std::string legible(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const Character next = first_of(text);
        const std::size_t bytes = std::max<std::size_t>(next.bytes, 1);
        out += next.bytes == 0 || surprises(next.code) ? kReplacement : text.substr(0, bytes);
        text.remove_prefix(bytes);
    }
    return out;
}

std::string one_line(std::string_view text) {
    std::string out = legible(text);
    std::replace_if(
        out.begin(), out.end(), [](char c) { return c == '\t' || c == '\n'; }, ' ');
    return out;
}

} // namespace railbreak::reports
