// Merges the faults that are active on one target into one wanted state.
//
// Undoing a fault is "compose what remains and go there", so faults may start and end in any order and the last one
// always leads back to the original state.
//   caps            the lowest rate of each direction holds
//   delay, jitter   add up
//   loss, corrupt, duplicate, reorder   act independently: 1 - (1 - a)(1 - b), rounded to millionths
//   bursts          only alone in their direction, and not with another loss: refused
//   blackhole       wins over partition; peers of partitions are united
//   mtu             the smallest
//   link_down       wins over everything in effect; what lies underneath stays and acts again once the link is up
//   reroute         one at a time on a NIC: a second is refused
//   port_speed, dcb_class_rate, vf_rate, devlink_rate, ib_rate, pcie_speed   the lowest of each; they limit one after
//                   the other. But a function's rate is set by one of vf_rate and devlink_rate: both are refused
//   ib_down         wins over ib_rate, which acts again once the port is up
//   pci_remove      takes everything on the NIC with it: refused together with anything else
//   pause, kill     any; cpu: the smallest part; disk_full: the least room
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "injectors/fault.hpp"

namespace railbreak::injectors {

/// Which packets of one direction are dropped.
struct Drops {
    bool all = false;
    std::vector<std::string> peers; ///< sorted, each once; empty when `all`
    bool operator==(const Drops&) const = default;
    [[nodiscard]] bool any() const { return all || !peers.empty(); }
};

/// What a target should be like. Default: as found.
struct WantedState {
    std::optional<BitRate> send;    ///< cap on what the host sends; empty: none
    std::optional<BitRate> receive; ///< cap on what the host receives; empty: none
    PacketTreatment send_packets;
    PacketTreatment receive_packets;
    Drops send_drops;
    Drops receive_drops;
    std::optional<std::uint32_t> mtu_bytes;
    bool down = false;
    std::optional<std::string> via_nic; ///< rerouted through this interface
    bool stopped = false;
    bool killed = false;
    std::optional<Millionths> cpu;
    std::optional<ByteCount> disk_leave;
    std::optional<BitRate> port_speed; ///< of the link itself
    std::optional<BitRate> class_rate; ///< of each traffic class
    std::optional<BitRate> vf_rate;
    std::optional<BitRate> devlink_rate;
    std::optional<BitRate> ib_rate;
    std::optional<BitRate> pcie_rate;
    bool ib_down = false;
    bool removed = false; ///< off its PCI bus
    bool operator==(const WantedState&) const = default;
};

/// The one state that all of `faults` (on one target) together mean. Order does not matter. kRefused, naming both
/// faults, when they cannot be combined.
[[nodiscard]] Result<WantedState> compose(std::span<const FaultRequest> faults);

} // namespace railbreak::injectors
