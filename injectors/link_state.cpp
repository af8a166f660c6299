#include "injectors/link_state.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/attr.h>

#include "injectors/message_parts.hpp"
#include "injectors/netlink.hpp"
#include "injectors/shared_routes.hpp"
#include "injectors/wire.hpp"

namespace railbreak::injectors {

namespace {

/// Bits that say how a route or hop fares now, not what it is.
constexpr unsigned kHopIdentity = RTNH_F_ONLINK | RTNH_F_PERVASIVE;
constexpr std::uint32_t kVolatileAddressFlags =
    IFA_F_TENTATIVE | IFA_F_DADFAILED | IFA_F_OPTIMISTIC | IFA_F_STABLE_PRIVACY;

/// Leaves only the identity bits in the flags of every hop.
void clean_hops(std::string& multipath) {
    std::size_t at = 0;
    while (at + sizeof(rtnexthop) <= multipath.size()) {
        rtnexthop hop{};
        std::memcpy(&hop, multipath.data() + at, sizeof hop);
        if (hop.rtnh_len < sizeof hop) {
            return;
        }
        hop.rtnh_flags = static_cast<std::uint8_t>(hop.rtnh_flags & kHopIdentity);
        std::memcpy(multipath.data() + at, &hop, sizeof hop);
        at += RTNH_ALIGN(hop.rtnh_len);
    }
}

void set_address_flags(Parts& parts, auto change) {
    auto header = family_header<ifaddrmsg>(parts.head);
    std::uint32_t flags = header.ifa_flags;
    for (auto& [type, payload] : parts.attributes) {
        if (type == IFA_FLAGS && payload.size() == sizeof flags) {
            std::memcpy(&flags, payload.data(), sizeof flags);
            flags = change(flags);
            std::memcpy(payload.data(), &flags, sizeof flags);
        }
    }
    header.ifa_flags = static_cast<std::uint8_t>(change(header.ifa_flags));
    set_family_header(parts, header);
}

/// A route as it is sent to the kernel again, and as it is compared.
void clean_route(Parts& parts) {
    auto header = family_header<rtmsg>(parts.head);
    header.rtm_flags &= kHopIdentity;
    set_family_header(parts, header);
    drop(parts, {RTA_CACHEINFO});
    for (auto& [type, payload] : parts.attributes) {
        if (type == RTA_MULTIPATH) {
            clean_hops(payload);
        }
    }
}

bool is_own_route(std::string_view message) {
    const auto header = family_header<rtmsg>(message);
    return header.rtm_protocol != RTPROT_RA && header.rtm_protocol != RTPROT_REDIRECT &&
           header.rtm_protocol != kOwnRouteProtocol && (header.rtm_flags & RTM_F_CLONED) == 0;
}

bool is_own_neighbour(std::string_view message) {
    const auto header = family_header<ndmsg>(message);
    return (header.ndm_state & NUD_PERMANENT) != 0 && header.ndm_type == RTN_UNICAST;
}

/// Routes without a gateway must be back before those whose gateway they lead to.
int route_rank(std::string_view message) {
    const Parts parts = take_apart(message);
    const bool has_gateway =
        find(parts, RTA_GATEWAY) != nullptr || find(parts, RTA_VIA) != nullptr || find(parts, RTA_MULTIPATH) != nullptr;
    return has_gateway ? 1 : 0;
}

std::vector<std::string> comparable(const std::vector<std::string>& messages) {
    std::vector<std::string> out;
    for (const std::string& message : messages) {
        if (std::string record = comparable_record(message); !record.empty()) {
            out.push_back(std::move(record));
        }
    }
    std::sort(out.begin(), out.end());
    return out;
}

std::vector<std::string> missing_from(const std::vector<std::string>& former, const std::vector<std::string>& now) {
    const auto have = comparable(now);
    std::vector<std::string> missing;
    for (const std::string& message : former) {
        const std::string record = comparable_record(message);
        if (!record.empty() && !std::binary_search(have.begin(), have.end(), record)) {
            missing.push_back(message);
        }
    }
    return missing;
}

Result<void> present_is_fine(Result<void> done) {
    if (!done && kernel_errno(done.error()) == EEXIST) {
        return {};
    }
    return done;
}

Result<void> replay_address(HostOps& ops, const std::string& message) {
    Parts parts = take_apart(message);
    const auto header = family_header<ifaddrmsg>(message);
    if (header.ifa_family != AF_INET6) {
        return present_is_fine(ops.replay(put_together(parts), NLM_F_CREATE | NLM_F_EXCL));
    }
    // Without duplicate detection, or the address could not be used for a second; then with its former flags.
    const Parts former = parts;
    set_address_flags(parts, [](std::uint32_t flags) { return flags | IFA_F_NODAD; });
    auto added = present_is_fine(ops.replay(put_together(parts), NLM_F_CREATE | NLM_F_EXCL));
    return added ? ops.replay(put_together(former), NLM_F_REPLACE) : added;
}

Result<void> replay_route(HostOps& ops, const std::string& message) {
    Parts parts = take_apart(message);
    clean_route(parts);
    const auto header = family_header<rtmsg>(message);
    // IPv6 keeps the hops over other devices as a route of their own, which the whole route then takes the place of.
    const bool partly_there = header.rtm_family == AF_INET6 && find(parts, RTA_MULTIPATH) != nullptr;
    const int flags = NLM_F_CREATE | (partly_there ? NLM_F_REPLACE : NLM_F_EXCL);
    return present_is_fine(ops.replay(put_together(parts), flags));
}

Result<void> replay_neighbour(HostOps& ops, const std::string& message) {
    Parts parts = take_apart(message);
    drop(parts, {NDA_CACHEINFO, NDA_PROBES});
    return present_is_fine(ops.replay(put_together(parts), NLM_F_CREATE | NLM_F_REPLACE));
}

template <class Replay> Result<void> replay_missing(HostOps& ops, RecordKind kind, std::int32_t ifindex,
                                                    const std::vector<std::string>& former, Replay replay) {
    const auto now = ops.records(kind, ifindex);
    if (!now) {
        return tl::unexpected(now.error());
    }
    // Every record gets its chance; the first failure is reported.
    Result<void> outcome;
    for (const std::string& message : missing_from(former, *now)) {
        auto done = replay(ops, message);
        if (!done && outcome) {
            outcome = std::move(done);
        }
    }
    return outcome;
}

void refuse_unreplayable(const std::vector<std::string>& routes, std::string& reason) {
    for (const std::string& route : routes) {
        if (is_own_route(route) && find(take_apart(route), RTA_NH_ID) != nullptr) {
            reason = "a route that uses a next hop object";
        }
    }
}

/// Sends again whatever of the former state is missing.
Result<void> replay_records(HostOps& ops, std::int32_t ifindex, const LinkState& former) {
    // The kernel makes the routes of its own protocol from the addresses.
    std::vector<std::string> routes = former.routes;
    std::erase_if(routes,
                  [](const std::string& route) { return family_header<rtmsg>(route).rtm_protocol == RTPROT_KERNEL; });
    const auto links = ops.links();
    if (!links) {
        return tl::unexpected(links.error());
    }
    std::erase_if(routes, [&](const std::string& route) { return waits_for_another(route, ifindex, *links); });
    std::stable_sort(routes.begin(), routes.end(),
                     [](const auto& a, const auto& b) { return route_rank(a) < route_rank(b); });
    auto outcome = replay_missing(ops, RecordKind::kAddresses, ifindex, former.addresses, replay_address);
    for (auto next : {replay_missing(ops, RecordKind::kRoutes, ifindex, routes, replay_route),
                      replay_missing(ops, RecordKind::kNeighbours, ifindex, former.neighbours, replay_neighbour)}) {
        if (!next && outcome) {
            outcome = std::move(next);
        }
    }
    return outcome;
}

Result<LinkRecord> find_link(HostOps& ops, std::int32_t ifindex) {
    const auto links = ops.links();
    if (!links) {
        return tl::unexpected(links.error());
    }
    for (const LinkRecord& link : *links) {
        if (link.ifindex == ifindex) {
            return link;
        }
    }
    return fail_errno(ErrorKind::kHarness, fmt::format("look at interface {}", ifindex), ENODEV);
}

} // namespace

std::string comparable_record(std::string_view message) {
    Parts parts = take_apart(message);
    switch (head_of(message).nlmsg_type) {
    case RTM_NEWADDR:
        drop(parts, {IFA_CACHEINFO});
        set_address_flags(parts, [](std::uint32_t flags) { return flags & ~kVolatileAddressFlags; });
        break;
    case RTM_NEWROUTE:
        if (!is_own_route(message)) {
            return {};
        }
        clean_route(parts);
        break;
    case RTM_NEWNEIGH:
        if (!is_own_neighbour(message)) {
            return {};
        }
        drop(parts, {NDA_CACHEINFO, NDA_PROBES});
        break;
    default: return {}; // foreign enum: RTM_* of the kernel
    }
    return put_together(parts);
}

Result<bool> wait_running(HostOps& ops, std::int32_t ifindex, Deadline deadline, bool running) {
    for (;;) {
        const auto link = find_link(ops, ifindex);
        if (!link) {
            return tl::unexpected(link.error());
        }
        if (((link->flags & IFF_RUNNING) != 0) == running) {
            return true;
        }
        if (deadline.passed()) {
            return false;
        }
        if (auto event = ops.wait_event(deadline); !event) {
            return event;
        }
    }
}

Result<LinkState> snapshot_link(HostOps& ops, const LinkRecord& link) {
    auto addresses = ops.records(RecordKind::kAddresses, link.ifindex);
    auto routes = ops.records(RecordKind::kRoutes, link.ifindex);
    auto neighbours = ops.records(RecordKind::kNeighbours, link.ifindex);
    for (auto* each : {&addresses, &routes, &neighbours}) {
        if (!*each) {
            return fail(std::move(each->error()));
        }
    }
    std::string reason;
    refuse_unreplayable(*routes, reason);
    if (!reason.empty()) {
        return fail(
            Error(ErrorKind::kRefused,
                  fmt::format("{} has {}, which railbreak could not give back after link down", link.name, reason))
                .with("nic", link.name)
                .with("found", reason));
    }
    std::erase_if(*routes, [](const std::string& route) { return !is_own_route(route); });
    std::erase_if(*neighbours, [](const std::string& neighbour) { return !is_own_neighbour(neighbour); });
    auto settings = read_link_settings(ops, link.name);
    if (!settings) {
        return tl::unexpected(settings.error());
    }
    return LinkState{link.flags,          link.mtu, std::move(*addresses), std::move(*routes), std::move(*neighbours),
                     std::move(*settings)};
}

std::string encode_link(const LinkState& state) {
    Encoder out;
    out.put(state.flags);
    out.put(state.mtu);
    out.put_strings(state.addresses);
    out.put_strings(state.routes);
    out.put_strings(state.neighbours);
    out.put(static_cast<std::uint32_t>(state.settings.size()));
    for (const auto& [name, value] : state.settings) {
        out.put_string(name);
        out.put_string(value);
    }
    return out.take();
}

Result<LinkState> decode_link(std::string_view bytes) {
    Decoder in(bytes);
    LinkState state;
    state.flags = in.get<std::uint32_t>();
    state.mtu = in.get<std::uint32_t>();
    state.addresses = in.get_strings();
    state.routes = in.get_strings();
    state.neighbours = in.get_strings();
    for (auto left = in.get<std::uint32_t>(); left > 0 && in.ok(); --left) {
        std::string name = in.get_string();
        state.settings.emplace_back(std::move(name), in.get_string());
    }
    if (!in.finished()) {
        return fail(ErrorKind::kInput, "the former state of a link is damaged");
    }
    return state;
}

LinkState at_mtu(LinkState state, std::uint32_t mtu) {
    state.mtu = mtu;
    if (mtu < kSmallestIpv6Mtu) {
        for (auto* each : {&state.addresses, &state.routes, &state.neighbours}) {
            // The family is the first byte of every one of their headers.
            std::erase_if(*each, [](const std::string& message) {
                return message.size() > NLMSG_HDRLEN && message[NLMSG_HDRLEN] == AF_INET6;
            });
        }
        state.settings.clear();
    }
    return state;
}

namespace {

/// MTU and settings, which addresses and routes need.
Result<void> restore_frame(HostOps& ops, std::int32_t ifindex, const LinkState& former) {
    const auto link = find_link(ops, ifindex);
    if (!link) {
        return tl::unexpected(link.error());
    }
    if (link->mtu != former.mtu) {
        if (auto set = ops.set_mtu(ifindex, former.mtu); !set) {
            return set;
        }
    }
    return restore_link_settings(ops, link->name, former.settings);
}

} // namespace

Result<void> restore_link(HostOps& ops, std::int32_t ifindex, const LinkState& former, Deadline deadline) {
    if ((former.flags & IFF_UP) == 0) {
        return {};
    }
    auto frame = restore_frame(ops, ifindex, former);
    // Link-local addresses go first: on up the kernel would make them anew and then spend a second on looking for
    // duplicates. Where this fails, the passes after up try again.
    std::vector<std::string> local = former.addresses;
    std::erase_if(local, [](const std::string& address) {
        const auto header = family_header<ifaddrmsg>(address);
        return header.ifa_family != AF_INET6 || header.ifa_scope != RT_SCOPE_LINK;
    });
    static_cast<void>(replay_missing(ops, RecordKind::kAddresses, ifindex, local, replay_address));
    // Setting up what is up does nothing, so it needs no look first.
    if (auto up = ops.set_link_flags(ifindex, IFF_UP, IFF_UP); !up) {
        return up;
    }
    // At once, because a port that trains or a busy kernel takes a second or more to report the carrier; and again
    // behind it, for what the kernel does not take without.
    auto outcome = replay_records(ops, ifindex, former);
    if ((former.flags & IFF_RUNNING) == 0 || !frame) {
        return frame ? outcome : frame;
    }
    if (auto running = wait_running(ops, ifindex, deadline); !running) {
        return tl::unexpected(running.error());
    }
    // Without carrier verify_link reports it.
    return replay_records(ops, ifindex, former);
}

namespace {

/// How many records of one kind differ.
struct Difference {
    std::size_t missing = 0;
    std::size_t waiting = 0; ///< missing, and not to be had before another NIC is back
    std::size_t added = 0;   ///< by somebody else
};

Difference compare_records(const std::vector<std::string>& was, const std::vector<std::string>& now, RecordKind kind,
                           std::int32_t ifindex, const std::vector<LinkRecord>& links) {
    Difference difference;
    for (const std::string& record : missing_from(was, now)) {
        const bool waits = kind == RecordKind::kRoutes && waits_for_another(record, ifindex, links);
        ++(waits ? difference.waiting : difference.missing);
    }
    difference.added = missing_from(now, was).size();
    return difference;
}

} // namespace

Result<std::vector<std::string>> verify_link(HostOps& ops, std::int32_t ifindex, const LinkState& former) {
    std::vector<std::string> notes;
    const auto link = find_link(ops, ifindex);
    if (!link) {
        return tl::unexpected(link.error());
    }
    Error problem(ErrorKind::kTeardown, fmt::format("{} is not as it was before", link->name));
    bool equal = true;
    const auto differs = [&](std::string_view what, const std::string& value) {
        problem.add_fact(what, value);
        equal = false;
    };
    if (((link->flags ^ former.flags) & IFF_UP) != 0) {
        differs("up", (link->flags & IFF_UP) != 0 ? "yes" : "no");
    }
    if ((former.flags & IFF_RUNNING) != 0 && (link->flags & IFF_RUNNING) == 0) {
        differs("running", "no");
    }
    if (link->mtu != former.mtu) {
        differs("mtu_bytes", std::to_string(link->mtu));
    }
    const auto settings = changed_link_settings(ops, link->name, former.settings);
    if (!settings) {
        return tl::unexpected(settings.error());
    }
    if (!settings->empty()) {
        differs("settings_changed", fmt::format("{}", fmt::join(*settings, " ")));
    }
    const auto links = ops.links();
    if (!links) {
        return tl::unexpected(links.error());
    }
    const auto compare = [&](RecordKind kind, std::string_view what,
                             const std::vector<std::string>& was) -> Result<void> {
        const auto now = ops.records(kind, ifindex);
        if (!now) {
            return tl::unexpected(now.error());
        }
        const Difference difference = compare_records(was, *now, kind, ifindex, *links);
        if (difference.missing != 0) {
            differs(fmt::format("{}_missing", what), std::to_string(difference.missing));
        }
        if (difference.waiting != 0) {
            notes.push_back(fmt::format("{} {} wait for another NIC that they go over", difference.waiting, what));
        }
        if (difference.added != 0) {
            notes.push_back(fmt::format("{} {} more than before", difference.added, what));
        }
        return {};
    };
    for (const auto& done : {compare(RecordKind::kAddresses, "addresses", former.addresses),
                             compare(RecordKind::kRoutes, "routes", former.routes),
                             compare(RecordKind::kNeighbours, "neighbours", former.neighbours)}) {
        if (!done) {
            return tl::unexpected(done.error());
        }
    }
    if (!equal) {
        return fail(std::move(problem));
    }
    return notes;
}

} // namespace railbreak::injectors
