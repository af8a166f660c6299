// A table of a page: captioned, scrolling in its own box, sortable by its heads where scripts run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reports/html/element.hpp"

namespace railbreak::reports::html {

/// A column: its head, and whether its cells are numbers (aligned right, sorted as such).
struct Column {
    std::string head;
    bool number = false;
};

/// What stands in one cell.
struct Cell {
    Cell(std::string_view text) : content(Element::text(text)) {}   // NOLINT: a row is a list of texts for most tables
    Cell(const std::string& text) : Cell(std::string_view(text)) {} // NOLINT
    Cell(const char* text) : Cell(std::string_view(text)) {}        // NOLINT
    Cell(Element element) : content(std::move(element)) {}          // NOLINT
    /// A number as it is shown, and exactly: shown when pointed at, and sorted by.
    Cell(std::string_view text, std::string exact_text, double value)
        : content(Element::text(text)), exact(std::move(exact_text)), key(value) {}

    Element content;
    std::string exact{};
    std::optional<double> key{};
    std::string css{}; ///< a class of the cell
};

/// See the file comment.
class Table {
public:
    Table(std::string caption, std::vector<Column> columns)
        : caption_(std::move(caption)), columns_(std::move(columns)) {}

    /// One cell for each column. The first is the head of the row.
    void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
    [[nodiscard]] bool empty() const { return rows_.empty(); }
    /// The table in its box. `css` are more classes of the table.
    [[nodiscard]] Element element(std::string_view css = {}) const;
    /// The same, closed until asked for.
    [[nodiscard]] Element folded(std::string_view summary) const;

private:
    std::string caption_;
    std::vector<Column> columns_;
    std::vector<std::vector<Cell>> rows_;
};

/// What can be opened: a line that stays, and content.
[[nodiscard]] Element details(std::string_view summary, Element content, bool open = false);

/// A box that scrolls sideways by itself when what is in it is wider than the page; can be reached by keyboard.
[[nodiscard]] Element scroll_box(std::string_view label, Element content);

/// A verdict ("pass", "fail", "inconclusive", ...) as a word with a mark of its own shape.
[[nodiscard]] Element badge(std::string_view verdict);

/// Terms and what they are, as a list.
[[nodiscard]] Element definition_list(const std::vector<std::pair<std::string, Element>>& entries);

/// Text of a program or a file, kept as it is.
[[nodiscard]] Element code_block(std::string_view label, std::string_view text);

} // namespace railbreak::reports::html
