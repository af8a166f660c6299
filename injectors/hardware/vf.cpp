#include "injectors/hardware/vf.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "injectors/hardware/attributes.hpp"
#include "injectors/hardware/refusal.hpp"

namespace railbreak::injectors::hardware {
namespace {

constexpr std::uint64_t kMega = 1'000'000;
constexpr std::size_t kMacBytes = 6; // IFLA_VF_MAC reserves 32; Ethernet uses the first six

NetlinkMessage link_message(int type, std::int32_t ifindex) {
    NetlinkMessage message(type, 0);
    ifinfomsg header{};
    header.ifi_family = AF_UNSPEC;
    header.ifi_index = ifindex;
    message.append_header(header);
    return message;
}

/// A message that sets one attribute of one VF.
template <class Body> NetlinkMessage vf_message(std::int32_t ifindex, int attribute, const Body& body) {
    auto message = link_message(RTM_SETLINK, ifindex);
    nlattr* list = message.begin_nest(IFLA_VFINFO_LIST);
    nlattr* info = message.begin_nest(IFLA_VF_INFO);
    message.put_bytes(attribute, &body, sizeof body);
    message.end_nest(info);
    message.end_nest(list);
    return message;
}

std::string mac_text(const ifla_vf_mac& mac) {
    std::string text;
    for (std::size_t i = 0; i < kMacBytes; ++i) {
        text += fmt::format("{}{:02x}", i == 0 ? "" : ":", mac.mac[i]);
    }
    return text;
}

VfLinkState link_state_of(std::uint32_t kernel) {
    switch (kernel) {
    case IFLA_VF_LINK_STATE_ENABLE: return VfLinkState::kEnable;
    case IFLA_VF_LINK_STATE_DISABLE: return VfLinkState::kDisable;
    default: return VfLinkState::kAuto; // foreign enum
    }
}

std::uint32_t kernel_link_state(VfLinkState state) {
    switch (state) {
    case VfLinkState::kAuto: return IFLA_VF_LINK_STATE_AUTO;
    case VfLinkState::kEnable: return IFLA_VF_LINK_STATE_ENABLE;
    case VfLinkState::kDisable: return IFLA_VF_LINK_STATE_DISABLE;
    }
    return IFLA_VF_LINK_STATE_AUTO;
}

VfRecord vf_of(const AttributeView& info) {
    VfRecord vf;
    if (const auto mac = info.value<ifla_vf_mac>(IFLA_VF_MAC)) {
        vf.number = mac->vf;
        vf.mac = mac_text(*mac);
    }
    if (const auto rate = info.value<ifla_vf_rate>(IFLA_VF_RATE)) {
        vf.number = rate->vf;
        vf.min_rate = BitRate::bits_per_s(rate->min_tx_rate * kMega);
        vf.max_rate = BitRate::bits_per_s(rate->max_tx_rate * kMega);
    }
    if (const auto state = info.value<ifla_vf_link_state>(IFLA_VF_LINK_STATE)) {
        vf.number = state->vf;
        vf.link_state = link_state_of(state->link_state);
    }
    return vf;
}

std::string vf_name(std::int32_t ifindex, std::uint32_t vf) {
    return fmt::format("VF {} of interface {}", vf, ifindex);
}

Result<void> send(NetlinkChannel& channel, NetlinkMessage& message, std::int32_t ifindex, std::string_view what,
                  std::string_view mechanism) {
    auto sent = channel.request(message, what);
    return sent ? sent : fail(name_missing(sent.error(), fmt::format("interface {}", ifindex), mechanism));
}

Result<void> write_link_state(NetlinkChannel& channel, std::int32_t ifindex, std::uint32_t vf, VfLinkState state) {
    auto message = vf_link_state_request(ifindex, vf, state);
    return send(channel, message, ifindex, fmt::format("set the link state of {}", vf_name(ifindex, vf)),
                "VF link state");
}

/// Proves that rates and link state of the VF are those of `wanted`.
Result<void> check_vf(NetlinkChannel& channel, std::int32_t ifindex, const VfRecord& wanted) {
    const auto seen = read_vf(channel, ifindex, wanted.number);
    if (!seen) {
        return fail(Error(seen.error()));
    }
    if (seen->min_rate == wanted.min_rate && seen->max_rate == wanted.max_rate &&
        seen->link_state == wanted.link_state) {
        return {};
    }
    const auto line = [](const VfRecord& vf) {
        return fmt::format("min {}, max {}, link {}", to_string(vf.min_rate), to_string(vf.max_rate),
                           to_string(vf.link_state));
    };
    return fail(Error(ErrorKind::kHarness,
                      fmt::format("{}: read back differs from what was written", vf_name(ifindex, wanted.number)))
                    .with("written", line(wanted))
                    .with("read", line(*seen)));
}

} // namespace

std::string_view to_string(VfLinkState state) {
    switch (state) {
    case VfLinkState::kAuto: return "auto";
    case VfLinkState::kEnable: return "enable";
    case VfLinkState::kDisable: return "disable";
    }
    return "?";
}

NetlinkMessage vf_get_request(std::int32_t ifindex) {
    auto message = link_message(RTM_GETLINK, ifindex);
    message.put_u32(IFLA_EXT_MASK, RTEXT_FILTER_VF);
    return message;
}

Result<std::vector<VfRecord>> parse_vfs(const nlmsghdr& record) {
    if (record.nlmsg_type != RTM_NEWLINK || record.nlmsg_len < NLMSG_LENGTH(sizeof(ifinfomsg))) {
        return fail(ErrorKind::kHarness, "the kernel's answer describes no interface");
    }
    std::vector<VfRecord> vfs;
    AttributeView::of(record, sizeof(ifinfomsg)).nest(IFLA_VFINFO_LIST).for_each([&](const nlattr& info) {
        vfs.push_back(vf_of(AttributeView::inside(info)));
    });
    return vfs;
}

Result<NetlinkMessage> vf_rate_request(std::int32_t ifindex, std::uint32_t vf, BitRate min, BitRate max) {
    for (const BitRate rate : {min, max}) {
        if (rate.bits_per_s() % kMega != 0 || rate.bits_per_s() / kMega > std::numeric_limits<std::uint32_t>::max()) {
            return fail(Error(ErrorKind::kInput, "a VF's rate is a whole number of Mbit/s below 2^32")
                            .with("rate_bits_per_s", std::to_string(rate.bits_per_s())));
        }
    }
    ifla_vf_rate body{};
    body.vf = vf;
    body.min_tx_rate = static_cast<std::uint32_t>(min.bits_per_s() / kMega);
    body.max_tx_rate = static_cast<std::uint32_t>(max.bits_per_s() / kMega);
    return vf_message(ifindex, IFLA_VF_RATE, body);
}

NetlinkMessage vf_link_state_request(std::int32_t ifindex, std::uint32_t vf, VfLinkState state) {
    ifla_vf_link_state body{};
    body.vf = vf;
    body.link_state = kernel_link_state(state);
    return vf_message(ifindex, IFLA_VF_LINK_STATE, body);
}

Result<std::vector<VfRecord>> read_vfs(NetlinkChannel& channel, std::int32_t ifindex) {
    auto message = vf_get_request(ifindex);
    Result<std::vector<VfRecord>> vfs = fail(ErrorKind::kHarness, "the kernel did not describe the interface");
    const auto asked = channel.query(message, fmt::format("list the VFs of interface {}", ifindex),
                                     [&](const nlmsghdr& record) { vfs = parse_vfs(record); });
    if (!asked) {
        return fail(Error(asked.error()));
    }
    return vfs;
}

Result<VfRecord> read_vf(NetlinkChannel& channel, std::int32_t ifindex, std::uint32_t vf) {
    const auto vfs = read_vfs(channel, ifindex);
    if (!vfs) {
        return fail(Error(vfs.error()));
    }
    const auto found = std::find_if(vfs->begin(), vfs->end(), [&](const VfRecord& each) { return each.number == vf; });
    if (found == vfs->end()) {
        return fail(Error(ErrorKind::kInput, fmt::format("there is no {}", vf_name(ifindex, vf)))
                        .with("vfs", std::to_string(vfs->size())));
    }
    return *found;
}

Result<void> write_vf_rates(NetlinkChannel& channel, std::int32_t ifindex, std::uint32_t vf, BitRate min, BitRate max) {
    auto message = vf_rate_request(ifindex, vf, min, max);
    if (!message) {
        return fail(std::move(message.error()));
    }
    return send(channel, *message, ifindex, fmt::format("set the rate of {}", vf_name(ifindex, vf)), "VF rate");
}

Result<void> set_vf_max_rate(NetlinkChannel& channel, std::int32_t ifindex, std::uint32_t vf, BitRate max) {
    auto wanted = read_vf(channel, ifindex, vf);
    if (!wanted) {
        return fail(std::move(wanted.error()));
    }
    wanted->max_rate = max;
    if (auto written = write_vf_rates(channel, ifindex, vf, wanted->min_rate, max); !written) {
        return written;
    }
    return check_vf(channel, ifindex, *wanted);
}

Result<void> set_vf_link_state(NetlinkChannel& channel, std::int32_t ifindex, std::uint32_t vf, VfLinkState state) {
    auto wanted = read_vf(channel, ifindex, vf);
    if (!wanted) {
        return fail(std::move(wanted.error()));
    }
    wanted->link_state = state;
    if (auto written = write_link_state(channel, ifindex, vf, state); !written) {
        return written;
    }
    return check_vf(channel, ifindex, *wanted);
}

Result<void> restore_vf(NetlinkChannel& channel, std::int32_t ifindex, const VfRecord& former) {
    const auto now = read_vf(channel, ifindex, former.number);
    if (!now) {
        return fail(as_teardown(now.error()));
    }
    Result<void> done;
    if (now->min_rate != former.min_rate || now->max_rate != former.max_rate) {
        done = write_vf_rates(channel, ifindex, former.number, former.min_rate, former.max_rate);
    }
    if (done && now->link_state != former.link_state) {
        done = write_link_state(channel, ifindex, former.number, former.link_state);
    }
    if (done) {
        done = check_vf(channel, ifindex, former);
    }
    return done ? done : fail(as_teardown(done.error()));
}

} // namespace railbreak::injectors::hardware
