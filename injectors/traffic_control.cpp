#include "injectors/traffic_control.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/gen_stats.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/tc_act/tc_mirred.h>
#include <net/if.h>
#include <netlink/attr.h>

#include "base/check.hpp"
#include "injectors/netem.hpp"
#include "injectors/tc_message.hpp"

namespace railbreak::injectors {
namespace {

static_assert(kTcRoot == TC_H_ROOT && kTcClsactParent == TC_H_CLSACT);

constexpr std::uint64_t kNanosecondsPerTick = 64; // 1 << PSCHED_SHIFT
constexpr std::uint64_t kNanosecondsPerSecond = 1'000'000'000;

/// The 32-bit half of a rate: saturated, with the true value in the 64-bit attribute.
tc_ratespec rate_spec(BitRate rate) {
    tc_ratespec spec{};
    spec.linklayer = TC_LINKLAYER_ETHERNET; // so that the kernel wants no rate table
    spec.rate = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(rate.bytes_per_s(), std::numeric_limits<std::uint32_t>::max()));
    return spec;
}

bool needs_64_bits(BitRate rate) {
    return rate.bytes_per_s() > std::numeric_limits<std::uint32_t>::max();
}

std::uint32_t clamp_u32(std::uint64_t value) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, std::numeric_limits<std::uint32_t>::max()));
}

BitRate rate_of(const tc_ratespec& spec, const nlattr* wide) {
    const std::uint64_t bytes = wide != nullptr ? copy_attribute<std::uint64_t>(wide) : spec.rate;
    return BitRate::bits_per_s(bytes * 8);
}

Result<void> send_htb_class(NetlinkChannel& channel, int flags, const TcPlace& place, const HtbClass& parameters,
                            std::string_view verb) {
    auto message = tc_message(RTM_NEWTCLASS, flags, place, "htb");
    tc_htb_opt options{};
    options.rate = rate_spec(parameters.rate);
    options.ceil = rate_spec(parameters.ceil);
    options.buffer = parameters.buffer_ticks;
    options.cbuffer = parameters.cbuffer_ticks;
    options.quantum = parameters.quantum;
    nlattr* nest = message.begin_nest(TCA_OPTIONS);
    message.put_bytes(TCA_HTB_PARMS, &options, sizeof options);
    if (needs_64_bits(parameters.rate)) {
        message.put_u64(TCA_HTB_RATE64, parameters.rate.bytes_per_s());
    }
    if (needs_64_bits(parameters.ceil)) {
        message.put_u64(TCA_HTB_CEIL64, parameters.ceil.bytes_per_s());
    }
    message.end_nest(nest);
    return channel.request(message, fmt::format("{} the htb class {} of interface {} at {}", verb,
                                                to_tc_string(place.handle), place.ifindex, to_string(parameters.rate)));
}

Result<void> send_tbf(NetlinkChannel& channel, int flags, const TcPlace& place, const TbfShape& shape,
                      std::string_view verb) {
    auto message = tc_message(RTM_NEWQDISC, flags, place, "tbf");
    tc_tbf_qopt options{};
    options.rate = rate_spec(shape.rate);
    options.limit = clamp_u32(shape.limit.bytes());
    options.buffer = burst_ticks(shape.burst, shape.rate);
    nlattr* nest = message.begin_nest(TCA_OPTIONS);
    message.put_bytes(TCA_TBF_PARMS, &options, sizeof options);
    message.put_u32(TCA_TBF_BURST, clamp_u32(shape.burst.bytes()));
    if (needs_64_bits(shape.rate)) {
        message.put_u64(TCA_TBF_RATE64, shape.rate.bytes_per_s());
    }
    message.end_nest(nest);
    return channel.request(message, fmt::format("{} the tbf {} of interface {} at {}", verb, to_tc_string(place.handle),
                                                place.ifindex, to_string(shape.rate)));
}

