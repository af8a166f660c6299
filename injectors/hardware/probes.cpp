#include "injectors/hardware/probes.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <unistd.h>

#include "injectors/hardware/dcb.hpp"
#include "injectors/hardware/devlink_rate.hpp"
#include "injectors/hardware/ib_port.hpp"
#include "injectors/hardware/link_modes.hpp"
#include "injectors/hardware/loaded_library.hpp"
#include "injectors/hardware/nvml.hpp"
#include "injectors/hardware/pci.hpp"
#include "injectors/hardware/pcie_speed.hpp"
#include "injectors/hardware/rdma_devices.hpp"
#include "injectors/hardware/refusal.hpp"
#include "injectors/hardware/vf.hpp"

namespace railbreak::injectors::hardware {
namespace {

/// What all probes look at, read once.
struct Context {
    const ProbeInputs& inputs;
    std::int32_t ifindex = 0;
    Result<PciFunction> function;
    std::string driver; ///< of the PCI function; empty when there is none
};

HardwareMechanism mechanism(std::string name, std::vector<std::string> kinds, std::string acts_on, std::string device,
                            std::string proven_how) {
    HardwareMechanism made;
    made.name = std::move(name);
    made.kinds = std::move(kinds);
    made.acts_on = std::move(acts_on);
    made.device = std::move(device);
    made.proven_how = std::move(proven_how);
    return made;
}

HardwareMechanism missing(HardwareMechanism made, std::string what, std::string how_to_get = "") {
    made.availability = Availability::kMissing;
    made.missing = std::move(what);
    made.how_to_get = std::move(how_to_get);
    return made;
}
HardwareMechanism missing(HardwareMechanism made, const Error& error) {
    return missing(std::move(made), error.message(), error.advice());
}
HardwareMechanism unproven(HardwareMechanism made, std::string what) {
    made.availability = Availability::kUnproven;
    made.missing = std::move(what);
    return made;
}
HardwareMechanism available(HardwareMechanism made) {
    made.availability = Availability::kAvailable;
    return made;
}

/// The words for a NIC whose driver lacks an operation.
std::string driver_words(const Context& context) {
    return context.driver.empty() ? std::string("the interface is no hardware")
                                  : fmt::format("the driver {}", context.driver);
}

std::string lacks(const Context& context, std::string_view operation) {
    return fmt::format("{}{} {}", driver_words(context), context.driver.empty() ? ": no" : " has no", operation);
}

constexpr const char* kRunInInitialNamespace = "run as root outside of user namespaces (no rootless container)";

/// Reasons that lie in the process and not in the device, for mechanisms that need CAP_NET_ADMIN.
std::optional<HardwareMechanism> without_net_admin(const HardwareMechanism& made, const Privileges& privileges,
                                                   bool initial) {
    if (!privileges.net_admin) {
        return missing(made, "CAP_NET_ADMIN", "run as root, or give the capability");
    }
    if (initial && !privileges.initial_user_namespace) {
        return missing(made, "CAP_NET_ADMIN in the initial user namespace", kRunInInitialNamespace);
    }
    return std::nullopt;
}

HardwareMechanism probe_dcb(const Context& context) {
    auto made = mechanism("dcb_class_rate", {"cap"}, "what the port sends in a traffic class, RoCE included",
                          context.inputs.nic, "messages, verdicts and read-back against recorded answers");
    const auto state = read_dcb(context.inputs.route, context.inputs.nic);
    if (!state && says_unsupported(state.error())) {
        return missing(made, lacks(context, "DCB"), "NICs of mlx4, mlx5 and mlxsw have class rates");
    }
    if (!state) {
        return missing(made, state.error());
    }
    if (!state->max_rates) {
        return missing(made, lacks(context, "rate limit per traffic class"), "NICs of mlx4, mlx5 and mlxsw have it");
    }
    if (!host_owns_dcb(*state)) {
        return missing(made, "a DCBX agent owns the port's DCB settings", "give DCBX to the host");
    }
    if (auto refused = without_net_admin(made, context.inputs.privileges, true)) {
        return *refused;
    }
    return unproven(made, "that the port keeps to the rate, RoCE included");
}

HardwareMechanism probe_devlink(const Context& context) {
    auto made = mechanism("devlink_rate", {"cap"}, "what a VF or SF sends, RoCE included", context.inputs.nic,
                          "messages, order of changes and read-back against recorded answers");
    const auto devlink = find_family(context.inputs.generic, "devlink");
    if (!devlink) {
        return missing(made, devlink.error().message(), "load a driver that uses devlink");
    }
    const auto ports = list_devlink_ports(context.inputs.generic, *devlink);
    const auto rates = list_rates(context.inputs.generic, *devlink);
    if (!ports || !rates) {
        return missing(made, ports ? rates.error() : ports.error());
    }
    const auto port = std::find_if(ports->begin(), ports->end(),
                                   [&](const DevlinkPort& each) { return each.ifindex == context.ifindex; });
    if (port == ports->end()) {
        return missing(made, lacks(context, "devlink port"));
    }
    made.device = fmt::format("{}/{}/{}", port->bus, port->device, port->index);
    const auto leaf = std::find_if(rates->begin(), rates->end(), [&](const RateObject& each) {
        return each.key.bus == port->bus && each.key.device == port->device && each.key.port == port->index;
    });
    if (leaf == rates->end()) {
        return missing(made, "a rate object of this port", "VFs and SFs have them in switchdev mode");
    }
    if (auto refused = without_net_admin(made, context.inputs.privileges, true)) {
        return *refused;
    }
    return unproven(made, "that the function keeps to the rate");
}

/// VF rate and VF link state: the same device, two faults.
void probe_vfs(const Context& context, std::vector<HardwareMechanism>& list) {
    const char* proven = "messages and read-back against recorded answers; the kernel's refusal on a veth";
    auto rate = mechanism("vf_rate", {"cap"}, "what one VF sends, RoCE included", context.inputs.nic, proven);
    auto link = mechanism("vf_link_state", {"link_down"}, "all traffic of one VF", context.inputs.nic, proven);
    const auto vfs = read_vfs(context.inputs.route, context.ifindex);
    std::uint64_t possible = 0;
    if (context.function) {
        possible = context.inputs.sysfs
                       .read_number(fmt::format("bus/pci/devices/{}/sriov_totalvfs", context.function->address))
                       .value_or(0);
    }
    for (HardwareMechanism& made : {std::ref(rate), std::ref(link)}) {
        if (!vfs) {
            made = missing(made, vfs.error());
        } else if (vfs->empty()) {
            made = possible == 0 ? missing(made, lacks(context, "virtual functions"))
                                 : missing(made, "active VFs",
                                           fmt::format("write a number up to {} to sriov_numvfs of {}", possible,
                                                       context.function->address));
        } else if (auto refused = without_net_admin(made, context.inputs.privileges, false)) {
            made = *refused;
        } else {
            made = unproven(made, fmt::format("the effect on the {} VFs of this driver", vfs->size()));
        }
        list.push_back(made);
    }
}

HardwareMechanism probe_link_modes(const Context& context) {
    auto made = mechanism("link_modes", {"cap"}, "all traffic of the port, RoCE included", context.inputs.nic,
                          "on an emulated e1000e: set narrowed, link trained anew, set restored; recorded answers");
    const auto ethtool = find_family(context.inputs.generic, "ethtool");
    if (!ethtool) {
        return missing(made, ethtool.error().message(), "Linux 5.6 with CONFIG_ETHTOOL_NETLINK");
    }
    const auto modes = read_link_modes(context.inputs.generic, *ethtool, context.inputs.nic);
    if (!modes && says_unsupported(modes.error())) {
        return missing(made, lacks(context, "link modes"));
    }
    if (!modes) {
        return missing(made, modes.error());
    }
    std::set<BitRate> speeds;
    for (const LinkMode& mode : modes->modes) {
        if (speed_of(mode) != BitRate()) {
            speeds.insert(speed_of(mode));
        }
    }
    if (speeds.size() < 2) {
        return missing(made, lacks(context, "second speed"));
    }
    if (!modes->autonegotiation) {
        return missing(made, "auto-negotiation is off", "switch it on at both ends");
    }
    if (auto refused = without_net_admin(made, context.inputs.privileges, false)) {
        return *refused;
    }
    return unproven(made, "that this port and its partner train at a lower speed and come back");
}

/// The InfiniBand port of the NIC's RDMA device, and access to its nodes.
HardwareMechanism probe_ib(const Context& context) {
    auto made = mechanism("ib_port", {"link_down", "cap"}, "all traffic of the InfiniBand port", context.inputs.nic,
                          "packets against libibmad's fields; disable, width and speed against a simulated fabric");
    const auto found = infiniband_port_of(context.inputs.sysfs, context.inputs.nic);
    if (!found) {
        return missing(made, "an InfiniBand port of this interface");
    }
    made.device = fmt::format("{} port {}", found->device.name, found->port.number);
    const std::string node = fmt::format("{}/infiniband/{}", context.inputs.device_nodes, found->port.management_node);
    if (found->port.management_node.empty()) {
        return missing(made, "a management node of the port", "load the module ib_umad");
    }
    if (::access(node.c_str(), R_OK | W_OK) != 0) {
        return missing(made, fmt::format("access to {}", node), "run as root");
    }
    if (const auto library = LoadedLibrary::load("libibumad.so.3", "apt-get install libibumad3"); !library) {
        return missing(made, library.error());
    }
    return unproven(made, "that the fabric lets this node set the port, and that the port trains again");
}

HardwareMechanism probe_queue_pairs(const Context& context, const std::vector<RdmaDevice>& devices) {
    auto made =
        mechanism("qp_error", {"link_down"}, "the RDMA connections of one process", context.inputs.nic,
                  "on software RoCE (in a virtual machine): another process's queue pair, flushed and read back");
    for (const RdmaDevice& device : devices) {
        if (device.verbs_node.empty()) {
            continue;
        }
        made.device = device.name;
        const std::string node = fmt::format("{}/infiniband/{}", context.inputs.device_nodes, device.verbs_node);
        if (::access(node.c_str(), R_OK | W_OK) != 0) {
            return missing(made, fmt::format("access to {}", node), "a member of the group rdma, or root");
        }
        // Of the devices without a PCI function, only rxe was tried.
        const bool software_roce = device.pci_address.empty();
        return software_roce ? available(made)
                             : unproven(made, "that this driver takes a queue pair to the error state from outside");
    }
    return missing(made, devices.empty() ? "an RDMA device of this interface" : "a verbs node of the RDMA device",
                   devices.empty() ? "for software RoCE: load rdma_rxe and add a link" : "load the module ib_uverbs");
}

HardwareMechanism probe_pci_remove(const Context& context) {
    auto made = mechanism("pci_remove", {"link_down"}, "everything on the PCI function", context.inputs.nic,
                          "on an emulated e1000e below a PCIe port: removed, rescanned, found again; rules on trees "
                          "of files");
    if (!context.function) {
        return missing(made, context.function.error().message());
    }
    made.device = context.function->address;
    if (const auto allowed = check_removable(context.inputs.sysfs, *context.function, context.inputs.protected_nics);
        !allowed) {
        return missing(made, allowed.error());
    }
    if (!context.inputs.privileges.root_files) {
        return missing(made, "write access to the device's files in sysfs", kRunInInitialNamespace);
    }
    return context.driver == "e1000e" ? available(made)
                                      : unproven(made, "that this device and its settings come back after a rescan");
}

HardwareMechanism probe_pcie_speed(const Context& context) {
    auto made = mechanism("pcie_speed", {"cap"}, "everything below the PCIe port", context.inputs.nic,
                          "finding, writing and checking on trees of files");
    if (!context.function) {
        return missing(made, context.function.error().message());
    }
    const auto control = find_pcie_speed(context.inputs.sysfs, *context.function);
    if (!control) {
        return missing(made, control.error());
    }
    made.device = control->port;
    if (control->slowest_state == 0) {
        return missing(made, "a second speed of the PCIe port");
    }
    if (const auto allowed = check_pcie_speed_target(context.inputs.sysfs, *control, context.inputs.protected_nics);
        !allowed) {
        return missing(made, allowed.error());
    }
    if (!context.inputs.privileges.root_files) {
        return missing(made, "write access to the cooling device", kRunInInitialNamespace);
    }
    return unproven(made, "that the link trains at another speed and comes back");
}

void probe_gpus(const ProbeInputs& inputs, std::vector<HardwareMechanism>& list) {
    const char* proven = "loading and decisions against a stand-in for the library";
    const auto power = mechanism("gpu_power", {}, "the speed of one GPU", "", proven);
    const auto clocks = mechanism("gpu_clocks", {}, "the speed of one GPU", "", proven);
    const auto nvml = Nvml::load();
    const auto gpus = nvml ? nvml->gpus() : Result<std::vector<Gpu>>(fail(Error(nvml.error())));
    for (const HardwareMechanism& made : {power, clocks}) {
        if (!gpus) {
            list.push_back(missing(made, "no NVML here: " + gpus.error().message(), gpus.error().advice()));
        } else if (gpus->empty()) {
            list.push_back(missing(made, "a GPU"));
        }
    }
    for (const Gpu& gpu : gpus.value_or(std::vector<Gpu>{})) {
        for (HardwareMechanism made : {power, clocks}) {
            made.device = gpu.uuid;
            list.push_back(inputs.privileges.root_files
                               ? unproven(made, "that the GPU becomes slower, and as fast as before afterwards")
                               : missing(made, "root", "run as root"));
        }
    }
}

} // namespace

std::string_view to_string(Availability availability) {
    switch (availability) {
    case Availability::kAvailable: return "available";
    case Availability::kUnproven: return "unproven";
    case Availability::kMissing: return "missing";
    }
    return "?";
}

Result<std::vector<HardwareMechanism>> probe_hardware(const ProbeInputs& inputs) {
    const auto ifindex = interface_index(inputs.route, inputs.nic);
    if (!ifindex) {
        return fail(Error(ifindex.error()));
    }
    auto function = pci_function_of_nic(inputs.sysfs, inputs.nic);
    std::string driver = function ? function->driver : "";
    const Context context{inputs, *ifindex, std::move(function), std::move(driver)};
    const auto rdma = rdma_devices_of(inputs.sysfs, inputs.nic);
    std::vector<HardwareMechanism> list;
    list.push_back(probe_dcb(context));
    list.push_back(probe_devlink(context));
    probe_vfs(context, list);
    list.push_back(probe_link_modes(context));
    list.push_back(probe_ib(context));
    list.push_back(probe_queue_pairs(context, rdma));
    list.push_back(probe_pci_remove(context));
    list.push_back(probe_pcie_speed(context));
    probe_gpus(inputs, list);
    return list;
}

} // namespace railbreak::injectors::hardware
