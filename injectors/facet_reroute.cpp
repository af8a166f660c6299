// What a NIC's addresses send leaves through another NIC of the host. One policy rule per address leads to a table of
// our own, in which the NIC's destinations go through the other NIC; see own_routes.hpp. Connections that exist move
// at once and move back when the rules go. What comes in still comes in where it did.
//
// How a destination is reached through the other NIC:
//     behind a gateway   by a gateway of the other NIC, where it has a route by one; else by the same gateway
//     on the link        IPv4: directly, for hosts answer ARP on any of their NICs; IPv6: by a gateway of the other
//     NIC,
//                        for hosts answer neighbour discovery only on the NIC that has the address
// IPv6 without such a gateway is left as it is, and said so.
#include <algorithm>
#include <cerrno>
#include <set>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include "injectors/facet_of.hpp"
#include "injectors/facets.hpp"
#include "injectors/link_state.hpp"
#include "injectors/netlink.hpp"
#include "injectors/own_routes.hpp"
#include "injectors/restore.hpp"
#include "injectors/shaping.hpp"
#include "injectors/wire.hpp"

namespace railbreak::injectors {

namespace {

/// Our rules come right behind that of the local table (0), unless somebody else's are there.
constexpr std::uint32_t kUsualPriority = 202;
/// rp_filter: 1 drops what does not arrive on the NIC that an answer would leave by, 2 what no NIC leads back to.
constexpr std::string_view kStrict = "1";
constexpr std::string_view kLoose = "2";

struct Former {
    std::string via_name;
    std::int32_t via = 0;
    std::vector<std::string> rules;  ///< messages that make them
    std::vector<std::string> routes; ///< the same
    std::string rp_filter;           ///< of the NIC, where it has to be loosened; empty otherwise
    std::uint64_t nic_sent_bytes = 0;
    std::uint64_t via_sent_bytes = 0;
};

std::string rp_filter_path(std::string_view nic) {
    return fmt::format("/proc/sys/net/ipv4/conf/{}/rp_filter", nic);
}

/// Its first line; empty where it cannot be read (no IPv4).
std::string read_rp_filter(HostOps& ops, std::string_view nic) {
    const auto text = ops.read_file(rp_filter_path(nic));
    return text ? text->substr(0, text->find('\n')) : std::string();
}

/// What is kept of a device's routes: those of the main table, to places that are not the link's own.
Result<std::vector<Route>> main_routes(HostOps& ops, std::int32_t ifindex) {
    const auto messages = ops.records(RecordKind::kRoutes, ifindex);
    if (!messages) {
        return tl::unexpected(messages.error());
    }
    std::vector<Route> found;
    for (const std::string& message : *messages) {
        for (Route& route : read_route(message)) {
            const bool link_local = route.family == AF_INET6 && route.to.starts_with("\xfe\x80");
            if (route.table == RT_TABLE_MAIN && route.ifindex == ifindex && route.prefix > 0 && !link_local) {
                found.push_back(std::move(route));
            }
        }
    }
    return found;
}

/// Global addresses of the device, each as the rule that its traffic will follow.
Result<std::vector<SourceRule>> source_rules(HostOps& ops, std::int32_t ifindex, std::uint32_t priority) {
    const auto messages = ops.records(RecordKind::kAddresses, ifindex);
    if (!messages) {
        return tl::unexpected(messages.error());
    }
    std::vector<SourceRule> rules;
    for (const std::string& message : *messages) {
        const Address address = read_address(message);
        if (address.scope >= RT_SCOPE_LINK || address.bytes.empty()) {
            continue;
        }
        rules.push_back({address.family, own_route_table(ifindex), kOwnRouteProtocol, priority, address.bytes,
                         static_cast<std::uint8_t>(address.bytes.size() * 8)});
    }
    return rules;
}

/// The gateway by which the other NIC reaches that destination, or any; empty when it has none.
std::string gateway_of(const std::vector<Route>& via_routes, const Route& to) {
    std::string gateway;
    for (const Route& each : via_routes) {
        if (each.family != to.family || each.gateway.empty()) {
            continue;
        }
        if (each.to == to.to && each.prefix == to.prefix) {
            return each.gateway;
        }
        gateway = gateway.empty() ? each.gateway : gateway;
    }
    return gateway;
}

/// The NIC's destinations through the other NIC; those that cannot be reached through it are left out.
std::vector<Route> moved_routes(const std::vector<Route>& nic_routes, const std::vector<Route>& via_routes,
                                std::uint32_t table, std::int32_t via) {
    std::vector<Route> moved;
    for (Route route : nic_routes) {
        const std::string gateway = gateway_of(via_routes, route);
        if (!route.gateway.empty() && !gateway.empty()) {
            route.gateway = gateway;
        }
        if (route.family == AF_INET6) {
            if (gateway.empty()) {
                continue;
            }
            route.gateway = gateway;
        }
        route.table = table;
        route.protocol = kOwnRouteProtocol;
        route.ifindex = via;
        const auto same_place = [&](const Route& each) {
            return each.family == route.family && each.to == route.to && each.prefix == route.prefix;
        };
        if (std::none_of(moved.begin(), moved.end(), same_place)) {
            moved.push_back(std::move(route));
        }
    }
    return moved;
}

/// Rules and routes of our table for the NIC as they are now.
struct Seen {
    std::vector<SourceRule> rules;
    std::vector<Route> routes;
};

Result<Seen> look_at_table(HostOps& ops, std::int32_t ifindex, std::int32_t via) {
    Seen seen;
    const std::uint32_t table = own_route_table(ifindex);
    const auto rules = ops.rules();
    const auto routes = ops.records(RecordKind::kRoutes, via);
    if (!rules || !routes) {
        return tl::unexpected(rules ? routes.error() : rules.error());
    }
    for (const std::string& message : *rules) {
        if (SourceRule rule = read_rule(message); rule.table == table) {
            seen.rules.push_back(std::move(rule));
        }
    }
    for (const std::string& message : *routes) {
        for (Route& route : read_route(message)) {
            if (route.table == table) {
                seen.routes.push_back(std::move(route));
            }
        }
    }
    return seen;
}

/// A priority before everybody else's rules. kRefused when there is no room.
Result<std::uint32_t> free_priority(HostOps& ops, const DeviceIdentity& device) {
    const auto rules = ops.rules();
    if (!rules) {
        return tl::unexpected(rules.error());
    }
    std::uint32_t priority = kUsualPriority;
    for (const std::string& message : *rules) {
        const SourceRule rule = read_rule(message);
        if (rule.protocol != kOwnRouteProtocol && rule.priority > 0) {
            priority = std::min(priority, rule.priority - 1);
        }
    }
    return priority > 0 ? Result<std::uint32_t>(priority) : refuse_foreign(device, "a policy rule of priority 1");
}

/// gone_is_fine() knows the errno values of traffic control; routes have ESRCH.
Result<void> delete_it(HostOps& ops, const std::string& message) {
    auto done = gone_is_fine(ops.replay(message, 0));
    return !done && kernel_errno(done.error()) == ESRCH ? Result<void>() : done;
}

/// Rules first: from then on traffic leaves as before.
Result<void> remove_all(HostOps& ops, const DeviceIdentity& device, const Former& former) {
    const auto seen = look_at_table(ops, device.ifindex, former.via);
    if (!seen) {
        return tl::unexpected(seen.error());
    }
    for (const SourceRule& rule : seen->rules) {
        if (rule.protocol == kOwnRouteProtocol) {
            if (auto done = delete_it(ops, delete_rule(rule)); !done) {
                return done;
            }
        }
    }
    for (const Route& route : seen->routes) {
        if (route.protocol == kOwnRouteProtocol) {
            if (auto done = delete_it(ops, delete_route(route)); !done) {
                return done;
            }
        }
    }
    return {};
}

template <class Record> bool contains(const std::vector<Record>& all, const Record& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
}

class Reroute final : public FacetOf<Former> {
public:
    FacetKind kind() const override { return FacetKind::kReroute; }

protected:
    bool concerned(const WantedState& wanted) const override { return wanted.via_nic.has_value(); }

