// A NIC's port runs at one of its lower speeds: of the modes that it offers its partner only those of that speed are
// left (hardware/link_modes.hpp), and the link trains anew. All traffic of the port is slower, RoCE included. What lies
// on the interface stays: only the carrier goes and comes back.
#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <net/if.h>

#include "injectors/facet_of.hpp"
#include "injectors/facets.hpp"
#include "injectors/link_state.hpp"
#include "injectors/restore.hpp"
#include "injectors/time_limits.hpp"
#include "injectors/wire.hpp"

namespace railbreak::injectors {

namespace {

using hardware::LinkMode;
using hardware::LinkModes;

constexpr std::uint32_t kMostModes = 1024; ///< more bits than the kernel has

struct Former {
    LinkModes modes;      ///< without duplex and lanes: nothing sets them
    bool running = false; ///< the port had carrier
};

tl::unexpected<Error> refuse(const DeviceIdentity& device, std::string_view why) {
    return fail(Error(ErrorKind::kRefused, fmt::format("{} cannot change its speed: {}", device.name, why))
                    .with("nic", device.name));
}

std::set<BitRate> speeds_of(const LinkModes& modes) {
    std::set<BitRate> speeds;
    for (const LinkMode& mode : modes.modes) {
        speeds.insert(speed_of(mode));
    }
    speeds.erase(BitRate()); // bits that are no speed
    return speeds;
}

/// The highest speed that is offered to the partner.
BitRate offered(const LinkModes& modes) {
    BitRate highest;
    for (const LinkMode& mode : modes.modes) {
        highest = mode.advertised ? std::max(highest, speed_of(mode)) : highest;
    }
    return highest;
}

bool same_offer(const LinkModes& a, const LinkModes& b) {
    return a.autonegotiation == b.autonegotiation && advertised(a) == advertised(b);
}

/// Offers these modes unless it does already.
Result<void> offer(HostOps& ops, const DeviceIdentity& device, const std::vector<std::uint32_t>& modes) {
    const auto now = ops.link_modes(device.ifindex);
    if (!now) {
        return tl::unexpected(now.error());
    }
    return now->autonegotiation && advertised(*now) == modes ? Result<void>()
                                                             : ops.set_advertised_modes(device.ifindex, modes);
}

/// Waits until the link runs at that speed. Gives the speed that it has at the end; nothing while it has none.
Result<std::optional<BitRate>> trained(HostOps& ops, const DeviceIdentity& device, BitRate speed, Deadline deadline) {
    for (;;) {
        const auto now = ops.link_modes(device.ifindex);
        if (!now || now->speed == speed || deadline.passed()) {
            return now.map([](const LinkModes& modes) { return modes.speed; });
        }
        if (const auto event = ops.wait_event(deadline); !event) {
            return tl::unexpected(event.error());
        }
    }
}

Result<bool> is_up(HostOps& ops, const DeviceIdentity& device) {
    return find_device(ops, device).map([](const std::vector<LinkRecord>& found) {
        return !found.empty() && (found.front().flags & IFF_UP) != 0;
    });
}

/// kInput when the port has no such speed or offers no higher one anyway.
Result<void> check_rate(const std::string& nic, const LinkModes& modes, BitRate rate) {
    if (auto narrowed = narrowed_to(modes, rate); !narrowed) {
        return tl::unexpected(std::move(narrowed.error()).with("nic", nic));
    }
    if (rate >= offered(modes)) {
        return fail(
            Error(ErrorKind::kInput, fmt::format("{} offers no more than {} as it is", nic, to_string(offered(modes))))
                .with("nic", nic));
    }
    return {};
}

/// Whether a fault of this keeper has taken the link down.
bool down_by_us(const FacetContext& context) {
    return std::any_of(context.open_entries.begin(), context.open_entries.end(), [&](const JournalEntry* entry) {
        return entry->request.kind == FaultKind::kLinkDown && same_target(entry->target, context.target);
    });
}

/// Waits for the carrier, at the former speed if there is one. The speed is the partner's choice too, so another one is
/// noted and no failure.
Result<Notes> back_at_speed(HostOps& ops, const DeviceIdentity& device, const Former& former) {
    const Deadline deadline = Deadline::after(kTraining);
    Notes notes;
    if (former.modes.speed) {
        const auto speed = trained(ops, device, *former.modes.speed, deadline);
        if (!speed) {
            return tl::unexpected(speed.error());
        }
        if (*speed && *speed != former.modes.speed) {
            notes.push_back(fmt::format("{} offers the modes that it did, but the link runs at {} and not at {}",
                                        device.name, to_string(**speed), to_string(*former.modes.speed)));
        }
    }
    return wait_running(ops, device.ifindex, deadline).and_then([&](bool running) -> Result<Notes> {
        return running ? Result<Notes>(std::move(notes))
                       : fail(ErrorKind::kTeardown, fmt::format("{} has no carrier again", device.name));
    });
}

class PortSpeed final : public FacetOf<Former> {
public:
    FacetKind kind() const override { return FacetKind::kPortSpeed; }

protected:
    bool concerned(const WantedState& wanted) const override { return wanted.port_speed.has_value(); }

