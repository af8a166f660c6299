// What is embedded at build time: generated from report.css, report.js and Debian's packages of D3.
#pragma once

#include <string_view>

namespace railbreak::reports::html {

/// The style sheet.
[[nodiscard]] std::string_view style_sheet();
/// D3's modules with their licence, then the page's own script.
[[nodiscard]] std::string_view script();

} // namespace railbreak::reports::html