    Result<Former> look(HostOps& ops, const FacetContext& context, const FaultRequest& request) const override {
        const DeviceIdentity& device = context.target.device;
        const auto features = ops.features();
        const auto links = ops.links();
        if (!features || !links) {
            return tl::unexpected(features ? links.error() : features.error());
        }
        if (!features->has(KernelFeature::kPolicyRules)) {
            return fail(
                Error(ErrorKind::kRefused, features->missing(KernelFeature::kPolicyRules)).with("nic", device.name));
        }
        Former former;
        former.via_name = request.via_nic;
        for (const LinkRecord& link : *links) {
            if (link.ifindex == device.ifindex) {
                former.nic_sent_bytes = link.sent_bytes;
            } else if (link.name == request.via_nic) {
                former.via = link.ifindex;
                former.via_sent_bytes = link.sent_bytes;
            } else {
                continue;
            }
            if ((link.flags & IFF_UP) == 0 || (link.flags & IFF_RUNNING) == 0) {
                return fail(Error(ErrorKind::kRefused,
                                  fmt::format("{} cannot be rerouted through {}: {} {}", device.name, request.via_nic,
                                              link.name, (link.flags & IFF_UP) == 0 ? "is down" : "has no carrier"))
                                .with("nic", link.name));
            }
        }
        if (former.via == 0) {
            return fail(Error(ErrorKind::kRefused, fmt::format("there is no network interface {}", request.via_nic))
                            .with("nic", request.via_nic));
        }
        return check_free(ops, device, *links).and_then([&] { return plan_routes(ops, device, former); }).map([&] {
            const std::string strictest = std::max(read_rp_filter(ops, "all"), read_rp_filter(ops, device.name));
            former.rp_filter = strictest == kStrict ? read_rp_filter(ops, device.name) : std::string();
            return former;
        });
    }

