// The `cap` fault: a NIC's line rate is lowered in one or both directions while traffic flows.
//
// Send: where the root is the lab's own htb, its one class changes rate in place (no packet is lost, nothing is
// re-made). Where the root is the kernel's default, an htb of ours with one class and a bfifo takes its place and is
// deleted by handle afterwards. Any other root is somebody's configuration and is refused.
// Receive: an ifb device with the same htb, behind a clsact qdisc whose only filter redirects everything to it. The
// undo goes filter, clsact qdisc, ifb: the other way round the redirect leads nowhere and all traffic is lost.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "injectors/host_ops.hpp"

namespace railbreak::injectors {

/// Handles of what a cap builds (the lab's own are in traffic_control.hpp). Handle and kind together say whose it is.
inline constexpr TcHandle kOwnHtb = tc_handle(0xfa01, 0);
inline constexpr TcHandle kOwnHtbClass = tc_handle(0xfa01, 1);
inline constexpr TcHandle kOwnFifo = tc_handle(0xfa02, 0);
inline constexpr std::uint16_t kRedirectPriority = 0xfa01;

/// Name of the ifb device that serves a NIC.
[[nodiscard]] std::string ifb_name(std::int32_t ifindex);

/// Looks at the NIC, refuses foreign state by name (kRefused), and gives what undo needs. Nothing is changed.
/// `owner` becomes the ifb's alias.
[[nodiscard]] Result<PortState> plan_cap(HostOps& ops, const DeviceIdentity& device, Direction direction,
                                         const std::string& owner);

/// Makes the NIC send at most at `rate`, or as before when empty. Idempotent; may be repeated after a failure. A rate
/// above the lab's own leaves the lab's.
[[nodiscard]] Result<void> set_send_cap(HostOps& ops, std::int32_t ifindex, const PortState& former,
                                        std::optional<BitRate> rate);
/// The same for receiving.
[[nodiscard]] Result<void> set_receive_cap(HostOps& ops, std::int32_t ifindex, const PortState& former,
                                           std::optional<BitRate> rate);

/// Removes a receive cap's ifb when the NIC itself is gone.
[[nodiscard]] Result<void> remove_orphan_ifb(HostOps& ops, std::int32_t ifindex, const PortState& former);

/// The rate that the kernel reports for the sending (receiving) side; empty when no railbreak cap is there. For the
/// lab's class: the class's rate, capped or not.
[[nodiscard]] Result<std::optional<BitRate>> read_send_cap(HostOps& ops, std::int32_t ifindex, const PortState& former);
[[nodiscard]] Result<std::optional<BitRate>> read_receive_cap(HostOps& ops, std::int32_t ifindex);

/// Reads back that the directions that `former` names carry nothing of ours any more and the lab's class is as it was;
/// kTeardown otherwise. Gives a sentence for everything that somebody else changed meanwhile and that is left alone.
[[nodiscard]] Result<std::vector<std::string>> verify_port(HostOps& ops, std::int32_t ifindex, const PortState& former);

/// "htb class rate in place", "htb root", "ifb behind clsact ingress u32/mirred", joined with " + ".
[[nodiscard]] std::string cap_mechanism(const PortState& port);

} // namespace railbreak::injectors
