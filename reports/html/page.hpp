// The frame of every HTML report: one file that fetches nothing. A policy within it allows exactly the style and the
// script that were embedded at build time, so even text that slipped through as markup could not run.
#pragma once

#include <string>
#include <vector>

#include "reports/html/element.hpp"

namespace railbreak::reports::html {

/// A section with a heading of its own, reachable from the navigation.
struct Section {
    std::string id;   ///< unique in the page and safe in an address
    std::string name; ///< in the navigation
    std::string heading;
    std::string lead; ///< one or two sentences under the heading; may be empty
    std::vector<Element> content;
};

/// A box around content.
[[nodiscard]] Element panel(Element content);

/// What a page shows.
struct Page {
    std::string title;          ///< of the browser's window
    std::string kicker;         ///< small, above the heading: "Run 20260131T..."
    std::string heading;        ///< the one heading of the first level
    std::vector<Element> facts; ///< short facts in a line below
    std::vector<Element> head;  ///< what comes first of all: the verdict
    std::vector<Section> sections;
    std::string footer;
};

/// The document; ends with a newline.
[[nodiscard]] std::string page_html(Page page);

} // namespace railbreak::reports::html
