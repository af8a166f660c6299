// The report of one run for people: a page that opens from a file, shows the verdict first, and has every number.
#pragma once

#include <string>

#include "harness/record/rows.hpp"

namespace railbreak::reports {

/// One HTML document that fetches nothing. Complete without scripts: charts are SVG, and their numbers stand in tables;
/// the embedded script adds tooltips, legends that hide, zoom, sorting and a choice of theme. Everything from the
/// database is shown as text. The same data gives the same bytes.
[[nodiscard]] std::string run_html(const record::RunData& data);

} // namespace railbreak::reports
