#include "scenarios/fields.hpp"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>

#include "scenarios/limits.hpp"
#include "scenarios/suggest.hpp"

namespace railbreak::scenarios {

namespace {

constexpr std::string_view kDigits = "0123456789";

std::string_view kind_word(YamlNode::Kind kind) {
    switch (kind) {
    case YamlNode::Kind::kNull: return "nothing";
    case YamlNode::Kind::kScalar: return "a single value";
    case YamlNode::Kind::kSequence: return "a list";
    case YamlNode::Kind::kMap: return "a map";
    }
    return "something else";
}

bool is_digits(std::string_view text) {
    return !text.empty() && text.find_first_not_of(kDigits) == std::string_view::npos;
}

} // namespace

Millionths to_millionths(const Rational& fraction) {
    const boost::multiprecision::cpp_int whole = numerator(fraction) * kMillion / denominator(fraction);
    return static_cast<Millionths>(whole);
}

Nanoseconds part_of(Nanoseconds whole, const Rational& fraction) {
    const boost::multiprecision::cpp_int part = numerator(fraction) * whole.count() / denominator(fraction);
    return Nanoseconds(static_cast<std::int64_t>(part));
}

std::string Field::child(std::string_view key) const {
    return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

void FieldReader::complain(const Field& field, std::string_view what, std::string allowed) {
    sink_.add(field.node->at, fmt::format("{}: {}", field.path.empty() ? "the scenario" : field.path, what),
              std::move(allowed));
}

bool FieldReader::check_map(const Field& field, const Section& section) {
    const YamlNode& node = *field.node;
    std::vector<std::string_view> names;
    for (const KeySpec& key : section.keys) {
        names.push_back(key.name);
    }
    if (node.kind != YamlNode::Kind::kMap) {
        complain(field, fmt::format("must be a map, but is {}", kind_word(node.kind)),
                 fmt::format("allowed keys: {}", join(names)));
        return false;
    }
    origins_.insert_or_assign(field.path, Origin{node.at, {}});
    const std::string where = field.path.empty() ? "at the top" : "in " + field.path;
    std::set<std::string_view> seen;
    for (const YamlNode& key : node.keys) {
        if (sink_.full()) {
            break;
        }
        if (std::ranges::find(names, key.text) == names.end()) {
            const std::string_view guess = nearest(key.text, names);
            sink_.add(key.at, fmt::format("unknown key {} {}", quote(key.text), where),
                      guess.empty() ? fmt::format("allowed: {}", join(names))
                                    : fmt::format("did you mean \"{}\"? allowed: {}", guess, join(names)));
        } else if (!seen.insert(key.text).second) {
            sink_.add(key.at, fmt::format("key {} stands twice {}", quote(key.text), where), "keep one of them");
        }
    }
    for (const KeySpec& key : section.keys) {
        if (key.required && !seen.contains(key.name)) {
            sink_.add(node.at, fmt::format("key \"{}\" is missing {}", key.name, where),
                      fmt::format("add \"{}: ...\"", key.name));
        }
    }
    return true;
}

std::optional<Field> FieldReader::find(const Field& map, std::string_view key) const {
    const auto found = std::ranges::find(map.node->keys, key, &YamlNode::text);
    if (found == map.node->keys.end()) {
        return std::nullopt;
    }
    const auto index = static_cast<std::size_t>(found - map.node->keys.begin());
    return Field{&map.node->items[index], map.child(key)};
}

std::vector<Field> FieldReader::list(const Field& field, std::size_t least, std::size_t most) {
    const YamlNode& node = *field.node;
    if (node.kind != YamlNode::Kind::kSequence) {
        complain(field, fmt::format("must be a list, but is {}", kind_word(node.kind)),
                 "write [a, b] or one \"- \" line per element");
        return {};
    }
    if (node.items.size() < least || node.items.size() > most) {
        complain(field, fmt::format("has {} elements", node.items.size()),
                 fmt::format("allowed: {} to {} elements", least, most));
        return {};
    }
    origins_.insert_or_assign(field.path, Origin{node.at, {}});
    std::vector<Field> fields;
    for (std::size_t i = 0; i < node.items.size(); ++i) {
        fields.push_back({&node.items[i], fmt::format("{}[{}]", field.path, i)});
    }
    return fields;
}

std::optional<std::string_view> FieldReader::scalar(const Field& field, std::string_view what) {
    const YamlNode& node = *field.node;
    if (node.kind != YamlNode::Kind::kScalar) {
        complain(field,
                 node.kind == YamlNode::Kind::kNull ? "has no value"
                                                    : fmt::format("must be {}, but is {}", what, kind_word(node.kind)),
                 fmt::format("write {}", what));
        return std::nullopt;
    }
    origins_.insert_or_assign(field.path, Origin{node.at, node.text});
    return node.text;
}

std::optional<std::string_view> FieldReader::number_text(const Field& field, std::string_view what) {
    const auto text = scalar(field, what);
    if (text && field.node->quoted) {
        complain(field, fmt::format("{} is text in quotes", quote(*text)),
                 fmt::format("write {} without quotes", what));
        return std::nullopt;
    }
    return text;
}

std::optional<std::string> FieldReader::text(const Field& field) {
    const auto text = scalar(field, "text");
    return text ? std::optional<std::string>(*text) : std::nullopt;
}

std::optional<std::int64_t> FieldReader::integer(const Field& field, std::int64_t min, std::int64_t max) {
    const std::string allowed = fmt::format("allowed: a whole number from {} to {}", min, max);
    const auto text = number_text(field, "a whole number");
    if (!text) {
        return std::nullopt;
    }
    const std::string_view digits = text->starts_with('-') ? text->substr(1) : *text;
    if (!is_digits(digits)) {
        complain(field, fmt::format("{} is not a whole number", quote(*text)), allowed);
        return std::nullopt;
    }
    if (digits.size() > 1 && digits.starts_with('0')) {
        complain(field, fmt::format("{} has a leading zero, which some readers take for octal", quote(*text)), allowed);
        return std::nullopt;
    }
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (error != std::errc() || value < min || value > max) {
        complain(field, fmt::format("{} is out of range", quote(*text)), allowed);
        return std::nullopt;
    }
    return value;
}

template <class Quantity> std::optional<Quantity>
FieldReader::quantity(const Field& field, Result<Quantity> (*parse)(std::string_view), Quantity min, Quantity max) {
    const auto text = scalar(field, "a number with a unit");
    if (!text) {
        return std::nullopt;
    }
    if (text->size() > kMaxNameLength) {
        complain(field, fmt::format("{} is too long", quote(*text)), "write a number with a unit");
        return std::nullopt;
    }
    const Result<Quantity> value = parse(*text);
    if (!value) {
        complain(field, one_line(value.error().message()), value.error().advice());
        return std::nullopt;
    }
    if (*value < min || *value > max) {
        complain(field, fmt::format("{} is out of range", quote(*text)),
                 fmt::format("allowed: {} to {}", railbreak::to_string(min), railbreak::to_string(max)));
        return std::nullopt;
    }
    return *value;
}

std::optional<BitRate> FieldReader::rate(const Field& field, BitRate min, BitRate max) {
    return quantity<BitRate>(field, &parse_bit_rate, min, max);
}

std::optional<ByteCount> FieldReader::byte_count(const Field& field, ByteCount min, ByteCount max) {
    return quantity<ByteCount>(field, &parse_byte_count, min, max);
}

std::optional<Nanoseconds> FieldReader::duration(const Field& field, Nanoseconds min, Nanoseconds max) {
    return quantity<Nanoseconds>(field, &parse_duration, min, max);
}

std::optional<Rational> FieldReader::fraction(const Field& field) {
    const std::string allowed = "allowed: a fraction above 0 and at most 1, like 1/2 or 0.5";
    const auto text = scalar(field, "a fraction");
    if (!text) {
        return std::nullopt;
    }
    const Result<Rational> value = parse_rational(*text);
    if (!value) {
        complain(field, fmt::format("{} is not a fraction", quote(*text)), allowed);
        return std::nullopt;
    }
    if (*value <= 0 || *value > 1) {
        complain(field, fmt::format("{} is out of range", quote(*text)), allowed);
        return std::nullopt;
    }
    return *value;
}

std::optional<Millionths> FieldReader::probability(const Field& field) {
    const std::string allowed = "allowed: 0 to 1 in whole millionths, like 1%, 1/1000 or 0.01";
    const auto text = scalar(field, "a probability");
    if (!text) {
        return std::nullopt;
    }
    const bool percent = text->ends_with('%');
    const Result<Rational> value = parse_rational(text->substr(0, text->size() - (percent ? 1 : 0)));
    if (!value) {
        complain(field, fmt::format("{} is not a probability", quote(*text)), allowed);
        return std::nullopt;
    }
    const Rational millionths = *value * (percent ? kMillion / 100 : kMillion);
    if (millionths < 0 || millionths > kMillion) {
        complain(field, fmt::format("{} is out of range", quote(*text)), allowed);
        return std::nullopt;
    }
    if (denominator(millionths) != 1) {
        complain(field, fmt::format("{} is not a whole number of millionths", quote(*text)), allowed);
        return std::nullopt;
    }
    return static_cast<Millionths>(numerator(millionths));
}

std::optional<double> FieldReader::limit(const Field& field) {
    const std::string allowed =
        fmt::format("allowed: a decimal number from 0 to {} with at most 6 decimals, like 1.05", kMaxLimit);
    const auto text = number_text(field, "a number");
    if (!text) {
        return std::nullopt;
    }
    const std::size_t dot = text->find('.');
    const std::string_view whole = text->substr(0, dot);
    const std::string_view decimals = dot == std::string_view::npos ? "0" : text->substr(dot + 1);
    if (!is_digits(whole) || !is_digits(decimals) || (whole.size() > 1 && whole.starts_with('0'))) {
        complain(field, fmt::format("{} is not a plain decimal number", quote(*text)), allowed);
        return std::nullopt;
    }
    double value = 0.0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (error != std::errc() || value > static_cast<double>(kMaxLimit) || decimals.size() > 6) {
        complain(field, fmt::format("{} is out of range", quote(*text)), allowed);
        return std::nullopt;
    }
    return value;
}

std::optional<std::size_t> FieldReader::choice(const Field& field, std::span<const std::string_view> allowed) {
    const auto text = scalar(field, "a word");
    if (!text) {
        return std::nullopt;
    }
    const auto found = std::ranges::find(allowed, *text);
    if (found == allowed.end()) {
        const std::string_view guess = nearest(*text, allowed);
        complain(field, fmt::format("unknown value {}", quote(*text)),
                 guess.empty() ? fmt::format("allowed: {}", join(allowed))
                               : fmt::format("did you mean \"{}\"? allowed: {}", guess, join(allowed)));
        return std::nullopt;
    }
    return static_cast<std::size_t>(found - allowed.begin());
}

} // namespace railbreak::scenarios
