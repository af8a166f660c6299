// Two faults of the way between a NIC and its host: the PCI Express link of the port above it runs slower
// (hardware/pcie_speed.hpp), and the NIC is off its bus (hardware/pci.hpp).
//
// A NIC that comes back after a removal is another interface: a new index, down, without addresses. So all that a link
// has is dumped before and given to the new interface afterwards, and whatever could not be given back makes a refusal.
#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include "injectors/facet_of.hpp"
#include "injectors/facets.hpp"
#include "injectors/hardware/pci.hpp"
#include "injectors/hardware/pcie_speed.hpp"
#include "injectors/hardware/refusal.hpp"
#include "injectors/link_state.hpp"
#include "injectors/message_parts.hpp"
#include "injectors/netlink.hpp"
#include "injectors/restore.hpp"
#include "injectors/time_limits.hpp"
#include "injectors/wire.hpp"

namespace railbreak::injectors {

namespace {

using hardware::PcieSpeedControl;
using hardware::PciFunction;

tl::unexpected<Error> refuse(const std::string& nic, std::string_view why, std::string advice = "") {
    return fail(Error(ErrorKind::kRefused, fmt::format("{} {}", nic, why)).with("nic", nic).advise(std::move(advice)));
}

std::string sysfs_file(HostOps& ops, std::string_view path) {
    return fmt::format("{}/{}", ops.sysfs().root(), path);
}

Result<void> check_root_files(HostOps& ops, const std::string& nic) {
    return ops.privileges().root_files
               ? Result<void>()
               : Result<void>(refuse(nic, "has files in sysfs that only root may write",
                                     "Run as root outside of user namespaces (no rootless container)."));
}

struct FormerSpeed {
    PcieSpeedControl control;
    std::uint32_t lanes = 0;
    std::vector<std::string> also; ///< other interfaces below the same port
};

/// What one lane of each generation carries, in bit/s: 8 of 10, then 128 of 130 bits are data; the sixth has frames of
/// 256 bytes with 242 of them data.
constexpr std::array<std::uint64_t, 6> kLaneRates{2'000'000'000,  4'000'000'000,  7'876'923'076,
                                                  15'753'846'153, 31'507'692'307, 60'500'000'000};

/// Data rate of the link in a state of the control.
std::optional<BitRate> rate_in(const FormerSpeed& former, std::uint32_t state) {
    const std::uint32_t generation = former.control.slowest_state - state;
    return generation < kLaneRates.size() ? std::optional(BitRate::bits_per_s(kLaneRates.at(generation) * former.lanes))
                                          : std::nullopt;
}

/// The fastest state below the present one that is not above the rate.
Result<std::uint32_t> state_for(const std::string& nic, const FormerSpeed& former, BitRate rate) {
    std::vector<std::string> lower;
    for (std::uint32_t state = former.control.state + 1; state <= former.control.slowest_state; ++state) {
        const std::optional<BitRate> has = rate_in(former, state);
        if (has && *has <= rate) {
            return state;
        }
        lower.push_back(has ? to_string(*has) : "unknown");
    }
    return fail(Error(ErrorKind::kInput, fmt::format("the PCIe link of {} has no lower speed that carries {} or less",
                                                     nic, to_string(rate)))
                    .with("nic", nic)
                    .advise(fmt::format("Its lower speeds carry: {}", fmt::join(lower, ", "))));
}

class PcieSpeed final : public FacetOf<FormerSpeed> {
public:
    FacetKind kind() const override { return FacetKind::kPcieSpeed; }

protected:
    bool concerned(const WantedState& wanted) const override { return wanted.pcie_rate.has_value(); }

    Result<FormerSpeed> look(HostOps& ops, const FacetContext& context, const FaultRequest& request) const override {
        const DeviceIdentity& device = context.target.device;
        if (const auto link = find_hardware(ops, device); !link) {
            return tl::unexpected(link.error());
        }
        const hardware::Sysfs& sysfs = ops.sysfs();
        const auto function = hardware::pci_function_of_nic(sysfs, device.name);
        if (!function) {
            return tl::unexpected(function.error());
        }
        const auto control = hardware::find_pcie_speed(sysfs, *function);
        const auto lanes = sysfs.read_number(fmt::format("bus/pci/devices/{}/current_link_width", function->address));
        if (!control || !lanes) {
            return control ? refuse(device.name, "does not tell the width of its PCIe link")
                           : tl::unexpected(control.error());
        }
        FormerSpeed former{*control, static_cast<std::uint32_t>(*lanes), {}};
        for (const PciFunction& each : hardware::pci_neighbours(sysfs, *function)) {
            for (const hardware::PciNic& nic : each.nics) {
                if (nic.name != device.name) {
                    former.also.push_back(nic.name);
                }
            }
        }
        auto fits = check_root_files(ops, device.name).and_then([&] { return may_join(former, request); });
        return fits ? Result<FormerSpeed>(std::move(former)) : tl::unexpected(fits.error());
    }

    Result<void> may_join(const FormerSpeed& former, const FaultRequest& request) const override {
        return state_for(request.nic, former, request.rate).map([](std::uint32_t) {});
    }

    Result<void> make(HostOps& ops, const FacetContext& context, const FormerSpeed& former,
                      const WantedState& wanted) const override {
        return state_for(context.target.device.name, former, *wanted.pcie_rate).and_then([&](std::uint32_t state) {
            return write(ops, former, state);
        });
    }

    Result<void> undo(HostOps& ops, const FacetContext&, const FormerSpeed& former) const override {
        return write(ops, former, former.control.state);
    }
    Result<void> clean_up(HostOps& ops, const FacetContext& context, const FormerSpeed& former) const override {
        // The port may have gone with its NIC.
        return control_there(ops, former) ? undo(ops, context, former) : Result<void>();
    }

    Result<Readback> read_back(HostOps& ops, const FacetContext& context, const FormerSpeed& former,
                               const WantedState& wanted) const override {
        const auto state = state_for(context.target.device.name, former, *wanted.pcie_rate);
        const auto now = read(ops, former);
        if (!state || !now) {
            return tl::unexpected(state ? now.error() : state.error());
        }
        if (*now != *state) {
            return fail(ErrorKind::kHarness,
                        fmt::format("the PCIe link below {} runs at another speed than wanted", former.control.port));
        }
        return Readback{
            {"pcie_rate_bits_per_s", std::to_string(rate_in(former, *state).value_or(BitRate()).bits_per_s())}};
    }

    Result<Notes> verify_former(HostOps& ops, const FacetContext&, const FormerSpeed& former) const override {
        const auto now = read(ops, former);
        if (!now) {
            return tl::unexpected(now.error());
        }
        return *now == former.control.state
                   ? Result<Notes>(Notes())
                   : fail(ErrorKind::kTeardown,
                          fmt::format("the PCIe link below {} is not at its speed again", former.control.port));
    }

    Steps steps(const FacetContext& context, const FormerSpeed& former, const WantedState& wanted) const override {
        const std::string& nic = context.target.device.name;
        const std::uint32_t state = state_for(nic, former, *wanted.pcie_rate).value_or(former.control.state);
        const auto carries = [&](std::uint32_t at) { return to_string(rate_in(former, at).value_or(BitRate())); };
        const std::string also = former.also.empty() ? "" : fmt::format("; slows {} too", fmt::join(former.also, ", "));
        return {{fmt::format("{}: PCIe link below {} from {} to {} (state {} of its cooling device){}", nic,
                             former.control.port, carries(former.control.state), carries(state), state, also)},
                {fmt::format("{}: PCIe link below {} back to {} (state {})", nic, former.control.port,
                             carries(former.control.state), former.control.state)}};
    }

    std::string words(const FormerSpeed&) const override { return "PCIe speed of the port above"; }

    std::string encode(const FormerSpeed& former) const override {
        Encoder out;
        out.put_string(former.control.path);
        out.put_string(former.control.port);
        out.put(former.control.state);
        out.put(former.control.slowest_state);
        out.put(former.lanes);
        out.put_strings(former.also);
        return out.take();
    }

    Result<FormerSpeed> decode(std::string_view bytes) const override {
        Decoder in(bytes);
        FormerSpeed former;
        former.control.path = in.get_string();
        former.control.port = in.get_string();
        former.control.state = in.get<std::uint32_t>();
        former.control.slowest_state = in.get<std::uint32_t>();
        former.lanes = in.get<std::uint32_t>();
        former.also = in.get_strings();
        return in.finished() ? Result<FormerSpeed>(std::move(former))
                             : fail(ErrorKind::kInput, "the former PCIe speed is damaged");
    }

private:
    /// Cooling devices are numbered as they appear: the number may belong to another by now.
    static bool control_there(HostOps& ops, const FormerSpeed& former) {
        return hardware::is_pcie_speed_of(ops.sysfs(), former.control);
    }
    static Result<std::uint32_t> read(HostOps& ops, const FormerSpeed& former) {
        if (!control_there(ops, former)) {
            return fail(ErrorKind::kHarness,
                        fmt::format("{} is no longer the speed of {}", former.control.path, former.control.port));
        }
        return ops.sysfs().read_number(former.control.path + "/cur_state").map([](std::uint64_t state) {
            return static_cast<std::uint32_t>(state);
        });
    }
    static Result<void> write(HostOps& ops, const FormerSpeed& former, std::uint32_t state) {
        return read(ops, former).and_then([&](std::uint32_t now) -> Result<void> {
            return now == state
                       ? Result<void>()
                       : ops.write_file(sysfs_file(ops, former.control.path + "/cur_state"), std::to_string(state));
        });
    }
};

struct FormerFunction {
    PciFunction function;
    LinkState link;
};

/// The same record for an interface of another index.
std::string for_interface(const std::string& message, std::int32_t from, std::int32_t to) {
    Parts parts = take_apart(message);
    const auto replace = [&](std::string& bytes, std::size_t at) {
        std::int32_t index = 0;
        if (at + sizeof index <= bytes.size()) {
            std::memcpy(&index, bytes.data() + at, sizeof index);
            if (index == from) {
                std::memcpy(bytes.data() + at, &to, sizeof to);
            }
        }
    };
    switch (head_of(message).nlmsg_type) {
    case RTM_NEWADDR: replace(parts.head, NLMSG_HDRLEN + offsetof(ifaddrmsg, ifa_index)); break;
    case RTM_NEWNEIGH: replace(parts.head, NLMSG_HDRLEN + offsetof(ndmsg, ndm_ifindex)); break;
    default: break; // foreign enum: RTM_*; routes name theirs in attributes
    }
    for (auto& [type, payload] : parts.attributes) {
        if (head_of(message).nlmsg_type == RTM_NEWROUTE && (type == RTA_OIF || type == RTA_IIF)) {
            replace(payload, 0);
        }
    }
    return put_together(parts);
}

LinkState for_interface(LinkState state, std::int32_t from, std::int32_t to) {
    for (auto* each : {&state.addresses, &state.routes, &state.neighbours}) {
        for (std::string& message : *each) {
            message = for_interface(message, from, to);
        }
    }
    return state;
}

/// Renames an interface, which must be down.
Result<void> rename_link(HostOps& ops, std::int32_t ifindex, const std::string& name) {
    NetlinkMessage message(RTM_NEWLINK, 0);
    ifinfomsg header{};
    header.ifi_index = ifindex;
    message.append_header(header);
    message.put_string(IFLA_IFNAME, name);
    const auto* bytes = reinterpret_cast<const char*>(message.header());
    return ops.replay(std::string_view(bytes, message.header()->nlmsg_len), 0);
}

/// Refuses what a new interface could not be given: what rides on the NIC, and what somebody has put on it.
Result<void> check_bare(HostOps& ops, const LinkRecord& link) {
    const auto links = ops.links();
    const auto qdiscs = ops.qdiscs(link.ifindex);
    if (!links || !qdiscs) {
        return tl::unexpected(links ? qdiscs.error() : links.error());
    }
    if (link.master != 0) {
        return refuse(link.name, "is a member of a bond or a bridge, which it would leave for good");
    }
    for (const LinkRecord& each : *links) {
        if (each.lower == link.ifindex) {
            return refuse(link.name, fmt::format("carries {}, which would be gone for good", each.name));
        }
    }
    for (const QdiscRecord& each : *qdiscs) {
        if (each.handle != 0) { // what the kernel sets up by itself has no number
            return refuse(link.name, fmt::format("has the queueing discipline {} {}, which would be gone for good",
                                                 each.kind, to_tc_string(each.handle)));
        }
    }
    return {};
}

Result<void> check_removal(HostOps& ops, const LinkRecord& link, const PciFunction& function) {
    if ((link.flags & IFF_UP) == 0) {
        return refuse(link.name, "may not be touched: it is down already");
    }
    if (function.nics.size() != 1 || function.driver.empty()) {
        return refuse(link.name, fmt::format("shares the PCI function {} with other interfaces", function.address));
    }
    if (!link.permanent_mac.empty() && link.permanent_mac != link.mac) {
        return refuse(link.name, "has another MAC address than its own, which it would come back with");
    }
    const auto netns = ops.netns();
    if (!netns || netns->inode != ops.privileges().first_netns_inode) {
        return netns ? refuse(link.name, "is not in the host's first network namespace, where it would come back")
                     : tl::unexpected(netns.error());
    }
    auto allowed = hardware::check_removable(ops.sysfs(), function, {});
    if (allowed) {
        allowed = check_root_files(ops, link.name);
    }
    return allowed ? check_bare(ops, link) : allowed;
}

class PciPresence final : public FacetOf<FormerFunction> {
public:
    FacetKind kind() const override { return FacetKind::kPciPresence; }

protected:
    bool concerned(const WantedState& wanted) const override { return wanted.removed; }

    Result<FormerFunction> look(HostOps& ops, const FacetContext& context, const FaultRequest&) const override {
        const auto link = find_hardware(ops, context.target.device);
        if (!link) {
            return tl::unexpected(link.error());
        }
        auto function = hardware::pci_function_of_nic(ops.sysfs(), link->name);
        if (!function) {
            return tl::unexpected(std::move(function.error()));
        }
        if (auto allowed = check_removal(ops, *link, *function); !allowed) {
            return tl::unexpected(std::move(allowed.error()));
        }
        return snapshot_link(ops, *link).and_then([&](LinkState state) -> Result<FormerFunction> {
            for (const std::string& route : state.routes) {
                const Parts parts = take_apart(route);
                if (find(parts, RTA_MULTIPATH) != nullptr) {
                    return refuse(link->name, "is a hop of a route over several interfaces, which would lose it");
                }
            }
            return FormerFunction{std::move(*function), std::move(state)};
        });
    }

    Result<void> make(HostOps& ops, const FacetContext& context, const FormerFunction& former,
                      const WantedState&) const override {
        const auto now = find_device(ops, context.target.device);
        if (!now || now->empty()) {
            return now ? Result<void>() : tl::unexpected(now.error());
        }
        const auto same = hardware::pci_function_of_nic(ops.sysfs(), now->front().name);
        if (!same || *same != former.function) {
            return refuse(context.target.device.name, "is another device now than was looked at");
        }
        return ops.write_file(sysfs_file(ops, fmt::format("bus/pci/devices/{}/remove", former.function.address)), "1");
    }

    /// The interface that was there is there still: nothing was removed.
    Result<void> undo(HostOps& ops, const FacetContext& context, const FormerFunction& former) const override {
        return restore_and_verify_link(ops, context.target.device.ifindex, former.link).map([](const Notes&) {});
    }

    /// It is gone, or another one has come in its place: brings the function back, and gives its interface what the
    /// former one had.
    Result<void> clean_up(HostOps& ops, const FacetContext& context, const FormerFunction& former) const override {
        const DeviceIdentity& device = context.target.device;
        return bring_back(ops, former.function)
            .and_then([&](const LinkRecord& link) -> Result<LinkRecord> {
                if (link.name == device.name) {
                    return link;
                }
                auto down = ops.set_link_flags(link.ifindex, IFF_UP, 0).and_then([&] {
                    return rename_link(ops, link.ifindex, device.name);
                });
                return down ? Result<LinkRecord>(link) : tl::unexpected(down.error());
            })
            .and_then([&](const LinkRecord& link) {
                const LinkState state = for_interface(former.link, device.ifindex, link.ifindex);
                return restore_and_verify_link(ops, link.ifindex, state);
            })
            .map([](const Notes&) {})
            .map_error([](const Error& error) { return hardware::as_teardown(error); });
    }

    Result<Readback> read_back(HostOps& ops, const FacetContext& context, const FormerFunction& former,
                               const WantedState&) const override {
        const auto now = find_device(ops, context.target.device);
        if (!now) {
            return tl::unexpected(now.error());
        }
        const bool on_bus = ops.sysfs().exists("bus/pci/devices/" + former.function.address);
        if (!now->empty() || on_bus) {
            return fail(ErrorKind::kHarness, fmt::format("{} is still on its bus", context.target.device.name));
        }
        return Readback{{"pci_function", former.function.address}, {"on_bus", "no"}};
    }

    Result<Notes> verify_former(HostOps& ops, const FacetContext& context,
                                const FormerFunction& former) const override {
        return verify_link(ops, context.target.device.ifindex, former.link);
    }

    Steps steps(const FacetContext& context, const FormerFunction& former, const WantedState&) const override {
        const std::string& nic = context.target.device.name;
        return {{fmt::format("{}: PCI function {} ({}) removed from its bus", nic, former.function.address,
                             former.function.driver)},
                {fmt::format("{}: {} rescanned, the function waited for", nic, rescan_path(former.function)),
                 fmt::format("{}: up, with MTU {}, {} addresses, {} routes, {} permanent neighbours and {} settings",
                             nic, former.link.mtu, former.link.addresses.size(), former.link.routes.size(),
                             former.link.neighbours.size(), former.link.settings.size())}};
    }

    std::string words(const FormerFunction&) const override { return "PCI removal"; }

    std::string encode(const FormerFunction& former) const override {
        const PciFunction& function = former.function;
        Encoder out;
        for (const std::string& text :
             {function.address, function.upstream, function.driver, function.physical_function,
              function.nics.front().name, function.nics.front().mac}) {
            out.put_string(text);
        }
        out.put(function.class_code);
        out.put_string(encode_link(former.link));
        return out.take();
    }

    Result<FormerFunction> decode(std::string_view bytes) const override {
        Decoder in(bytes);
        FormerFunction former;
        PciFunction& function = former.function;
        hardware::PciNic nic;
        for (std::string* text : {&function.address, &function.upstream, &function.driver, &function.physical_function,
                                  &nic.name, &nic.mac}) {
            *text = in.get_string();
        }
        function.class_code = in.get<std::uint32_t>();
        function.nics = {std::move(nic)};
        const auto link = decode_link(in.get_string());
        if (!in.finished() || !link) {
            return fail(ErrorKind::kInput, "the former state of a PCI function is damaged");
        }
        former.link = *link;
        return former;
    }

private:
    /// The function's interface, once both are there.
    static Result<LinkRecord> bring_back(HostOps& ops, const PciFunction& former) {
        if (!ops.sysfs().exists("bus/pci/devices/" + former.address)) {
            if (auto rescanned = ops.write_file(sysfs_file(ops, rescan_path(former)), "1"); !rescanned) {
                return tl::unexpected(rescanned.error());
            }
        }
        const Deadline deadline = Deadline::after(kRescan);
        for (;;) { // the driver may bind after the rescan has returned
            const auto now = hardware::read_pci_function(ops.sysfs(), former.address);
            const auto links = ops.links();
            if (!links) {
                return tl::unexpected(links.error());
            }
            for (const LinkRecord& link : *links) {
                if (now && now->nics.size() == 1 && link.name == now->nics.front().name &&
                    link.mac == former.nics.front().mac) {
                    return link;
                }
            }
            const auto changed = ops.wait_event(deadline);
            if (!changed || !*changed) {
                return changed ? fail(Error(ErrorKind::kTeardown,
                                            fmt::format("{} did not come back on its bus", former.nics.front().name))
                                          .advise(fmt::format("write 1 to {}", sysfs_file(ops, rescan_path(former)))))
                               : tl::unexpected(changed.error());
            }
        }
    }
};

} // namespace

const Facet& pcie_speed_facet() {
    static const PcieSpeed facet;
    return facet;
}

const Facet& pci_presence_facet() {
    static const PciPresence facet;
    return facet;
}

} // namespace railbreak::injectors
