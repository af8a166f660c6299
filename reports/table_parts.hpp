// Parts of the text report that other reports show by themselves. Internal to reports.
#pragma once

#include <string>

#include "harness/record/rows.hpp"

namespace railbreak::reports {

/// What ran, when, on what, in labelled lines.
[[nodiscard]] std::string run_header(const record::RunData& data);

/// The evidence of each application of a fault, after an empty line and a heading.
[[nodiscard]] std::string faults_text(const record::RunData& data);

} // namespace railbreak::reports
