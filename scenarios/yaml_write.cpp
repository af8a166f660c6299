#include "scenarios/yaml_write.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace railbreak::scenarios {

namespace {

constexpr std::size_t kShort = 100; ///< longest line in braces
constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./%+- ";

/// Whether a text means itself without quotes, in lines and in braces. Narrower than YAML: what is in doubt is quoted.
bool is_plain(std::string_view text) {
    constexpr std::array<std::string_view, 4> kNothing{"null", "Null", "NULL", "~"};
    return !text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos && !text.starts_with(' ') &&
           !text.ends_with(' ') && !text.starts_with("...") && !text.starts_with("---") && !text.starts_with('%') &&
           text != "-" && !text.starts_with("- ") && std::ranges::find(kNothing, text) == kNothing.end();
}

std::string scalar(const YamlNode& node) {
    if (!node.quoted && is_plain(node.text)) {
        return node.text;
    }
    std::string quoted = "\"";
    for (const char c : node.text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            quoted += '\\';
            quoted += c;
        } else if (byte < 0x20 || byte == 0x7f) {
            quoted += fmt::format("\\x{:02x}", byte);
        } else {
            quoted += c;
        }
    }
    return quoted + "\"";
}

bool is_short(const YamlNode& node) {
    return node.items.empty() || node.kind == YamlNode::Kind::kScalar || flow_yaml(node).size() <= kShort;
}

/// Writes the elements of a map or list, one a line or more, `indent` spaces from the left.
class BlockWriter {
public:
    void write(const YamlNode& node, std::size_t indent) {
        for (std::size_t i = 0; i < node.items.size(); ++i) {
            const YamlNode& item = node.items[i];
            const bool map = node.kind == YamlNode::Kind::kMap;
            // The top level of a scenario and its sections read best in lines; below, one line says it all.
            const bool in_one_line =
                item.kind == YamlNode::Kind::kScalar || item.kind == YamlNode::Kind::kNull ||
                ((indent > 0 || item.kind == YamlNode::Kind::kSequence) && is_short(item) && !has_maps(item)) ||
                item.items.empty();
            out_.append(indent, ' ');
            out_ += map ? scalar(node.keys[i]) + ":" : "-";
            if (in_one_line) {
                out_ += " " + flow_yaml(item) + "\n";
            } else {
                out_ += "\n";
                write(item, indent + 2);
            }
        }
    }
    [[nodiscard]] std::string take() && { return std::move(out_); }

private:
    [[nodiscard]] static bool has_maps(const YamlNode& node) {
        return node.kind == YamlNode::Kind::kSequence &&
               std::ranges::any_of(node.items, [](const YamlNode& item) { return item.kind == YamlNode::Kind::kMap; });
    }

    std::string out_;
};

} // namespace

std::string flow_yaml(const YamlNode& node) {
    switch (node.kind) {
    case YamlNode::Kind::kNull: return "~";
    case YamlNode::Kind::kScalar: return scalar(node);
    case YamlNode::Kind::kSequence:
    case YamlNode::Kind::kMap: break;
    }
    const bool map = node.kind == YamlNode::Kind::kMap;
    std::string text = map ? "{" : "[";
    for (std::size_t i = 0; i < node.items.size(); ++i) {
        text += i > 0 ? ", " : "";
        text += map ? scalar(node.keys[i]) + ": " : "";
        text += flow_yaml(node.items[i]);
    }
    return text + (map ? "}" : "]");
}

std::string write_yaml(const YamlNode& root) {
    if (root.items.empty()) {
        return flow_yaml(root) + "\n";
    }
    BlockWriter writer;
    writer.write(root, 0);
    return std::move(writer).take();
}

} // namespace railbreak::scenarios
