#include "injectors/side_facet.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <net/if.h>

#include "injectors/shaping.hpp"

namespace railbreak::injectors {

namespace {

/// A netem below `parent`; one that hangs elsewhere goes first.
Result<void> ensure_netem(HostOps& ops, std::int32_t ifindex, TcHandle parent, const NetemShape& shape) {
    const auto qdiscs = ops.qdiscs(ifindex);
    if (!qdiscs) {
        return tl::unexpected(qdiscs.error());
    }
    if (const QdiscRecord* present = find_handle(*qdiscs, kOwnNetem)) {
        if (present->netem == shape) {
            return {}; // a change would begin its chain of bursts anew
        }
        return ops.change_netem(ifindex, parent, kOwnNetem, shape);
    }
    if (const QdiscRecord* fifo = find_handle(*qdiscs, kOwnFifo)) {
        if (auto gone = gone_is_fine(ops.remove_qdisc(ifindex, fifo->parent, kOwnFifo)); !gone) {
            return gone;
        }
    }
    return ops.make_netem(ifindex, parent, kOwnNetem, shape);
}

/// Gives the ifb the tree for that rate and netem, of which there is at least one. What does not belong to it is
/// removed first, and with it the packets that it holds: an ifb's queue is short.
Result<void> shape_ifb(HostOps& ops, std::int32_t ifindex, std::optional<BitRate> rate,
                       const std::optional<NetemShape>& netem) {
    const auto qdiscs = ops.qdiscs(ifindex);
    if (!qdiscs) {
        return tl::unexpected(qdiscs.error());
    }
    const TcHandle netem_parent = rate ? kOwnHtbClass : kTcRoot;
    const QdiscRecord* present = find_handle(*qdiscs, kOwnNetem);
    Result<void> done;
    if (!rate && is_htb(find_root(*qdiscs), kOwnHtb)) {
        done = gone_is_fine(ops.remove_qdisc(ifindex, kTcRoot, kOwnHtb));
    } else if (present != nullptr && (!netem || present->parent != netem_parent)) {
        done = gone_is_fine(ops.remove_qdisc(ifindex, present->parent, kOwnNetem));
    }
    if (done && rate) {
        done = netem ? ensure_htb_class(ops, ifindex, *rate) : ensure_htb(ops, ifindex, *rate);
    }
    return done && netem ? ensure_netem(ops, ifindex, netem_parent, *netem) : done;
}

bool is_of_railbreak(const FilterRecord& filter) {
    return filter.priority == kProgramPriority || filter.priority == kRedirectPriority;
}

} // namespace

struct SideFacet::Parts {
    std::optional<BitRate> rate;
    std::optional<NetemShape> netem;
    std::optional<PacketProgram> program; ///< it may treat nothing, and only end the redirect
    [[nodiscard]] bool ifb() const { return rate || netem; }
};

SideFacet::Parts SideFacet::parts(const FacetContext& context, const SideFormer& former,
                                  const WantedState& wanted) const {
    Parts found{rate(wanted), std::nullopt, std::nullopt};
    if (const auto part = netem_part(former, direction_, treatment(wanted))) {
        found.netem = netem_shape(*part, found.rate);
    }
    const auto by_program = program_part(former, direction_, treatment(wanted));
    if (by_program || (found.ifb() && has_program(former))) {
        found.program =
            PacketProgram{by_program.value_or(PacketTreatment{}), former.seed, context.lease_end_boottime, found.ifb()};
    }
    return found;
}

std::string SideFacet::ifb_name(const FacetContext& context) const {
    return fmt::format("{}{}", ifb_prefix_, context.target.device.ifindex);
}

/// Filters of others on this hook would see the packets first and might decide about them, so they are refused; those
/// on the other hook do no harm and stay.
Result<SideFormer> SideFacet::look(HostOps& ops, const FacetContext& context, const FaultRequest& request) const {
    const DeviceIdentity& device = context.target.device;
    const auto links = ops.links();
    const auto qdiscs = ops.qdiscs(device.ifindex);
    const auto filters = ops.filters(device.ifindex);
    if (!links || !qdiscs || !filters) {
        return tl::unexpected(!links ? links.error() : !qdiscs ? qdiscs.error() : filters.error());
    }
    const std::string name = ifb_name(context);
    if (std::any_of(links->begin(), links->end(), [&](const LinkRecord& each) { return each.name == name; })) {
        return refuse_taken(device, "interface " + name);
    }
    const QdiscRecord* present = find_handle(*qdiscs, kTcClsactHandle);
    if (present != nullptr && (present->kind != "clsact" || filters->empty())) {
        return refuse_foreign(device, "the qdisc " + describe_qdisc(*present));
    }
    for (const FilterRecord& each : *filters) {
        if (each.parent == clsact_hook(direction_)) {
            const std::string what = fmt::format("{} filter of priority {}", each.kind, each.priority);
            return is_of_railbreak(each) ? refuse_taken(device, "a " + what) : refuse_foreign(device, "a " + what);
        }
    }
    SideFormer former = choose_mechanism(ops, direction_, request);
    former.foreign_clsact = !std::all_of(filters->begin(), filters->end(), is_of_railbreak);
    const auto possible = may_join(former, request);
    return possible ? Result<SideFormer>(std::move(former)) : tl::unexpected(possible.error());
}

Result<void> SideFacet::may_join(const SideFormer& former, const FaultRequest& request) const {
    return check_treatment(former, direction_, request.packets);
}

Result<void> SideFacet::redirect(HostOps& ops, const FacetContext& context, const Parts& wanted) const {
    const std::int32_t ifindex = context.target.device.ifindex;
    const auto ifb = ensure_ifb(ops, ifb_name(context), context.owner);
    if (!ifb) {
        return tl::unexpected(ifb.error());
    }
    if (auto done = shape_ifb(ops, ifb->ifindex, wanted.rate, wanted.netem); !done) {
        return done;
    }
    if ((ifb->flags & IFF_UP) == 0) {
        if (auto done = ops.set_link_flags(ifb->ifindex, IFF_UP, IFF_UP); !done) {
            return done;
        }
    }
    return ensure_clsact(ops, ifindex).and_then([&] {
        return present_is_fine(ops.make_redirect(ifindex, direction_, kRedirectPriority, ifb->ifindex));
    });
}

Result<void> SideFacet::run_program(HostOps& ops, const FacetContext& context, const PacketProgram& program) const {
    const std::int32_t ifindex = context.target.device.ifindex;
    const auto filters = ops.filters(ifindex);
    if (!filters) {
        return tl::unexpected(filters.error());
    }
    const bool present = std::any_of(filters->begin(), filters->end(), [&](const FilterRecord& each) {
        return is_own_filter(each, direction_, kProgramPriority);
    });
    if (present) {
        return ops.change_program(ifindex, direction_, kProgramPriority, program);
    }
    return ensure_clsact(ops, ifindex).and_then([&] {
        return ops.attach_program(ifindex, direction_, kProgramPriority, program);
    });
}

Result<void> SideFacet::make(HostOps& ops, const FacetContext& context, const SideFormer& former,
                             const WantedState& wanted) const {
    const std::int32_t ifindex = context.target.device.ifindex;
    const Parts what = parts(context, former, wanted);
    Result<void> done = check_treatment(former, direction_, treatment(wanted));
    if (done && what.program) {
        done = run_program(ops, context, *what.program);
    }
    if (done && what.ifb()) {
        done = redirect(ops, context, what);
    }
    // The clsact stays for the half that is wanted.
    if (done && !what.program) {
        done = remove_own_filter(ops, ifindex, direction_, kProgramPriority, true);
    }
    if (done && !what.ifb()) {
        done = remove_own_filter(ops, ifindex, direction_, kRedirectPriority, true).and_then([&] {
            return clean_up(ops, context, former);
        });
    }
    return done;
}

Result<void> SideFacet::undo(HostOps& ops, const FacetContext& context, const SideFormer& former) const {
    const std::int32_t ifindex = context.target.device.ifindex;
    return remove_own_filter(ops, ifindex, direction_, kRedirectPriority, true)
        .and_then([&] { return remove_own_filter(ops, ifindex, direction_, kProgramPriority, former.foreign_clsact); })
        .and_then([&] { return clean_up(ops, context, former); });
}

Result<void> SideFacet::clean_up(HostOps& ops, const FacetContext& context, const SideFormer&) const {
    const auto ifb = find_own_ifb(ops, ifb_name(context));
    if (!ifb) {
        return tl::unexpected(ifb.error());
    }
    return *ifb ? gone_is_fine(ops.remove_link((*ifb)->ifindex)) : Result<void>();
}

/// Qdiscs of the ifb; none unless it is up and everything is redirected to it.
Result<std::vector<QdiscRecord>> SideFacet::ifb_qdiscs(HostOps& ops, const FacetContext& context) const {
    const auto ifb = find_own_ifb(ops, ifb_name(context));
    const auto filters = ops.filters(context.target.device.ifindex);
    if (!ifb || !filters) {
        return tl::unexpected(ifb ? filters.error() : ifb.error());
    }
    const bool redirected = std::any_of(filters->begin(), filters->end(), [&](const FilterRecord& filter) {
        return is_own_filter(filter, direction_, kRedirectPriority);
    });
    if (!*ifb || ((*ifb)->flags & IFF_UP) == 0 || !redirected) {
        return std::vector<QdiscRecord>();
    }
    return ops.qdiscs((*ifb)->ifindex);
}

Result<std::optional<BitRate>> SideFacet::rate_in_force(HostOps& ops, const FacetContext& context) const {
    const auto qdiscs = ifb_qdiscs(ops, context);
    const auto ifb = find_own_ifb(ops, ifb_name(context));
    if (!qdiscs || !ifb) {
        return tl::unexpected(qdiscs ? ifb.error() : qdiscs.error());
    }
    return qdiscs->empty() ? Result<std::optional<BitRate>>(std::nullopt)
                           : class_rate(ops, (*ifb)->ifindex, kOwnHtbClass);
}

Result<void> SideFacet::check_netem(HostOps& ops, const FacetContext& context, const Parts& wanted) const {
    const auto qdiscs = ifb_qdiscs(ops, context);
    if (!qdiscs) {
        return tl::unexpected(qdiscs.error());
    }
    const QdiscRecord* netem = find_handle(*qdiscs, kOwnNetem);
    if (wanted.netem && (netem == nullptr || netem->netem != wanted.netem)) {
        return fail(ErrorKind::kHarness, fmt::format("{} of {} does not have the wanted netem", ifb_name(context),
                                                     context.target.device.name));
    }
    return {};
}

Result<void> SideFacet::check_program(HostOps& ops, const FacetContext& context, const Parts& wanted) const {
    if (!wanted.program) {
        return {};
    }
    const auto found = ops.packet_program(context.target.device.ifindex, direction_, kProgramPriority);
    if (!found) {
        return tl::unexpected(found.error());
    }
    if (!*found || (*found)->program != *wanted.program) {
        return fail(ErrorKind::kHarness,
                    fmt::format("{} does not run the wanted packet program", context.target.device.name));
    }
    return {};
}

Result<Readback> SideFacet::read_back(HostOps& ops, const FacetContext& context, const SideFormer& former,
                                      const WantedState& wanted) const {
    const Parts what = parts(context, former, wanted);
    const auto in_force = rate_in_force(ops, context);
    if (!in_force) {
        return tl::unexpected(in_force.error());
    }
    if (what.rate && (!*in_force || **in_force > *what.rate)) {
        return fail(ErrorKind::kHarness,
                    fmt::format("{} does not {} at the wanted rate", context.target.device.name, side_));
    }
    auto checked = check_netem(ops, context, what).and_then([&] { return check_program(ops, context, what); });
    if (!checked) {
        return tl::unexpected(checked.error());
    }
    Readback values;
    if (direction_ == TcDirection::kIngress) {
        values.emplace_back("receive_rate_bits_per_s",
                            *in_force ? std::to_string((*in_force)->bits_per_s()) : std::string("none"));
    }
    for (auto& value : treatment_values(side_, treatment(wanted))) { // equal to what was read
        values.push_back(std::move(value));
    }
    return values;
}

Readback SideFacet::closing_values(HostOps& ops, const FacetContext& context, const SideFormer& former,
                                   const WantedState& wanted) const {
    const Parts what = parts(context, former, wanted);
    Readback values;
    const auto add = [&](std::string_view name, std::uint64_t value) {
        values.emplace_back(fmt::format("{}_{}", side_, name), std::to_string(value));
    };
    const auto program = ops.packet_program(context.target.device.ifindex, direction_, kProgramPriority);
    if (what.program && acts(what.program->treatment) && program && *program) {
        const PacketProgramCounts& counts = (*program)->counts;
        add("seen_packets", counts.seen);
        if (!what.netem) {
            add("lost_packets", counts.lost);
            add("duplicated_packets", counts.duplicated);
        }
        add("corrupted_packets", counts.corrupted);
    }
    const auto qdiscs = ifb_qdiscs(ops, context);
    const QdiscRecord* netem = what.netem && qdiscs ? find_handle(*qdiscs, kOwnNetem) : nullptr;
    if (netem != nullptr) {
        add("passed_packets", netem->sent_packets);
        add("lost_packets", netem->dropped_packets);
    }
    return values;
}

Result<Notes> SideFacet::verify_former(HostOps& ops, const FacetContext& context, const SideFormer& former) const {
    const DeviceIdentity& device = context.target.device;
    const auto ifb = find_own_ifb(ops, ifb_name(context));
    const auto qdiscs = ops.qdiscs(device.ifindex);
    const auto filters = ops.filters(device.ifindex);
    if (!ifb || !qdiscs || !filters) {
        return tl::unexpected(!ifb ? ifb.error() : !qdiscs ? qdiscs.error() : filters.error());
    }
    if (*ifb) {
        return fail(ErrorKind::kTeardown, fmt::format("{} is still there", (*ifb)->name));
    }
    Notes notes;
    bool foreign = false;
    for (const FilterRecord& each : *filters) {
        if (is_own_filter(each, direction_, kProgramPriority) || is_own_filter(each, direction_, kRedirectPriority)) {
            return fail(ErrorKind::kTeardown, fmt::format("a filter of railbreak on {} is still there", device.name));
        }
        foreign = foreign || !is_of_railbreak(each);
    }
    if (foreign && !former.foreign_clsact) {
        notes.push_back(fmt::format("the qdisc clsact ffff: of {} has filters of others and stays", device.name));
    }
    return notes;
}

Steps SideFacet::steps(const FacetContext& context, const SideFormer& former, const WantedState& wanted) const {
    const std::string& nic = context.target.device.name;
    const std::string ifb = ifb_name(context);
    const std::string_view passing = direction_ == TcDirection::kIngress ? "arrives" : "leaves";
    const Parts what = parts(context, former, wanted);
    Steps steps;
    if (what.ifb()) {
        const std::string rate_word = what.rate ? fmt::format("an htb of {}", to_string(*what.rate)) : std::string();
        const std::string netem_word =
            what.netem ? fmt::format("a netem ({})", describe_treatment(what.netem->treatment)) : std::string();
        steps.changes.push_back(fmt::format("{}: ifb device {} with {}{}{}", nic, ifb, rate_word,
                                            what.rate && what.netem ? " and " : "", netem_word));
        steps.changes.push_back(
            fmt::format("{}: clsact qdisc with a u32 filter that redirects what {} to {}", nic, passing, ifb));
    }
    if (what.program) {
        const PacketTreatment& by_program = what.program->treatment;
        steps.changes.push_back(fmt::format("{}: clsact qdisc with the packet program on what {} ({}{}{})", nic,
                                            passing, describe_treatment(by_program),
                                            acts(by_program) && what.ifb() ? "; " : "",
                                            what.ifb() ? "it ends the redirect with the lease" : ""));
    }
    steps.undo.push_back(former.foreign_clsact
                             ? fmt::format("{}: filter deleted; the clsact qdisc of others stays", nic)
                             : fmt::format("{}: filter and clsact qdisc deleted", nic));
    if (what.ifb()) {
        steps.undo.push_back(fmt::format("{}: device {} deleted", nic, ifb));
    }
    return steps;
}

std::string SideFacet::words(const SideFormer&) const {
    return fmt::format("ifb behind clsact {} u32/mirred", direction_ == TcDirection::kIngress ? "ingress" : "egress");
}

std::string SideFacet::words_for(const SideFormer& former, const FaultRequest& request) const {
    const bool netem = netem_part(former, direction_, request.packets).has_value();
    const bool program = program_part(former, direction_, request.packets).has_value();
    const std::string hook = direction_ == TcDirection::kIngress ? "ingress" : "egress";
    std::string text = netem ? "netem on an " + words(former) : !program ? words(former) : std::string();
    if (program) {
        text += (text.empty() ? "" : " + ") + ("packet program at clsact " + hook);
    }
    return text;
}

bool SideFacet::ends_by_itself(const SideFormer& former) const {
    return has_program(former);
}

} // namespace railbreak::injectors
