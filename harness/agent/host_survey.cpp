#include "harness/agent/host_survey.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <net/if.h>
#include <sys/capability.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "injectors/journal.hpp"
#include "injectors/netlink.hpp"
#include "injectors/real_host_ops.hpp"

namespace railbreak::agent {

using injectors::FaultKind;
using injectors::KernelFeature;
using injectors::Survey;
using injectors::SurveyedKind;
using injectors::SurveyedNic;
using injectors::hardware::Availability;
using injectors::hardware::HardwareMechanism;
using launch::field;
using launch::Json;

namespace {

constexpr std::array<std::pair<cap_value_t, const char*>, 6> kCapabilities{{{CAP_NET_ADMIN, "cap_net_admin"},
                                                                            {CAP_NET_RAW, "cap_net_raw"},
                                                                            {CAP_SYS_ADMIN, "cap_sys_admin"},
                                                                            {CAP_BPF, "cap_bpf"},
                                                                            {CAP_KILL, "cap_kill"},
                                                                            {CAP_SYS_PTRACE, "cap_sys_ptrace"}}};
constexpr std::array kAvailabilities{Availability::kAvailable, Availability::kUnproven, Availability::kMissing};

/// The effective capabilities of this process that injectors need, by name.
std::vector<std::string> effective_capabilities() {
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

/// Asks every NIC; those of software answer too, with what they lack.
Result<std::vector<HardwareMechanism>> ask_hardware(const Survey& survey, const SurveyOrder& order) {
    Result<injectors::NetlinkChannel> route = injectors::NetlinkChannel::open();
    Result<injectors::NetlinkChannel> generic = injectors::NetlinkChannel::open(NETLINK_GENERIC);
    if (!route || !generic) {
        return fail(std::move(route ? generic.error() : route.error()));
    }
    const injectors::hardware::Sysfs sysfs;
    std::vector<HardwareMechanism> found;
    for (const SurveyedNic& nic : survey.nics) {
        auto more = injectors::hardware::probe_hardware({.route = *route,
                                                         .generic = *generic,
                                                         .sysfs = sysfs,
                                                         .nic = nic.link.name,
                                                         .privileges = injectors::hardware::read_privileges(),
                                                         .protected_nics = order.protected_nics});
        if (!more) {
            return more;
        }
        std::move(more->begin(), more->end(), std::back_inserter(found));
    }
    return found;
}

/// The path itself, or the nearest folder above it that exists.
std::string nearest_existing(std::filesystem::path path) {
    std::error_code ignored;
    while (!std::filesystem::exists(path, ignored) && path.has_relative_path()) {
        path = path.parent_path();
    }
    return path.string();
}

Json to_json(const SurveyedKind& kind) {
    return {{"kind", to_string(kind.kind)},
            {"possible", kind.reason.empty()},
            {"mechanism", kind.mechanism},
            {"realism", kind.realism},
            {"data_path", kind.data_path},
            {"proven", injectors::proof_of(kind.kind)},
            {"unproven", injectors::unproven_of(kind.kind)},
            {"reason", kind.reason}};
}

Json to_json(const std::vector<SurveyedKind>& kinds) {
    Json list = Json::array();
    for (const SurveyedKind& kind : kinds) {
        list.push_back(to_json(kind));
    }
    return list;
}

Json to_json(const SurveyedNic& nic) {
    return {{"name", nic.link.name},
            {"kind", nic.link.kind},
            {"mac", nic.link.mac},
            {"mtu_bytes", nic.link.mtu},
            {"up", (nic.link.flags & IFF_UP) != 0},
            {"carrier", (nic.link.flags & IFF_RUNNING) != 0},
            {"faults", to_json(nic.kinds)}};
}

Json to_json(const HardwareMechanism& each) {
    return {{"name", each.name},
            {"faults", each.kinds},
            {"acts_on", each.acts_on},
            {"device", each.device},
            {"availability", to_string(each.availability)},
            {"proven", each.proven_how},
            {"missing", each.missing},
            {"how_to_get", each.how_to_get}};
}

/// Reads members; remembers the first that is missing or malformed.
class SurveyMembers {
public:
    explicit SurveyMembers(Json json) : json_(std::move(json)) {}

    template <class T> T take(const char* key) {
        Result<T> value = field<T>(json_, key);
        note(value ? std::nullopt : std::optional(value.error()));
        return value ? std::move(*value) : T();
    }
    /// The enumerator that a member names.
    template <class Enum, std::size_t N> Enum take_word(const char* key, const std::array<Enum, N>& values) {
        const std::string word = take<std::string>(key);
        const auto found = std::ranges::find_if(values, [&](Enum value) { return to_string(value) == word; });
        if (found == values.end()) {
            note(Error(ErrorKind::kHarness, fmt::format("\"{}\" is no {}", word, key)));
            return values.front();
        }
        return *found;
    }
    /// Every element of a list, each read by `read`.
    template <class T, class Read> std::vector<T> take_list(const char* key, const Read& read) {
        std::vector<T> list;
        for (const Json& one : take<std::vector<Json>>(key)) {
            SurveyMembers members(one);
            list.push_back(read(members));
            note(members.error());
        }
        return list;
    }
    void note(const std::optional<Error>& error) { error_ = error_ ? error_ : error; }
    [[nodiscard]] const std::optional<Error>& error() const { return error_; }

private:
    Json json_;
    std::optional<Error> error_;
};

SurveyedKind read_kind(SurveyMembers& members) {
    SurveyedKind kind{.kind = members.take_word("kind", injectors::kFaultKinds)};
    kind.mechanism = members.take<std::string>("mechanism");
    kind.realism = members.take<std::string>("realism");
    kind.data_path = members.take<std::string>("data_path");
    kind.reason = members.take<std::string>("reason");
    return kind;
}

SurveyedNic read_nic(SurveyMembers& members) {
    SurveyedNic nic;
    nic.link.name = members.take<std::string>("name");
    nic.link.kind = members.take<std::string>("kind");
    nic.link.mac = members.take<std::string>("mac");
    nic.link.mtu = members.take<std::uint32_t>("mtu_bytes");
    nic.link.flags = (members.take<bool>("up") ? std::uint32_t{IFF_UP} : 0U) |
                     (members.take<bool>("carrier") ? std::uint32_t{IFF_RUNNING} : 0U);
    nic.kinds = members.take_list<SurveyedKind>("faults", read_kind);
    return nic;
}

HardwareMechanism read_mechanism(SurveyMembers& members) {
    HardwareMechanism mechanism;
    mechanism.name = members.take<std::string>("name");
    mechanism.kinds = members.take<std::vector<std::string>>("faults");
    mechanism.acts_on = members.take<std::string>("acts_on");
    mechanism.device = members.take<std::string>("device");
    mechanism.availability = members.take_word("availability", kAvailabilities);
    mechanism.proven_how = members.take<std::string>("proven");
    mechanism.missing = members.take<std::string>("missing");
    mechanism.how_to_get = members.take<std::string>("how_to_get");
    return mechanism;
}

} // namespace

Result<HostSurvey> survey_this_host(const SurveyOrder& order) {
    Result<std::unique_ptr<injectors::HostOps>> ops = injectors::open_host_ops();
    if (!ops) {
        return fail(std::move(ops.error()));
    }
    // Looked at only: an agent makes the folder when it needs it.
    const std::string journals = nearest_existing(injectors::journal_folder_candidates().front());
    Result<Survey> survey = injectors::survey_host(**ops, order.protected_nics, journals, order.folder);
    if (!survey) {
        return fail(std::move(survey.error()));
    }
    Result<std::vector<HardwareMechanism>> hardware = ask_hardware(*survey, order);
    if (!hardware) {
        return fail(std::move(hardware.error()));
    }
    HostSurvey host{.uid = geteuid(),
                    .capabilities = effective_capabilities(),
                    .survey = std::move(*survey),
                    .hardware = std::move(*hardware)};
    utsname names{};
    if (uname(&names) == 0) {
        host.host = names.nodename;
        host.kernel = fmt::format("{} {}", names.sysname, names.release);
    }
    return host;
}

Json to_json(const SurveyOrder& order) {
    return {{"protected_nics", order.protected_nics}, {"folder", order.folder}};
}

Result<SurveyOrder> survey_order_from_json(const Json& json) {
    SurveyMembers members(json);
    SurveyOrder order{.protected_nics = members.take<std::vector<std::string>>("protected_nics"),
                      .folder = members.take<std::string>("folder")};
    return members.error() ? Result<SurveyOrder>(fail(Error(*members.error()))) : order;
}

Json to_json(const HostSurvey& host) {
    Json nics = Json::array();
    for (const SurveyedNic& nic : host.survey.nics) {
        nics.push_back(to_json(nic));
    }
    Json features = Json::object();
    for (const KernelFeature feature : injectors::kKernelFeatures) {
        const std::string& missing = host.survey.features.missing(feature);
        features[std::string(to_string(feature))] = {{"present", missing.empty()}, {"missing", missing}};
    }
    Json hardware = Json::array();
    for (const HardwareMechanism& each : host.hardware) {
        hardware.push_back(to_json(each));
    }
    return {
        {"schema", "railbreak-doctor"},
        {"version", 1},
        {"host", host.host},
        {"kernel", host.kernel},
        {"uid", host.uid},
        {"capabilities", host.capabilities},
        {"kernel_not_tried", host.survey.features_missing},
        {"kernel_features", features},
        {"nics", nics},
        {"processes", to_json(host.survey.processes)},
        {"file_systems", to_json(host.survey.folders)},
        {"hardware", hardware},
    };
}

Result<HostSurvey> host_survey_from_json(const Json& json) {
    SurveyMembers members(json);
    HostSurvey host;
    host.host = members.take<std::string>("host");
    host.kernel = members.take<std::string>("kernel");
    host.uid = members.take<std::uint32_t>("uid");
    host.capabilities = members.take<std::vector<std::string>>("capabilities");
    host.survey.features_missing = members.take<std::string>("kernel_not_tried");
    const Json features = members.take<Json>("kernel_features");
    for (const KernelFeature feature : injectors::kKernelFeatures) {
        const Result<Json> answer = field<Json>(features, std::string(to_string(feature)).c_str());
        SurveyMembers one(answer.value_or(Json()));
        host.survey.features.set_missing(feature, one.take<std::string>("missing"));
        members.note(one.error());
    }
    host.survey.nics = members.take_list<SurveyedNic>("nics", read_nic);
    host.survey.processes = members.take_list<SurveyedKind>("processes", read_kind);
    host.survey.folders = members.take_list<SurveyedKind>("file_systems", read_kind);
    host.hardware = members.take_list<HardwareMechanism>("hardware", read_mechanism);
    if (members.error()) {
        return fail(Error(*members.error()).during("reading a host's survey"));
    }
    return host;
}

} // namespace railbreak::agent
