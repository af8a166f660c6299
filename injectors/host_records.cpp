#include "injectors/host_records.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <sys/socket.h>

namespace railbreak::injectors {

namespace {

/// Calls each(attribute) for the attributes behind a fixed header of type Header.
template <class Header, class Each> void for_each_attribute(const nlmsghdr& message, Each each) {
    int left = static_cast<int>(message.nlmsg_len) - static_cast<int>(NLMSG_SPACE(sizeof(Header)));
    const auto* first = reinterpret_cast<const char*>(&message) + NLMSG_SPACE(sizeof(Header));
    for (auto* a = reinterpret_cast<const nlattr*>(first); nla_ok(a, left); a = nla_next(a, &left)) {
        each(*a);
    }
}

template <class Header> const Header& header_of(const nlmsghdr& message) {
    return *static_cast<const Header*>(NLMSG_DATA(&message));
}

std::string text_of(const nlattr& attribute) {
    const auto* text = static_cast<const char*>(nla_data(&attribute));
    return std::string(text, strnlen(text, static_cast<std::size_t>(nla_len(&attribute))));
}

std::string bytes_of(const nlattr& attribute) {
    return std::string(static_cast<const char*>(nla_data(&attribute)), static_cast<std::size_t>(nla_len(&attribute)));
}

std::string mac_of(const nlattr& attribute) {
    std::string text;
    for (const char byte : bytes_of(attribute)) {
        text += fmt::format("{}{:02x}", text.empty() ? "" : ":", static_cast<unsigned char>(byte));
    }
    return text;
}

/// Routes as wide as this are default routes in all but name: the two halves of a VPN's, 2000::/3 of IPv6.
constexpr std::uint8_t kDefaultPrefix = 3;

/// Kind, and the device that a VXLAN sends through, which is not in IFLA_LINK.
void add_link_info(const nlattr& info, LinkRecord& link) {
    const auto* inside = static_cast<const nlattr*>(nla_data(&info));
    if (const nlattr* kind = nla_find(inside, nla_len(&info), IFLA_INFO_KIND)) {
        link.kind = text_of(*kind);
    }
    const nlattr* data = nla_find(inside, nla_len(&info), IFLA_INFO_DATA);
    if (data == nullptr || link.kind != "vxlan") {
        return;
    }
    if (const nlattr* lower = nla_find(static_cast<const nlattr*>(nla_data(data)), nla_len(data), IFLA_VXLAN_LINK)) {
        link.lower = static_cast<std::int32_t>(nla_get_u32(lower));
    }
}

LinkRecord link_of(const nlmsghdr& message) {
    LinkRecord link;
    const auto& header = header_of<ifinfomsg>(message);
    link.ifindex = header.ifi_index;
    link.flags = header.ifi_flags;
    bool elsewhere = false; // the lower device is in another namespace
    for_each_attribute<ifinfomsg>(message, [&](const nlattr& a) {
        switch (nla_type(&a)) {
        case IFLA_IFNAME: link.name = text_of(a); break;
        case IFLA_IFALIAS: link.alias = text_of(a); break;
        case IFLA_ADDRESS: link.mac = mac_of(a); break;
        case IFLA_PERM_ADDRESS: link.permanent_mac = mac_of(a); break;
        case IFLA_MTU: link.mtu = nla_get_u32(&a); break;
        case IFLA_MIN_MTU: link.smallest_mtu = nla_get_u32(&a); break;
        case IFLA_MAX_MTU: link.largest_mtu = nla_get_u32(&a); break;
        case IFLA_LINK: link.lower = static_cast<std::int32_t>(nla_get_u32(&a)); break;
        case IFLA_LINK_NETNSID: elsewhere = true; break;
        case IFLA_MASTER: link.master = static_cast<std::int32_t>(nla_get_u32(&a)); break;
        case IFLA_STATS64: {
            rtnl_link_stats64 counters{};
            const std::string bytes = bytes_of(a);
            std::memcpy(&counters, bytes.data(), std::min(bytes.size(), sizeof counters));
            link.sent_bytes = counters.tx_bytes;
            link.received_bytes = counters.rx_bytes;
            break;
        }
        case IFLA_LINKINFO: add_link_info(a, link); break;
        default: break; // foreign enum: IFLA_* of the kernel
        }
    });
    // The two ends of a veth pair name each other, and neither rides on the other.
    if (elsewhere || link.kind == "veth" || link.lower == link.ifindex) {
        link.lower = 0;
    }
    return link;
}

FilterRecord filter_of(const nlmsghdr& message) {
    FilterRecord record;
    const auto& header = header_of<tcmsg>(message);
    record.parent = header.tcm_parent;
    record.priority = static_cast<std::uint16_t>(header.tcm_info >> 16);
    for_each_attribute<tcmsg>(message, [&](const nlattr& a) {
        if (nla_type(&a) == TCA_KIND) {
            record.kind = text_of(a);
        }
    });
    return record;
}

/// Output devices of a route: RTA_OIF and every hop of RTA_MULTIPATH.
std::vector<std::int32_t> route_devices(const nlmsghdr& message) {
    std::vector<std::int32_t> devices;
    for_each_attribute<rtmsg>(message, [&](const nlattr& a) {
        if (nla_type(&a) == RTA_OIF) {
            devices.push_back(static_cast<std::int32_t>(nla_get_u32(&a)));
        } else if (nla_type(&a) == RTA_MULTIPATH) {
            int left = nla_len(&a);
            for (auto* hop = static_cast<const rtnexthop*>(nla_data(&a));
                 left >= static_cast<int>(sizeof *hop) && RTNH_OK(hop, left);) {
                devices.push_back(hop->rtnh_ifindex);
                left -= static_cast<int>(RTNH_ALIGN(hop->rtnh_len));
                hop = RTNH_NEXT(hop);
            }
        }
    });
    return devices;
}

/// Calls `each` for every route of the family; a kernel or namespace without IPv6 has none of its routes.
Result<void> dump_routes(NetlinkChannel& channel, int family, const std::function<void(const nlmsghdr&)>& each,
                         const std::function<void()>& restart) {
    NetlinkMessage message(RTM_GETROUTE, 0);
    rtmsg header{};
    header.rtm_family = static_cast<unsigned char>(family);
    message.append_header(header);
    auto done = channel.dump(message, "list the routes", each, restart);
    if (!done && family == AF_INET6 && kernel_errno(done.error()) == EAFNOSUPPORT) {
        return {};
    }
    return done;
}

std::string raw_bytes(const nlmsghdr& message) {
    return std::string(reinterpret_cast<const char*>(&message), message.nlmsg_len);
}

Result<void> dump_family(NetlinkChannel& channel, RecordKind kind, int family, std::int32_t ifindex,
                         std::vector<std::string>& found) {
    const std::size_t before = found.size();
    const auto restart = [&] { found.resize(before); };
    switch (kind) {
    case RecordKind::kAddresses: {
        NetlinkMessage message(RTM_GETADDR, 0);
        ifaddrmsg header{};
        header.ifa_family = static_cast<unsigned char>(family);
        header.ifa_index = static_cast<std::uint32_t>(ifindex);
        message.append_header(header);
        const auto ours = [&](const nlmsghdr& each) {
            if (header_of<ifaddrmsg>(each).ifa_index == header.ifa_index) {
                found.push_back(raw_bytes(each));
            }
        };
        return channel.dump(message, "list the addresses", ours, restart);
    }
    case RecordKind::kRoutes: {
        const auto ours = [&](const nlmsghdr& each) {
            const auto devices = route_devices(each);
            if (std::find(devices.begin(), devices.end(), ifindex) != devices.end()) {
                found.push_back(raw_bytes(each));
            }
        };
        return dump_routes(channel, family, ours, restart);
    }
    case RecordKind::kNeighbours: {
        NetlinkMessage message(RTM_GETNEIGH, 0);
        ndmsg header{};
        header.ndm_family = static_cast<unsigned char>(family);
        message.append_header(header);
        const auto ours = [&](const nlmsghdr& each) {
            if (header_of<ndmsg>(each).ndm_ifindex == ifindex) {
                found.push_back(raw_bytes(each));
            }
        };
        return channel.dump(message, "list the neighbours", ours, restart);
    }
    }
    return {};
}

} // namespace

Result<std::vector<LinkRecord>> list_links(NetlinkChannel& channel) {
    std::vector<LinkRecord> found;
    NetlinkMessage message(RTM_GETLINK, 0);
    message.append_header(ifinfomsg{});
    auto done = channel.dump(
        message, "list the interfaces", [&](const nlmsghdr& each) { found.push_back(link_of(each)); },
        [&] { found.clear(); });
    if (!done) {
        return fail(std::move(done.error()));
    }
    return found;
}

Result<std::vector<std::string>> list_records(NetlinkChannel& channel, RecordKind kind, std::int32_t ifindex) {
    std::vector<std::string> found;
    for (const int family : {AF_INET, AF_INET6}) {
        auto done = dump_family(channel, kind, family, ifindex, found);
        // A kernel or namespace without IPv6 has none of its records.
        if (!done && !(family == AF_INET6 && kernel_errno(done.error()) == EAFNOSUPPORT)) {
            return fail(std::move(done.error()));
        }
    }
    return found;
}

Result<std::vector<FilterRecord>> list_filters(NetlinkChannel& channel, std::int32_t ifindex) {
    std::vector<FilterRecord> found;
    for (const TcHandle parent : {TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS), TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS)}) {
        const std::size_t before = found.size();
        NetlinkMessage message(RTM_GETTFILTER, 0);
        tcmsg header{};
        header.tcm_ifindex = ifindex;
        header.tcm_parent = parent;
        message.append_header(header);
        auto done = channel.dump(
            message, "list the filters", [&](const nlmsghdr& each) { found.push_back(filter_of(each)); },
            [&] { found.resize(before); });
        if (!done) {
            return fail(std::move(done.error()));
        }
    }
    return found;
}

