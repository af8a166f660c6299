// What a NIC sends, capped. Where the root is the lab's own htb, its one class changes rate in place (no packet is
// lost, nothing is re-made). Where the root is the kernel's default, an htb of ours with one class and a bfifo takes
// its place and is deleted by handle afterwards. Any other root is somebody's configuration and is refused.
#include <algorithm>

#include <fmt/format.h>

#include "injectors/facet_of.hpp"
#include "injectors/facets.hpp"
#include "injectors/shaping.hpp"
#include "injectors/wire.hpp"

namespace railbreak::injectors {

namespace {

enum class Mechanism : std::uint8_t {
    kLabClass, ///< the lab's own htb class changes its rate in place
    kOwnRoot,  ///< our htb replaces a default root
};

struct Former {
    Mechanism mechanism = Mechanism::kOwnRoot;
    std::string root_kind;         ///< empty: the device had no root yet
    std::uint32_t root_handle = 0; ///< 0 for a default root
    HtbClass lab_class;            ///< kLabClass: its parameters as the kernel kept them
};

/// The lab's class at another rate. Its burst stays the same number of bytes: a burst that shrinks below what is queued
/// in one piece can block a queue for ever.
HtbClass lab_class_at(const HtbClass& lab, BitRate rate) {
    return make_htb_class(std::min(rate, lab.rate), burst_bytes(lab.buffer_ticks, lab.rate), lab.quantum);
}

/// What somebody else put in the place of our root or the lab's is left alone.
Result<void> go_back(HostOps& ops, std::int32_t ifindex, const Former& former) {
    const auto qdiscs = ops.qdiscs(ifindex);
    if (!qdiscs) {
        return tl::unexpected(qdiscs.error());
    }
    const QdiscRecord* root = find_root(*qdiscs);
    switch (former.mechanism) {
    case Mechanism::kLabClass:
        return is_htb(root, kLabHtb) ? gone_is_fine(ops.change_class(ifindex, kLabHtbClass, former.lab_class))
                                     : Result<void>();
    case Mechanism::kOwnRoot:
        return is_htb(root, kOwnHtb) ? gone_is_fine(ops.remove_qdisc(ifindex, kTcRoot, kOwnHtb)) : Result<void>();
    }
    return {};
}

class SendRate final : public FacetOf<Former> {
public:
    FacetKind kind() const override { return FacetKind::kSendRate; }

protected:
    bool concerned(const WantedState& wanted) const override { return wanted.send.has_value(); }

    Result<Former> look(HostOps& ops, const FacetContext& context, const FaultRequest&) const override {
        const DeviceIdentity& device = context.target.device;
        const auto qdiscs = ops.qdiscs(device.ifindex);
        if (!qdiscs) {
            return tl::unexpected(qdiscs.error());
        }
        Former former;
        const QdiscRecord* root = find_root(*qdiscs);
        if (root == nullptr) {
            return former; // never up so far; the root would be made on up
        }
        former.root_kind = root->kind;
        former.root_handle = root->handle;
        if (is_htb(root, kOwnHtb)) {
            return refuse_taken(device, "qdisc " + describe_qdisc(*root));
        }
        if (root->handle == 0) {
            return former;
        }
        if (!is_htb(root, kLabHtb)) {
            return refuse_foreign(device, "the root qdisc " + describe_qdisc(*root));
        }
        const auto classes = ops.htb_classes(device.ifindex);
        if (!classes) {
            return tl::unexpected(classes.error());
        }
        const HtbClassRecord* lab = find_handle(*classes, kLabHtbClass);
        if (lab == nullptr) {
            return refuse_foreign(device, "the lab's root qdisc without the lab's class");
        }
        former.mechanism = Mechanism::kLabClass;
        former.lab_class = lab->parameters;
        return former;
    }

    Result<void> make(HostOps& ops, const FacetContext& context, const Former& former,
                      const WantedState& wanted) const override {
        const std::int32_t ifindex = context.target.device.ifindex;
        switch (former.mechanism) {
        case Mechanism::kLabClass:
            return ops.change_class(ifindex, kLabHtbClass, lab_class_at(former.lab_class, *wanted.send));
        case Mechanism::kOwnRoot: return ensure_htb(ops, ifindex, *wanted.send);
        }
        return {};
    }

    Result<void> undo(HostOps& ops, const FacetContext& context, const Former& former) const override {
        return go_back(ops, context.target.device.ifindex, former);
    }

