// The single checks of the analysis. Internal to harness/analyse.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/analyse/verdict.hpp"
#include "harness/record/rows.hpp"
#include "harness/record/statistics.hpp"
#include "scenarios/model.hpp"

namespace railbreak::analyse {

/// What marks a refusal in InjectionRow::error.
inline constexpr std::string_view kRefusedMark = "refused: ";

/// The kind of an event made by stop_event() is this and the word of the Error's kind.
inline constexpr std::string_view kStopped = "stopped_";

/// A verdict row without figures.
[[nodiscard]] record::VerdictRow make_row(std::string_view scope, std::string subject, Verdict verdict,
                                          std::string reason);

/// The plan's algorithms, then others that have iterations.
[[nodiscard]] std::vector<std::string> algorithms_of(const record::RunData& data, const scenarios::Plan& plan);

/// Whether the run was stopped by something else than the system under test: railbreak's own trouble, or a person. The
/// iteration that was going on then has failed without saying anything about the collective.
[[nodiscard]] bool broken_off(const record::RunData& data);

/// The iteration with whose error the algorithm's degraded phase ended, as the plan expects it to; null when there is
/// none.
[[nodiscard]] const record::IterationRow* expected_error(const record::RunData& data, const scenarios::Plan& plan,
                                                         std::string_view algorithm);

void judge_correctness(const record::RunData& data, const scenarios::Plan& plan, std::vector<record::VerdictRow>& rows);
void judge_faults(const record::RunData& data, const scenarios::Plan& plan, std::vector<record::VerdictRow>& rows);
void judge_teardown(const record::RunData& data, std::vector<record::VerdictRow>& rows);
void judge_bounds(const record::RunData& data, const scenarios::Plan& plan,
                  const std::vector<record::PhaseStatistics>& statistics, std::vector<record::VerdictRow>& rows);
void judge_expectations(const record::RunData& data, const scenarios::Plan& plan,
                        const std::vector<record::PhaseStatistics>& statistics, std::vector<record::VerdictRow>& rows);
/// An expected outcome of one algorithm.
[[nodiscard]] record::VerdictRow judge_outcome(const record::RunData& data, const scenarios::Plan& plan,
                                               const scenarios::Expectation& expectation, const std::string& algorithm);

} // namespace railbreak::analyse
