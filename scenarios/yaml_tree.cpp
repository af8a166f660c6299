#include "scenarios/yaml_tree.hpp"

#include <algorithm>
#include <exception>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "scenarios/limits.hpp"

namespace railbreak::scenarios {

namespace {

/// Thrown through yaml-cpp by the event handler below, and caught in parse_yaml.
struct Refusal {
    Position at;
    std::string message;
    std::string allowed;
};

/// Turns yaml-cpp's marks (lines and bytes from 0) into positions (lines and characters from 1).
class LineMap {
public:
    explicit LineMap(std::string_view text) : text_(text) {
        for (std::size_t i = 0; i < text.size(); ++i) {
            if (text[i] == '\n') {
                starts_.push_back(i + 1);
            }
        }
    }

    [[nodiscard]] Position position(const YAML::Mark& mark) const {
        if (mark.line < 0 || mark.column < 0) {
            return {};
        }
        const std::size_t line = std::min(static_cast<std::size_t>(mark.line), starts_.size() - 1);
        const std::string_view before = text_.substr(starts_[line], static_cast<std::size_t>(mark.column));
        const auto characters =
            std::ranges::count_if(before, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
        return {mark.line + 1, static_cast<int>(characters) + 1};
    }

private:
    std::string_view text_;
    std::vector<std::size_t> starts_{0};
};

/// Builds the tree from yaml-cpp's events. The open maps and lists stand on a stack; a node that ends is moved into
/// the one below it. In a map nodes come as key, value, key, value. The parser descends once per nested node, and the
/// depth limit here stops it long before its stack could run out.
class TreeBuilder final : public YAML::EventHandler {
public:
    explicit TreeBuilder(const LineMap& lines) : lines_(lines) {}

    [[nodiscard]] int documents() const { return documents_; }
    [[nodiscard]] YamlNode take_root() { return std::move(root_); }

    void OnDocumentStart(const YAML::Mark& mark) override {
        if (++documents_ > 1) {
            throw Refusal{lines_.position(mark), "a second YAML document starts here",
                          "one scenario a file; remove the \"---\" and what follows"};
        }
    }
    void OnDocumentEnd() override {}

    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        begin(mark, "", anchor, YamlNode::Kind::kNull);
        end();
    }

    void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
        throw Refusal{lines_.position(mark), "YAML aliases (*name) are not supported", "write the value out"};
    }

    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  const std::string& value) override {
        YamlNode& node = begin(mark, tag, anchor, YamlNode::Kind::kScalar);
        node.text = value;
        node.quoted = tag == "!";
        end();
    }

    void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value /*style*/) override {
        begin(mark, tag, anchor, YamlNode::Kind::kSequence);
    }
    void OnSequenceEnd() override { end(); }

    void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value /*style*/) override {
        begin(mark, tag, anchor, YamlNode::Kind::kMap);
    }
    void OnMapEnd() override { end(); }

private:
    [[nodiscard]] bool key_is_next() const {
        return !open_.empty() && open_.back().kind == YamlNode::Kind::kMap &&
               open_.back().keys.size() == open_.back().items.size();
    }

    YamlNode& begin(const YAML::Mark& mark, std::string_view tag, YAML::anchor_t anchor, YamlNode::Kind kind) {
        const Position at = lines_.position(mark);
        if (anchor != 0) {
            throw Refusal{at, "YAML anchors (&name) are not supported", "write the value out where it is needed"};
        }
        if (!tag.empty() && tag != "?" && tag != "!") {
            throw Refusal{at, fmt::format("YAML tags are not supported (found {})", quote(tag)), "remove the tag"};
        }
        if (key_is_next() && kind != YamlNode::Kind::kScalar) {
            throw Refusal{at, "a key must be a word, not a list, a map or nothing", "write \"key: value\""};
        }
        if (open_.size() >= kMaxDepth) {
            throw Refusal{at, fmt::format("maps and lists are nested more than {} deep", kMaxDepth),
                          "a scenario needs 4 levels"};
        }
        YamlNode node;
        node.kind = kind;
        node.at = at;
        if (kind == YamlNode::Kind::kNull && !open_.empty() && open_.back().kind == YamlNode::Kind::kMap) {
            node.at = open_.back().keys.back().at; // yaml-cpp places "key:" without a value where the next key stands
        }
        return open_.emplace_back(std::move(node));
    }

    void end() {
        YamlNode node = std::move(open_.back());
        open_.pop_back();
        if (open_.empty()) {
            root_ = std::move(node);
        } else if (key_is_next()) {
            open_.back().keys.push_back(std::move(node));
        } else {
            open_.back().items.push_back(std::move(node));
        }
    }

    const LineMap& lines_;
    int documents_ = 0;
    std::vector<YamlNode> open_;
    YamlNode root_;
};

