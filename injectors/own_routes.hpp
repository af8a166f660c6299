// Routes and policy rules of railbreak's own: built, and recognised among the kernel's.
//
// Everything carries the protocol number kOwnRouteProtocol. The routes of a NIC are in a table of its own, whose number
// tells the NIC: 0x72620000 ("rb") plus its interface index. Tables from there on are taken for railbreak's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace railbreak::injectors {

/// Table of the NIC with that index.
[[nodiscard]] constexpr std::uint32_t own_route_table(std::int32_t ifindex) {
    return 0x72620000U + static_cast<std::uint32_t>(ifindex);
}

/// A unicast route by what identifies it. Addresses are their bytes in network order.
struct Route {
    std::uint8_t family = 0;
    std::uint32_t table = 0;
    std::uint8_t protocol = 0;
    std::string to; ///< empty for the whole family
    std::uint8_t prefix = 0;
    std::int32_t ifindex = 0;
    std::string gateway; ///< empty: the destination itself is on the link
    bool operator==(const Route&) const = default;
};

/// A policy rule that looks a table up for what comes from one address.
struct SourceRule {
    std::uint8_t family = 0;
    std::uint32_t table = 0;
    std::uint8_t protocol = 0;
    std::uint32_t priority = 0;
    std::string from;        ///< empty: from everybody
    std::uint8_t prefix = 0; ///< of `from`
    bool operator==(const SourceRule&) const = default;
};

/// An address of an interface.
struct Address {
    std::uint8_t family = 0;
    std::uint8_t scope = 0; ///< RT_SCOPE_UNIVERSE, RT_SCOPE_LINK, ...
    std::string bytes;      ///< in network order
};

/// An address message (RTM_NEWADDR).
[[nodiscard]] Address read_address(std::string_view message);
/// The hops of a route message (RTM_NEWROUTE) as routes, one each; none when it is no unicast route.
[[nodiscard]] std::vector<Route> read_route(std::string_view message);
/// A rule message (RTM_NEWRULE).
[[nodiscard]] SourceRule read_rule(std::string_view message);

/// Messages for HostOps::replay() with NLM_F_CREATE | NLM_F_EXCL. A gateway is taken for on-link: the kernel does not
/// look for a route to it.
[[nodiscard]] std::string new_route(const Route& route);
[[nodiscard]] std::string new_rule(const SourceRule& rule);
/// Messages for HostOps::replay() without flags, which delete it.
[[nodiscard]] std::string delete_route(const Route& route);
[[nodiscard]] std::string delete_rule(const SourceRule& rule);

/// "10.9.0.0/24", "fd09::1".
[[nodiscard]] std::string describe_prefix(std::uint8_t family, const std::string& address, std::uint8_t prefix);

} // namespace railbreak::injectors
