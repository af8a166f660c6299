#include "reports/html/element.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

namespace railbreak::reports::html {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Elements of HTML that have no end tag.
constexpr std::array<std::string_view, 5> kVoid{"br", "hr", "img", "input", "meta"};
/// Elements after which a line ends, so that the page can be read and compared as text.
constexpr std::array<std::string_view, 42> kLines{
    "html",    "head",  "body",    "meta",  "title", "style",   "script",   "header",     "main",    "footer",  "nav",
    "section", "div",   "p",       "h1",    "h2",    "h3",      "h4",       "ul",         "li",      "dl",      "dt",
    "dd",      "table", "caption", "thead", "tbody", "tr",      "figure",   "figcaption", "details", "summary", "svg",
    "g",       "rect",  "line",    "path",  "defs",  "pattern", "clipPath", "desc",       "pre"};

template <std::size_t N> bool is_one_of(std::string_view name, const std::array<std::string_view, N>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

/// A character and its length in bytes.
struct Character {
    std::uint32_t code = 0;
    std::size_t length = 0;
};

/// The character at the beginning of `text`; nothing where its bytes are no UTF-8 (overlong forms and surrogates are
/// none).
std::optional<Character> decode(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    if (first < 0x80) {
        return Character{first, 1};
    }
    const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || text.size() < length) {
        return std::nullopt;
    }
    std::uint32_t code = first & (0xFFU >> (length + 1));
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xC0U) != 0x80) {
            return std::nullopt;
        }
        code = code << 6 | (byte(i) & 0x3FU);
    }
    constexpr std::array<std::uint32_t, 5> kSmallest{0, 0, 0x80, 0x800, 0x10000};
    const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    if (code < kSmallest.at(length) || code > 0x10FFFF || surrogate) {
        return std::nullopt;
    }
    return Character{code, length};
}

/// Marks that change the order of the text around them.
bool reorders(std::uint32_t code) {
    return code == 0x61C || (code >= 0x200E && code <= 0x200F) || (code >= 0x202A && code <= 0x202E) ||
           (code >= 0x2066 && code <= 0x2069);
}

void append_clean(const Character& character, std::string_view bytes, std::string& out) {
    const std::uint32_t code = character.code;
    if (code < 0x20 && code != '\n' && code != '\t') {
        out += {'\xE2', '\x90', static_cast<char>(0x80 + code)}; // U+2400 and up
    } else if (code == 0x7F) {
        out += "\xE2\x90\xA1";
    } else if ((code >= 0x80 && code < 0xA0) || (code & 0xFFFEU) == 0xFFFE) {
        out += kReplacement;
    } else if (reorders(code)) {
        out += fmt::format("[U+{:04X}]", code);
    } else {
        out += bytes;
    }
}

void append_escaped(std::string_view text, std::string& out) {
    for (const char c : text) {
        switch (c) {
        case '&': out += "&amp;"; break;
        case '<': out += "&lt;"; break;
        case '>': out += "&gt;"; break;
        case '"': out += "&quot;"; break;
        default: out += c; // not an enum
        }
    }
}

} // namespace

std::string clean(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const std::optional<Character> character = decode(text);
        if (character) {
            append_clean(*character, text.substr(0, character->length), out);
            text.remove_prefix(character->length);
        } else {
            out += kReplacement;
            text.remove_prefix(1);
        }
    }
    return out;
}

Element Element::text(std::string_view content) {
    Element made;
    made.kind_ = Kind::kText;
    made.content_ = clean(content);
    return made;
}

Element Element::verbatim(std::string content) {
    Element made;
    made.kind_ = Kind::kVerbatim;
    made.content_ = std::move(content);
    return made;
}

Element& Element::add(Element child) {
    children_.push_back(std::move(child));
    return *this;
}

Element& Element::set(std::string_view name, std::string value) {
    attributes_.emplace_back(name, std::move(value));
    return *this;
}

void Element::write(std::string& out) const {
    if (kind_ == Kind::kText) {
        append_escaped(content_, out);
        return;
    }
    if (kind_ == Kind::kVerbatim) {
        out += content_;
        return;
    }
    if (!name_.empty()) {
        out.append("<").append(name_);
        for (const auto& [name, value] : attributes_) {
            out.append(" ").append(name).append("=\"");
            append_escaped(clean(value), out);
            out += '"';
        }
        out += is_one_of(name_, kVoid) ? " />" : ">";
    }
    for (const Element& child : children_) {
        child.write(out);
    }
    if (!name_.empty() && !is_one_of(name_, kVoid)) {
        out.append("</").append(name_).append(">");
    }
    if (is_one_of(name_, kLines)) {
        out += '\n';
    }
}

} // namespace railbreak::reports::html