    Result<void> make(HostOps& ops, const FacetContext& context, const Former& former,
                      const WantedState&) const override {
        const DeviceIdentity& device = context.target.device;
        const auto seen = look_at_table(ops, device.ifindex, former.via);
        if (!seen) {
            return tl::unexpected(seen.error());
        }
        if (!former.rp_filter.empty() && read_rp_filter(ops, device.name) != kLoose) {
            if (auto done = ops.write_file(rp_filter_path(device.name), kLoose); !done) {
                return done;
            }
        }
        // The rules last: a rule that leads to an empty table does nothing.
        for (const std::string& message : former.routes) {
            if (contains(seen->routes, read_route(message).front())) {
                continue;
            }
            if (auto done = present_is_fine(ops.replay(message, NLM_F_CREATE | NLM_F_EXCL)); !done) {
                return done;
            }
        }
        for (const std::string& message : former.rules) {
            if (contains(seen->rules, read_rule(message))) {
                continue;
            }
            if (auto done = present_is_fine(ops.replay(message, NLM_F_CREATE | NLM_F_EXCL)); !done) {
                return done;
            }
        }
        return {};
    }

    Result<void> undo(HostOps& ops, const FacetContext& context, const Former& former) const override {
        const DeviceIdentity& device = context.target.device;
        if (auto done = remove_all(ops, device, former); !done) {
            return done;
        }
        // What somebody else set meanwhile stays.
        const bool ours = !former.rp_filter.empty() && read_rp_filter(ops, device.name) == kLoose;
        return ours ? ops.write_file(rp_filter_path(device.name), former.rp_filter) : Result<void>();
    }

