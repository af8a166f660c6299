// `railbreak doctor`: what can be injected on this host, by which mechanism, how that is proven, and what is missing.
#include <filesystem>
#include <iterator>
#include <memory>

#include <sys/utsname.h>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/cli/commands.hpp"
#include "harness/cli/doctor_output.hpp"
#include "injectors/hardware/probes.hpp"
#include "injectors/journal.hpp"
#include "injectors/netlink.hpp"
#include "injectors/real_host_ops.hpp"

namespace railbreak::cli {

namespace {

struct DoctorArguments {
    std::vector<std::string> protect;
    std::string folder;
};

DoctorHost about_this_host() {
    DoctorHost host;
    utsname names{};
    if (uname(&names) == 0) {
        host.name = names.nodename;
        host.kernel = fmt::format("{} {}", names.sysname, names.release);
    }
    host.uid = geteuid();
    host.capabilities = effective_network_capabilities();
    return host;
}

/// Asks every NIC; those of software answer too, with what they lack.
Result<std::vector<injectors::hardware::HardwareMechanism>> ask_hardware(const injectors::Survey& survey,
                                                                         const DoctorArguments& arguments) {
    Result<injectors::NetlinkChannel> route = injectors::NetlinkChannel::open();
    Result<injectors::NetlinkChannel> generic = injectors::NetlinkChannel::open(NETLINK_GENERIC);
    if (!route || !generic) {
        return fail(std::move(route ? generic.error() : route.error()));
    }
    const injectors::hardware::Sysfs sysfs;
    std::vector<injectors::hardware::HardwareMechanism> found;
    for (const injectors::SurveyedNic& nic : survey.nics) {
        auto more = injectors::hardware::probe_hardware({.route = *route,
                                                         .generic = *generic,
                                                         .sysfs = sysfs,
                                                         .nic = nic.link.name,
                                                         .privileges = injectors::hardware::read_privileges(),
                                                         .protected_nics = arguments.protect});
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

int doctor(const CommonOptions& common, const DoctorArguments& arguments) {
    Result<std::unique_ptr<injectors::HostOps>> ops = injectors::open_host_ops();
    if (!ops) {
        return tell(common, ops.error());
    }
    // Looked at only: an agent makes the folder when it needs it.
    const std::string journals = nearest_existing(injectors::journal_folder_candidates().front());
    const std::string folder = arguments.folder.empty() ? "/tmp" : arguments.folder;
    Result<injectors::Survey> survey = injectors::survey_host(**ops, arguments.protect, journals, folder);
    if (!survey) {
        return tell(common, survey.error());
    }
    Result<std::vector<injectors::hardware::HardwareMechanism>> hardware = ask_hardware(*survey, arguments);
    if (!hardware) {
        return tell(common, hardware.error());
    }
    const DoctorReport report{about_this_host(), std::move(*survey), std::move(*hardware)};
    print_result(common.json ? doctor_json(report) : doctor_text(report));
    if (report.survey.any_nic()) {
        return 0;
    }
    return tell(Error(ErrorKind::kRefused, "no fault can be injected on any NIC here")
                    .advise("The list above says why for each; railbreak lab up NAME makes hosts to try with."));
}

} // namespace

void add_doctor_command(CLI::App& app, CommonOptions& common, const Choose& choose) {
    CLI::App* command =
        app.add_subcommand("doctor", "Say what can be injected on this host, how, and what is missing for the rest");
    auto arguments = std::make_shared<DoctorArguments>();
    command->add_option("--protect", arguments->protect, "Interfaces that may not be touched");
    command->add_option("--folder", arguments->folder, "A folder of the file system that disk_full would fill");
    command->callback(
        [&common, arguments, choose] { choose([&common, arguments] { return doctor(common, *arguments); }); });
}

} // namespace railbreak::cli
