// One scenario over many nights, as text and JSON.
#pragma once

#include <string>

#include "harness/analyse/trend.hpp"

namespace railbreak::reports {

/// For each algorithm and phase: the values as a line of characters from low to high, since when the level is another,
/// and one line for each run: when, verdict, value, overhead over the fluid bound, running baseline with its band,
/// change against it. Longer breaks between runs and other plans are told where they are.
[[nodiscard]] std::string trend_table(const analyse::Trend& trend);

/// The same as JSON, schema "railbreak-trend-report" version 1 (docs/report-schema.md).
[[nodiscard]] std::string trend_json(const analyse::Trend& trend);

} // namespace railbreak::reports
