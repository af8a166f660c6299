#include "harness/cli/doctor_fit.hpp"

#include <algorithm>

namespace railbreak::cli {

namespace {

using controller::HostAnswer;
using injectors::SurveyedKind;
using scenarios::FaultKind;
using scenarios::FaultSpec;

std::string name_of(const FaultSpec& fault) {
    std::string name(to_string(fault.kind));
    return fault.strength.mechanism ? name + " by " + std::string(to_string(*fault.strength.mechanism)) : name;
}

/// What the injectors call the kind; a flapping link is a link that is taken down several times.
std::string_view injected_as(const FaultSpec& fault) {
    if (fault.strength.mechanism) {
        const auto asked = fault.kind == FaultKind::kCap ? injectors::FaultKind::kCap : injectors::FaultKind::kLinkDown;
        if (const auto made = injectors::kind_made_by(asked, to_string(*fault.strength.mechanism))) {
            return to_string(*made);
        }
    }
    return to_string(fault.kind == FaultKind::kFlap ? FaultKind::kLinkDown : fault.kind);
}

void add_target(HostFit& fit, const FaultSpec& fault, const std::string& target,
                const std::vector<SurveyedKind>& kinds) {
    const auto found = std::ranges::find_if(
        kinds, [&](const SurveyedKind& each) { return injectors::to_string(each.kind) == injected_as(fault); });
    fit.targets.push_back(found == kinds.end() ? TargetFit{target, "", "the host does not know this kind of fault"}
                                               : TargetFit{target, found->mechanism, found->reason});
}

HostFit fit_host(const FaultSpec& fault, const HostAnswer& answer) {
    const injectors::Survey& survey = answer.survey->survey;
    HostFit fit{answer.name, {}};
    switch (target_kind(fault.kind)) {
    case scenarios::TargetKind::kNic:
        for (const injectors::SurveyedNic& nic : survey.nics) {
            add_target(fit, fault, nic.link.name, nic.kinds);
        }
        if (survey.nics.empty()) {
            fit.targets.push_back({"any NIC", "", "the host has no NIC but loopback"});
        }
        break;
    case scenarios::TargetKind::kRank:
        if (fault.kind == FaultKind::kLate) { // what a rank does to itself needs no injector
            fit.targets.push_back({"a rank", "the rank waits on a timer before it begins", ""});
        } else {
            add_target(fit, fault, "a rank", survey.processes);
        }
        break;
    case scenarios::TargetKind::kRecorder: add_target(fit, fault, "the folder", survey.folders); break;
    }
    return fit;
}

} // namespace

bool HostFit::possible() const {
    return std::ranges::any_of(targets, [](const TargetFit& target) { return target.reason.empty(); });
}

bool KindFit::possible() const {
    return !hosts.empty() && std::ranges::all_of(hosts, &HostFit::possible);
}

bool ScenarioFit::possible() const {
    return std::ranges::all_of(kinds, &KindFit::possible);
}

ScenarioFit fit_scenario(const scenarios::Scenario& scenario, const std::vector<HostAnswer>& answers) {
    ScenarioFit fit{scenario.name, {}};
    for (const FaultSpec& fault : scenario.faults) {
        const std::string name = name_of(fault);
        if (std::ranges::find(fit.kinds, name, &KindFit::kind) != fit.kinds.end()) {
            continue;
        }
        KindFit& kind = fit.kinds.emplace_back(KindFit{name, {}});
        for (const HostAnswer& answer : answers) {
            if (answer.survey) {
                kind.hosts.push_back(fit_host(fault, answer));
            }
        }
    }
    return fit;
}

} // namespace railbreak::cli
