// Which hosts can make the kinds of fault that a scenario has. Only kinds are compared: `railbreak run --dry-run` asks
// for every fault as it is planned, on a cluster built for it.
#pragma once

#include <string>
#include <vector>

#include "harness/controller/survey_hosts.hpp"
#include "scenarios/model.hpp"

namespace railbreak::cli {

/// One kind on one target of a host.
struct TargetFit {
    std::string target;    ///< the NIC's name; "a rank", "the folder"
    std::string mechanism; ///< empty when there is none
    std::string reason;    ///< why not; empty when it can be made
};

/// One kind on one host.
struct HostFit {
    std::string host;
    std::vector<TargetFit> targets;
    /// On one of its targets at least.
    [[nodiscard]] bool possible() const;
};

/// One kind on every host that has answered.
struct KindFit {
    std::string kind; ///< as scenarios call it, with its mechanism: "cap by link_modes"
    std::vector<HostFit> hosts;
    /// On every host, and there is one.
    [[nodiscard]] bool possible() const;
};

/// All kinds of a scenario, each once, in the order of the file.
struct ScenarioFit {
    std::string scenario;
    std::vector<KindFit> kinds;
    /// Every kind on every host.
    [[nodiscard]] bool possible() const;
};

[[nodiscard]] ScenarioFit fit_scenario(const scenarios::Scenario& scenario,
                                       const std::vector<controller::HostAnswer>& answers);

} // namespace railbreak::cli
