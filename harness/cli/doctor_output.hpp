// The doctor's findings as text and as JSON (docs/doctor.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/agent/host_survey.hpp"
#include "harness/cli/doctor_fit.hpp"
#include "harness/controller/survey_hosts.hpp"

namespace railbreak::cli {

/// The host, one block per NIC, one line per kind of fault; ends in a newline.
[[nodiscard]] std::string doctor_text(const agent::HostSurvey& host);
/// Every host like that; hosts that differ in nothing but names and MACs share a block. Hosts without an answer last.
[[nodiscard]] std::string hosts_text(const std::vector<controller::HostAnswer>& answers);
/// A line for each host without an answer: why.
[[nodiscard]] std::string unanswered_text(const std::vector<controller::HostAnswer>& answers);
/// A block per kind of fault, a line for what is the same on several hosts.
[[nodiscard]] std::string fit_text(const ScenarioFit& fit);

/// One object of schema "railbreak-doctor", version 1; ends in a newline.
[[nodiscard]] std::string doctor_json(const agent::HostSurvey& host, const std::optional<ScenarioFit>& fit);
/// One object of schema "railbreak-doctor-hosts", version 1; ends in a newline.
[[nodiscard]] std::string hosts_json(const std::vector<controller::HostAnswer>& answers,
                                     const std::optional<ScenarioFit>& fit);

} // namespace railbreak::cli