HtbClass parse_htb_class(const nlattr* options) {
    TcAttributes<TCA_HTB_MAX + 1> inner{};
    HtbClass parameters;
    if (options == nullptr || nla_parse_nested(inner.data(), TCA_HTB_MAX, const_cast<nlattr*>(options), nullptr) != 0) {
        return parameters;
    }
    const auto plain = copy_attribute<tc_htb_opt>(inner[TCA_HTB_PARMS]);
    parameters.rate = rate_of(plain.rate, inner[TCA_HTB_RATE64]);
    parameters.ceil = rate_of(plain.ceil, inner[TCA_HTB_CEIL64]);
    parameters.buffer_ticks = plain.buffer;
    parameters.cbuffer_ticks = plain.cbuffer;
    parameters.quantum = plain.quantum;
    return parameters;
}

void parse_qdisc_options(QdiscRecord& qdisc, const nlattr* options) {
    if (options == nullptr) {
        return;
    }
    if (qdisc.kind == "bfifo") {
        qdisc.fifo_limit = ByteCount::bytes(copy_attribute<tc_fifo_qopt>(options).limit);
    } else if (qdisc.kind == "htb") {
        TcAttributes<TCA_HTB_MAX + 1> inner{};
        if (nla_parse_nested(inner.data(), TCA_HTB_MAX, const_cast<nlattr*>(options), nullptr) == 0) {
            qdisc.htb_default = copy_attribute<tc_htb_glob>(inner[TCA_HTB_INIT]).defcls;
        }
    } else if (qdisc.kind == "tbf") {
        TcAttributes<TCA_TBF_MAX + 1> inner{};
        if (nla_parse_nested(inner.data(), TCA_TBF_MAX, const_cast<nlattr*>(options), nullptr) == 0) {
            qdisc.tbf_rate = rate_of(copy_attribute<tc_tbf_qopt>(inner[TCA_TBF_PARMS]).rate, inner[TCA_TBF_RATE64]);
        }
    } else if (qdisc.kind == "netem") {
        qdisc.netem = parse_netem(options);
    }
}

void parse_statistics(QdiscRecord& qdisc, const nlattr* statistics) {
    TcAttributes<TCA_STATS_MAX + 1> inner{};
    if (statistics == nullptr ||
        nla_parse_nested(inner.data(), TCA_STATS_MAX, const_cast<nlattr*>(statistics), nullptr) != 0) {
        return;
    }
    const auto basic = copy_attribute<gnet_stats_basic>(inner[TCA_STATS_BASIC]);
    qdisc.sent_bytes = basic.bytes;
    qdisc.sent_packets = basic.packets;
    const auto queue = copy_attribute<gnet_stats_queue>(inner[TCA_STATS_QUEUE]);
    qdisc.backlog_bytes = queue.backlog;
    qdisc.dropped_packets = queue.drops;
}

std::string_view word(TcDirection direction) {
    return direction == TcDirection::kIngress ? "ingress" : "egress";
}

} // namespace

TcPlace filter_place(int ifindex, TcDirection direction, std::uint16_t priority) {
    const TcHandle parent = direction == TcDirection::kIngress ? TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)
                                                               : TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS);
    return {ifindex, parent, 0, (static_cast<std::uint32_t>(priority) << 16U) | htons(ETH_P_ALL)};
}

NetlinkMessage tc_message(int type, int flags, const TcPlace& place, std::string_view kind) {
    NetlinkMessage message(type, flags);
    tcmsg header{};
    header.tcm_family = AF_UNSPEC;
    header.tcm_ifindex = place.ifindex;
    header.tcm_parent = place.parent;
    header.tcm_handle = place.handle;
    header.tcm_info = place.info;
    message.append_header(header);
    if (!kind.empty()) {
        message.put_string(TCA_KIND, kind);
    }
    return message;
}

bool parse_tc_record(const nlmsghdr& record, int ifindex, TcAttributes<TCA_MAX + 1>& attributes) {
    if (record.nlmsg_len < NLMSG_LENGTH(sizeof(tcmsg))) {
        return false;
    }
    const auto* header = static_cast<const tcmsg*>(NLMSG_DATA(&record));
    // libnl's parser only reads; its signature lacks the const.
    return header->tcm_ifindex == ifindex &&
           nlmsg_parse(const_cast<nlmsghdr*>(&record), sizeof(tcmsg), attributes.data(), TCA_MAX, nullptr) == 0;
}

