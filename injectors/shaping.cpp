#include "injectors/shaping.hpp"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>
#include <linux/pkt_sched.h>

#include "injectors/netlink.hpp"

namespace railbreak::injectors {

namespace {

constexpr std::uint32_t kQuantum = 60'000;

} // namespace

const QdiscRecord* find_root(const std::vector<QdiscRecord>& qdiscs) {
    const auto found =
        std::find_if(qdiscs.begin(), qdiscs.end(), [](const QdiscRecord& each) { return each.parent == kTcRoot; });
    return found == qdiscs.end() ? nullptr : &*found;
}

bool is_htb(const QdiscRecord* record, TcHandle handle) {
    return record != nullptr && record->handle == handle && record->kind == "htb";
}

std::string describe_qdisc(const QdiscRecord& qdisc) {
    return fmt::format("{} {:x}:", qdisc.kind, qdisc.handle >> 16);
}

tl::unexpected<Error> refuse_foreign(const DeviceIdentity& device, std::string_view what) {
    return fail(
        Error(ErrorKind::kRefused, fmt::format("{} already has {}, which railbreak did not make", device.name, what))
            .with("nic", device.name)
            .with("found", std::string(what))
            .advise("Remove it yourself if it is not needed, then try again."));
}

tl::unexpected<Error> refuse_taken(const DeviceIdentity& device, std::string_view what) {
    return fail(
        Error(ErrorKind::kRefused, fmt::format("{} is under a fault of another railbreak run ({})", device.name, what))
            .with("nic", device.name)
            .with("found", std::string(what))
            .advise("Wait until that run has ended, or run: railbreak recover"));
}

Result<void> gone_is_fine(Result<void> done) {
    if (!done) {
        const int code = kernel_errno(done.error());
        if (code == ENOENT || code == ENODEV || code == EINVAL) {
            return {};
        }
    }
    return done;
}

Result<void> present_is_fine(Result<void> done) {
    if (!done && kernel_errno(done.error()) == EEXIST) {
        return {};
    }
    return done;
}

HtbClass own_class(BitRate rate) {
    return make_htb_class(rate, ByteCount::bytes(std::max<std::uint64_t>(16'000, rate.bytes_per_s() / 4000)), kQuantum);
}

ByteCount queue_limit(BitRate rate) {
    return ByteCount::bytes(std::max<std::uint64_t>(200'000, rate.bytes_per_s() / 50));
}

Result<void> ensure_htb_class(HostOps& ops, std::int32_t ifindex, BitRate rate) {
    const auto qdiscs = ops.qdiscs(ifindex);
    if (!qdiscs) {
        return tl::unexpected(qdiscs.error());
    }
    if (!is_htb(find_root(*qdiscs), kOwnHtb)) {
        if (auto added = ops.make_htb(ifindex, kOwnHtb); !added) {
            return added;
        }
    }
    const auto classes = ops.htb_classes(ifindex);
    if (!classes) {
        return tl::unexpected(classes.error());
    }
    const HtbClassRecord* present = find_handle(*classes, kOwnHtbClass);
    if (present != nullptr && present->parameters == own_class(rate)) {
        return {};
    }
    return present != nullptr ? ops.change_class(ifindex, kOwnHtbClass, own_class(rate))
                              : ops.make_class(ifindex, kOwnHtb, kOwnHtbClass, own_class(rate));
}

Result<void> ensure_htb(HostOps& ops, std::int32_t ifindex, BitRate rate) {
    return ensure_htb_class(ops, ifindex, rate).and_then([&] {
        return present_is_fine(ops.make_bfifo(ifindex, kOwnHtbClass, kOwnFifo, queue_limit(rate)));
    });
}

Result<std::optional<BitRate>> class_rate(HostOps& ops, std::int32_t ifindex, TcHandle handle) {
    const auto classes = ops.htb_classes(ifindex);
    if (!classes) {
        return tl::unexpected(classes.error());
    }
    const HtbClassRecord* found = find_handle(*classes, handle);
    return found != nullptr ? std::optional(found->parameters.rate) : std::nullopt;
}

Result<std::optional<LinkRecord>> find_own_ifb(HostOps& ops, const std::string& name) {
    auto links = ops.links();
    if (!links) {
        return tl::unexpected(std::move(links.error()));
    }
    for (LinkRecord& link : *links) {
        if (link.name == name && link.kind == "ifb" && (link.alias.empty() || link.alias.starts_with(kOwnerPrefix))) {
            return std::optional(std::move(link));
        }
    }
    return std::optional<LinkRecord>();
}

Result<LinkRecord> ensure_ifb(HostOps& ops, const std::string& name, const std::string& owner) {
    auto ifb = find_own_ifb(ops, name);
    if (ifb && !*ifb) {
        if (auto added = ops.make_ifb(name, owner); !added) {
            return tl::unexpected(added.error());
        }
        ifb = find_own_ifb(ops, name);
    }
    if (!ifb) {
        return tl::unexpected(ifb.error());
    }
    if (!*ifb) {
        return fail(ErrorKind::kHarness, fmt::format("the new device {} is not there", name));
    }
    return **ifb;
}

TcHandle clsact_hook(TcDirection direction) {
    return TC_H_MAKE(TC_H_CLSACT, direction == TcDirection::kIngress ? TC_H_MIN_INGRESS : TC_H_MIN_EGRESS);
}

bool is_own_filter(const FilterRecord& filter, TcDirection direction, std::uint16_t priority) {
    return filter.parent == clsact_hook(direction) && filter.priority == priority &&
           filter.kind == (priority == kProgramPriority ? "bpf" : "u32");
}

Result<void> ensure_clsact(HostOps& ops, std::int32_t ifindex) {
    return present_is_fine(ops.make_clsact(ifindex));
}

Result<void> remove_own_filter(HostOps& ops, std::int32_t ifindex, TcDirection direction, std::uint16_t priority,
                               bool keep_clsact) {
    const auto qdiscs = ops.qdiscs(ifindex);
    if (!qdiscs) {
        return tl::unexpected(qdiscs.error());
    }
    const QdiscRecord* clsact = find_handle(*qdiscs, kTcClsactHandle);
    if (clsact == nullptr || clsact->kind != "clsact") {
        return {};
    }
    const auto filters = ops.filters(ifindex);
    if (!filters) {
        return tl::unexpected(filters.error());
    }
    const auto is_it = [&](const FilterRecord& filter) { return is_own_filter(filter, direction, priority); };
    if (std::any_of(filters->begin(), filters->end(), is_it)) {
        auto removed = priority == kProgramPriority ? ops.remove_program(ifindex, direction, priority)
                                                    : ops.remove_redirect(ifindex, direction, priority);
        if (removed = gone_is_fine(std::move(removed)); !removed) {
            return removed;
        }
    }
    if (!keep_clsact && std::all_of(filters->begin(), filters->end(), is_it)) {
        return gone_is_fine(ops.remove_qdisc(ifindex, kTcClsactParent, kTcClsactHandle));
    }
    return {};
}

} // namespace railbreak::injectors
