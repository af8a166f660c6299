// A NIC's admin state and MTU, together because both make the kernel forget addresses, routes and permanent neighbours:
// the former state holds them, and they are given back until a fresh dump equals the former one. See link_state.hpp.
#include <algorithm>
#include <cerrno>

#include <fmt/format.h>
#include <net/if.h>

#include "injectors/facet_of.hpp"
#include "injectors/facets.hpp"
#include "injectors/link_state.hpp"
#include "injectors/netlink.hpp"
#include "injectors/restore.hpp"
#include "injectors/shared_routes.hpp"
#include "injectors/time_limits.hpp"

namespace railbreak::injectors {

namespace {

constexpr std::uint32_t kSmallestMtu = 68; ///< of IPv4 (RFC 791); below it the kernel takes all addresses away

/// kInput when the device cannot have that MTU, or has it already.
Result<void> check_mtu(const LinkRecord& link, std::uint32_t mtu) {
    const std::uint32_t smallest = std::max(kSmallestMtu, link.smallest_mtu);
    if (mtu >= smallest && mtu < link.mtu) {
        return {};
    }
    return fail(Error(ErrorKind::kInput, fmt::format("{} cannot get an MTU of {}: it must be between {} and {}",
                                                     link.name, mtu, smallest, link.mtu - 1))
                    .with("nic", link.name)
                    .with("mtu_bytes", std::to_string(link.mtu)));
}

/// kRefused when a VLAN or its like would lose its MTU with the device's: the kernel lowers it and never raises it
/// again.
Result<void> check_riders(HostOps& ops, const DeviceIdentity& device, std::uint32_t mtu) {
    const auto links = ops.links();
    if (!links) {
        return tl::unexpected(links.error());
    }
    for (const LinkRecord& each : *links) {
        if (each.lower == device.ifindex && each.mtu > mtu) {
            return fail(Error(ErrorKind::kRefused, fmt::format("{} may not be touched: {} ({}) rides on it and would "
                                                               "lose its MTU of {}",
                                                               device.name, each.name, each.kind, each.mtu))
                            .with("nic", device.name)
                            .with("found", each.name));
        }
    }
    return {};
}

/// The MTU first: what it takes away or makes possible again is compared afterwards.
Result<void> go_to_mtu(HostOps& ops, const DeviceIdentity& device, const LinkState& former, std::uint32_t mtu) {
    const auto found = find_device(ops, device);
    if (!found) {
        return tl::unexpected(found.error());
    }
    if (found->empty() || found->front().mtu == mtu) {
        return {}; // the read-back reports a device that is gone
    }
    if (mtu < former.mtu) {
        if (auto free = check_riders(ops, device, mtu); !free) {
            return free;
        }
    }
    auto set = ops.set_mtu(device.ifindex, mtu);
    if (set) {
        return set;
    }
    // A refusal may come after the change.
    const auto now = find_device(ops, device);
    if (now && !now->empty() && now->front().mtu == mtu) {
        return {};
    }
    const int code = kernel_errno(set.error());
    return code == EINVAL || code == ERANGE
               ? fail(Error(ErrorKind::kInput, set.error().message()).with("nic", device.name))
               : set;
}

/// Other NICs may be down already, and with them hops of routes that this NIC shares with them.
void complete(LinkState& state, const FacetContext& context) {
    const DeviceIdentity& device = context.target.device;
    for (const JournalEntry* entry : context.open_entries) {
        const DeviceIdentity& other = entry->target.device;
        if (entry->target.kind != TargetKind::kNic || other.netns_inode != device.netns_inode) {
            continue;
        }
        for (const FormerPart& part : entry->former) {
            const auto known =
                part.facet == FacetKind::kLink ? decode_link(part.state) : Result<LinkState>(LinkState());
            if (known) {
                complete_shared_routes(state.routes, device.ifindex, known->routes);
            }
        }
    }
}

class Link final : public FacetOf<LinkState> {
public:
    FacetKind kind() const override { return FacetKind::kLink; }

protected:
    bool concerned(const WantedState& wanted) const override { return wanted.down || wanted.mtu_bytes; }

    Result<LinkState> look(HostOps& ops, const FacetContext& context, const FaultRequest& request) const override {
        const DeviceIdentity& device = context.target.device;
        const auto found = find_device(ops, device);
        if (!found) {
            return tl::unexpected(found.error());
        }
        if (found->empty()) {
            return fail(ErrorKind::kInput, fmt::format("the interface {} is gone", device.name));
        }
        if ((found->front().flags & IFF_UP) == 0) {
            return fail(
                Error(ErrorKind::kRefused, fmt::format("{} may not be touched: it is down already", device.name))
                    .with("nic", device.name));
        }
        if (request.kind == FaultKind::kMtu) {
            if (auto fits = check_mtu(found->front(), request.mtu_bytes); !fits) {
                return tl::unexpected(fits.error());
            }
        }
        auto state = snapshot_link(ops, found->front());
        if (state) {
            complete(*state, context);
        }
        return state;
    }