/// Length of the UTF-8 character at `text[i]`, or 0 if there is none (overlong forms, surrogates and values above
/// U+10FFFF are none; RFC 3629).
std::size_t utf8_length(std::string_view text, std::size_t i) {
    const auto byte = [&](std::size_t k) { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0U; };
    const auto continues = [&](std::size_t k) { return (byte(k) & 0xC0U) == 0x80U; };
    const unsigned first = byte(i);
    const unsigned second = byte(i + 1);
    if (first < 0x80U) {
        return 1;
    }
    if (first >= 0xC2U && first <= 0xDFU) {
        return continues(i + 1) ? 2 : 0;
    }
    if (first >= 0xE0U && first <= 0xEFU) {
        const bool bad = (first == 0xE0U && second < 0xA0U) || (first == 0xEDU && second > 0x9FU);
        return !bad && continues(i + 1) && continues(i + 2) ? 3 : 0;
    }
    if (first >= 0xF0U && first <= 0xF4U) {
        const bool bad = (first == 0xF0U && second < 0x90U) || (first == 0xF4U && second > 0x8FU);
        return !bad && continues(i + 1) && continues(i + 2) && continues(i + 3) ? 4 : 0;
    }
    return 0;
}

} // namespace

tl::expected<void, Diagnostic> check_text(std::string_view text, const std::string& source) {
    const auto bad = [&](Position at, std::string message, std::string allowed) {
        return tl::unexpected<Diagnostic>(Diagnostic{source, at, std::move(message), std::move(allowed)});
    };
    if (text.size() > kMaxFileBytes) {
        return bad({}, fmt::format("the file is larger than {} bytes", kMaxFileBytes),
                   "a scenario is a few kilobytes of text");
    }
    Position at;
    for (std::size_t i = 0; i < text.size();) {
        const std::size_t length = utf8_length(text, i);
        if (length == 0) {
            return bad(at, fmt::format("not UTF-8 (byte 0x{:02x})", static_cast<unsigned char>(text[i])),
                       "save the file as UTF-8");
        }
        const auto byte = static_cast<unsigned char>(text[i]);
        if ((byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t') || byte == 0x7f) {
            return bad(at, fmt::format("control character 0x{:02x}", byte), "a scenario is plain text");
        }
        ++at.column;
        if (byte == '\n') {
            at = {at.line + 1, 1};
        }
        i += length;
    }
    return {};
}

tl::expected<YamlNode, Diagnostic> parse_yaml(const std::string& text, const std::string& source) {
    const auto bad = [&](Position at, std::string message, std::string allowed) {
        return tl::unexpected<Diagnostic>(Diagnostic{source, at, std::move(message), std::move(allowed)});
    };
    const LineMap lines(text);
    TreeBuilder builder(lines);
    try {
        std::istringstream stream(text);
        YAML::Parser parser(stream);
        while (parser.HandleNextDocument(builder)) {
        }
    } catch (const Refusal& refusal) {
        return bad(refusal.at, refusal.message, refusal.allowed);
    } catch (const YAML::Exception& error) {
        return bad(lines.position(error.mark), fmt::format("not valid YAML: {}", one_line(error.msg)),
                   "check indentation, quotes and brackets");
    } catch (const std::exception& error) {
        return bad({}, fmt::format("not valid YAML: {}", one_line(error.what())),
                   "check indentation, quotes and brackets");
    }
    if (builder.documents() == 0) {
        return bad({}, "the file has no content", "start with \"railbreak: 1\"");
    }
    return builder.take_root();
}

} // namespace railbreak::scenarios
