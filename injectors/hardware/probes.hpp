// What the hardware behind one NIC offers to fault injection, found out by asking it.
//
// Every probe only reads. Nothing here prints: whoever does shows a mechanism as one line, with proven_how behind one
// that is there, and missing and how_to_get behind one that is not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "injectors/hardware/privileges.hpp"
#include "injectors/hardware/sysfs.hpp"
#include "injectors/netlink.hpp"

namespace railbreak::injectors::hardware {

enum class Availability : std::uint8_t {
    kAvailable, ///< the device answers, and the whole course of the fault was tested on a device of this driver
    kUnproven,  ///< the device answers; the fault was tested without such hardware only (see proven_how)
    kMissing,   ///< it cannot be used here now: see missing
};
/// "available", "unproven", "missing".
[[nodiscard]] std::string_view to_string(Availability availability);

/// One way to make a fault in hardware.
struct HardwareMechanism {
    std::string name;               ///< "dcb_class_rate", "devlink_rate", "vf_rate" ...: unique in a list
    std::vector<std::string> kinds; ///< scenario keys of the faults it makes; empty: none yet
    std::string acts_on;            ///< the traffic it reaches: "all traffic of the port, RoCE included"
    std::string device;             ///< what it would act on: "eth0", "mlx5_0 port 1", "0000:3b:00.0"
    Availability availability = Availability::kMissing;
    std::string proven_how; ///< what was tested and on what; never empty
    std::string missing;    ///< kMissing: what is not there; kUnproven: what only hardware can show
    std::string how_to_get; ///< kMissing: what to do about it; may be empty
};

/// What the probes may use.
struct ProbeInputs {
    NetlinkChannel& route;   ///< NETLINK_ROUTE in the NIC's network namespace
    NetlinkChannel& generic; ///< NETLINK_GENERIC in the same
    const Sysfs& sysfs;
    std::string nic;
    Privileges privileges;
    std::vector<std::string> protected_nics; ///< may not be hit with it
    std::string device_nodes = "/dev";
};

/// One entry per mechanism, always the same ones in the same order, one per GPU for the last two (one without a device
/// when there are none). kInput when there is no such interface; a probe that fails makes its mechanism kMissing with
/// the Error as the reason.
[[nodiscard]] Result<std::vector<HardwareMechanism>> probe_hardware(const ProbeInputs& inputs);

} // namespace railbreak::injectors::hardware