    Result<Former> look(HostOps& ops, const FacetContext& context, const FaultRequest& request) const override {
        const DeviceIdentity& device = context.target.device;
        const auto found = find_device(ops, device);
        if (!found || found->empty()) {
            return found ? fail(ErrorKind::kInput, fmt::format("the interface {} is gone", device.name))
                         : tl::unexpected(found.error());
        }
        const LinkRecord& link = found->front();
        if (!link.kind.empty()) {
            return refuse(device, fmt::format("it is no hardware ({})", link.kind));
        }
        if ((link.flags & IFF_UP) == 0 && !down_by_us(context)) {
            return refuse(device, "it is down");
        }
        auto modes = ops.link_modes(device.ifindex);
        if (!modes) {
            return refuse(device, modes.error().message());
        }
        if (speeds_of(*modes).size() < 2) {
            return refuse(device, "its driver tells of no second speed");
        }
        if (auto fits = check_rate(device.name, *modes, request.rate); !fits) {
            return tl::unexpected(std::move(fits.error()));
        }
        return Former{std::move(*modes), (link.flags & IFF_RUNNING) != 0};
    }

    Result<void> make(HostOps& ops, const FacetContext& context, const Former& former,
                      const WantedState& wanted) const override {
        return narrowed_to(former.modes, *wanted.port_speed).and_then([&](const std::vector<std::uint32_t>& modes) {
            return offer(ops, context.target.device, modes);
        });
    }

    Result<void> undo(HostOps& ops, const FacetContext& context, const Former& former) const override {
        return offer(ops, context.target.device, advertised(former.modes));
    }

    /// Where the port had no carrier, or is down by another fault, only the offer can be read back.
    Result<Readback> read_back(HostOps& ops, const FacetContext& context, const Former& former,
                               const WantedState& wanted) const override {
        const DeviceIdentity& device = context.target.device;
        const auto modes = ops.link_modes(device.ifindex);
        const auto narrowed = narrowed_to(former.modes, *wanted.port_speed);
        const auto up = is_up(ops, device);
        if (!modes || !narrowed || !up) {
            return tl::unexpected(!modes ? modes.error() : !narrowed ? narrowed.error() : up.error());
        }
        if (advertised(*modes) != *narrowed) {
            return fail(ErrorKind::kHarness, fmt::format("{} does not offer the wanted modes", device.name));
        }
        Readback values{{"offered_rate_bits_per_s", std::to_string(offered(*modes).bits_per_s())}};
        if (!*up || !former.running) {
            return values;
        }
        const auto speed = trained(ops, device, *wanted.port_speed, Deadline::after(kTraining));
        if (!speed) {
            return tl::unexpected(speed.error());
        }
        if (*speed != *wanted.port_speed) {
            return fail(ErrorKind::kHarness,
                        fmt::format("{} offers {} alone, but the link {}", device.name, to_string(*wanted.port_speed),
                                    *speed ? "runs at " + to_string(**speed) : std::string("does not come up")));
        }
        values.emplace_back("port_rate_bits_per_s", std::to_string((*speed)->bits_per_s()));
        return values;
    }

    Result<Notes> verify_former(HostOps& ops, const FacetContext& context, const Former& former) const override {
        const DeviceIdentity& device = context.target.device;
        const auto modes = ops.link_modes(device.ifindex);
        const auto up = is_up(ops, device);
        if (!modes || !up) {
            return tl::unexpected(modes ? up.error() : modes.error());
        }
        if (!same_offer(*modes, former.modes)) {
            return fail(ErrorKind::kTeardown, fmt::format("{} does not offer the modes that it did", device.name));
        }
        if (!*up || !former.running) {
            return Notes();
        }
        return back_at_speed(ops, device, former);
    }

    Result<void> may_join(const Former& former, const FaultRequest& request) const override {
        return check_rate(request.nic, former.modes, request.rate);
    }

    Steps steps(const FacetContext& context, const Former& former, const WantedState& wanted) const override {
        const std::string& nic = context.target.device.name;
        return {{fmt::format("{}: offers {} alone, of {} modes before; the link trains anew", nic,
                             to_string(*wanted.port_speed), advertised(former.modes).size())},
                {fmt::format("{}: the {} modes offered again; the link trains anew", nic,
                             advertised(former.modes).size())}};
    }

    std::string words(const Former&) const override { return "link modes"; }

    std::string encode(const Former& former) const override {
        Encoder out;
        out.put(static_cast<std::uint8_t>(former.running));
        out.put(static_cast<std::uint8_t>(former.modes.autonegotiation));
        out.put(former.modes.speed.value_or(BitRate()).bits_per_s());
        out.put(static_cast<std::uint32_t>(former.modes.modes.size()));
        for (const LinkMode& mode : former.modes.modes) {
            out.put(mode.index);
            out.put_string(mode.name);
            out.put(static_cast<std::uint8_t>(mode.advertised));
        }
        return out.take();
    }

    Result<Former> decode(std::string_view bytes) const override {
        Decoder in(bytes);
        Former former;
        former.running = in.get<std::uint8_t>() != 0;
        former.modes.autonegotiation = in.get<std::uint8_t>() != 0;
        const BitRate speed = BitRate::bits_per_s(in.get<std::uint64_t>());
        former.modes.speed = speed == BitRate() ? std::nullopt : std::optional<BitRate>(speed);
        const auto count = in.get<std::uint32_t>();
        for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
            LinkMode mode;
            mode.index = in.get<std::uint32_t>();
            mode.name = in.get_string();
            mode.advertised = in.get<std::uint8_t>() != 0;
            former.modes.modes.push_back(std::move(mode));
        }
        if (!in.finished() || count > kMostModes) {
            return fail(ErrorKind::kInput, "the former link modes are damaged");
        }
        return former;
    }
};

} // namespace

const Facet& port_speed_facet() {
    static const PortSpeed facet;
    return facet;
}

} // namespace railbreak::injectors
