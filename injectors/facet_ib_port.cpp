// The InfiniBand port of a NIC runs with fewer lanes or at a lower speed, or is disabled (hardware/ib_port.hpp). It is
// the port itself that changes, so all its traffic feels it, kernel bypass included.
//
// Masks say what the port may train at; a retrain puts them in force. Everything is a function of where the port should
// be: masks that differ are written, one Set each, and the port is retrained when what it runs at is not what it
// should. After each retrain the subnet manager brings the port back to Active, which takes seconds.
#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "injectors/facet_of.hpp"
#include "injectors/facets.hpp"
#include "injectors/hardware/ib_port.hpp"
#include "injectors/hardware/rdma_devices.hpp"
#include "injectors/restore.hpp"
#include "injectors/time_limits.hpp"
#include "injectors/wire.hpp"

namespace railbreak::injectors {

namespace {

using hardware::IbPhysicalState;
using hardware::IbPortAddress;
using hardware::IbPortChange;
using hardware::IbPortInfo;

constexpr auto kBetweenLooks = std::chrono::milliseconds(100);

struct Former {
    IbPortAddress address; ///< without a route: a port of this host
    IbPortInfo info;
};

/// A number of lanes and its bit in the width masks.
struct Width {
    std::uint8_t bit = 0;
    std::uint8_t lanes = 0;
};
constexpr std::array kWidths{Width{hardware::kIbWidth12x, 12}, Width{hardware::kIbWidth8x, 8},
                             Width{hardware::kIbWidth4x, 4}, Width{hardware::kIbWidth2x, 2},
                             Width{hardware::kIbWidth1x, 1}};

/// A speed, the masks that allow it and nothing faster, and the active fields that mean it.
struct Speed {
    const char* name;
    std::uint64_t lane_mbit_per_s;
    std::uint8_t enabled;  ///< of the older speeds; 0: stays
    std::uint8_t extended; ///< of the extended ones
    std::uint8_t active;
    std::uint8_t extended_active;
};
constexpr std::array kSpeeds{Speed{"NDR", 100'000, 0, 8, 0, 8}, Speed{"HDR", 50'000, 0, 4, 0, 4},
                             Speed{"EDR", 25'000, 0, 2, 0, 2}, Speed{"FDR", 14'000, 0, 1, 0, 1},
                             // 2.5 Gbit/s is always allowed beside another.
                             Speed{"QDR", 10'000, 5, hardware::kIbExtendedSpeedsOff, 4, 0},
                             Speed{"DDR", 5'000, 3, hardware::kIbExtendedSpeedsOff, 2, 0},
                             Speed{"SDR", 2'500, 1, hardware::kIbExtendedSpeedsOff, 1, 0}};

bool supports(const IbPortInfo& info, const Speed& speed) {
    return speed.extended_active != 0 ? (info.extended_speed_supported & speed.extended_active) != 0
                                      : (info.speed_supported & speed.active) != 0;
}

bool runs_at(const IbPortInfo& info, const Speed& speed) {
    return speed.extended_active != 0 ? info.extended_speed_active == speed.extended_active
                                      : info.extended_speed_active == 0 && info.speed_active == speed.active;
}

/// What a port can run at.
struct Gear {
    Width width;
    Speed speed;
    [[nodiscard]] BitRate rate() const { return BitRate::bits_per_s(width.lanes * speed.lane_mbit_per_s * 1'000'000); }
    [[nodiscard]] std::string name() const { return fmt::format("{}x {}", width.lanes, speed.name); }
};

std::vector<Gear> gears_of(const IbPortInfo& info) {
    std::vector<Gear> gears;
    for (const Width& width : kWidths) {
        for (const Speed& speed : kSpeeds) {
            if ((info.width_supported & width.bit) != 0 && supports(info, speed)) {
                gears.push_back({width, speed});
            }
        }
    }
    return gears;
}

std::optional<Gear> present_gear(const IbPortInfo& info) {
    for (const Gear& gear : gears_of(info)) {
        if (info.width_active == gear.width.bit && runs_at(info, gear.speed)) {
            return gear;
        }
    }
    return std::nullopt;
}

/// The gear of that rate below the present one: with the present speed if there is one, for fewer lanes are the
/// gentlest change; else with the present width. kInput when the port has none, with those that it has.
Result<Gear> gear_for(const std::string& nic, const IbPortInfo& info, BitRate rate) {
    const std::optional<Gear> now = present_gear(info);
    std::vector<Gear> fitting;
    std::vector<std::string> lower;
    for (const Gear& gear : gears_of(info)) {
        if (!now || gear.rate() >= now->rate()) {
            continue;
        }
        if (std::string words = to_string(gear.rate()); std::find(lower.begin(), lower.end(), words) == lower.end()) {
            lower.push_back(std::move(words));
        }
        if (gear.rate() == rate) {
            fitting.push_back(gear);
        }
    }
    if (fitting.empty()) {
        return fail(
            Error(ErrorKind::kInput, fmt::format("the InfiniBand port of {} cannot run at {}", nic, to_string(rate)))
                .with("nic", nic)
                .with("runs_at", now ? to_string(now->rate()) : "unknown")
                .advise(fmt::format("Its lower rates: {}", fmt::join(lower, ", "))));
    }
    const auto best = std::max_element(fitting.begin(), fitting.end(), [&](const Gear& a, const Gear& b) {
        const auto closeness = [&](const Gear& gear) {
            return gear.speed.lane_mbit_per_s == now->speed.lane_mbit_per_s ? 2
                   : gear.width.bit == now->width.bit                       ? 1
                                                                            : 0;
        };
        return closeness(a) < closeness(b);
    });
    return *best;
}

/// Where the port should be: masks, what it then runs at, and whether it is disabled.
struct Goal {
    IbPortInfo info; ///< masks and active fields; the rest as before
    bool disabled = false;
};

Result<Goal> goal_of(const std::string& nic, const Former& former, const WantedState& wanted) {
    Goal goal{former.info, wanted.ib_down};
    if (wanted.ib_rate) {
        const auto gear = gear_for(nic, former.info, *wanted.ib_rate);
        if (!gear) {
            return tl::unexpected(gear.error());
        }
        const Speed& speed = gear->speed;
        goal.info.width_enabled = gear->width.bit;
        goal.info.width_active = gear->width.bit;
        if (!runs_at(former.info, speed)) {
            goal.info.speed_enabled = speed.enabled != 0 ? speed.enabled : former.info.speed_enabled;
            if (former.info.extended_speed_supported != 0) {
                goal.info.extended_speed_enabled = speed.extended;
            }
            goal.info.speed_active = speed.extended_active != 0 ? former.info.speed_active : speed.active;
            goal.info.extended_speed_active = speed.extended_active;
        }
    }
    return goal;
}

bool same_masks(const IbPortInfo& a, const IbPortInfo& b) {
    return a.width_enabled == b.width_enabled && a.speed_enabled == b.speed_enabled &&
           a.extended_speed_enabled == b.extended_speed_enabled;
}

bool same_gear(const IbPortInfo& a, const IbPortInfo& b) {
    return a.width_active == b.width_active && a.extended_speed_active == b.extended_speed_active &&
           (a.extended_speed_active != 0 || a.speed_active == b.speed_active);
}

/// Writes every mask that differs, one Set each: an agent may refuse one and have taken another.
Result<void> write_masks(HostOps& ops, const IbPortAddress& port, const IbPortInfo& now, const IbPortInfo& wanted) {
    std::vector<IbPortChange> changes;
    if (now.width_enabled != wanted.width_enabled) {
        changes.emplace_back().width_enabled = wanted.width_enabled;
    }
    if (now.speed_enabled != wanted.speed_enabled) {
        changes.emplace_back().speed_enabled = wanted.speed_enabled;
    }
    if (now.extended_speed_enabled != wanted.extended_speed_enabled) {
        changes.emplace_back().extended_speed_enabled = wanted.extended_speed_enabled;
    }
    for (const IbPortChange& change : changes) {
        if (auto done = ops.change_ib_port(port, change); !done) {
            return done;
        }
    }
    return {};
}

Result<void> go_to_goal(HostOps& ops, const IbPortAddress& port, const Goal& goal) {
    const auto now = ops.ib_port(port);
    if (!now) {
        return tl::unexpected(now.error());
    }
    if (auto written = write_masks(ops, port, *now, goal.info); !written) {
        return written;
    }
    const bool disabled = now->physical_state == IbPhysicalState::kDisabled;
    const bool runs_otherwise = now->physical_state == IbPhysicalState::kLinkUp && !same_gear(*now, goal.info);
    const bool enable = !goal.disabled && (disabled || runs_otherwise);
    if (!enable && disabled == goal.disabled) {
        return {};
    }
    IbPortChange change;
    change.physical_state = enable ? IbPhysicalState::kPolling : IbPhysicalState::kDisabled;
    return ops.change_ib_port(port, change);
}

/// Looks until `good` or the deadline, and gives the last look. Events of the interface wake it; what tells no event is
/// seen a moment later.
template <class Good>
Result<IbPortInfo> look_until(HostOps& ops, const IbPortAddress& port, Deadline deadline, const Good& good) {
    for (;;) {
        auto now = ops.ib_port(port);
        if (!now || good(*now) || deadline.passed()) {
            return now;
        }
        if (const auto event = ops.wait_event(Deadline::after(kBetweenLooks)); !event) {
            return tl::unexpected(event.error());
        }
    }
}

std::string state_words(const IbPortInfo& info) {
    const std::optional<Gear> gear = present_gear(info);
    return fmt::format("{}, {}, {}", to_string(info.state), to_string(info.physical_state),
                       gear ? gear->name() : "no known rate");
}

class IbPortFacet final : public FacetOf<Former> {
public:
    FacetKind kind() const override { return FacetKind::kIbPort; }

protected:
    bool concerned(const WantedState& wanted) const override { return wanted.ib_down || wanted.ib_rate; }

    Result<Former> look(HostOps& ops, const FacetContext& context, const FaultRequest& request) const override {
        const DeviceIdentity& device = context.target.device;
        if (const auto link = find_hardware(ops, device); !link) {
            return tl::unexpected(link.error());
        }
        const auto refuse = [&](std::string why, const std::string& advice) {
            return fail(Error(ErrorKind::kRefused, fmt::format("{} {}", device.name, why))
                            .with("nic", device.name)
                            .advise(advice));
        };
        const auto found = hardware::infiniband_port_of(ops.sysfs(), device.name);
        if (!found) {
            return refuse("has no InfiniBand port", "");
        }
        Former former{{found->device.name,
                       static_cast<int>(found->port.number),
                       {},
                       static_cast<std::uint8_t>(found->port.number)},
                      {}};
        const auto info = ops.ib_port(former.address);
        if (!info) {
            return refuse(fmt::format("does not let its InfiniBand port be asked: {}", info.error().message()),
                          info.error().advice());
        }
        former.info = *info;
        if (info->physical_state != IbPhysicalState::kLinkUp) {
            return refuse(fmt::format("has an InfiniBand port that is not up ({})", to_string(info->physical_state)),
                          "");
        }
        if (info->lid == 0 || info->sm_lid == 0) {
            return refuse("has an InfiniBand port that no subnet manager has configured",
                          "A change would have to invent addresses, which the port would keep.");
        }
        auto fits = may_join(former, request);
        return fits ? Result<Former>(std::move(former)) : tl::unexpected(fits.error());
    }

    Result<void> may_join(const Former& former, const FaultRequest& request) const override {
        return request.kind == FaultKind::kIbRate
                   ? gear_for(request.nic, former.info, request.rate).map([](const Gear&) {})
                   : Result<void>();
    }

    Result<void> make(HostOps& ops, const FacetContext& context, const Former& former,
                      const WantedState& wanted) const override {
        return goal_of(context.target.device.name, former, wanted).and_then([&](const Goal& goal) {
            return go_to_goal(ops, former.address, goal);
        });
    }

    Result<void> undo(HostOps& ops, const FacetContext&, const Former& former) const override {
        return go_to_goal(ops, former.address, {former.info, false});
    }
    Result<void> clean_up(HostOps& ops, const FacetContext& context, const Former& former) const override {
        // The interface may go while the port stays. Only what sysfs does not know either has gone with its device.
        const auto port = ops.ib_port(former.address);
        if (port) {
            return undo(ops, context, former);
        }
        return ops.sysfs().exists(fmt::format("class/infiniband/{}", former.address.device))
                   ? Result<void>(tl::unexpected(port.error()))
                   : Result<void>();
    }

    Result<Readback> read_back(HostOps& ops, const FacetContext& context, const Former& former,
                               const WantedState& wanted) const override {
        const std::string& nic = context.target.device.name;
        const auto goal = goal_of(nic, former, wanted);
        if (!goal) {
            return tl::unexpected(goal.error());
        }
        const auto in_force = [&](const IbPortInfo& now) {
            return goal->disabled ? now.physical_state == IbPhysicalState::kDisabled
                                  : now.physical_state == IbPhysicalState::kLinkUp && same_gear(now, goal->info);
        };
        const auto seen = look_until(ops, former.address, Deadline::after(kTraining), in_force);
        if (!seen) {
            return tl::unexpected(seen.error());
        }
        if (!in_force(*seen) || !same_masks(*seen, goal->info)) {
            return fail(ErrorKind::kHarness,
                        fmt::format("the InfiniBand port of {} is not as wanted: {}", nic, state_words(*seen)));
        }
        if (goal->disabled) {
            return Readback{{"physical_state", std::string(to_string(seen->physical_state))}};
        }
        const std::optional<Gear> gear = present_gear(*seen);
        return Readback{{"ib_rate_bits_per_s", std::to_string((gear ? gear->rate() : BitRate()).bits_per_s())}};
    }

    Result<Notes> verify_former(HostOps& ops, const FacetContext& context, const Former& former) const override {
        const auto seen = look_until(ops, former.address, Deadline::after(kActivation), [&](const IbPortInfo& now) {
            return hardware::ib_port_as_before(now, former.info);
        });
        if (!seen) {
            return tl::unexpected(seen.error());
        }
        return hardware::ib_port_as_before(*seen, former.info)
                   ? Result<Notes>(Notes())
                   : fail(Error(ErrorKind::kTeardown, fmt::format("the InfiniBand port of {} is not as before: {}",
                                                                  context.target.device.name, state_words(*seen)))
                              .advise("Is the subnet manager running? It makes a trained port active."));
    }

    Steps steps(const FacetContext& context, const Former& former, const WantedState& wanted) const override {
        const std::string port =
            fmt::format("{}: {} port {}", context.target.device.name, former.address.device, former.address.port);
        const std::optional<Gear> now = present_gear(former.info);
        const std::string was = now ? now->name() : std::string("as before");
        Steps steps;
        if (wanted.ib_rate) {
            const auto gear = gear_for(context.target.device.name, former.info, *wanted.ib_rate);
            steps.changes.push_back(fmt::format("{} from {} to {} ({}); the link trains anew", port, was,
                                                gear ? gear->name() : "?", to_string(*wanted.ib_rate)));
            steps.undo.push_back(fmt::format("{} may train at what it did; back at {}, active again", port, was));
        }
        if (wanted.ib_down) {
            steps.changes.push_back(fmt::format("{} disabled", port));
            steps.undo.push_back(fmt::format("{} enabled; up at {}, active again", port, was));
        }
        return steps;
    }

    std::string words(const Former&) const override { return "InfiniBand PortInfo"; }
    std::string words_for(const Former&, const FaultRequest& request) const override {
        return request.kind == FaultKind::kIbDown ? "InfiniBand PortInfo: port disabled"
                                                  : "InfiniBand PortInfo: width and speed";
    }

    std::string encode(const Former& former) const override {
        const IbPortInfo& info = former.info;
        Encoder out;
        out.put_string(former.address.device);
        out.put(static_cast<std::int32_t>(former.address.device_port));
        out.put(info.lid);
        out.put(info.sm_lid);
        for (const std::uint8_t byte : bytes_of(info)) {
            out.put(byte);
        }
        return out.take();
    }

    Result<Former> decode(std::string_view bytes) const override {
        Decoder in(bytes);
        Former former;
        IbPortInfo& info = former.info;
        former.address.device = in.get_string();
        former.address.device_port = in.get<std::int32_t>();
        former.address.port = static_cast<std::uint8_t>(former.address.device_port);
        info.lid = in.get<std::uint16_t>();
        info.sm_lid = in.get<std::uint16_t>();
        info.state = static_cast<hardware::IbPortState>(in.get<std::uint8_t>());
        info.physical_state = static_cast<IbPhysicalState>(in.get<std::uint8_t>());
        for (std::uint8_t* byte : {&info.width_enabled, &info.width_supported, &info.width_active, &info.speed_enabled,
                                   &info.speed_supported, &info.speed_active, &info.extended_speed_enabled,
                                   &info.extended_speed_supported, &info.extended_speed_active}) {
            *byte = in.get<std::uint8_t>();
        }
        return in.finished() ? Result<Former>(std::move(former))
                             : fail(ErrorKind::kInput, "the former state of an InfiniBand port is damaged");
    }

private:
    static std::array<std::uint8_t, 11> bytes_of(const IbPortInfo& info) {
        return {static_cast<std::uint8_t>(info.state),
                static_cast<std::uint8_t>(info.physical_state),
                info.width_enabled,
                info.width_supported,
                info.width_active,
                info.speed_enabled,
                info.speed_supported,
                info.speed_active,
                info.extended_speed_enabled,
                info.extended_speed_supported,
                info.extended_speed_active};
    }
};

} // namespace

const Facet& ib_port_facet() {
    static const IbPortFacet facet;
    return facet;
}

} // namespace railbreak::injectors
