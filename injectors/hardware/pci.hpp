// A NIC that falls off the PCI bus: remove, rescan, and finding the same NIC again.
//
// Removing the function takes its interface, its RDMA device and its VFs with it; a rescan of the bridge above brings
// the hardware back with a new interface index, down, without addresses and with default settings. So the identity is
// the PCI address with the MAC addresses, never the index, and what lay on the interface must be put back by others.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "injectors/hardware/sysfs.hpp"

namespace railbreak::injectors::hardware {

/// A network interface of a PCI function.
struct PciNic {
    std::string name;
    std::string mac;
    bool operator==(const PciNic&) const = default;
};

/// One PCI function, as far as removing it needs to know.
struct PciFunction {
    std::string address;           ///< "0000:01:00.0"
    std::string upstream;          ///< address of the bridge above; empty on a root bus
    std::string driver;            ///< "mlx5_core"; empty when none is bound
    std::uint32_t class_code = 0;  ///< 24 bits: 0x02.... is a network controller
    std::uint32_t active_vfs = 0;  ///< sriov_numvfs
    std::string physical_function; ///< address of the PF when this is a VF, else empty
    std::vector<PciNic> nics;      ///< by name
    bool operator==(const PciFunction&) const = default;
};

/// True for "dddd:bb:dd.f" in hexadecimal digits.
[[nodiscard]] bool is_pci_address(std::string_view text);
/// The device of a function: its address without ".f".
[[nodiscard]] std::string_view pci_device_of(std::string_view address);

/// The PCI function behind a network interface of the present namespace's sysfs. kRefused when the interface belongs to
/// no PCI device (a veth, a bridge ...); kInput when there is no such interface.
[[nodiscard]] Result<PciFunction> pci_function_of_nic(const Sysfs& sysfs, std::string_view nic);
/// The function at an address. kInput when there is none.
[[nodiscard]] Result<PciFunction> read_pci_function(const Sysfs& sysfs, std::string_view address);
/// All functions below the same bridge (on the same bus), the given one included, by address.
[[nodiscard]] std::vector<PciFunction> pci_neighbours(const Sysfs& sysfs, const PciFunction& function);

/// The file that brings the function back: the bridge's "rescan", or that of its root bus.
[[nodiscard]] std::string rescan_path(const PciFunction& function);

/// Refuses, with the reason, to remove a function: no network controller; on the same device as a protected NIC, or its
/// PF; VFs are active (they would be lost); a display or compute controller shares the bridge; there is no rescan file.
[[nodiscard]] Result<void> check_removable(const Sysfs& sysfs, const PciFunction& function,
                                           const std::vector<std::string>& protected_nics);

/// Takes the function off the bus and proves that it is gone. Looks first whether it is still the same (address, driver
/// and MACs), else kRefused. check_removable is the caller's.
[[nodiscard]] Result<void> remove_pci_function(const Sysfs& sysfs, const PciFunction& function);

/// Waits for the next change of any network interface; false when the deadline passed (HostOps::wait_event).
using WaitForLinkEvent = std::function<Result<bool>(Deadline)>;
/// Rescans and waits until the function is back with all its MACs; gives it with the interfaces' present names. Does
/// nothing but look when it is there already. kTeardown when the deadline passes first.
[[nodiscard]] Result<PciFunction> restore_pci_function(const Sysfs& sysfs, const PciFunction& former,
                                                       const WaitForLinkEvent& wait, Deadline deadline);

} // namespace railbreak::injectors::hardware