Result<std::vector<std::int32_t>> list_default_route_devices(NetlinkChannel& channel) {
    std::vector<std::int32_t> found;
    for (const int family : {AF_INET, AF_INET6}) {
        const std::size_t before = found.size();
        const auto each = [&](const nlmsghdr& message) {
            const auto& route = header_of<rtmsg>(message);
            if (route.rtm_dst_len <= kDefaultPrefix && route.rtm_type == RTN_UNICAST) {
                const auto devices = route_devices(message);
                found.insert(found.end(), devices.begin(), devices.end());
            }
        };
        if (auto done = dump_routes(channel, family, each, [&] { found.resize(before); }); !done) {
            return fail(std::move(done.error()));
        }
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

Result<std::vector<AddressRecord>> list_addresses(NetlinkChannel& channel) {
    std::vector<AddressRecord> found;
    NetlinkMessage message(RTM_GETADDR, 0);
    message.append_header(ifaddrmsg{});
    const auto add = [&](const nlmsghdr& each) {
        const auto& header = header_of<ifaddrmsg>(each);
        std::string bytes;
        for_each_attribute<ifaddrmsg>(each, [&](const nlattr& a) {
            // Of a point-to-point link IFA_ADDRESS is the other end.
            if (nla_type(&a) == IFA_LOCAL || (nla_type(&a) == IFA_ADDRESS && bytes.empty())) {
                bytes = bytes_of(a);
            }
        });
        std::array<char, INET6_ADDRSTRLEN> text{};
        if ((header.ifa_family == AF_INET && bytes.size() == sizeof(in_addr)) ||
            (header.ifa_family == AF_INET6 && bytes.size() == sizeof(in6_addr))) {
            inet_ntop(header.ifa_family, bytes.data(), text.data(), text.size());
            found.push_back({static_cast<std::int32_t>(header.ifa_index), text.data()});
        }
    };
    auto done = channel.dump(message, "list the addresses", add, [&] { found.clear(); });
    return done ? Result<std::vector<AddressRecord>>(std::move(found)) : fail(std::move(done.error()));
}

Result<std::vector<std::int32_t>> list_route_devices(NetlinkChannel& channel, const std::string& address) {
    std::array<unsigned char, sizeof(in6_addr)> bytes{};
    const int family = address.find(':') == std::string::npos ? AF_INET : AF_INET6;
    if (inet_pton(family, address.c_str(), bytes.data()) != 1) {
        return fail(ErrorKind::kInternal, address + " is no address");
    }
    std::vector<std::int32_t> found;
    // The route itself with all its hops, then the one that the kernel takes now: a kernel that cannot tell the former
    // gives the latter.
    for (const unsigned flags : {unsigned{RTM_F_FIB_MATCH}, 0U}) {
        NetlinkMessage message(RTM_GETROUTE, 0);
        rtmsg header{};
        header.rtm_family = static_cast<unsigned char>(family);
        header.rtm_dst_len = family == AF_INET ? 32 : 128;
        header.rtm_flags = flags;
        message.append_header(header);
        message.put_bytes(RTA_DST, bytes.data(), family == AF_INET ? sizeof(in_addr) : sizeof(in6_addr));
        auto done = channel.query(message, "look up the route to " + address, [&](const nlmsghdr& each) {
            const auto devices = route_devices(each);
            found.insert(found.end(), devices.begin(), devices.end());
        });
        const int code = done ? 0 : kernel_errno(done.error());
        // No route, or one that refuses.
        const bool none = code == ENETUNREACH || code == EHOSTUNREACH || code == EAFNOSUPPORT || code == EACCES ||
                          code == EINVAL || code == ESRCH;
        if (!done && !none && flags == 0) {
            return fail(std::move(done.error()));
        }
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

Result<std::vector<std::string>> list_rules(NetlinkChannel& channel) {
    std::vector<std::string> found;
    for (const int family : {AF_INET, AF_INET6}) {
        const std::size_t before = found.size();
        NetlinkMessage message(RTM_GETRULE, 0);
        fib_rule_hdr header{};
        header.family = static_cast<unsigned char>(family);
        message.append_header(header);
        auto done = channel.dump(
            message, "list the policy rules", [&](const nlmsghdr& each) { found.push_back(raw_bytes(each)); },
            [&] { found.resize(before); });
        const int code = done ? 0 : kernel_errno(done.error());
        if (!done && !(family == AF_INET6 && (code == EAFNOSUPPORT || code == EOPNOTSUPP))) {
            return fail(std::move(done.error()));
        }
    }
    return found;
}

} // namespace railbreak::injectors
