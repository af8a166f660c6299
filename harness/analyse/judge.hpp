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

void judge_correctness(const record::RunData& data, const scenarios::Plan& plan, std::vector<record::VerdictRow>& rows);
void judge_faults(const record::RunData& data, const scenarios::Plan& plan, std::vector<record::VerdictRow>& rows);
void judge_teardown(const record::RunData& data, std::vector<record::VerdictRow>& rows);
void judge_bounds(const record::RunData& data, const scenarios::Plan& plan,
                  const std::vector<record::PhaseStatistics>& statistics, std::vector<record::VerdictRow>& rows);
void judge_expectations(const scenarios::Plan& plan, const std::vector<record::PhaseStatistics>& statistics,
                        std::vector<record::VerdictRow>& rows);

} // namespace railbreak::analyse