    Result<Readback> read_back(HostOps& ops, const FacetContext& context, const Former& former,
                               const WantedState& wanted) const override {
        if (!concerned(wanted)) {
            return Readback();
        }
        const DeviceIdentity& device = context.target.device;
        const auto seen = look_at_table(ops, device.ifindex, former.via);
        if (!seen) {
            return tl::unexpected(seen.error());
        }
        const bool rules = std::all_of(former.rules.begin(), former.rules.end(),
                                       [&](const std::string& each) { return contains(seen->rules, read_rule(each)); });
        const bool routes = std::all_of(former.routes.begin(), former.routes.end(), [&](const std::string& each) {
            return contains(seen->routes, read_route(each).front());
        });
        if (!rules || !routes) {
            return fail(ErrorKind::kHarness,
                        fmt::format("{} of {} through {} are not all there", rules ? "the routes" : "the policy rules",
                                    device.name, former.via_name));
        }
        return Readback{{"rerouted_addresses", std::to_string(former.rules.size())},
                        {"rerouted_destinations", std::to_string(former.routes.size())}};
    }

    /// What both NICs sent since the plan was made: the reroute as the counters saw it.
    Readback closing_values(HostOps& ops, const FacetContext& context, const Former& former,
                            const WantedState&) const override {
        Readback values;
        const auto links = ops.links();
        for (const LinkRecord& link : links.value_or(std::vector<LinkRecord>())) {
            if (link.ifindex == context.target.device.ifindex) {
                values.emplace_back("nic_sent_bytes", std::to_string(link.sent_bytes - former.nic_sent_bytes));
            } else if (link.ifindex == former.via) {
                values.emplace_back("via_nic_sent_bytes", std::to_string(link.sent_bytes - former.via_sent_bytes));
            }
        }
        return values;
    }

    Result<Notes> verify_former(HostOps& ops, const FacetContext& context, const Former& former) const override {
        const DeviceIdentity& device = context.target.device;
        const auto seen = look_at_table(ops, device.ifindex, former.via);
        if (!seen) {
            return tl::unexpected(seen.error());
        }
        const auto ours = [](const auto& each) { return each.protocol == kOwnRouteProtocol; };
        if (std::any_of(seen->rules.begin(), seen->rules.end(), ours) ||
            std::any_of(seen->routes.begin(), seen->routes.end(), ours)) {
            return fail(Error(ErrorKind::kTeardown,
                              fmt::format("the reroute of {} through {} is still there", device.name, former.via_name))
                            .with("table", std::to_string(own_route_table(device.ifindex))));
        }
        const std::string filter = read_rp_filter(ops, device.name);
        if (!former.rp_filter.empty() && filter != former.rp_filter) {
            return Notes{fmt::format("rp_filter of {} was {} and is now {}", device.name, former.rp_filter, filter)};
        }
        return Notes();
    }

    Result<void> clean_up(HostOps& ops, const FacetContext& context, const Former& former) const override {
        return remove_all(ops, context.target.device, former);
    }

    Steps steps(const FacetContext& context, const Former& former, const WantedState&) const override {
        const DeviceIdentity& device = context.target.device;
        std::vector<std::string> sources;
        std::vector<std::string> destinations;
        bool ip6 = false;
        for (const std::string& each : former.rules) {
            const SourceRule rule = read_rule(each);
            sources.push_back(describe_prefix(rule.family, rule.from, rule.prefix));
            ip6 = ip6 || rule.family == AF_INET6;
        }
        for (const std::string& each : former.routes) {
            const Route route = read_route(each).front();
            destinations.push_back(describe_prefix(route.family, route.to, route.prefix));
        }
        Steps steps;
        steps.changes = {
            fmt::format("{}: routing table {} with {} through {}", device.name, own_route_table(device.ifindex),
                        fmt::join(destinations, ", "), former.via_name),
            fmt::format("{}: policy rules for what comes from {}", device.name, fmt::join(sources, ", ")),
            fmt::format("{}: peers take it only where their rp_filter is 0 or 2, and answer ARP for their other "
                        "addresses only where arp_ignore and arp_filter are 0",
                        former.via_name)};
        if (!ip6) {
            steps.changes.push_back(
                fmt::format("{}: IPv6 stays where it is ({} has no IPv6 gateway)", device.name, former.via_name));
        }
        steps.undo = {fmt::format("{}: policy rules and routes of protocol {} in table {} deleted", device.name,
                                  kOwnRouteProtocol, own_route_table(device.ifindex))};
        if (!former.rp_filter.empty()) {
            steps.changes.push_back(fmt::format("{}: rp_filter from {} to {}, or answers would be dropped", device.name,
                                                former.rp_filter, kLoose));
            steps.undo.push_back(fmt::format("{}: rp_filter back to {}", device.name, former.rp_filter));
        }
        return steps;
    }

