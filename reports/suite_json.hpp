// The report of a suite for machines.
#pragma once

#include <string>

#include "harness/record/rows.hpp"

namespace railbreak::reports {

/// A suite as JSON, schema "railbreak-suite-report" version 1 (docs/suite-format.md). The same data gives the same
/// bytes.
[[nodiscard]] std::string suite_json(const record::SuiteData& data);

} // namespace railbreak::reports
