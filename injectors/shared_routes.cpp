#include "injectors/shared_routes.hpp"

#include <algorithm>
#include <cstring>

#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include "injectors/message_parts.hpp"

namespace railbreak::injectors {

namespace {

constexpr std::uint32_t kSmallestIpv6Mtu = 1280;

/// What makes two records the same route, whatever hops it has left.
std::string key_of(std::string_view route) {
    const Parts record = take_apart(route);
    const auto header = family_header<rtmsg>(route);
    std::string key{static_cast<char>(header.rtm_family), static_cast<char>(header.rtm_dst_len),
                    static_cast<char>(header.rtm_tos), static_cast<char>(header.rtm_table)};
    for (const int type : {RTA_DST, RTA_TABLE, RTA_PRIORITY}) {
        const std::string* value = find(record, type);
        key += static_cast<char>(type) + (value != nullptr ? *value : std::string());
    }
    return key;
}

} // namespace

std::vector<std::int32_t> hop_devices(std::string_view route) {
    std::vector<std::int32_t> devices;
    const Parts record = take_apart(route);
    if (const std::string* output = find(record, RTA_OIF);
        output != nullptr && output->size() == sizeof(std::int32_t)) {
        std::memcpy(&devices.emplace_back(), output->data(), sizeof(std::int32_t));
    }
    const std::string* multipath = find(record, RTA_MULTIPATH);
    for (std::size_t at = 0; multipath != nullptr && at + sizeof(rtnexthop) <= multipath->size();) {
        rtnexthop hop{};
        std::memcpy(&hop, multipath->data() + at, sizeof hop);
        if (hop.rtnh_len < sizeof hop) {
            break;
        }
        devices.push_back(hop.rtnh_ifindex);
        at += RTNH_ALIGN(hop.rtnh_len);
    }
    return devices;
}

bool waits_for_another(std::string_view route, std::int32_t ifindex, const std::vector<LinkRecord>& links) {
    const bool ipv6 = family_header<rtmsg>(route).rtm_family == AF_INET6;
    const std::vector<std::int32_t> devices = hop_devices(route);
    return std::any_of(devices.begin(), devices.end(), [&](std::int32_t device) {
        if (device == ifindex) {
            return false;
        }
        const auto link =
            std::find_if(links.begin(), links.end(), [&](const LinkRecord& each) { return each.ifindex == device; });
        return link == links.end() || (link->flags & IFF_UP) == 0 || (ipv6 && link->mtu < kSmallestIpv6Mtu);
    });
}

void complete_shared_routes(std::vector<std::string>& routes, std::int32_t ifindex,
                            const std::vector<std::string>& others) {
    for (const std::string& whole : others) {
        const std::vector<std::int32_t> devices = hop_devices(whole);
        if (devices.size() < 2 || std::find(devices.begin(), devices.end(), ifindex) == devices.end()) {
            continue;
        }
        const std::string key = key_of(whole);
        std::erase_if(routes, [&](const std::string& part) { return key_of(part) == key; });
        routes.push_back(whole);
    }
}

} // namespace railbreak::injectors
