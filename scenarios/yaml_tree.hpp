// A YAML document as a plain tree of texts with positions. Nothing is guessed: `no`, `010` and `1e3` stay the texts
// that they are, and the reader of each field decides. What a scenario has no use for is refused here: anchors,
// aliases, tags, several documents, keys that are not texts, and nesting deeper than kMaxDepth.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/diagnostic.hpp"

namespace railbreak::scenarios {

/// One node. A map keeps its keys in `keys` and their values, in the same order, in `items`; duplicates are kept.
struct YamlNode {
    enum class Kind : std::uint8_t { kNull, kScalar, kSequence, kMap };

    Kind kind = Kind::kNull;
    Position at;
    std::string text;    ///< kScalar: the value; kNull: empty
    bool quoted = false; ///< kScalar: written in quotes or as a block, so certainly meant as text
    std::vector<YamlNode> keys;
    std::vector<YamlNode> items;
};

/// Parses one document. `text` must be valid UTF-8 (see check_text) without a byte order mark. Fails with the first
/// thing that is wrong; never throws, whatever the text.
[[nodiscard]] tl::expected<YamlNode, Diagnostic> parse_yaml(const std::string& text, const std::string& source);

/// Size, UTF-8 and control characters: what can be said before parsing. Nothing when all is well.
[[nodiscard]] tl::expected<void, Diagnostic> check_text(std::string_view text, const std::string& source);

} // namespace railbreak::scenarios
