#include "injectors/hardware/pcie_speed.hpp"

#include <fmt/format.h>

#include "injectors/hardware/refusal.hpp"

namespace railbreak::injectors::hardware {
namespace {

constexpr std::string_view kTypePrefix = "PCIe_Port_Link_Speed_";

std::string type_of(std::string_view port) {
    return fmt::format("{}{}", kTypePrefix, port);
}

/// Writes a state to the control, which must still be that of its port, and reads it back.
Result<void> write_state(const Sysfs& sysfs, const PcieSpeedControl& control, std::uint32_t state) {
    if (!is_pcie_speed_of(sysfs, control)) {
        return fail(
            Error(ErrorKind::kRefused, fmt::format("{} is no longer the speed of {}", control.path, control.port)));
    }
    if (auto written = sysfs.write(control.path + "/cur_state", std::to_string(state)); !written) {
        return written;
    }
    const auto seen = sysfs.read_number(control.path + "/cur_state");
    if (!seen) {
        return fail(Error(seen.error()));
    }
    if (*seen != state) {
        return fail(Error(ErrorKind::kHarness, fmt::format("the link below {} runs at another speed", control.port))
                        .with("written", std::to_string(state))
                        .with("read", std::to_string(*seen)));
    }
    return {};
}

} // namespace

bool is_pcie_speed_of(const Sysfs& sysfs, const PcieSpeedControl& control) {
    return sysfs.read(control.path + "/type").value_or("") == type_of(control.port);
}

Result<PcieLink> read_pcie_link(const Sysfs& sysfs, const PciFunction& function) {
    const std::string folder = "bus/pci/devices/" + function.address;
    const auto speed = sysfs.read(folder + "/current_link_speed");
    const auto width = sysfs.read(folder + "/current_link_width");
    if (!speed || !width) {
        return fail(Error(ErrorKind::kRefused, fmt::format("{} has no PCIe link", function.address)));
    }
    return PcieLink{*speed, *width};
}

Result<PcieSpeedControl> find_pcie_speed(const Sysfs& sysfs, const PciFunction& function) {
    if (function.upstream.empty()) {
        return fail(Error(ErrorKind::kRefused, fmt::format("{} is on a root bus, below no port", function.address)));
    }
    for (const std::string& name : sysfs.list("class/thermal")) {
        PcieSpeedControl control;
        control.path = "class/thermal/" + name;
        control.port = function.upstream;
        if (sysfs.read(control.path + "/type").value_or("") != type_of(control.port)) {
            continue;
        }
        const auto state = sysfs.read_number(control.path + "/cur_state");
        const auto slowest = sysfs.read_number(control.path + "/max_state");
        if (!state || !slowest) {
            return fail(Error(state ? slowest.error() : state.error()));
        }
        control.state = static_cast<std::uint32_t>(*state);
        control.slowest_state = static_cast<std::uint32_t>(*slowest);
        return control;
    }
    return fail(
        Error(ErrorKind::kRefused, fmt::format("the kernel offers no speed control of the port {}", function.upstream))
            .advise("it comes with Linux 6.13 and CONFIG_PCIE_THERMAL"));
}

Result<void> check_pcie_speed_target(const Sysfs& sysfs, const PcieSpeedControl& control,
                                     const std::vector<std::string>& protected_nics) {
    for (const std::string& nic : protected_nics) {
        const std::string path = sysfs.real_path("class/net/" + nic);
        if (path.find("/" + control.port + "/") != std::string::npos) {
            return fail(Error(ErrorKind::kRefused,
                              fmt::format("the protected interface {} is below the port {}", nic, control.port)));
        }
    }
    return {};
}

Result<void> set_pcie_speed(const Sysfs& sysfs, const PcieSpeedControl& control, std::uint32_t state) {
    if (state > control.slowest_state) {
        return fail(Error(ErrorKind::kInput,
                          fmt::format("the port {} has {} speeds", control.port, control.slowest_state + 1)));
    }
    return write_state(sysfs, control, state);
}

Result<void> restore_pcie_speed(const Sysfs& sysfs, const PcieSpeedControl& former) {
    auto done = write_state(sysfs, former, former.state);
    return done ? done : fail(as_teardown(done.error()));
}

} // namespace railbreak::injectors::hardware
