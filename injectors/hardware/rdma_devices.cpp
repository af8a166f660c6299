#include "injectors/hardware/rdma_devices.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "injectors/hardware/pci.hpp"

namespace railbreak::injectors::hardware {
namespace {

/// "4: ACTIVE" without its number.
std::string words_of(const std::string& text) {
    const auto colon = text.find(": ");
    return colon == std::string::npos ? text : text.substr(colon + 2);
}

/// The node of a class whose "ibdev" (and "port", when given) are these.
std::string node_of(const Sysfs& sysfs, std::string_view node_class, std::string_view device, std::string_view port) {
    for (const std::string& node : sysfs.list(fmt::format("class/{}", node_class))) {
        const auto file = [&](std::string_view name) {
            return sysfs.read(fmt::format("class/{}/{}/{}", node_class, node, name)).value_or("");
        };
        // The subnet manager's nodes ("issm0") have the same files.
        if (!node.starts_with("issm") && file("ibdev") == device && (port.empty() || file("port") == port)) {
            return node;
        }
    }
    return {};
}

std::vector<std::string> nics_of(const Sysfs& sysfs, const std::string& port_path) {
    std::vector<std::string> nics;
    const std::string folder = port_path + "/gid_attrs/ndevs";
    for (const std::string& index : sysfs.list(folder)) {
        // An unused entry of the table answers EINVAL.
        if (auto nic = sysfs.read(folder + "/" + index); nic && !nic->empty()) {
            nics.push_back(std::move(*nic));
        }
    }
    std::sort(nics.begin(), nics.end());
    nics.erase(std::unique(nics.begin(), nics.end()), nics.end());
    return nics;
}

RdmaPort read_port(const Sysfs& sysfs, const std::string& device, const std::string& number) {
    const std::string path = fmt::format("class/infiniband/{}/ports/{}", device, number);
    RdmaPort port;
    std::from_chars(number.data(), number.data() + number.size(), port.number);
    port.link_layer = sysfs.read(path + "/link_layer").value_or("");
    port.state = words_of(sysfs.read(path + "/state").value_or(""));
    port.physical_state = words_of(sysfs.read(path + "/phys_state").value_or(""));
    port.nics = nics_of(sysfs, path);
    port.management_node = node_of(sysfs, "infiniband_mad", device, number);
    return port;
}

} // namespace

std::vector<RdmaDevice> list_rdma_devices(const Sysfs& sysfs) {
    std::vector<RdmaDevice> devices;
    for (const std::string& name : sysfs.list("class/infiniband")) {
        RdmaDevice device;
        device.name = name;
        const std::string parent = sysfs.real_path(fmt::format("class/infiniband/{}/device", name));
        device.pci_address = is_pci_address(last_part(parent)) ? last_part(parent) : "";
        device.verbs_node = node_of(sysfs, "infiniband_verbs", name, "");
        for (const std::string& number : sysfs.list(fmt::format("class/infiniband/{}/ports", name))) {
            device.ports.push_back(read_port(sysfs, name, number));
        }
        std::sort(device.ports.begin(), device.ports.end(),
                  [](const RdmaPort& a, const RdmaPort& b) { return a.number < b.number; });
        devices.push_back(std::move(device));
    }
    return devices;
}

std::vector<RdmaDevice> rdma_devices_of(const Sysfs& sysfs, std::string_view nic) {
    const auto function = pci_function_of_nic(sysfs, nic);
    std::vector<RdmaDevice> found;
    for (RdmaDevice& device : list_rdma_devices(sysfs)) {
        const bool same_function = function && !device.pci_address.empty() && device.pci_address == function->address;
        const bool by_gid = std::any_of(device.ports.begin(), device.ports.end(), [&](const RdmaPort& port) {
            return std::find(port.nics.begin(), port.nics.end(), nic) != port.nics.end();
        });
        if (same_function || by_gid) {
            found.push_back(std::move(device));
        }
    }
    return found;
}

std::optional<RdmaPortOfNic> infiniband_port_of(const Sysfs& sysfs, std::string_view nic) {
    // Where one function has several ports, the interface tells its own, counted from 0.
    const std::uint64_t own = 1 + sysfs.read_number(fmt::format("class/net/{}/dev_port", nic)).value_or(0);
    for (const RdmaDevice& device : rdma_devices_of(sysfs, nic)) {
        for (const RdmaPort& port : device.ports) {
            if (port.link_layer == "InfiniBand" && (device.ports.size() == 1 || port.number == own)) {
                return RdmaPortOfNic{device, port};
            }
        }
    }
    return std::nullopt;
}

} // namespace railbreak::injectors::hardware
