// The single checks of the analysis. Internal to harness/analyse.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/analyse/history.hpp"
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
/// Holds what was measured (VerdictRow::measured, seconds where the metric is a duration) against the expectation's
/// limits, and against the earlier runs where one stands on a baseline. `what` says in words what was measured.
void hold_against_limits(const scenarios::Expectation& expectation, const History& history, std::string_view what,
                         record::VerdictRow& row);
/// A metric of each fault that the expectation is about, under one algorithm.
void judge_fault_metric(const record::RunData& data, const scenarios::Plan& plan,
                        const std::vector<record::PhaseStatistics>& statistics,
                        const scenarios::Expectation& expectation, const std::string& algorithm, const History& history,
                        std::vector<record::VerdictRow>& rows);

/// What else changed on the host of a fault while it was in force.
struct Collateral {
    std::vector<std::string> sentences;
    std::set<std::string> interfaces; ///< that the sentences are about
    bool unknown = false;             ///< a sentence says that nobody could look
};
[[nodiscard]] Collateral collateral_of(const record::InjectionRow& row);
/// How many interfaces may change beside that fault, by the plan's expectations; nothing when none speaks of it.
[[nodiscard]] std::optional<double> allowed_collateral(const scenarios::Plan& plan, const record::InjectionRow& row);
/// Whether an expectation about `wanted` is about the planned fault `name`: a flap is planned as NAME#1, NAME#2, ...
[[nodiscard]] bool is_named(std::string_view name, std::string_view wanted);

/// An expected outcome of one algorithm.
[[nodiscard]] record::VerdictRow judge_outcome(const record::RunData& data, const scenarios::Plan& plan,
                                               const scenarios::Expectation& expectation, const std::string& algorithm);

} // namespace railbreak::analyse
