// The parts of a run's page that are words and tables. Each is a pure function of the run.
#pragma once

#include "reports/html/element.hpp"
#include "reports/html/view.hpp"

namespace railbreak::reports::html {

/// The verdict with its reason, and that of the teardown.
[[nodiscard]] Element verdict_banner(const View& view);
/// The three questions that every run answers: was the fault real, is the result right, how far is it from the best?
[[nodiscard]] Element promises(const View& view);
/// The figures that most readers came for.
[[nodiscard]] Element key_figures(const View& view);

/// Every fault with all its evidence.
[[nodiscard]] Element fault_section(const View& view);
/// Expectations with what was measured and allowed.
[[nodiscard]] Element expectation_table(const View& view);
/// Every check.
[[nodiscard]] Element verdict_table(const View& view);
/// The lower bounds by name.
[[nodiscard]] Element bound_table(const View& view);
/// The schedules that were tried on the damage, and which was kept.
[[nodiscard]] Element comparison_table(const View& view);
/// What happened when.
[[nodiscard]] Element event_table(const View& view);
/// Hosts, NICs and clocks.
[[nodiscard]] Element cluster_table(const View& view);
/// Versions, machine, variables.
[[nodiscard]] Element environment_list(const View& view);
/// The command that runs the same again, the scenario and the plan.
[[nodiscard]] Element reproduction(const View& view);

} // namespace railbreak::reports::html
