// What a NIC receives, capped: an ifb device with an htb, behind a clsact qdisc whose filter redirects everything that
// arrives to it. The undo goes filter, clsact qdisc, ifb: the other way round the redirect leads nowhere and all
// traffic is lost.
#include <algorithm>

#include <fmt/format.h>
#include <net/if.h>

#include "injectors/facet_of.hpp"
#include "injectors/facets.hpp"
#include "injectors/shaping.hpp"
#include "injectors/wire.hpp"

namespace railbreak::injectors {

namespace {

struct Former {};

std::string ifb_name(const FacetContext& context) {
    return "rbifbr" + std::to_string(context.target.device.ifindex);
}

class Receive final : public FacetOf<Former> {
public:
    FacetKind kind() const override { return FacetKind::kReceive; }

protected:
    bool concerned(const WantedState& wanted) const override { return wanted.receive.has_value(); }

    Result<Former> look(HostOps& ops, const FacetContext& context, const FaultRequest&) const override {
        const DeviceIdentity& device = context.target.device;
        const auto links = ops.links();
        const auto qdiscs = ops.qdiscs(device.ifindex);
        if (!links || !qdiscs) {
            return tl::unexpected(links ? qdiscs.error() : links.error());
        }
        const std::string name = ifb_name(context);
        if (std::any_of(links->begin(), links->end(), [&](const LinkRecord& each) { return each.name == name; })) {
            return refuse_taken(device, "interface " + name);
        }
        if (const QdiscRecord* ingress = find_handle(*qdiscs, kTcClsactHandle)) {
            return refuse_foreign(device, "the qdisc " + describe_qdisc(*ingress));
        }
        return Former();
    }

    Result<void> make(HostOps& ops, const FacetContext& context, const Former&,
                      const WantedState& wanted) const override {
        const std::int32_t ifindex = context.target.device.ifindex;
        const auto ifb = ensure_ifb(ops, ifb_name(context), context.owner);
        if (!ifb) {
            return tl::unexpected(ifb.error());
        }
        if (auto done = ensure_htb(ops, ifb->ifindex, *wanted.receive); !done) {
            return done;
        }
        if ((ifb->flags & IFF_UP) == 0) {
            if (auto done = ops.set_link_flags(ifb->ifindex, IFF_UP, IFF_UP); !done) {
                return done;
            }
        }
        return ensure_clsact(ops, ifindex).and_then([&] {
            return present_is_fine(ops.make_redirect(ifindex, TcDirection::kIngress, kRedirectPriority, ifb->ifindex));
        });
    }

    Result<void> undo(HostOps& ops, const FacetContext& context, const Former& former) const override {
        return remove_own_filter(ops, context.target.device.ifindex, TcDirection::kIngress, kRedirectPriority)
            .and_then([&] { return clean_up(ops, context, former); });
    }

    Result<void> clean_up(HostOps& ops, const FacetContext& context, const Former&) const override {
        const auto ifb = find_own_ifb(ops, ifb_name(context));
        if (!ifb) {
            return tl::unexpected(ifb.error());
        }
        return *ifb ? gone_is_fine(ops.remove_link((*ifb)->ifindex)) : Result<void>();
    }

    Result<Readback> read_back(HostOps& ops, const FacetContext& context, const Former&,
                               const WantedState& wanted) const override {
        const auto ifb = find_own_ifb(ops, ifb_name(context));
        const auto filters = ops.filters(context.target.device.ifindex);
        if (!ifb || !filters) {
            return tl::unexpected(ifb ? filters.error() : ifb.error());
        }
        const bool redirected = std::any_of(filters->begin(), filters->end(), [](const FilterRecord& filter) {
            return is_own_redirect(filter, TcDirection::kIngress);
        });
        std::optional<BitRate> rate;
        if (*ifb && ((*ifb)->flags & IFF_UP) != 0 && redirected) {
            const auto read = class_rate(ops, (*ifb)->ifindex, kOwnHtbClass);
            if (!read) {
                return tl::unexpected(read.error());
            }
            rate = *read;
        }
        if (wanted.receive && (!rate || *rate > *wanted.receive)) {
            return fail(ErrorKind::kHarness,
                        fmt::format("{} does not receive at the wanted rate", context.target.device.name));
        }
        return Readback{{"receive_rate_bits_per_s", rate ? std::to_string(rate->bits_per_s()) : "none"}};
    }

    Result<Notes> verify_former(HostOps& ops, const FacetContext& context, const Former&) const override {
        const auto ifb = find_own_ifb(ops, ifb_name(context));
        const auto qdiscs = ops.qdiscs(context.target.device.ifindex);
        if (!ifb || !qdiscs) {
            return tl::unexpected(ifb ? qdiscs.error() : ifb.error());
        }
        if (*ifb) {
            return fail(ErrorKind::kTeardown, fmt::format("{} is still there", (*ifb)->name));
        }
        Notes notes;
        if (const QdiscRecord* ingress = find_handle(*qdiscs, kTcClsactHandle)) {
            notes.push_back(fmt::format("the qdisc {} of {} has filters of others and stays", describe_qdisc(*ingress),
                                        context.target.device.name));
        }
        return notes;
    }

    Steps steps(const FacetContext& context, const Former&, const WantedState& wanted) const override {
        const std::string& nic = context.target.device.name;
        const std::string ifb = ifb_name(context);
        return {
            {fmt::format("{}: ifb device {} with an htb of {}", nic, ifb, to_string(*wanted.receive)),
             fmt::format("{}: clsact qdisc with a u32 filter that redirects what arrives to {}", nic, ifb)},
            {fmt::format("{}: filter and clsact qdisc deleted", nic), fmt::format("{}: device {} deleted", nic, ifb)}};
    }

    std::string words(const Former&) const override { return "ifb behind clsact ingress u32/mirred"; }
    std::string encode(const Former&) const override { return {}; }
    Result<Former> decode(std::string_view bytes) const override {
        if (!bytes.empty()) {
            return fail(ErrorKind::kInput, "the former state of a receive rate is damaged");
        }
        return Former();
    }
};

} // namespace

const Facet& receive_facet() {
    static const Receive facet;
    return facet;
}

} // namespace railbreak::injectors