std::string tc_kind_of(const TcAttributes<TCA_MAX + 1>& attributes) {
    const nlattr* kind = attributes[TCA_KIND];
    return kind != nullptr ? std::string(nla_get_string(kind)) : std::string();
}

std::string to_tc_string(TcHandle handle) {
    return fmt::format("{:x}:{:x}", handle >> 16U, handle & 0xFFFFU);
}

std::uint32_t burst_ticks(ByteCount burst, BitRate rate) {
    RB_CHECK(rate.bytes_per_s() > 0, "a burst has a duration only at a rate above zero");
    // 128 bits, because burst x 1e9 does not fit 64.
    __extension__ using Wide = unsigned __int128;
    const Wide numerator = static_cast<Wide>(burst.bytes()) * kNanosecondsPerSecond;
    const Wide denominator = static_cast<Wide>(rate.bytes_per_s()) * kNanosecondsPerTick;
    const Wide ticks = (numerator + denominator - 1) / denominator;
    const Wide most = std::numeric_limits<std::uint32_t>::max();
    return static_cast<std::uint32_t>(ticks < most ? ticks : most);
}

ByteCount burst_bytes(std::uint32_t ticks, BitRate rate) {
    __extension__ using Wide = unsigned __int128;
    const Wide bytes = static_cast<Wide>(ticks) * kNanosecondsPerTick * rate.bytes_per_s() / kNanosecondsPerSecond;
    return ByteCount::bytes(static_cast<std::uint64_t>(bytes));
}

HtbClass make_htb_class(BitRate rate, ByteCount burst, std::uint32_t quantum) {
    const BitRate whole = BitRate::bits_per_s(rate.bytes_per_s() * 8);
    const std::uint32_t ticks = burst_ticks(burst, whole);
    return {whole, whole, ticks, ticks, quantum};
}

Result<void> add_htb(NetlinkChannel& channel, int ifindex, TcHandle handle, std::uint16_t default_minor) {
    auto message = tc_message(RTM_NEWQDISC, kTcAdd, {ifindex, kTcRoot, handle, 0}, "htb");
    tc_htb_glob options{};
    options.version = TC_HTB_PROTOVER;
    options.rate2quantum = 10;
    options.defcls = default_minor;
    nlattr* nest = message.begin_nest(TCA_OPTIONS);
    message.put_bytes(TCA_HTB_INIT, &options, sizeof options);
    message.end_nest(nest);
    return channel.request(message, fmt::format("add the htb {} to interface {}", to_tc_string(handle), ifindex));
}

Result<void> add_htb_class(NetlinkChannel& channel, int ifindex, TcHandle parent, TcHandle handle,
                           const HtbClass& parameters) {
    return send_htb_class(channel, kTcAdd, {ifindex, parent, handle, 0}, parameters, "add");
}

Result<void> change_htb_class(NetlinkChannel& channel, int ifindex, TcHandle handle, const HtbClass& parameters) {
    return send_htb_class(channel, 0, {ifindex, 0, handle, 0}, parameters, "change");
}

Result<void> delete_htb_class(NetlinkChannel& channel, int ifindex, TcHandle handle) {
    auto message = tc_message(RTM_DELTCLASS, 0, {ifindex, 0, handle, 0}, "");
    return channel.request(message, fmt::format("delete the class {} of interface {}", to_tc_string(handle), ifindex));
}

Result<std::vector<HtbClassRecord>> list_htb_classes(NetlinkChannel& channel, int ifindex) {
    std::vector<HtbClassRecord> found;
    auto message = tc_message(RTM_GETTCLASS, 0, {ifindex, 0, 0, 0}, "");
    const auto take = [&](const nlmsghdr& record) {
        TcAttributes<TCA_MAX + 1> attributes{};
        if (parse_tc_record(record, ifindex, attributes) && tc_kind_of(attributes) == "htb") {
            const auto* header = static_cast<const tcmsg*>(NLMSG_DATA(&record));
            found.push_back({header->tcm_handle, header->tcm_parent, parse_htb_class(attributes[TCA_OPTIONS])});
        }
    };
    if (auto dumped = channel.dump(message, fmt::format("list the classes of interface {}", ifindex), take,
                                   [&found] { found.clear(); });
        !dumped) {
        return fail(std::move(dumped.error()));
    }
    return found;
}

