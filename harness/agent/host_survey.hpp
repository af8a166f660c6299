// What can be injected on one host, in a form that travels: an agent looks at its host, whoever asked prints it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/launch/rpc.hpp"
#include "injectors/hardware/probes.hpp"
#include "injectors/survey.hpp"

namespace railbreak::agent {

/// One host and who looked.
struct HostSurvey {
    std::string host;   ///< its own name
    std::string kernel; ///< "Linux 6.1.0"
    std::uint32_t uid = 0;
    std::vector<std::string> capabilities; ///< effective ones that matter here: "cap_net_admin", ...
    injectors::Survey survey;
    std::vector<injectors::hardware::HardwareMechanism> hardware; ///< of every NIC, and of GPUs
};

/// What to look at.
struct SurveyOrder {
    std::vector<std::string> protected_nics;
    std::string folder = "/tmp"; ///< of the file system that disk_full would fill
};

/// Looks at the host and the network namespace of this process; changes nothing.
[[nodiscard]] Result<HostSurvey> survey_this_host(const SurveyOrder& order);

/// Parameters of the agent's method "survey": {protected_nics, folder}, and back.
[[nodiscard]] launch::Json to_json(const SurveyOrder& order);
[[nodiscard]] Result<SurveyOrder> survey_order_from_json(const launch::Json& json);
/// The method's result, an object of schema "railbreak-doctor", version 1 (docs/doctor.md), and back. Of a NIC's link
/// only name, kind, MAC, MTU and the flags up and running travel. Error (kHarness) when a member is missing or
/// malformed.
[[nodiscard]] launch::Json to_json(const HostSurvey& survey);
[[nodiscard]] Result<HostSurvey> host_survey_from_json(const launch::Json& json);

} // namespace railbreak::agent
