// A slower PCI Express link: the kernel's cooling device of the port above a NIC (Linux 6.13 and later).
//
// The kernel sets the port's target speed, retrains and waits; state 0 is full speed, each further state one generation
// slower, down to 2.5 GT/s. Every device below that port is slowed, GPU-direct traffic included.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "injectors/hardware/pci.hpp"
#include "injectors/hardware/sysfs.hpp"

namespace railbreak::injectors::hardware {

/// The speed control of one PCIe port.
struct PcieSpeedControl {
    std::string path; ///< below sysfs: "class/thermal/cooling_device4"
    std::string port; ///< address of the port above the NIC
    std::uint32_t state = 0;
    std::uint32_t slowest_state = 0;
    bool operator==(const PcieSpeedControl&) const = default;
};

/// What a function's link runs at, in the kernel's words ("16.0 GT/s PCIe", "16").
struct PcieLink {
    std::string speed;
    std::string width;
    bool operator==(const PcieLink&) const = default;
};

/// current_link_speed and current_link_width of the function. kRefused when it has no PCIe link.
[[nodiscard]] Result<PcieLink> read_pcie_link(const Sysfs& sysfs, const PciFunction& function);

/// The control of the port above the function ("PCIe_Port_Link_Speed_<address>"). kRefused when the function is on a
/// root bus or the kernel offers none for that port.
[[nodiscard]] Result<PcieSpeedControl> find_pcie_speed(const Sysfs& sysfs, const PciFunction& function);

/// Whether that control is still the one of that port: cooling devices are numbered as they appear.
[[nodiscard]] bool is_pcie_speed_of(const Sysfs& sysfs, const PcieSpeedControl& control);

/// Refuses to slow a port that a protected NIC is below.
[[nodiscard]] Result<void> check_pcie_speed_target(const Sysfs& sysfs, const PcieSpeedControl& control,
                                                   const std::vector<std::string>& protected_nics);

/// Sets the state and proves it by read-back. kInput beyond the slowest state; errno EAGAIN when the link trained at
/// another speed, ETIMEDOUT when it did not train: restore then too.
[[nodiscard]] Result<void> set_pcie_speed(const Sysfs& sysfs, const PcieSpeedControl& control, std::uint32_t state);
/// Writes the state that `former` had and proves it; kTeardown when it is not there afterwards.
[[nodiscard]] Result<void> restore_pcie_speed(const Sysfs& sysfs, const PcieSpeedControl& former);

} // namespace railbreak::injectors::hardware
