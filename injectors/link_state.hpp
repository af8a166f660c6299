// What a link loses when it is taken down or gets a small MTU, and how to give exactly that back.
//
// Taking a link down makes the kernel forget its IPv6 addresses, its routes that are not derived from addresses, and
// its permanent neighbours; bringing it up does not bring them back. So they are dumped before, and after up those
// that are missing are sent again, until a fresh dump equals the former one. An MTU below 1280 takes everything of
// IPv6 away, the interface's settings included (link_settings.hpp).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "injectors/host_ops.hpp"
#include "injectors/link_settings.hpp"

namespace railbreak::injectors {

/// Protocol number of the routes and policy rules that railbreak makes; they are no part of a link's state.
inline constexpr std::uint8_t kOwnRouteProtocol = 202;

/// What a link can lose, as the kernel dumped it (one raw netlink message a string).
struct LinkState {
    std::uint32_t flags = 0;
    std::uint32_t mtu = 0;
    std::vector<std::string> addresses;
    std::vector<std::string> routes;
    std::vector<std::string> neighbours;
    LinkSettings settings;
};

/// For the journal, and back; kInput on bytes that are no such state.
[[nodiscard]] std::string encode_link(const LinkState& state);
[[nodiscard]] Result<LinkState> decode_link(std::string_view bytes);

/// The same with another MTU, without what a link of that MTU cannot have.
[[nodiscard]] LinkState at_mtu(LinkState state, std::uint32_t mtu);

/// Dumps the device's state. kRefused when it holds something that cannot be given back (named in the Error).
[[nodiscard]] Result<LinkState> snapshot_link(HostOps& ops, const LinkRecord& link);

/// Waits until the device has (has no) carrier, IFF_RUNNING. False when the deadline passed first.
[[nodiscard]] Result<bool> wait_running(HostOps& ops, std::int32_t ifindex, Deadline deadline, bool running = true);

/// Gives the device its MTU and its IPv6 settings, brings it up if it was up, waits for its carrier if it had one, and
/// gives back whatever is missing. Idempotent. `deadline` bounds the wait for the carrier.
[[nodiscard]] Result<void> restore_link(HostOps& ops, std::int32_t ifindex, const LinkState& former, Deadline deadline);

/// Compares with a fresh dump: kTeardown, with a fact for every kind of record that is missing. Gives a sentence for
/// what is there beyond the former state (someone else added it; it stays).
[[nodiscard]] Result<std::vector<std::string>> verify_link(HostOps& ops, std::int32_t ifindex, const LinkState& former);

/// A record without what changes by itself (time stamps, counters, carrier marks), so that equal state gives equal
/// bytes. Empty for a record that the kernel keeps by itself and that is no part of the state (cloned or advertised
/// routes, learned neighbours) or that is railbreak's own.
[[nodiscard]] std::string comparable_record(std::string_view message);

} // namespace railbreak::injectors