    Result<Readback> read_back(HostOps& ops, const FacetContext& context, const Former& former,
                               const WantedState& wanted) const override {
        const bool lab = former.mechanism == Mechanism::kLabClass;
        const auto rate = class_rate(ops, context.target.device.ifindex, lab ? kLabHtbClass : kOwnHtbClass);
        if (!rate) {
            return tl::unexpected(rate.error());
        }
        if (wanted.send && (!*rate || **rate > *wanted.send)) {
            return fail(ErrorKind::kHarness,
                        fmt::format("{} does not send at the wanted rate", context.target.device.name));
        }
        return Readback{{"send_rate_bits_per_s", *rate ? std::to_string((*rate)->bits_per_s()) : "none"}};
    }

    Result<Notes> verify_former(HostOps& ops, const FacetContext& context, const Former& former) const override {
        const DeviceIdentity& device = context.target.device;
        const auto qdiscs = ops.qdiscs(device.ifindex);
        const auto classes = ops.htb_classes(device.ifindex);
        if (!qdiscs || !classes) {
            return tl::unexpected(qdiscs ? classes.error() : qdiscs.error());
        }
        const QdiscRecord* root = find_root(*qdiscs);
        if (former.mechanism == Mechanism::kOwnRoot && is_htb(root, kOwnHtb)) {
            return fail(ErrorKind::kTeardown, fmt::format("the send cap on {} is still there", device.name));
        }
        const HtbClassRecord* lab = find_handle(*classes, kLabHtbClass);
        if (former.mechanism == Mechanism::kLabClass && is_htb(root, kLabHtb) && lab != nullptr &&
            lab->parameters != former.lab_class) {
            return fail(ErrorKind::kTeardown, fmt::format("{} does not have its former rate", device.name));
        }
        Notes notes;
        if (root != nullptr && !former.root_kind.empty() &&
            (root->handle != former.root_handle || root->kind != former.root_kind)) {
            notes.push_back(fmt::format("the root qdisc of {} was {} and is now {}", device.name, former.root_kind,
                                        describe_qdisc(*root)));
        }
        return notes;
    }

    Steps steps(const FacetContext& context, const Former& former, const WantedState& wanted) const override {
        const std::string& nic = context.target.device.name;
        switch (former.mechanism) {
        case Mechanism::kLabClass:
            return {{fmt::format("{}: htb class {} from {} to {}", nic, to_tc_string(kLabHtbClass),
                                 to_string(former.lab_class.rate),
                                 to_string(std::min(*wanted.send, former.lab_class.rate)))},
                    {fmt::format("{}: htb class {} back to {}", nic, to_tc_string(kLabHtbClass),
                                 to_string(former.lab_class.rate))}};
        case Mechanism::kOwnRoot:
            return {{fmt::format("{}: root qdisc {} replaced by htb {} with one class of {}", nic,
                                 former.root_kind.empty() ? "(none)" : former.root_kind, to_tc_string(kOwnHtb),
                                 to_string(*wanted.send))},
                    {fmt::format("{}: qdisc htb {} deleted; the kernel puts its default back", nic,
                                 to_tc_string(kOwnHtb))}};
        }
        return {};
    }

    std::string words(const Former& former) const override {
        return former.mechanism == Mechanism::kLabClass ? "htb class rate in place" : "htb root";
    }

    std::string encode(const Former& former) const override {
        Encoder out;
        out.put(static_cast<std::uint8_t>(former.mechanism));
        out.put_string(former.root_kind);
        out.put(former.root_handle);
        out.put(former.lab_class.rate.bits_per_s());
        out.put(former.lab_class.ceil.bits_per_s());
        out.put(former.lab_class.buffer_ticks);
        out.put(former.lab_class.cbuffer_ticks);
        out.put(former.lab_class.quantum);
        return out.take();
    }

    Result<Former> decode(std::string_view bytes) const override {
        Decoder in(bytes);
        Former former;
        const auto mechanism = in.get<std::uint8_t>();
        former.root_kind = in.get_string();
        former.root_handle = in.get<std::uint32_t>();
        former.lab_class.rate = BitRate::bits_per_s(in.get<std::uint64_t>());
        former.lab_class.ceil = BitRate::bits_per_s(in.get<std::uint64_t>());
        former.lab_class.buffer_ticks = in.get<std::uint32_t>();
        former.lab_class.cbuffer_ticks = in.get<std::uint32_t>();
        former.lab_class.quantum = in.get<std::uint32_t>();
        former.mechanism = static_cast<Mechanism>(mechanism);
        if (!in.finished() || mechanism > static_cast<std::uint8_t>(Mechanism::kOwnRoot)) {
            return fail(ErrorKind::kInput, "the former state of a send rate is damaged");
        }
        return former;
    }
};

} // namespace

const Facet& send_rate_facet() {
    static const SendRate facet;
    return facet;
}

} // namespace railbreak::injectors
