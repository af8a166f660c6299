#include "reports/html/table.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/check.hpp"

namespace railbreak::reports::html {

Element scroll_box(std::string_view label, Element content) {
    return element("div",
                   {{"class", "scroll"}, {"tabindex", "0"}, {"role", "group"}, {"aria-label", std::string(label)}},
                   std::move(content));
}

Element details(std::string_view summary, Element content, bool open) {
    Element made("details");
    if (open) {
        made.set("open", "open");
    }
    made.add(element("summary", {}, summary)).add(std::move(content));
    return made;
}

Element Table::element(std::string_view css) const {
    Element head("tr");
    for (const Column& column : columns_) {
        head.add(html::element("th", {{"scope", "col"}, {"class", column.number ? "n" : "t"}}, column.head));
    }
    Element body("tbody");
    for (const std::vector<Cell>& row : rows_) {
        RB_CHECK(row.size() == columns_.size(), "every row has a cell for every column");
        Element line("tr");
        for (std::size_t i = 0; i < row.size(); ++i) {
            const Cell& cell = row[i];
            Element made(i == 0 ? "th" : "td");
            if (i == 0) {
                made.set("scope", "row");
            }
            const std::string classes = fmt::format("{}{}{}", columns_[i].number ? "n" : "",
                                                    columns_[i].number && !cell.css.empty() ? " " : "", cell.css);
            if (!classes.empty()) {
                made.set("class", classes);
            }
            if (!cell.exact.empty()) {
                made.set("title", cell.exact);
            }
            if (cell.key) {
                made.set("data-key", fmt::format("{}", *cell.key));
            }
            line.add(made.add(cell.content));
        }
        body.add(std::move(line));
    }
    return scroll_box(caption_, html::element("table", {{"class", fmt::format("data {}", css)}},
                                              html::element("caption", {}, caption_),
                                              html::element("thead", {}, std::move(head)), std::move(body)));
}

Element Table::folded(std::string_view summary) const {
    return details(summary, element());
}

namespace {

/// The outline of a verdict's mark, in a box of 16 by 16.
struct Mark {
    std::string_view verdict;
    std::string_view path;
};
constexpr std::array<Mark, 6> kMarks{{{"pass", "M3 8.5 6.5 12 13 4.5"},
                                      {"fail", "M4 4 12 12M12 4 4 12"},
                                      {"inconclusive", "M5.5 6a2.5 2.5 0 1 1 3.6 2.2C8.3 8.7 8 9.1 8 10M8 12.6V12.7"},
                                      {"invalid", "M8 3V9.5M8 12.4V12.5"},
                                      {"refused", "M3.5 8H12.5"},
                                      {"aborted", "M5 5H11V11H5Z"}}};

} // namespace

Element badge(std::string_view verdict) {
    const auto* const mark =
        std::find_if(kMarks.begin(), kMarks.end(), [&](const Mark& known) { return known.verdict == verdict; });
    const bool known = mark != kMarks.end();
    Element icon("svg", {{"class", "mark"}, {"viewBox", "0 0 16 16"}, {"aria-hidden", "true"}});
    icon.add(html::element("path", {{"d", std::string(known ? mark->path : "M3.5 8H12.5")}}));
    return element("span", {{"class", fmt::format("badge v-{}", known ? verdict : "none")}}, std::move(icon),
                   verdict.empty() ? "no verdict" : verdict);
}

Element definition_list(const std::vector<std::pair<std::string, Element>>& entries) {
    Element list("dl");
    for (const auto& [term, content] : entries) {
        list.add(element("div", {}, element("dt", {}, term), element("dd", {}, content)));
    }
    return list;
}

Element code_block(std::string_view label, std::string_view text) {
    return element("pre", {{"class", "code"}, {"tabindex", "0"}, {"role", "group"}, {"aria-label", std::string(label)}},
                   element("code", {}, text));
}

} // namespace railbreak::reports::html
