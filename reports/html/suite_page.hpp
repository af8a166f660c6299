// The report of a suite for people: what passed, what did not and why, item by item.
#pragma once

#include <string>
#include <vector>

#include "harness/record/rows.hpp"

namespace railbreak::reports {

/// One HTML document like run_html(). `runs` are the runs of the items, in any order; an item without its run here has
/// a verdict and no figures. The same data gives the same bytes.
[[nodiscard]] std::string suite_html(const record::SuiteData& suite, const std::vector<record::RunData>& runs);

} // namespace railbreak::reports
