#include "injectors/own_routes.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <sys/socket.h>

#include "injectors/netlink.hpp"

namespace railbreak::injectors {

namespace {

template <class Header> Header header_of(std::string_view message) {
    Header header{};
    if (message.size() >= NLMSG_HDRLEN + sizeof header) {
        std::memcpy(&header, message.data() + NLMSG_HDRLEN, sizeof header);
    }
    return header;
}

/// Calls each(type, payload) for the attributes in `bytes`.
template <class Each> void for_each(std::string_view bytes, Each each) {
    int left = static_cast<int>(bytes.size());
    for (auto* a = reinterpret_cast<const nlattr*>(bytes.data()); nla_ok(a, left); a = nla_next(a, &left)) {
        each(nla_type(a),
             std::string_view(static_cast<const char*>(nla_data(a)), static_cast<std::size_t>(nla_len(a))));
    }
}

template <class Header> std::string_view attributes_of(std::string_view message) {
    return message.substr(std::min(message.size(), std::size_t{NLMSG_SPACE(sizeof(Header))}));
}

std::uint32_t number(std::string_view bytes) {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
    return value;
}

/// One route for every hop of an RTA_MULTIPATH attribute.
std::vector<Route> read_hops(const Route& common, std::string_view bytes) {
    std::vector<Route> routes;
    while (bytes.size() >= sizeof(rtnexthop)) {
        rtnexthop hop{};
        std::memcpy(&hop, bytes.data(), sizeof hop);
        if (hop.rtnh_len < sizeof hop || hop.rtnh_len > bytes.size()) {
            break;
        }
        Route route = common;
        route.ifindex = hop.rtnh_ifindex;
        for_each(bytes.substr(sizeof hop, hop.rtnh_len - sizeof hop), [&](int type, std::string_view value) {
            if (type == RTA_GATEWAY) {
                route.gateway = std::string(value);
            }
        });
        routes.push_back(std::move(route));
        bytes.remove_prefix(std::min(bytes.size(), std::size_t{RTNH_ALIGN(hop.rtnh_len)}));
    }
    return routes;
}

void put(NetlinkMessage& message, int attribute, const std::string& bytes) {
    if (!bytes.empty()) {
        message.put_bytes(attribute, bytes.data(), bytes.size());
    }
}

std::string raw(const NetlinkMessage& message) {
    return std::string(reinterpret_cast<const char*>(message.header()), message.header()->nlmsg_len);
}

std::string route_message(int type, const Route& route) {
    NetlinkMessage message(type, 0);
    rtmsg header{};
    header.rtm_family = route.family;
    header.rtm_dst_len = route.prefix;
    header.rtm_table = RT_TABLE_UNSPEC;
    header.rtm_protocol = route.protocol;
    header.rtm_type = RTN_UNICAST;
    header.rtm_scope = route.gateway.empty() ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
    header.rtm_flags = route.gateway.empty() ? 0 : RTNH_F_ONLINK;
    message.append_header(header);
    message.put_u32(RTA_TABLE, route.table);
    put(message, RTA_DST, route.to);
    put(message, RTA_GATEWAY, route.gateway);
    message.put_u32(RTA_OIF, static_cast<std::uint32_t>(route.ifindex));
    return raw(message);
}

std::string rule_message(int type, const SourceRule& rule) {
    NetlinkMessage message(type, 0);
    fib_rule_hdr header{};
    header.family = rule.family;
    header.src_len = rule.prefix;
    header.action = FR_ACT_TO_TBL;
    message.append_header(header);
    put(message, FRA_SRC, rule.from);
    message.put_u32(FRA_TABLE, rule.table);
    message.put_u32(FRA_PRIORITY, rule.priority);
    message.put_u8(FRA_PROTOCOL, rule.protocol);
    return raw(message);
}

} // namespace

Address read_address(std::string_view message) {
    const auto header = header_of<ifaddrmsg>(message);
    Address address{header.ifa_family, header.ifa_scope, {}};
    for_each(attributes_of<ifaddrmsg>(message), [&](int type, std::string_view value) {
        // IFA_ADDRESS is the other end's on a point-to-point link, where IFA_LOCAL is there too.
        if (type == IFA_LOCAL || (type == IFA_ADDRESS && address.bytes.empty())) {
            address.bytes = std::string(value);
        }
    });
    return address;
}

std::vector<Route> read_route(std::string_view message) {
    const auto header = header_of<rtmsg>(message);
    if (header.rtm_type != RTN_UNICAST) {
        return {};
    }
    Route route;
    route.family = header.rtm_family;
    route.table = header.rtm_table;
    route.protocol = header.rtm_protocol;
    route.prefix = header.rtm_dst_len;
    std::string_view hops;
    for_each(attributes_of<rtmsg>(message), [&](int type, std::string_view value) {
        switch (type) {
        case RTA_TABLE: route.table = number(value); break;
        case RTA_DST: route.to = std::string(value); break;
        case RTA_OIF: route.ifindex = static_cast<std::int32_t>(number(value)); break;
        case RTA_GATEWAY: route.gateway = std::string(value); break;
        case RTA_MULTIPATH: hops = value; break;
        default: break; // foreign enum: RTA_* of the kernel
        }
    });
    return hops.empty() ? std::vector{route} : read_hops(route, hops);
}

SourceRule read_rule(std::string_view message) {
    const auto header = header_of<fib_rule_hdr>(message);
    SourceRule rule;
    rule.family = header.family;
    rule.table = header.table;
    rule.prefix = header.src_len;
    for_each(attributes_of<fib_rule_hdr>(message), [&](int type, std::string_view value) {
        switch (type) {
        case FRA_SRC: rule.from = std::string(value); break;
        case FRA_TABLE: rule.table = number(value); break;
        case FRA_PRIORITY: rule.priority = number(value); break;
        case FRA_PROTOCOL: rule.protocol = value.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(value[0]); break;
        default: break; // foreign enum: FRA_* of the kernel
        }
    });
    return rule;
}

std::string new_route(const Route& route) {
    return route_message(RTM_NEWROUTE, route);
}

std::string new_rule(const SourceRule& rule) {
    return rule_message(RTM_NEWRULE, rule);
}

std::string delete_route(const Route& route) {
    return route_message(RTM_DELROUTE, route);
}

std::string delete_rule(const SourceRule& rule) {
    return rule_message(RTM_DELRULE, rule);
}

std::string describe_prefix(std::uint8_t family, const std::string& address, std::uint8_t prefix) {
    const std::size_t size = family == AF_INET ? sizeof(in_addr) : sizeof(in6_addr);
    std::string bytes = address;
    bytes.resize(size, '\0');
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (inet_ntop(family, bytes.data(), text.data(), text.size()) == nullptr) {
        return "?";
    }
    return prefix == size * 8 ? std::string(text.data()) : fmt::format("{}/{}", text.data(), prefix);
}

} // namespace railbreak::injectors