    std::string words(const Former&) const override { return "policy rules and a routing table"; }

    std::string encode(const Former& former) const override {
        Encoder out;
        out.put_string(former.via_name);
        out.put(former.via);
        out.put_strings(former.rules);
        out.put_strings(former.routes);
        out.put_string(former.rp_filter);
        out.put(former.nic_sent_bytes);
        out.put(former.via_sent_bytes);
        return out.take();
    }

    Result<Former> decode(std::string_view bytes) const override {
        Decoder in(bytes);
        Former former;
        former.via_name = in.get_string();
        former.via = in.get<std::int32_t>();
        former.rules = in.get_strings();
        former.routes = in.get_strings();
        former.rp_filter = in.get_string();
        former.nic_sent_bytes = in.get<std::uint64_t>();
        former.via_sent_bytes = in.get<std::uint64_t>();
        const bool routes = std::all_of(former.routes.begin(), former.routes.end(),
                                        [](const std::string& each) { return read_route(each).size() == 1; });
        if (!in.finished() || !routes) {
            return fail(ErrorKind::kInput, "the former state of a reroute is damaged");
        }
        return former;
    }

private:
    /// Nobody else's rules or routes may use our table.
    static Result<void> check_free(HostOps& ops, const DeviceIdentity& device, const std::vector<LinkRecord>& links) {
        for (const LinkRecord& link : links) {
            const auto seen = look_at_table(ops, device.ifindex, link.ifindex);
            if (!seen) {
                return tl::unexpected(seen.error());
            }
            const std::string what = fmt::format("routing table {}", own_route_table(device.ifindex));
            const auto ours = [](const auto& each) { return each.protocol == kOwnRouteProtocol; };
            if (!std::all_of(seen->rules.begin(), seen->rules.end(), ours) ||
                !std::all_of(seen->routes.begin(), seen->routes.end(), ours)) {
                return refuse_foreign(device, what);
            }
            if (!seen->rules.empty() || !seen->routes.empty()) {
                return refuse_taken(device, what);
            }
        }
        return {};
    }

    /// Fills in rules and routes.
    static Result<void> plan_routes(HostOps& ops, const DeviceIdentity& device, Former& former) {
        const auto nic_routes = main_routes(ops, device.ifindex);
        const auto via_routes = main_routes(ops, former.via);
        const auto priority = free_priority(ops, device);
        if (!nic_routes || !via_routes || !priority) {
            return tl::unexpected(!nic_routes   ? nic_routes.error()
                                  : !via_routes ? via_routes.error()
                                                : priority.error());
        }
        const auto rules = source_rules(ops, device.ifindex, *priority);
        if (!rules) {
            return tl::unexpected(rules.error());
        }
        std::set<std::uint8_t> families;
        for (const Route& route : moved_routes(*nic_routes, *via_routes, own_route_table(device.ifindex), former.via)) {
            families.insert(route.family);
            former.routes.push_back(new_route(route));
        }
        for (const SourceRule& rule : *rules) {
            if (families.contains(rule.family)) {
                former.rules.push_back(new_rule(rule));
            }
        }
        if (former.rules.empty()) {
            return fail(Error(ErrorKind::kRefused,
                              fmt::format("{} cannot be rerouted through {}: it has no IPv4 address and route, and {} "
                                          "has no IPv6 gateway",
                                          device.name, former.via_name, former.via_name))
                            .with("nic", device.name));
        }
        return {};
    }
};

} // namespace

const Facet& reroute_facet() {
    static const Reroute facet;
    return facet;
}

} // namespace railbreak::injectors
