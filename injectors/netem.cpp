// netem messages. The qdisc's options are a fixed structure followed by attributes. Every attribute is sent each time,
// with zeros for what is not wanted: what a change does not name stays as it was.
#include <cstdint>
#include <limits>

#include <fmt/format.h>
#include <linux/pkt_sched.h>
#include <netlink/attr.h>

#include "injectors/netem.hpp"
#include "injectors/tc_message.hpp"

namespace railbreak::injectors {

namespace {

constexpr std::uint64_t kWhole = std::numeric_limits<std::uint32_t>::max();

void put_bursts(NetlinkMessage& message, const GilbertElliott& bursts) {
    tc_netem_gemodel model{};
    model.p = netem_fraction(bursts.good_to_bad);
    model.r = netem_fraction(bursts.bad_to_good);
    model.h = netem_fraction(kMillion - bursts.loss_in_bad); // the part that the bad state lets through
    model.k1 = netem_fraction(bursts.loss_in_good);          // the part that the good state loses
    nlattr* nest = message.begin_nest(TCA_NETEM_LOSS);
    message.put_bytes(NETEM_LOSS_GE, &model, sizeof model);
    message.end_nest(nest);
}

void put_options(NetlinkMessage& message, const NetemShape& shape) {
    const PacketTreatment& treatment = shape.treatment;
    tc_netem_qopt plain{};
    plain.limit = shape.limit_packets;
    plain.loss = treatment.bursts ? 0 : netem_fraction(treatment.loss);
    plain.duplicate = netem_fraction(treatment.duplicate);
    plain.gap = treatment.reorder != 0 ? 1 : 0; // without a gap the kernel does not look at the probability
    const std::int64_t latency = treatment.delay.count();
    const std::int64_t jitter = treatment.jitter.count();
    const tc_netem_corr correlations{};
    const tc_netem_reorder reorder{netem_fraction(treatment.reorder), 0};
    const tc_netem_corrupt corrupt{netem_fraction(treatment.corrupt), 0};
    const tc_netem_rate rate{};
    nlattr* nest = message.begin_nest(TCA_OPTIONS);
    message.append_header(plain);
    message.put_bytes(TCA_NETEM_LATENCY64, &latency, sizeof latency);
    message.put_bytes(TCA_NETEM_JITTER64, &jitter, sizeof jitter);
    message.put_bytes(TCA_NETEM_CORR, &correlations, sizeof correlations);
    message.put_bytes(TCA_NETEM_REORDER, &reorder, sizeof reorder);
    message.put_bytes(TCA_NETEM_CORRUPT, &corrupt, sizeof corrupt);
    message.put_bytes(TCA_NETEM_RATE, &rate, sizeof rate);
    message.put_u32(TCA_NETEM_ECN, 0);
    if (treatment.bursts) {
        put_bursts(message, *treatment.bursts);
    }
    message.end_nest(nest);
}

std::optional<GilbertElliott> parse_bursts(const nlattr* loss) {
    const nlattr* found =
        loss == nullptr ? nullptr : nla_find(static_cast<const nlattr*>(nla_data(loss)), nla_len(loss), NETEM_LOSS_GE);
    if (found == nullptr) {
        return std::nullopt;
    }
    const auto model = copy_attribute<tc_netem_gemodel>(found);
    return GilbertElliott{netem_millionths(model.p), netem_millionths(model.r), kMillion - netem_millionths(model.h),
                          netem_millionths(model.k1)};
}

} // namespace

std::uint32_t netem_fraction(Millionths part) {
    return static_cast<std::uint32_t>((part * kWhole + kMillion / 2) / kMillion);
}

Millionths netem_millionths(std::uint32_t fraction) {
    return static_cast<Millionths>((std::uint64_t{fraction} * kMillion + kWhole / 2) / kWhole);
}

NetlinkMessage netem_message(int flags, int ifindex, TcHandle parent, TcHandle handle, const NetemShape& shape) {
    auto message = tc_message(RTM_NEWQDISC, flags, {ifindex, parent, handle, 0}, "netem");
    put_options(message, shape);
    return message;
}

std::optional<NetemShape> parse_netem(const nlattr* options) {
    if (options == nullptr || nla_len(options) < static_cast<int>(sizeof(tc_netem_qopt))) {
        return std::nullopt;
    }
    const auto plain = copy_attribute<tc_netem_qopt>(options);
    const auto* first = reinterpret_cast<const nlattr*>(static_cast<const char*>(nla_data(options)) + sizeof plain);
    TcAttributes<TCA_NETEM_MAX + 1> inner{};
    // libnl's parser only reads; its signature lacks the const.
    if (nla_parse(inner.data(), TCA_NETEM_MAX, const_cast<nlattr*>(first),
                  nla_len(options) - static_cast<int>(sizeof plain), nullptr) != 0) {
        return std::nullopt;
    }
    NetemShape shape;
    shape.limit_packets = plain.limit;
    shape.treatment.delay = Nanoseconds(copy_attribute<std::int64_t>(inner[TCA_NETEM_LATENCY64]));
    shape.treatment.jitter = Nanoseconds(copy_attribute<std::int64_t>(inner[TCA_NETEM_JITTER64]));
    shape.treatment.bursts = parse_bursts(inner[TCA_NETEM_LOSS]);
    shape.treatment.loss = netem_millionths(plain.loss);
    shape.treatment.duplicate = netem_millionths(plain.duplicate);
    shape.treatment.corrupt = netem_millionths(copy_attribute<tc_netem_corrupt>(inner[TCA_NETEM_CORRUPT]).probability);
    if (plain.gap != 0) {
        shape.treatment.reorder =
            netem_millionths(copy_attribute<tc_netem_reorder>(inner[TCA_NETEM_REORDER]).probability);
    }
    return shape;
}

Result<void> add_netem(NetlinkChannel& channel, int ifindex, TcHandle parent, TcHandle handle,
                       const NetemShape& shape) {
    auto message = netem_message(kTcAdd, ifindex, parent, handle, shape);
    return channel.request(message, fmt::format("add the netem {} to interface {}", to_tc_string(handle), ifindex));
}

Result<void> change_netem(NetlinkChannel& channel, int ifindex, TcHandle parent, TcHandle handle,
                          const NetemShape& shape) {
    auto message = netem_message(0, ifindex, parent, handle, shape);
    return channel.request(message, fmt::format("change the netem {} of interface {}", to_tc_string(handle), ifindex));
}

} // namespace railbreak::injectors