    Result<void> make(HostOps& ops, const FacetContext& context, const LinkState& former,
                      const WantedState& wanted) const override {
        const std::int32_t ifindex = context.target.device.ifindex;
        const std::uint32_t mtu = wanted.mtu_bytes.value_or(former.mtu);
        if (auto set = go_to_mtu(ops, context.target.device, former, mtu); !set) {
            return set;
        }
        if (wanted.down) {
            return ops.set_link_flags(ifindex, IFF_UP, 0);
        }
        // Up, with all that the MTU leaves it: a link down that ended before may have taken some of it.
        const LinkState rest = at_mtu(former, mtu);
        return verify_link(ops, ifindex, rest) ? Result<void>()
                                               : restore_and_verify_link(ops, ifindex, rest).map([](const Notes&) {});
    }

    Result<void> undo(HostOps& ops, const FacetContext& context, const LinkState& former) const override {
        return restore_and_verify_link(ops, context.target.device.ifindex, former).map([](const Notes&) {});
    }

    Result<Readback> read_back(HostOps& ops, const FacetContext& context, const LinkState& former,
                               const WantedState& wanted) const override {
        const DeviceIdentity& device = context.target.device;
        Readback values;
        if (wanted.mtu_bytes) {
            const auto found = find_device(ops, device);
            if (!found) {
                return tl::unexpected(found.error());
            }
            if (found->empty() || found->front().mtu != *wanted.mtu_bytes) {
                return fail(ErrorKind::kHarness, fmt::format("{} does not have the wanted MTU", device.name));
            }
            values.emplace_back("mtu_bytes", std::to_string(found->front().mtu));
        }
        if (wanted.down) {
            const auto stopped = wait_running(ops, device.ifindex, Deadline::after(kStopping), false);
            if (!stopped) {
                return tl::unexpected(stopped.error());
            }
            if (!*stopped) {
                return fail(ErrorKind::kHarness, fmt::format("{} is still running", device.name));
            }
            values.emplace_back("running", "no");
        } else if (wanted.mtu_bytes) {
            if (const auto rest = verify_link(ops, device.ifindex, at_mtu(former, *wanted.mtu_bytes)); !rest) {
                return fail(ErrorKind::kHarness, rest.error().to_line());
            }
        }
        return values;
    }

    Result<Notes> verify_former(HostOps& ops, const FacetContext& context, const LinkState& former) const override {
        return verify_link(ops, context.target.device.ifindex, former);
    }

    Steps steps(const FacetContext& context, const LinkState& former, const WantedState& wanted) const override {
        const std::string& nic = context.target.device.name;
        Steps steps;
        if (wanted.mtu_bytes) {
            steps.changes.push_back(fmt::format("{}: MTU from {} to {}{}", nic, former.mtu, *wanted.mtu_bytes,
                                                *wanted.mtu_bytes < kSmallestIpv6Mtu
                                                    ? "; the kernel takes IPv6 away from it, with addresses, routes "
                                                      "and settings"
                                                    : ""));
            steps.undo.push_back(fmt::format("{}: MTU back to {}, {} settings of IPv6 put back where changed", nic,
                                             former.mtu, former.settings.size()));
        }
        if (wanted.down) {
            steps.changes.push_back(fmt::format("{}: admin down", nic));
            steps.undo.push_back(fmt::format("{}: admin up, wait for carrier", nic));
        }
        steps.undo.push_back(
            fmt::format("{}: {} addresses, {} routes, {} permanent neighbours compared and put back where missing", nic,
                        former.addresses.size(), former.routes.size(), former.neighbours.size()));
        return steps;
    }

    std::string words(const LinkState&) const override { return "admin down"; }
    std::string words_for(const LinkState& former, const FaultRequest& request) const override {
        return request.kind == FaultKind::kMtu ? "MTU of the interface" : words(former);
    }

    std::string encode(const LinkState& former) const override { return encode_link(former); }
    Result<LinkState> decode(std::string_view bytes) const override { return decode_link(bytes); }
};

} // namespace

const Facet& link_facet() {
    static const Link facet;
    return facet;
}

} // namespace railbreak::injectors
