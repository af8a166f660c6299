#include "injectors/hardware/link_modes.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <linux/ethtool.h>
#include <linux/ethtool_netlink.h>

#include "injectors/hardware/refusal.hpp"

namespace railbreak::injectors::hardware {
namespace {

constexpr std::uint64_t kMega = 1'000'000;
constexpr std::string_view kMechanism = "link mode settings (ethtool)";

/// A request with the header that names the interface.
NetlinkMessage ethtool_message(const GenericFamily& ethtool, std::uint8_t command, std::string_view nic) {
    auto message = generic_message(ethtool, command);
    nlattr* header = message.begin_nest(ETHTOOL_A_LINKMODES_HEADER | NLA_F_NESTED);
    message.put_string(ETHTOOL_A_HEADER_DEV_NAME, nic);
    message.end_nest(header);
    return message;
}

std::vector<LinkMode> modes_of(const AttributeView& bitset) {
    std::vector<LinkMode> modes;
    bitset.nest(ETHTOOL_A_BITSET_BITS).for_each([&](const nlattr& bit) {
        const auto inner = AttributeView::inside(bit);
        LinkMode mode;
        mode.index = inner.value<std::uint32_t>(ETHTOOL_A_BITSET_BIT_INDEX).value_or(0);
        mode.name = inner.text(ETHTOOL_A_BITSET_BIT_NAME);
        mode.advertised = inner.has(ETHTOOL_A_BITSET_BIT_VALUE);
        modes.push_back(std::move(mode));
    });
    std::sort(modes.begin(), modes.end(), [](const LinkMode& a, const LinkMode& b) { return a.index < b.index; });
    return modes;
}

Result<void> write_modes(NetlinkChannel& channel, const GenericFamily& ethtool, std::string_view nic,
                         const LinkModesChange& change) {
    auto message = link_modes_set_request(ethtool, nic, change);
    auto sent = channel.request(message, fmt::format("set the link modes of {}", nic));
    return sent ? sent : fail(name_missing(sent.error(), nic, kMechanism));
}

std::string to_line(const LinkModes& modes) {
    std::string line = modes.autonegotiation ? "autoneg" : "forced";
    for (const LinkMode& mode : modes.modes) {
        if (mode.advertised) {
            line += " " + mode.name;
        }
    }
    return line;
}

/// Proves auto-negotiation and the advertised set; without auto-negotiation, speed and duplex as well.
Result<void> check_modes(NetlinkChannel& channel, const GenericFamily& ethtool, std::string_view nic,
                         const LinkModesChange& wanted) {
    const auto seen = read_link_modes(channel, ethtool, nic);
    if (!seen) {
        return fail(Error(seen.error()));
    }
    const bool forced_alike = wanted.autonegotiation || ((!wanted.speed || wanted.speed == seen->speed) &&
                                                         (!wanted.duplex || wanted.duplex == seen->duplex));
    if (seen->autonegotiation == wanted.autonegotiation && advertised(*seen) == wanted.advertise && forced_alike) {
        return {};
    }
    return fail(Error(ErrorKind::kHarness, fmt::format("{}: link modes read back differ from those written", nic))
                    .with("written", fmt::format("{} bits {}", wanted.autonegotiation ? "autoneg" : "forced",
                                                 fmt::join(wanted.advertise, " ")))
                    .with("read", to_line(*seen)));
}

} // namespace

BitRate speed_of(const LinkMode& mode) {
    std::uint64_t megabits = 0;
    const char* end = mode.name.data() + mode.name.size();
    const auto parsed = std::from_chars(mode.name.data(), end, megabits);
    const bool is_speed = parsed.ec == std::errc() &&
                          std::string_view(parsed.ptr, static_cast<std::size_t>(end - parsed.ptr)).starts_with("base");
    return BitRate::bits_per_s(is_speed ? megabits * kMega : 0);
}

std::vector<std::uint32_t> advertised(const LinkModes& modes) {
    std::vector<std::uint32_t> indices;
    for (const LinkMode& mode : modes.modes) {
        if (mode.advertised) {
            indices.push_back(mode.index);
        }
    }
    return indices;
}

Result<std::vector<std::uint32_t>> narrowed_to(const LinkModes& modes, BitRate speed) {
    if (!modes.autonegotiation) {
        return fail(Error(ErrorKind::kRefused, "the port's speed is forced, not negotiated")
                        .advise("a forced speed must be set alike at both ends by hand"));
    }
    std::vector<std::uint32_t> indices;
    bool found = false;
    for (const LinkMode& mode : modes.modes) {
        const BitRate own = speed_of(mode);
        if (own == speed || (own == BitRate() && mode.advertised)) {
            indices.push_back(mode.index);
        }
        found = found || (own == speed && own != BitRate());
    }
    if (!found) {
        return fail(Error(ErrorKind::kInput, fmt::format("the NIC supports no link mode of {}", to_string(speed)))
                        .with("offers", to_line(modes)));
    }
    return indices;
}

NetlinkMessage link_modes_get_request(const GenericFamily& ethtool, std::string_view nic) {
    return ethtool_message(ethtool, ETHTOOL_MSG_LINKMODES_GET, nic);
}

Result<LinkModes> parse_link_modes(const nlmsghdr& record) {
    if (generic_command(record) != ETHTOOL_MSG_LINKMODES_GET_REPLY) {
        return fail(ErrorKind::kHarness, "the kernel's answer holds no link modes");
    }
    const auto attributes = generic_attributes(record);
    LinkModes modes;
    modes.autonegotiation = attributes.value<std::uint8_t>(ETHTOOL_A_LINKMODES_AUTONEG) == AUTONEG_ENABLE;
    const auto speed = attributes.value<std::uint32_t>(ETHTOOL_A_LINKMODES_SPEED);
    if (speed && *speed != static_cast<std::uint32_t>(SPEED_UNKNOWN)) {
        modes.speed = BitRate::bits_per_s(*speed * kMega);
    }
    modes.duplex = attributes.value<std::uint8_t>(ETHTOOL_A_LINKMODES_DUPLEX).value_or(DUPLEX_UNKNOWN);
    modes.lanes = attributes.value<std::uint32_t>(ETHTOOL_A_LINKMODES_LANES);
    modes.modes = modes_of(attributes.nest(ETHTOOL_A_LINKMODES_OURS));
    return modes;
}

NetlinkMessage link_modes_set_request(const GenericFamily& ethtool, std::string_view nic,
                                      const LinkModesChange& change) {
    auto message = ethtool_message(ethtool, ETHTOOL_MSG_LINKMODES_SET, nic);
    message.put_u8(ETHTOOL_A_LINKMODES_AUTONEG, change.autonegotiation ? AUTONEG_ENABLE : AUTONEG_DISABLE);
    // Without a mask the listed bits are the whole set: what is not listed is cleared.
    nlattr* ours = message.begin_nest(ETHTOOL_A_LINKMODES_OURS | NLA_F_NESTED);
    message.put_bytes(ETHTOOL_A_BITSET_NOMASK, nullptr, 0);
    nlattr* bits = message.begin_nest(ETHTOOL_A_BITSET_BITS | NLA_F_NESTED);
    for (const std::uint32_t index : change.advertise) {
        nlattr* bit = message.begin_nest(ETHTOOL_A_BITSET_BITS_BIT | NLA_F_NESTED);
        message.put_u32(ETHTOOL_A_BITSET_BIT_INDEX, index);
        message.end_nest(bit);
    }
    message.end_nest(bits);
    message.end_nest(ours);
    if (!change.autonegotiation && change.speed) {
        message.put_u32(ETHTOOL_A_LINKMODES_SPEED, static_cast<std::uint32_t>(change.speed->bits_per_s() / kMega));
    }
    if (!change.autonegotiation && change.duplex) {
        message.put_u8(ETHTOOL_A_LINKMODES_DUPLEX, *change.duplex);
    }
    return message;
}

Result<LinkModes> read_link_modes(NetlinkChannel& channel, const GenericFamily& ethtool, std::string_view nic) {
    auto message = link_modes_get_request(ethtool, nic);
    Result<LinkModes> modes = fail(ErrorKind::kHarness, fmt::format("{}: no answer about link modes", nic));
    const auto asked = channel.query(message, fmt::format("read the link modes of {}", nic),
                                     [&](const nlmsghdr& record) { modes = parse_link_modes(record); });
    if (!asked) {
        return fail(name_missing(asked.error(), nic, kMechanism));
    }
    return modes;
}

Result<void> set_link_speed(NetlinkChannel& channel, const GenericFamily& ethtool, std::string_view nic,
                            const LinkModes& former, BitRate speed) {
    auto wanted = narrowed_to(former, speed);
    if (!wanted) {
        return fail(std::move(wanted.error()).with("nic", std::string(nic)));
    }
    const LinkModesChange change{true, std::move(*wanted), {}, {}};
    if (auto written = write_modes(channel, ethtool, nic, change); !written) {
        return written;
    }
    return check_modes(channel, ethtool, nic, change);
}

Result<void> restore_link_modes(NetlinkChannel& channel, const GenericFamily& ethtool, std::string_view nic,
                                const LinkModes& former) {
    LinkModesChange change{former.autonegotiation, advertised(former), {}, {}};
    if (!former.autonegotiation) {
        change.speed = former.speed;
        if (former.duplex != DUPLEX_UNKNOWN) {
            change.duplex = former.duplex;
        }
    }
    auto done = write_modes(channel, ethtool, nic, change);
    if (done) {
        done = check_modes(channel, ethtool, nic, change);
    }
    return done ? done : fail(as_teardown(done.error()));
}

} // namespace railbreak::injectors::hardware