Result<HtbClass> read_htb_class(NetlinkChannel& channel, int ifindex, TcHandle handle) {
    auto classes = list_htb_classes(channel, ifindex);
    if (!classes) {
        return fail(std::move(classes.error()));
    }
    const auto match = std::find_if(classes->begin(), classes->end(),
                                    [handle](const HtbClassRecord& record) { return record.handle == handle; });
    if (match == classes->end()) {
        return fail_errno(ErrorKind::kHarness,
                          fmt::format("read the htb class {} of interface {}", to_tc_string(handle), ifindex), ENOENT);
    }
    return match->parameters;
}

Result<void> add_bfifo(NetlinkChannel& channel, int ifindex, TcHandle parent, TcHandle handle, ByteCount limit) {
    auto message = tc_message(RTM_NEWQDISC, kTcAdd, {ifindex, parent, handle, 0}, "bfifo");
    const tc_fifo_qopt options{clamp_u32(limit.bytes())};
    message.put_bytes(TCA_OPTIONS, &options, sizeof options);
    return channel.request(message, fmt::format("add the bfifo {} to interface {}", to_tc_string(handle), ifindex));
}

Result<void> add_tbf(NetlinkChannel& channel, int ifindex, TcHandle parent, TcHandle handle, const TbfShape& shape) {
    return send_tbf(channel, kTcAdd, {ifindex, parent, handle, 0}, shape, "add");
}

Result<void> change_tbf(NetlinkChannel& channel, int ifindex, TcHandle parent, TcHandle handle, const TbfShape& shape) {
    return send_tbf(channel, 0, {ifindex, parent, handle, 0}, shape, "change");
}

Result<void> delete_qdisc(NetlinkChannel& channel, int ifindex, TcHandle parent, TcHandle handle) {
    auto message = tc_message(RTM_DELQDISC, 0, {ifindex, parent, handle, 0}, "");
    return channel.request(message, fmt::format("delete the qdisc {} of interface {}", to_tc_string(handle), ifindex));
}

Result<std::vector<QdiscRecord>> list_qdiscs(NetlinkChannel& channel, int ifindex) {
    std::vector<QdiscRecord> found;
    auto message = tc_message(RTM_GETQDISC, 0, {ifindex, 0, 0, 0}, "");
    message.put_bytes(TCA_DUMP_INVISIBLE, nullptr, 0);
    const auto take = [&](const nlmsghdr& record) {
        TcAttributes<TCA_MAX + 1> attributes{};
        if (!parse_tc_record(record, ifindex, attributes)) {
            return;
        }
        const auto* header = static_cast<const tcmsg*>(NLMSG_DATA(&record));
        QdiscRecord qdisc;
        qdisc.kind = tc_kind_of(attributes);
        qdisc.handle = header->tcm_handle;
        qdisc.parent = header->tcm_parent;
        parse_qdisc_options(qdisc, attributes[TCA_OPTIONS]);
        parse_statistics(qdisc, attributes[TCA_STATS2]);
        found.push_back(std::move(qdisc));
    };
    if (auto dumped = channel.dump(message, fmt::format("list the qdiscs of interface {}", ifindex), take,
                                   [&found] { found.clear(); });
        !dumped) {
        return fail(std::move(dumped.error()));
    }
    return found;
}

Result<void> add_clsact(NetlinkChannel& channel, int ifindex) {
    auto message = tc_message(RTM_NEWQDISC, kTcAdd, {ifindex, kTcClsactParent, kTcClsactHandle, 0}, "clsact");
    return channel.request(message, fmt::format("add clsact to interface {}", ifindex));
}

Result<void> delete_clsact(NetlinkChannel& channel, int ifindex) {
    return delete_qdisc(channel, ifindex, kTcClsactParent, kTcClsactHandle);
}

