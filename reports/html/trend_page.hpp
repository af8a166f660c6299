// How a scenario's times move from night to night, for people.
#pragma once

#include <string>

#include "harness/analyse/trend.hpp"

namespace railbreak::reports {

/// One HTML document like run_html(): for each algorithm and phase the medians of all runs, the band in which they are
/// expected, and where the level changed. The same trend gives the same bytes.
[[nodiscard]] std::string trend_html(const analyse::Trend& trend);

} // namespace railbreak::reports
