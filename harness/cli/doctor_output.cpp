#include "harness/cli/doctor_output.hpp"
#include "base/json_text.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <net/if.h>

namespace railbreak::cli {

namespace {

using controller::HostAnswer;
using injectors::KernelFeature;
using injectors::SurveyedKind;
using injectors::SurveyedNic;
using injectors::hardware::Availability;
using injectors::hardware::HardwareMechanism;
using launch::Json;

std::string link_words(const injectors::LinkRecord& link) {
    return fmt::format("{}, {}, MTU {}{}", link.kind.empty() ? "hardware" : link.kind,
                       (link.flags & IFF_UP) == 0        ? "down"
                       : (link.flags & IFF_RUNNING) == 0 ? "no carrier"
                                                         : "up",
                       link.mtu, link.mac.empty() ? "" : ", " + link.mac);
}

/// Kinds that fail for the same reason share a line.
void add_kinds(std::string& text, const std::vector<SurveyedKind>& kinds) {
    std::vector<std::pair<std::string, std::vector<std::string>>> refused;
    for (const SurveyedKind& kind : kinds) {
        if (kind.reason.empty()) {
            const std::string_view unproven = injectors::unproven_of(kind.kind);
            fmt::format_to(
                std::back_inserter(text), "    {:4} {:11} {} ({}, {}); {}{}{}\n", unproven.empty() ? "yes" : "?",
                to_string(kind.kind), kind.mechanism, kind.realism, kind.data_path,
                unproven.empty() ? "" : "unproven here: ", unproven,
                fmt::format("{}: {}", unproven.empty() ? "proven" : "; tested", injectors::proof_of(kind.kind)));
            continue;
        }
        const auto same =
            std::find_if(refused.begin(), refused.end(), [&](const auto& each) { return each.first == kind.reason; });
        auto& names =
            same != refused.end() ? same->second : refused.emplace_back(kind.reason, std::vector<std::string>()).second;
        names.emplace_back(to_string(kind.kind));
    }
    for (const auto& [reason, names] : refused) {
        fmt::format_to(std::back_inserter(text), "    no   {}: {}\n", fmt::join(names, ", "), reason);
    }
}

/// What is there and what is unproven gets a line each; what is missing one line per mechanism, whatever the device.
void add_hardware(std::string& text, const std::vector<HardwareMechanism>& mechanisms) {
    text += "hardware\n";
    std::vector<std::string> told;
    for (const HardwareMechanism& each : mechanisms) {
        switch (each.availability) {
        case Availability::kAvailable:
            fmt::format_to(std::back_inserter(text), "    yes  {} on {} ({}); proven: {}\n", each.name, each.device,
                           each.acts_on, each.proven_how);
            break;
        case Availability::kUnproven:
            fmt::format_to(std::back_inserter(text), "    ?    {} on {} ({}): unproven: {}; tested: {}\n", each.name,
                           each.device, each.acts_on, each.missing, each.proven_how);
            break;
        case Availability::kMissing: {
            const std::string line = fmt::format("    no   {}: {}{}{}\n", each.name, each.missing,
                                                 each.how_to_get.empty() ? "" : "; ", each.how_to_get);
            if (std::find(told.begin(), told.end(), line) == told.end()) {
                told.push_back(line);
                text += line;
            }
            break;
        }
        }
    }
}

/// Words for a terminal or a log: what hosts say about themselves may hold anything.
std::string printable(std::string text) {
    std::ranges::replace_if(
        text, [](unsigned char letter) { return (letter < ' ' && letter != '\n') || letter == 0x7f; }, '?');
    return text;
}

std::string dump(const Json& json) {
    return json_text(json);
}

void forget_macs(agent::HostSurvey& host) {
    for (SurveyedNic& nic : host.survey.nics) {
        nic.link.mac.clear();
    }
}

/// Hosts that differ in nothing but their names and MACs, in the order of the first of each group.
std::vector<std::vector<const HostAnswer*>> same_answers(const std::vector<HostAnswer>& answers) {
    std::vector<std::pair<std::string, std::vector<const HostAnswer*>>> groups;
    for (const HostAnswer& answer : answers) {
        if (!answer.survey) {
            continue;
        }
        agent::HostSurvey host = *answer.survey;
        host.host.clear();
        forget_macs(host);
        const std::string key = dump(to_json(host));
        const auto same = std::ranges::find(groups, key, &decltype(groups)::value_type::first);
        (same != groups.end() ? *same : groups.emplace_back(key, std::vector<const HostAnswer*>()))
            .second.push_back(&answer);
    }
    std::vector<std::vector<const HostAnswer*>> found;
    for (auto& group : groups) {
        found.push_back(std::move(group.second));
    }
    return found;
}

std::vector<std::string> names_of(const std::vector<const HostAnswer*>& group) {
    std::vector<std::string> names;
    for (const HostAnswer* answer : group) {
        names.push_back(answer->name);
    }
    return names;
}

/// As --hosts takes them: "demo:h0", "demo:h1" are "demo:h0,h1".
std::string join_hosts(const std::vector<std::string>& names) {
    std::string text;
    std::string last_lab;
    for (const std::string& name : names) {
        const std::size_t colon = name.find(':');
        const std::string lab = colon == std::string::npos ? "" : name.substr(0, colon);
        if (!lab.empty() && lab == last_lab) {
            text += "," + name.substr(colon + 1);
        } else {
            text += (text.empty() ? "" : " ") + name;
        }
        last_lab = lab;
    }
    return text;
}

/// What is the same on several targets of several hosts.
struct FitLine {
    std::string words; ///< mechanism or reason
    bool possible = false;
    std::string targets;
    std::vector<std::string> hosts;
};

void add_to(std::vector<FitLine>& lines, FitLine line, const std::string& host) {
    auto same = std::ranges::find_if(lines, [&](const FitLine& each) {
        return each.words == line.words && each.possible == line.possible && each.targets == line.targets;
    });
    same = same != lines.end() ? same : lines.insert(lines.end(), std::move(line));
    same->hosts.push_back(host);
}

/// One line per different answer of a host.
std::vector<FitLine> lines_of(const HostFit& host) {
    std::vector<FitLine> lines;
    for (const TargetFit& target : host.targets) {
        const bool possible = target.reason.empty();
        const std::string& words = possible ? target.mechanism : target.reason;
        const auto same = std::ranges::find_if(
            lines, [&](const FitLine& each) { return each.words == words && each.possible == possible; });
        if (same != lines.end()) {
            same->targets += ", " + target.target;
        } else {
            lines.push_back({words, possible, target.target, {}});
        }
    }
    return lines;
}

Json to_json(const ScenarioFit& fit) {
    Json kinds = Json::array();
    for (const KindFit& kind : fit.kinds) {
        Json hosts = Json::array();
        for (const HostFit& host : kind.hosts) {
            Json targets = Json::array();
            for (const TargetFit& target : host.targets) {
                targets.push_back({{"target", target.target},
                                   {"possible", target.reason.empty()},
                                   {"mechanism", target.mechanism},
                                   {"reason", target.reason}});
            }
            hosts.push_back({{"host", host.host}, {"possible", host.possible()}, {"targets", std::move(targets)}});
        }
        kinds.push_back({{"kind", kind.kind}, {"possible", kind.possible()}, {"hosts", std::move(hosts)}});
    }
    return {{"name", fit.scenario}, {"possible", fit.possible()}, {"kinds", std::move(kinds)}};
}

} // namespace

std::string doctor_text(const agent::HostSurvey& host) {
    std::string text = fmt::format("{}: {}, uid {}, {}\n", host.host, host.kernel, host.uid,
                                   host.capabilities.empty() ? "no capability that matters here"
                                                             : fmt::format("{}", fmt::join(host.capabilities, " ")));
    const injectors::Survey& survey = host.survey;
    text += "kernel\n";
    if (!survey.features_missing.empty()) {
        text += fmt::format("    not tried: {}\n", survey.features_missing);
    } else {
        for (const KernelFeature feature : injectors::kKernelFeatures) {
            const std::string& missing = survey.features.missing(feature);
            text += fmt::format("    {:4} {}{}\n", missing.empty() ? "yes" : "no", to_string(feature),
                                missing.empty() ? "" : ": " + missing);
        }
    }
    for (const SurveyedNic& nic : survey.nics) {
        text += fmt::format("{} ({})\n", nic.link.name, link_words(nic.link));
        add_kinds(text, nic.kinds);
    }
    if (survey.nics.empty()) {
        text += "no NIC but loopback here\n";
    }
    text += "processes\n";
    add_kinds(text, survey.processes);
    text += "file systems\n";
    add_kinds(text, survey.folders);
    add_hardware(text, host.hardware);
    return printable(std::move(text));
}

std::string hosts_text(const std::vector<HostAnswer>& answers) {
    std::string text;
    for (const std::vector<const HostAnswer*>& group : same_answers(answers)) {
        agent::HostSurvey host = *group.front()->survey;
        host.host = join_hosts(names_of(group));
        if (group.size() > 1) {
            host.host += fmt::format(" (the same on all {})", group.size());
            forget_macs(host);
        }
        text += (text.empty() ? "" : "\n") + doctor_text(host);
    }
    const std::string unanswered = unanswered_text(answers);
    return text + (text.empty() || unanswered.empty() ? "" : "\n") + unanswered;
}

std::string unanswered_text(const std::vector<HostAnswer>& answers) {
    std::string text;
    for (const HostAnswer& answer : answers) {
        if (!answer.survey) {
            text += fmt::format("{}: {}\n", answer.name, answer.survey.error().to_line());
        }
    }
    return printable(std::move(text));
}

std::string fit_text(const ScenarioFit& fit) {
    std::string text = fmt::format("{}\n", fit.scenario);
    for (const KindFit& kind : fit.kinds) {
        text += fmt::format("{}\n", kind.kind);
        std::vector<FitLine> lines;
        for (const HostFit& host : kind.hosts) {
            for (FitLine& line : lines_of(host)) {
                add_to(lines, std::move(line), host.host);
            }
        }
        for (const FitLine& line : lines) {
            fmt::format_to(std::back_inserter(text), "    {:4} {} on {}: {}\n", line.possible ? "yes" : "no",
                           join_hosts(line.hosts), line.targets, line.words);
        }
    }
    return printable(std::move(text));
}

std::string doctor_json(const agent::HostSurvey& host, const std::optional<ScenarioFit>& fit) {
    Json json = to_json(host);
    if (fit) {
        json["scenario"] = to_json(*fit);
    }
    return dump(json);
}

std::string hosts_json(const std::vector<HostAnswer>& answers, const std::optional<ScenarioFit>& fit) {
    Json hosts = Json::array();
    for (const HostAnswer& answer : answers) {
        hosts.push_back({{"name", answer.name},
                         {"answered", answer.survey.has_value()},
                         {"survey", answer.survey ? to_json(*answer.survey) : Json()},
                         {"error", answer.survey ? Json() : launch::error_to_json(answer.survey.error())}});
    }
    Json groups = Json::array();
    for (const std::vector<const HostAnswer*>& group : same_answers(answers)) {
        groups.push_back(names_of(group));
    }
    return dump({{"schema", "railbreak-doctor-hosts"},
                 {"version", 1},
                 {"hosts", std::move(hosts)},
                 {"groups", std::move(groups)},
                 {"scenario", fit ? to_json(*fit) : Json()}});
}

} // namespace railbreak::cli
