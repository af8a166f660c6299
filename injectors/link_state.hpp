// The `link_down` fault: what a link loses when it is taken down, and how to give exactly that back.
//
// Taking a link down makes the kernel forget its IPv6 addresses, its routes that are not derived from addresses, and
// its permanent neighbours; bringing it up does not bring them back. So they are dumped before, and after up those
// that are missing are sent again, until a fresh dump equals the former one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "injectors/host_ops.hpp"

namespace railbreak::injectors {

/// What a link loses when it goes down, as the kernel dumped it (one raw netlink message a string).
struct LinkState {
    std::uint32_t flags = 0;
    std::uint32_t mtu = 0;
    std::vector<std::string> addresses;
    std::vector<std::string> routes;
    std::vector<std::string> neighbours;
};

/// Dumps the device's state. kRefused when it holds something that cannot be given back (named in the Error).
[[nodiscard]] Result<LinkState> snapshot_link(HostOps& ops, const LinkRecord& link);

/// Waits until the device has (has no) carrier, IFF_RUNNING. False when the deadline passed first.
[[nodiscard]] Result<bool> wait_running(HostOps& ops, std::int32_t ifindex, Deadline deadline, bool running = true);

/// Brings the device up if it was up, waits for its carrier if it had one, and gives back whatever is missing.
/// Idempotent. `deadline` bounds the wait for the carrier.
[[nodiscard]] Result<void> restore_link(HostOps& ops, std::int32_t ifindex, const LinkState& former, Deadline deadline);

/// Compares with a fresh dump: kTeardown, with a fact for every kind of record that is missing. Gives a sentence for
/// what is there beyond the former state (someone else added it; it stays).
[[nodiscard]] Result<std::vector<std::string>> verify_link(HostOps& ops, std::int32_t ifindex, const LinkState& former);

/// A record without what changes by itself (time stamps, counters, carrier marks), so that equal state gives equal
/// bytes. Empty for a record that the kernel keeps by itself and that is no part of the state (cloned or advertised
/// routes, learned neighbours).
[[nodiscard]] std::string comparable_record(std::string_view message);

} // namespace railbreak::injectors
