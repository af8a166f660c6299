// The RDMA devices of a host and the interfaces they belong to, from sysfs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "injectors/hardware/sysfs.hpp"

namespace railbreak::injectors::hardware {

/// One port of an RDMA device (class/infiniband/DEV/ports/N).
struct RdmaPort {
    std::uint32_t number = 0;
    std::string link_layer;        ///< "InfiniBand" or "Ethernet"
    std::string state;             ///< "ACTIVE", "DOWN" ...
    std::string physical_state;    ///< "LinkUp", "Disabled" ...
    std::vector<std::string> nics; ///< interfaces that its GIDs belong to, sorted
    std::string management_node;   ///< "umad0"; empty without ib_umad
    bool operator==(const RdmaPort&) const = default;
};

/// One RDMA device.
struct RdmaDevice {
    std::string name;
    std::string pci_address;     ///< empty for a software device (rxe, siw)
    std::string verbs_node;      ///< "uverbs0"; empty without ib_uverbs
    std::vector<RdmaPort> ports; ///< by number
    bool operator==(const RdmaDevice&) const = default;
};

/// All RDMA devices that this sysfs shows, by name.
[[nodiscard]] std::vector<RdmaDevice> list_rdma_devices(const Sysfs& sysfs);
/// Those that belong to the interface: a GID of a port is the interface's, or both sit on the same PCI function.
[[nodiscard]] std::vector<RdmaDevice> rdma_devices_of(const Sysfs& sysfs, std::string_view nic);

/// A port and its device.
struct RdmaPortOfNic {
    RdmaDevice device;
    RdmaPort port;
};
/// The InfiniBand port that the interface (IPoIB) is of; nullopt when it is of none.
[[nodiscard]] std::optional<RdmaPortOfNic> infiniband_port_of(const Sysfs& sysfs, std::string_view nic);

} // namespace railbreak::injectors::hardware
