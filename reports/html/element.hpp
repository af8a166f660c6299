// A document as a tree of elements, for HTML and the SVG within it. Whatever is added as text or as an attribute is
// escaped when the tree is written, so that nothing from the database can become markup.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace railbreak::reports::html {

/// Untrusted text for a page: valid UTF-8 in which nothing is invisible or steers the reader. Bytes that are no UTF-8
/// become U+FFFD, control characters their pictures (U+2400 and up), and the marks that reorder text are spelt out
/// ("[U+202E]"). Line feed and tab stay.
[[nodiscard]] std::string clean(std::string_view text);

/// Name and value of an attribute. The name is a literal of ours; the value is escaped.
using Attribute = std::pair<std::string_view, std::string>;

/// An element with its attributes and what is in it, a text, or (without a name) several of those in a row.
class Element {
public:
    /// `name` must be a literal: it is kept as it is. Empty: a list of nodes without a tag of its own.
    explicit Element(std::string_view name = {}, std::initializer_list<Attribute> attributes = {})
        : name_(name), attributes_(attributes) {}
    /// A text; cleaned.
    [[nodiscard]] static Element text(std::string_view content);
    /// The content of a style or script element. Only for what was embedded at build time: it is written as it is.
    [[nodiscard]] static Element verbatim(std::string content);

    /// Adds something at the end; returns this element.
    Element& add(Element child);
    Element& add(std::string_view content) { return add(text(content)); }
    /// Sets an attribute that is not there yet; returns this element.
    Element& set(std::string_view name, std::string value);

    /// Whether nothing is in it.
    [[nodiscard]] bool empty() const { return children_.empty(); }
    /// Appends the markup to `out`: XHTML that is HTML as well.
    void write(std::string& out) const;

private:
    enum class Kind : unsigned char { kElement, kText, kVerbatim };
    Kind kind_ = Kind::kElement;
    std::string_view name_;
    std::string content_; ///< of a text
    std::vector<Attribute> attributes_;
    std::vector<Element> children_;
};

/// An element with children: element("p", {{"class", "lead"}}, "Hello ", element("b", {}, name)).
template <typename... Children> [[nodiscard]] Element
element(std::string_view name, std::initializer_list<Attribute> attributes, Children&&... children) {
    Element made(name, attributes);
    (made.add(std::forward<Children>(children)), ...);
    return made;
}

} // namespace railbreak::reports::html
