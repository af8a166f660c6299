// `railbreak doctor`: what can be injected here or on the hosts of a lab, by which mechanism, how that is proven, and
// what is missing.
#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/cli/commands.hpp"
#include "harness/cli/doctor_output.hpp"
#include "harness/cli/host_choice.hpp"
#include "harness/cli/scenario_input.hpp"

namespace railbreak::cli {

namespace {

using controller::HostAnswer;

struct DoctorArguments {
    std::vector<std::string> protect;
    std::string folder = "/tmp";
    std::string hosts;
    std::string scenario;
    std::string timeout = "20s";
};

/// A refusal when a kind of the scenario cannot be made everywhere; 0 when there is no scenario.
int tell_fit(const std::optional<ScenarioFit>& fit) {
    if (!fit || fit->possible()) {
        return 0;
    }
    std::vector<std::string> kinds;
    for (const KindFit& kind : fit->kinds) {
        if (!kind.possible()) {
            kinds.push_back(kind.kind);
        }
    }
    return tell(Error(ErrorKind::kRefused, fmt::format("{} cannot be made on every host", fmt::join(kinds, ", ")))
                    .advise("The list above says where and why."));
}

int doctor_here(const CommonOptions& common, const agent::SurveyOrder& order,
                const std::optional<scenarios::Scenario>& scenario) {
    Result<agent::HostSurvey> host = agent::survey_this_host(order);
    if (!host) {
        return tell(common, host.error());
    }
    std::optional<ScenarioFit> fit;
    if (scenario) {
        fit = fit_scenario(*scenario, {HostAnswer{host->host, *host}});
    }
    print_result(common.json ? doctor_json(*host, fit) : fit ? fit_text(*fit) : doctor_text(*host));
    if (fit || host->survey.any_nic()) {
        return tell_fit(fit);
    }
    return tell(Error(ErrorKind::kRefused, "no fault can be injected on any NIC here")
                    .advise("The list above says why for each; railbreak lab up NAME makes hosts to try with."));
}

int doctor_hosts(const CommonOptions& common, const DoctorArguments& arguments, const agent::SurveyOrder& order,
                 const std::optional<scenarios::Scenario>& scenario) {
    const Result<Nanoseconds> timeout = parse_duration(arguments.timeout);
    if (!timeout || *timeout <= Nanoseconds::zero()) {
        return tell(common, timeout ? Error(ErrorKind::kUsage, "--timeout must be above 0") : timeout.error());
    }
    const Result<std::vector<controller::HostChannel>> channels = choose_hosts(arguments.hosts, common.executable);
    if (!channels) {
        return tell(common, channels.error());
    }
    const Result<std::vector<HostAnswer>> answers = controller::survey_hosts(*channels, order, *timeout);
    if (!answers) {
        return tell(common, answers.error());
    }
    const std::optional<ScenarioFit> fit = scenario ? std::optional(fit_scenario(*scenario, *answers)) : std::nullopt;
    print_result(common.json ? hosts_json(*answers, fit)
                 : fit       ? fit_text(*fit) + unanswered_text(*answers)
                             : hosts_text(*answers));
    std::vector<std::string> silent;
    std::vector<std::string> without;
    for (const HostAnswer& answer : *answers) {
        if (!answer.survey) {
            silent.push_back(answer.name);
        } else if (!answer.survey->survey.any_nic()) {
            without.push_back(answer.name);
        }
    }
    if (!silent.empty()) {
        return tell(Error(ErrorKind::kHarness, fmt::format("{} of {} hosts gave no answer: {}", silent.size(),
                                                           answers->size(), fmt::join(silent, ", ")))
                        .advise("The end of the list says why; the others are above it."));
    }
    if (fit || without.empty()) {
        return tell_fit(fit);
    }
    return tell(
        Error(ErrorKind::kRefused, fmt::format("no fault can be injected on any NIC of {}", fmt::join(without, ", ")))
            .advise("The list above says why for each."));
}

int doctor(const CommonOptions& common, const DoctorArguments& arguments) {
    std::optional<scenarios::Scenario> scenario;
    if (!arguments.scenario.empty()) {
        scenario = read_scenario(common, arguments.scenario);
        if (!scenario) {
            return exit_code_of_bad_input();
        }
    }
    const agent::SurveyOrder order{.protected_nics = arguments.protect, .folder = arguments.folder};
    return arguments.hosts.empty() ? doctor_here(common, order, scenario)
                                   : doctor_hosts(common, arguments, order, scenario);
}

} // namespace

void add_doctor_command(CLI::App& app, CommonOptions& common, const Choose& choose) {
    CLI::App* command = app.add_subcommand(
        "doctor", "Say what can be injected here or on other hosts, how, and what is missing for the rest");
    auto arguments = std::make_shared<DoctorArguments>();
    command->add_option("--hosts", arguments->hosts,
                        "Ask these hosts instead of this one: LAB, LAB:h0,h3, or all hosts of all labs that are up");
    command
        ->add_option("--scenario", arguments->scenario,
                     "Say only which hosts can make the kinds of fault that this scenario has")
        ->type_name("FILE");
    CLI::Option* timeout = command->add_option("--timeout", arguments->timeout, "How long a host may take to answer");
    timeout->capture_default_str()->needs("--hosts");
    command->add_option("--protect", arguments->protect, "Interfaces that may not be touched");
    command->add_option("--folder", arguments->folder, "A folder of the file system that disk_full would fill")
        ->capture_default_str();
    command->callback(
        [&common, arguments, choose] { choose([&common, arguments] { return doctor(common, *arguments); }); });
}

} // namespace railbreak::cli
