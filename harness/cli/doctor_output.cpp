#include "harness/cli/doctor_output.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <net/if.h>
#include <nlohmann/json.hpp>
#include <sys/capability.h>

namespace railbreak::cli {

namespace {

using injectors::KernelFeature;
using injectors::SurveyedKind;
using injectors::SurveyedNic;
using injectors::hardware::Availability;
using injectors::hardware::HardwareMechanism;

constexpr std::array<std::pair<cap_value_t, const char*>, 6> kCapabilities{{{CAP_NET_ADMIN, "cap_net_admin"},
                                                                            {CAP_NET_RAW, "cap_net_raw"},
                                                                            {CAP_SYS_ADMIN, "cap_sys_admin"},
                                                                            {CAP_BPF, "cap_bpf"},
                                                                            {CAP_KILL, "cap_kill"},
                                                                            {CAP_SYS_PTRACE, "cap_sys_ptrace"}}};

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
            fmt::format_to(std::back_inserter(text), "    yes  {:11} {} ({}, {}); proven: {}\n", to_string(kind.kind),
                           kind.mechanism, kind.realism, kind.data_path, injectors::proof_of(kind.kind));
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

nlohmann::json to_json(const SurveyedKind& kind) {
    return {{"kind", to_string(kind.kind)}, {"possible", kind.reason.empty()},
            {"mechanism", kind.mechanism},  {"realism", kind.realism},
            {"data_path", kind.data_path},  {"proven", injectors::proof_of(kind.kind)},
            {"reason", kind.reason}};
}

nlohmann::json to_json(const std::vector<SurveyedKind>& kinds) {
    nlohmann::json list = nlohmann::json::array();
    for (const SurveyedKind& kind : kinds) {
        list.push_back(to_json(kind));
    }
    return list;
}

} // namespace

std::vector<std::string> effective_network_capabilities() {
    std::vector<std::string> names;
    const std::unique_ptr<_cap_struct, int (*)(void*)> own(cap_get_proc(), cap_free);
    for (const auto& [capability, name] : kCapabilities) {
        cap_flag_value_t value = CAP_CLEAR;
        if (own && cap_get_flag(own.get(), capability, CAP_EFFECTIVE, &value) == 0 && value == CAP_SET) {
            names.emplace_back(name);
        }
    }
    return names;
}

std::string doctor_text(const DoctorReport& report) {
    const DoctorHost& host = report.host;
    std::string text = fmt::format("{}: {}, uid {}, {}\n", host.name, host.kernel, host.uid,
                                   host.capabilities.empty() ? "no capability that matters here"
                                                             : fmt::format("{}", fmt::join(host.capabilities, " ")));
    const injectors::Survey& survey = report.survey;
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
    add_hardware(text, report.hardware);
    return text;
}

std::string doctor_json(const DoctorReport& report) {
    nlohmann::json nics = nlohmann::json::array();
    for (const SurveyedNic& nic : report.survey.nics) {
        nics.push_back({{"name", nic.link.name},
                        {"kind", nic.link.kind},
                        {"mac", nic.link.mac},
                        {"mtu_bytes", nic.link.mtu},
                        {"up", (nic.link.flags & IFF_UP) != 0},
                        {"carrier", (nic.link.flags & IFF_RUNNING) != 0},
                        {"faults", to_json(nic.kinds)}});
    }
    nlohmann::json features = nlohmann::json::object();
    for (const KernelFeature feature : injectors::kKernelFeatures) {
        const std::string& missing = report.survey.features.missing(feature);
        features[std::string(to_string(feature))] = {{"present", missing.empty()}, {"missing", missing}};
    }
    nlohmann::json hardware = nlohmann::json::array();
    for (const HardwareMechanism& each : report.hardware) {
        hardware.push_back({{"name", each.name},
                            {"faults", each.kinds},
                            {"acts_on", each.acts_on},
                            {"device", each.device},
                            {"availability", to_string(each.availability)},
                            {"proven", each.proven_how},
                            {"missing", each.missing},
                            {"how_to_get", each.how_to_get}});
    }
    const nlohmann::json json{
        {"schema", "railbreak-doctor"},
        {"version", 1},
        {"host", report.host.name},
        {"kernel", report.host.kernel},
        {"uid", report.host.uid},
        {"capabilities", report.host.capabilities},
        {"kernel_not_tried", report.survey.features_missing},
        {"kernel_features", features},
        {"nics", nics},
        {"processes", to_json(report.survey.processes)},
        {"file_systems", to_json(report.survey.folders)},
        {"hardware", hardware},
    };
    return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

} // namespace railbreak::cli
