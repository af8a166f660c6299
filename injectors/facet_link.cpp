// A NIC's admin state. Taking it down makes the kernel forget IPv6 addresses, routes and permanent neighbours; the
// former state holds them, and they are given back until a fresh dump equals the former one. See link_state.hpp.
#include <fmt/format.h>
#include <net/if.h>

#include "injectors/facet_of.hpp"
#include "injectors/facets.hpp"
#include "injectors/link_state.hpp"
#include "injectors/restore.hpp"
#include "injectors/wire.hpp"

namespace railbreak::injectors {

namespace {

constexpr auto kObserveBudget = std::chrono::seconds(5);

class Link final : public FacetOf<LinkState> {
public:
    FacetKind kind() const override { return FacetKind::kLink; }

protected:
    bool concerned(const WantedState& wanted) const override { return wanted.down; }

    Result<LinkState> look(HostOps& ops, const FacetContext& context, const FaultRequest&) const override {
        const DeviceIdentity& device = context.target.device;
        const auto found = find_device(ops, device);
        if (!found) {
            return tl::unexpected(found.error());
        }
        if (found->empty()) {
            return fail(ErrorKind::kInput, fmt::format("the interface {} is gone", device.name));
        }
        if ((found->front().flags & IFF_UP) == 0) {
            return fail(
                Error(ErrorKind::kRefused, fmt::format("{} may not be touched: it is down already", device.name))
                    .with("nic", device.name));
        }
        return snapshot_link(ops, found->front());
    }

    Result<void> make(HostOps& ops, const FacetContext& context, const LinkState&, const WantedState&) const override {
        return ops.set_link_flags(context.target.device.ifindex, IFF_UP, 0);
    }

    Result<void> undo(HostOps& ops, const FacetContext& context, const LinkState& former) const override {
        return restore_and_verify_link(ops, context.target.device.ifindex, former).map([](const Notes&) {});
    }

    Result<Readback> read_back(HostOps& ops, const FacetContext& context, const LinkState&,
                               const WantedState& wanted) const override {
        if (!wanted.down) {
            return Readback();
        }
        const auto stopped = wait_running(ops, context.target.device.ifindex, Deadline::after(kObserveBudget), false);
        if (!stopped) {
            return tl::unexpected(stopped.error());
        }
        if (!*stopped) {
            return fail(ErrorKind::kHarness, fmt::format("{} is still running", context.target.device.name));
        }
        return Readback{{"running", "no"}};
    }

    Result<Notes> verify_former(HostOps& ops, const FacetContext& context, const LinkState& former) const override {
        return verify_link(ops, context.target.device.ifindex, former);
    }

    Steps steps(const FacetContext& context, const LinkState& former, const WantedState&) const override {
        const std::string& nic = context.target.device.name;
        return {{fmt::format("{}: admin down", nic)},
                {fmt::format("{}: admin up, wait for carrier", nic),
                 fmt::format("{}: {} addresses, {} routes, {} permanent neighbours compared and put back where missing",
                             nic, former.addresses.size(), former.routes.size(), former.neighbours.size())}};
    }

    std::string words(const LinkState&) const override { return "admin down"; }

    std::string encode(const LinkState& former) const override {
        Encoder out;
        out.put(former.flags);
        out.put(former.mtu);
        out.put_strings(former.addresses);
        out.put_strings(former.routes);
        out.put_strings(former.neighbours);
        return out.take();
    }

    Result<LinkState> decode(std::string_view bytes) const override {
        Decoder in(bytes);
        LinkState former;
        former.flags = in.get<std::uint32_t>();
        former.mtu = in.get<std::uint32_t>();
        former.addresses = in.get_strings();
        former.routes = in.get_strings();
        former.neighbours = in.get_strings();
        if (!in.finished()) {
            return fail(ErrorKind::kInput, "the former state of a link is damaged");
        }
        return former;
    }
};

} // namespace

const Facet& link_facet() {
    static const Link facet;
    return facet;
}

} // namespace railbreak::injectors
