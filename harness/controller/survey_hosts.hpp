// Asks several hosts at once what can be injected on them, each through an agent of its own.
#pragma once

#include <string>
#include <vector>

#include "harness/agent/host_survey.hpp"

namespace railbreak::controller {

/// How to reach one host: a command that starts an agent there and is its standard input and output. Only this differs
/// between launchers.
struct HostChannel {
    std::string name;
    std::vector<std::string> argv; ///< argv[0] is the absolute path of the program
};

/// What one host said.
struct HostAnswer {
    std::string name;
    /// An Error when the host was not reached, did not answer in time, or has refused.
    Result<agent::HostSurvey> survey;
};

/// Every host's answer, in the order of the channels; agents and channels have ended by then. A host that has not
/// answered when `timeout` is over is an answer with an Error, as is one whose agent ends before. An Error of the whole
/// when a signal ended the wait.
[[nodiscard]] Result<std::vector<HostAnswer>> survey_hosts(const std::vector<HostChannel>& channels,
                                                           const agent::SurveyOrder& order, Nanoseconds timeout);

} // namespace railbreak::controller