Result<void> add_redirect(NetlinkChannel& channel, int ifindex, TcDirection direction, std::uint16_t priority,
                          int target_ifindex) {
    auto message = tc_message(RTM_NEWTFILTER, kTcAdd, filter_place(ifindex, direction, priority), "u32");
    // One key with an empty mask matches every packet; "terminal" makes the match final, so the action runs.
    std::array<char, sizeof(tc_u32_sel) + sizeof(tc_u32_key)> match{};
    tc_u32_sel selector{};
    selector.flags = TC_U32_TERMINAL;
    selector.nkeys = 1;
    std::memcpy(match.data(), &selector, sizeof selector);
    tc_mirred mirred{};
    mirred.action = TC_ACT_STOLEN;
    mirred.eaction = TCA_EGRESS_REDIR;
    mirred.ifindex = static_cast<std::uint32_t>(target_ifindex);
    nlattr* options = message.begin_nest(TCA_OPTIONS);
    message.put_bytes(TCA_U32_SEL, match.data(), match.size());
    nlattr* actions = message.begin_nest(TCA_U32_ACT);
    nlattr* first = message.begin_nest(1);
    message.put_string(TCA_ACT_KIND, "mirred");
    nlattr* action_options = message.begin_nest(TCA_ACT_OPTIONS);
    message.put_bytes(TCA_MIRRED_PARMS, &mirred, sizeof mirred);
    message.end_nest(action_options);
    message.end_nest(first);
    message.end_nest(actions);
    message.end_nest(options);
    return channel.request(message, fmt::format("redirect the {} of interface {} to interface {}", word(direction),
                                                ifindex, target_ifindex));
}

Result<void> delete_redirect(NetlinkChannel& channel, int ifindex, TcDirection direction, std::uint16_t priority) {
    auto message = tc_message(RTM_DELTFILTER, 0, filter_place(ifindex, direction, priority), "u32");
    return channel.request(
        message, fmt::format("delete the {} redirect {} of interface {}", word(direction), priority, ifindex));
}

Result<bool> has_redirect(NetlinkChannel& channel, int ifindex, TcDirection direction, std::uint16_t priority) {
    bool found = false;
    auto place = filter_place(ifindex, direction, priority);
    const std::uint32_t wanted = place.info;
    place.info = 0;
    auto message = tc_message(RTM_GETTFILTER, 0, place, "");
    const auto take = [&](const nlmsghdr& record) {
        TcAttributes<TCA_MAX + 1> attributes{};
        if (parse_tc_record(record, ifindex, attributes) && tc_kind_of(attributes) == "u32") {
            found = found || static_cast<const tcmsg*>(NLMSG_DATA(&record))->tcm_info == wanted;
        }
    };
    if (auto dumped = channel.dump(message, fmt::format("list the filters of interface {}", ifindex), take,
                                   [&found] { found = false; });
        !dumped) {
        return fail(std::move(dumped.error()));
    }
    return found;
}

Result<int> add_ifb(NetlinkChannel& channel, std::string_view name, std::string_view alias) {
    NetlinkMessage message(RTM_NEWLINK, kTcAdd);
    ifinfomsg header{};
    header.ifi_flags = IFF_UP;
    header.ifi_change = IFF_UP;
    message.append_header(header);
    message.put_string(IFLA_IFNAME, name);
    nlattr* info = message.begin_nest(IFLA_LINKINFO);
    message.put_string(IFLA_INFO_KIND, "ifb");
    message.end_nest(info);
    if (auto made = channel.request(message, fmt::format("make the ifb {}", name)); !made) {
        return fail(std::move(made.error()));
    }
    const auto index = interface_index(channel, name);
    if (!index) {
        return index;
    }
    // The kernel takes no alias at creation (and says nothing about it), only in a change.
    NetlinkMessage naming(RTM_NEWLINK, 0);
    ifinfomsg target{};
    target.ifi_index = *index;
    naming.append_header(target);
    naming.put_string(IFLA_IFALIAS, alias);
    if (auto named = channel.request(naming, fmt::format("set the alias of {}", name)); !named) {
        static_cast<void>(delete_link(channel, *index));
        return fail(std::move(named.error()));
    }
    return index;
}

Result<void> delete_link(NetlinkChannel& channel, int ifindex) {
    NetlinkMessage message(RTM_DELLINK, 0);
    ifinfomsg header{};
    header.ifi_index = ifindex;
    message.append_header(header);
    return channel.request(message, fmt::format("delete interface {}", ifindex));
}

} // namespace railbreak::injectors
