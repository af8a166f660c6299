#include "injectors/port_cap.hpp"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>
#include <net/if.h>

#include "injectors/netlink.hpp"

namespace railbreak::injectors {

namespace {

constexpr std::string_view kHtb = "htb";
constexpr std::string_view kOwnerPrefix = "railbreak";

constexpr std::uint32_t kQuantum = 60'000;

template <class Record> const Record* find_handle(const std::vector<Record>& records, TcHandle handle) {
    const auto found =
        std::find_if(records.begin(), records.end(), [&](const Record& each) { return each.handle == handle; });
    return found == records.end() ? nullptr : &*found;
}

const QdiscRecord* find_root(const std::vector<QdiscRecord>& qdiscs) {
    const auto found =
        std::find_if(qdiscs.begin(), qdiscs.end(), [](const QdiscRecord& each) { return each.parent == kTcRoot; });
    return found == qdiscs.end() ? nullptr : &*found;
}

bool is_htb(const QdiscRecord* record, TcHandle handle) {
    return record != nullptr && record->handle == handle && record->kind == kHtb;
}

std::string describe(const QdiscRecord& qdisc) {
    return fmt::format("{} {:x}:", qdisc.kind, qdisc.handle >> 16);
}

/// The class of a cap of ours: burst 250 us of the rate, at least 16 kB.
HtbClass own_class(BitRate rate) {
    return make_htb_class(rate, ByteCount::bytes(std::max<std::uint64_t>(16'000, rate.bytes_per_s() / 4000)), kQuantum);
}

/// The lab's class at another rate. Its burst stays the same number of bytes: a burst that shrinks below what is queued
/// in one piece can block a queue for ever.
HtbClass lab_class_at(const HtbClass& lab, BitRate rate) {
    return make_htb_class(rate, burst_bytes(lab.buffer_ticks, lab.rate), lab.quantum);
}

ByteCount queue_limit(BitRate rate) {
    return ByteCount::bytes(std::max<std::uint64_t>(200'000, rate.bytes_per_s() / 50));
}

tl::unexpected<Error> foreign(const DeviceIdentity& device, std::string_view what) {
    return fail(
        Error(ErrorKind::kRefused, fmt::format("{} already has {}, which railbreak did not make", device.name, what))
            .with("nic", device.name)
            .with("found", std::string(what))
            .advise("Remove it yourself if it is not needed, then try again."));
}

tl::unexpected<Error> taken(const DeviceIdentity& device, std::string_view what) {
    return fail(
        Error(ErrorKind::kRefused, fmt::format("{} is under a fault of another railbreak run ({})", device.name, what))
            .with("nic", device.name)
            .with("found", std::string(what))
            .advise("Wait until that run has ended, or run: railbreak recover"));
}

/// Success when the object was gone already: undo is idempotent.
Result<void> gone_is_fine(Result<void> done) {
    if (!done) {
        const int code = kernel_errno(done.error());
        if (code == ENOENT || code == ENODEV || code == EINVAL) {
            // EINVAL: the handle does not exist (any more); whether anything is left is read back afterwards.
            return {};
        }
    }
    return done;
}

/// Success when it was there already: apply may be repeated.
Result<void> present_is_fine(Result<void> done) {
    if (!done && kernel_errno(done.error()) == EEXIST) {
        return {};
    }
    return done;
}

Result<void> plan_send(HostOps& ops, const DeviceIdentity& device, PortState& port) {
    const auto qdiscs = ops.qdiscs(device.ifindex);
    if (!qdiscs) {
        return tl::unexpected(qdiscs.error());
    }
    const QdiscRecord* root = find_root(*qdiscs);
    if (root == nullptr) {
        // A device that was never up has no root yet; a new one would be made on up.
        port.send = SendMechanism::kOwnRoot;
        return {};
    }
    port.root_kind = root->kind;
    port.root_handle = root->handle;
    if (is_htb(root, kOwnHtb)) {
        return taken(device, "qdisc " + describe(*root));
    }
    if (root->handle == 0) {
        port.send = SendMechanism::kOwnRoot;
        return {};
    }
    if (!is_htb(root, kLabHtb)) {
        return foreign(device, "the root qdisc " + describe(*root));
    }
    const auto classes = ops.htb_classes(device.ifindex);
    if (!classes) {
        return tl::unexpected(classes.error());
    }
    const HtbClassRecord* lab = find_handle(*classes, kLabHtbClass);
    if (lab == nullptr) {
        return foreign(device, "the lab's root qdisc without the lab's class");
    }
    port.send = SendMechanism::kLabClass;
    port.lab_class = lab->parameters;
    return {};
}

Result<void> plan_receive(HostOps& ops, const DeviceIdentity& device, PortState& port) {
    const auto links = ops.links();
    if (!links) {
        return tl::unexpected(links.error());
    }
    const auto qdiscs = ops.qdiscs(device.ifindex);
    if (!qdiscs) {
        return tl::unexpected(qdiscs.error());
    }
    const std::string name = ifb_name(device.ifindex);
    for (const LinkRecord& link : *links) {
        if (link.name == name) {
            return taken(device, "interface " + name);
        }
    }
    if (const QdiscRecord* ingress = find_handle(*qdiscs, kTcClsactHandle)) {
        return foreign(device, "the qdisc " + describe(*ingress));
    }
    port.receive = true;
    return {};
}

/// An htb root with one class and a bfifo; whatever part is there already stays, the class gets the rate.
Result<void> ensure_htb(HostOps& ops, std::int32_t ifindex, BitRate rate) {
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
    const bool present = find_handle(*classes, kOwnHtbClass) != nullptr;
    auto done = present ? ops.change_class(ifindex, kOwnHtbClass, own_class(rate))
                        : ops.make_class(ifindex, kOwnHtb, kOwnHtbClass, own_class(rate));
    if (!done) {
        return done;
    }
    return present_is_fine(ops.make_bfifo(ifindex, kOwnHtbClass, kOwnFifo, queue_limit(rate)));
}

/// What somebody else put in the place of our root or the lab's is left alone.
Result<void> remove_send_cap(HostOps& ops, std::int32_t ifindex, const PortState& former) {
    const auto qdiscs = ops.qdiscs(ifindex);
    if (!qdiscs) {
        return tl::unexpected(qdiscs.error());
    }
    const QdiscRecord* root = find_root(*qdiscs);
    if (former.send == SendMechanism::kLabClass) {
        return is_htb(root, kLabHtb) ? gone_is_fine(ops.change_class(ifindex, kLabHtbClass, former.lab_class))
                                     : Result<void>();
    }
    return is_htb(root, kOwnHtb) ? gone_is_fine(ops.remove_qdisc(ifindex, kTcRoot, kOwnHtb)) : Result<void>();
}

Result<std::optional<LinkRecord>> find_ifb(HostOps& ops, std::int32_t ifindex) {
    auto links = ops.links();
    if (!links) {
        return tl::unexpected(std::move(links.error()));
    }
    const std::string name = ifb_name(ifindex);
    for (LinkRecord& link : *links) {
        // One without an alias is a creation that was interrupted.
        if (link.name == name && link.kind == "ifb" && (link.alias.empty() || link.alias.starts_with(kOwnerPrefix))) {
            return std::optional(std::move(link));
        }
    }
    return std::optional<LinkRecord>();
}

bool is_redirect(const FilterRecord& filter) {
    return filter.priority == kRedirectPriority && filter.kind == "u32";
}

Result<void> remove_receive_cap(HostOps& ops, std::int32_t ifindex) {
    const auto qdiscs = ops.qdiscs(ifindex);
    if (!qdiscs) {
        return tl::unexpected(qdiscs.error());
    }
    if (const QdiscRecord* clsact = find_handle(*qdiscs, kTcClsactHandle); clsact && clsact->kind == "clsact") {
        const auto filters = ops.filters(ifindex);
        if (!filters) {
            return tl::unexpected(filters.error());
        }
        if (std::any_of(filters->begin(), filters->end(), is_redirect)) {
            if (auto done = gone_is_fine(ops.remove_redirect(ifindex, kRedirectPriority)); !done) {
                return done;
            }
        }
        // Filters that somebody else hung there meanwhile keep the qdisc.
        if (std::all_of(filters->begin(), filters->end(), is_redirect)) {
            if (auto done = gone_is_fine(ops.remove_qdisc(ifindex, kTcClsactParent, kTcClsactHandle)); !done) {
                return done;
            }
        }
    }
    const auto ifb = find_ifb(ops, ifindex);
    if (!ifb) {
        return tl::unexpected(ifb.error());
    }
    return *ifb ? gone_is_fine(ops.remove_link((*ifb)->ifindex)) : Result<void>();
}

} // namespace

std::string ifb_name(std::int32_t ifindex) {
    return "rbifb" + std::to_string(ifindex);
}

Result<PortState> plan_cap(HostOps& ops, const DeviceIdentity& device, Direction direction, const std::string& owner) {
    PortState port;
    port.owner = owner;
    if (direction != Direction::kReceive) {
        if (auto planned = plan_send(ops, device, port); !planned) {
            return tl::unexpected(planned.error());
        }
    }
    if (direction != Direction::kSend) {
        if (auto planned = plan_receive(ops, device, port); !planned) {
            return tl::unexpected(planned.error());
        }
    }
    return port;
}

Result<void> set_send_cap(HostOps& ops, std::int32_t ifindex, const PortState& former, std::optional<BitRate> rate) {
    switch (former.send) {
    case SendMechanism::kNone: return {};
    case SendMechanism::kLabClass: {
        if (!rate) {
            return remove_send_cap(ops, ifindex, former);
        }
        const BitRate wanted = std::min(*rate, former.lab_class.rate);
        return ops.change_class(ifindex, kLabHtbClass, lab_class_at(former.lab_class, wanted));
    }
    case SendMechanism::kOwnRoot: return rate ? ensure_htb(ops, ifindex, *rate) : remove_send_cap(ops, ifindex, former);
    }
    return {};
}

Result<void> set_receive_cap(HostOps& ops, std::int32_t ifindex, const PortState& former, std::optional<BitRate> rate) {
    if (!former.receive) {
        return {};
    }
    if (!rate) {
        return remove_receive_cap(ops, ifindex);
    }
    auto ifb = find_ifb(ops, ifindex);
    if (!ifb) {
        return tl::unexpected(ifb.error());
    }
    if (!*ifb) {
        if (auto added = ops.make_ifb(ifb_name(ifindex), former.owner); !added) {
            return added;
        }
        ifb = find_ifb(ops, ifindex);
        if (!ifb || !*ifb) {
            return ifb ? fail(ErrorKind::kHarness, "the new ifb device is not there") : tl::unexpected(ifb.error());
        }
    }
    const LinkRecord& device = **ifb;
    if (auto done = ensure_htb(ops, device.ifindex, *rate); !done) {
        return done;
    }
    if ((device.flags & IFF_UP) == 0) {
        if (auto done = ops.set_link_flags(device.ifindex, IFF_UP, IFF_UP); !done) {
            return done;
        }
    }
    if (auto done = present_is_fine(ops.make_clsact(ifindex)); !done) {
        return done;
    }
    return present_is_fine(ops.make_redirect(ifindex, kRedirectPriority, device.ifindex));
}

Result<void> remove_orphan_ifb(HostOps& ops, std::int32_t ifindex, const PortState& former) {
    if (!former.receive) {
        return {};
    }
    const auto ifb = find_ifb(ops, ifindex);
    if (!ifb) {
        return tl::unexpected(ifb.error());
    }
    return *ifb ? gone_is_fine(ops.remove_link((*ifb)->ifindex)) : Result<void>();
}

Result<std::optional<BitRate>> read_send_cap(HostOps& ops, std::int32_t ifindex, const PortState& former) {
    const auto classes = ops.htb_classes(ifindex);
    if (!classes) {
        return tl::unexpected(classes.error());
    }
    const bool lab = former.send == SendMechanism::kLabClass;
    const HtbClassRecord* found = find_handle(*classes, lab ? kLabHtbClass : kOwnHtbClass);
    return found != nullptr ? std::optional(found->parameters.rate) : std::nullopt;
}

Result<std::optional<BitRate>> read_receive_cap(HostOps& ops, std::int32_t ifindex) {
    const auto ifb = find_ifb(ops, ifindex);
    const auto filters = ops.filters(ifindex);
    if (!ifb) {
        return tl::unexpected(ifb.error());
    }
    if (!filters) {
        return tl::unexpected(filters.error());
    }
    if (!*ifb || ((*ifb)->flags & IFF_UP) == 0 || std::none_of(filters->begin(), filters->end(), is_redirect)) {
        return std::optional<BitRate>();
    }
    return read_send_cap(ops, (*ifb)->ifindex, PortState{});
}

Result<std::vector<std::string>> verify_port(HostOps& ops, std::int32_t ifindex, const PortState& former) {
    std::vector<std::string> notes;
    const auto qdiscs = ops.qdiscs(ifindex);
    if (!qdiscs) {
        return tl::unexpected(qdiscs.error());
    }
    const QdiscRecord* root = find_root(*qdiscs);
    if (former.send == SendMechanism::kOwnRoot && is_htb(root, kOwnHtb)) {
        return fail(ErrorKind::kTeardown, fmt::format("the send cap on interface {} is still there", ifindex));
    }
    if (former.send == SendMechanism::kLabClass && is_htb(root, kLabHtb)) {
        const auto classes = ops.htb_classes(ifindex);
        if (!classes) {
            return tl::unexpected(classes.error());
        }
        const HtbClassRecord* lab = find_handle(*classes, kLabHtbClass);
        if (lab != nullptr && lab->parameters != former.lab_class) {
            return fail(ErrorKind::kTeardown, fmt::format("interface {} does not have its former rate", ifindex));
        }
    }
    if (former.send != SendMechanism::kNone && root != nullptr && !former.root_kind.empty() &&
        (root->handle != former.root_handle || root->kind != former.root_kind)) {
        notes.push_back(fmt::format("the root qdisc was {} and is now {}", former.root_kind, describe(*root)));
    }
    if (former.receive) {
        const auto ifb = find_ifb(ops, ifindex);
        if (!ifb) {
            return tl::unexpected(ifb.error());
        }
        if (*ifb) {
            return fail(ErrorKind::kTeardown, fmt::format("{} is still there", (*ifb)->name));
        }
        if (const QdiscRecord* ingress = find_handle(*qdiscs, kTcClsactHandle)) {
            notes.push_back(fmt::format("the qdisc {} has filters of others and stays", describe(*ingress)));
        }
    }
    return notes;
}

std::string cap_mechanism(const PortState& port) {
    std::string words;
    switch (port.send) {
    case SendMechanism::kNone: break;
    case SendMechanism::kLabClass: words = "htb class rate in place"; break;
    case SendMechanism::kOwnRoot: words = "htb root"; break;
    }
    if (port.receive) {
        words += std::string(words.empty() ? "" : " + ") + "ifb behind clsact ingress u32/mirred";
    }
    return words;
}

} // namespace railbreak::injectors
