// The rate limit of one function of a NIC, below the kernel's queues, so that RDMA is limited too: of a virtual
// function as its physical one keeps it (hardware/vf.hpp), or as devlink does in switchdev mode
// (hardware/devlink_rate.hpp). Both limit what the function sends. They are kept outside of its own interface, so undo
// writes the old number even when that is gone.
#include <algorithm>

#include <fmt/format.h>

#include "injectors/facet_of.hpp"
#include "injectors/facets.hpp"
#include "injectors/hardware/pci.hpp"
#include "injectors/restore.hpp"
#include "injectors/wire.hpp"

namespace railbreak::injectors {

namespace {

using hardware::RateKey;
using hardware::RateLimits;
using hardware::RateObject;
using hardware::VfRecord;

tl::unexpected<Error> refuse(const DeviceIdentity& device, std::string_view why, std::string advice = "") {
    return fail(Error(ErrorKind::kRefused, fmt::format("{} {}", device.name, why))
                    .with("nic", device.name)
                    .advise(std::move(advice)));
}

/// Drivers take whole Mbit/s. kInput below one.
Result<BitRate> whole_mbit(BitRate rate) {
    constexpr std::uint64_t kMega = 1'000'000;
    if (rate.bits_per_s() < kMega) {
        return fail(Error(ErrorKind::kInput, "a function's rate is at least 1 Mbit/s")
                        .with("rate_bits_per_s", std::to_string(rate.bits_per_s())));
    }
    return BitRate::bits_per_s(rate.bits_per_s() / kMega * kMega);
}

/// The whole Mbit/s of a request for a function that has these limits.
Result<BitRate> rate_between(const std::string& nic, BitRate wanted, BitRate guaranteed, BitRate limit) {
    auto rate = whole_mbit(wanted);
    if (!rate) {
        return rate;
    }
    if (*rate < guaranteed) {
        return fail(Error(ErrorKind::kRefused,
                          fmt::format("{} is guaranteed {}; railbreak does not lower that", nic, to_string(guaranteed)))
                        .with("nic", nic));
    }
    if (limit != BitRate() && *rate >= limit) {
        return fail(Error(ErrorKind::kInput, fmt::format("{} is limited to {} as it is", nic, to_string(limit)))
                        .with("nic", nic));
    }
    return rate;
}

std::string words_of(BitRate limit) {
    return limit == BitRate() ? "unlimited" : to_string(limit);
}

struct FormerVf {
    std::string physical; ///< interface of the physical function
    std::int32_t ifindex = 0;
    std::uint32_t number = 0;
    BitRate min;
    BitRate max;
};

/// The number of a virtual function among those of its physical one.
std::optional<std::uint32_t> vf_number(const hardware::Sysfs& sysfs, const hardware::PciFunction& function) {
    const std::string folder = "bus/pci/devices/" + function.physical_function;
    for (std::uint32_t number = 0;; ++number) {
        const std::string path = sysfs.real_path(fmt::format("{}/virtfn{}", folder, number));
        if (path.empty() || hardware::last_part(path) == function.address) {
            return path.empty() ? std::nullopt : std::optional(number);
        }
    }
}

/// The virtual function that a NIC is, and where its rate is kept. Refused when it is none, or when its physical
/// function is not to be seen here.
Result<FormerVf> physical_of(HostOps& ops, const DeviceIdentity& device) {
    if (const auto link = find_hardware(ops, device); !link) {
        return tl::unexpected(link.error());
    }
    const auto function = hardware::pci_function_of_nic(ops.sysfs(), device.name);
    if (!function || function->physical_function.empty()) {
        return refuse(device, "is no virtual function",
                      "Of a whole port, dcb_class_rate, link_modes and pcie_speed lower the rate.");
    }
    const auto number = vf_number(ops.sysfs(), *function);
    const auto physical = hardware::read_pci_function(ops.sysfs(), function->physical_function);
    if (!number || !physical || physical->nics.empty()) {
        return refuse(device, "has a physical function without an interface here",
                      "Its rate can be set where that interface is.");
    }
    const auto links = ops.links();
    if (!links) {
        return tl::unexpected(links.error());
    }
    const std::string& name = physical->nics.front().name;
    const auto found =
        std::find_if(links->begin(), links->end(), [&](const LinkRecord& each) { return each.name == name; });
    return found == links->end()
               ? refuse(device, fmt::format("has its physical function {} in another network namespace", name))
               : Result<FormerVf>(FormerVf{name, found->ifindex, *number, {}, {}});
}

/// The devlink port that the interface is, or that stands for the virtual function which it is.
Result<RateKey> devlink_port_of(HostOps& ops, const DeviceIdentity& device) {
    const auto ports = ops.devlink_ports();
    if (!ports) {
        return tl::unexpected(ports.error());
    }
    const auto key_of = [](const hardware::DevlinkPort& port) {
        return RateKey{port.bus, port.device, port.index, ""};
    };
    const auto function = hardware::pci_function_of_nic(ops.sysfs(), device.name);
    if (function && !function->physical_function.empty()) {
        const auto number = vf_number(ops.sysfs(), *function);
        for (const hardware::DevlinkPort& port : *ports) {
            if (number && port.bus == "pci" && port.device == function->physical_function && port.vf == *number) {
                return key_of(port);
            }
        }
    }
    for (const hardware::DevlinkPort& port : *ports) {
        if (port.ifindex == device.ifindex) {
            return key_of(port);
        }
    }
    return refuse(device, "is no port of a devlink device");
}

Result<std::optional<RateObject>> find_rate(HostOps& ops, const RateKey& key) {
    return ops.devlink_rates().map([&](const std::vector<RateObject>& list) -> std::optional<RateObject> {
        const auto found =
            std::find_if(list.begin(), list.end(), [&](const RateObject& each) { return each.key == key; });
        return found == list.end() ? std::nullopt : std::optional(*found);
    });
}

class VfRate final : public FacetOf<FormerVf> {
public:
    FacetKind kind() const override { return FacetKind::kVfRate; }

protected:
    bool concerned(const WantedState& wanted) const override { return wanted.vf_rate.has_value(); }

    Result<FormerVf> look(HostOps& ops, const FacetContext& context, const FaultRequest& request) const override {
        const DeviceIdentity& device = context.target.device;
        auto former = physical_of(ops, device);
        if (!former) {
            return former;
        }
        const auto record = find_vf(ops, *former);
        if (!record || !*record) {
            return record ? refuse(device, fmt::format("is not listed by {}", former->physical))
                          : tl::unexpected(record.error());
        }
        former->min = (*record)->min_rate;
        former->max = (*record)->max_rate;
        auto fits = check_unmixed(ops, device).and_then([&] { return may_join(*former, request); });
        return fits ? former : tl::unexpected(fits.error());
    }

    Result<void> may_join(const FormerVf& former, const FaultRequest& request) const override {
        return rate_between(request.nic, request.rate, former.min, former.max).map([](BitRate) {});
    }

    Result<void> make(HostOps& ops, const FacetContext&, const FormerVf& former,
                      const WantedState& wanted) const override {
        return whole_mbit(*wanted.vf_rate).and_then([&](BitRate rate) { return write(ops, former, rate); });
    }

    Result<void> undo(HostOps& ops, const FacetContext&, const FormerVf& former) const override {
        return write(ops, former, former.max);
    }
    Result<void> clean_up(HostOps& ops, const FacetContext& context, const FormerVf& former) const override {
        return undo(ops, context, former);
    }

    Result<Readback> read_back(HostOps& ops, const FacetContext& context, const FormerVf& former,
                               const WantedState& wanted) const override {
        const auto rate = whole_mbit(*wanted.vf_rate);
        const auto record = find_vf(ops, former);
        if (!rate || !record) {
            return tl::unexpected(rate ? record.error() : rate.error());
        }
        if (!*record || (*record)->max_rate != *rate) {
            return fail(ErrorKind::kHarness, fmt::format("{} does not have the wanted rate as VF {} of {}",
                                                         context.target.device.name, former.number, former.physical));
        }
        return Readback{{"vf_rate_bits_per_s", std::to_string(rate->bits_per_s())}};
    }

    Result<Notes> verify_former(HostOps& ops, const FacetContext& context, const FormerVf& former) const override {
        const auto record = find_vf(ops, former);
        if (!record) {
            return tl::unexpected(record.error());
        }
        const bool same = *record && (*record)->min_rate == former.min && (*record)->max_rate == former.max;
        return same ? Result<Notes>(Notes())
                    : fail(ErrorKind::kTeardown,
                           fmt::format("{} does not have its rates again", context.target.device.name));
    }

    Steps steps(const FacetContext& context, const FormerVf& former, const WantedState& wanted) const override {
        const std::string vf =
            fmt::format("{}: its rate as VF {} of {}", context.target.device.name, former.number, former.physical);
        const BitRate rate = whole_mbit(*wanted.vf_rate).value_or(BitRate());
        return {{fmt::format("{} from {} to {}", vf, words_of(former.max), words_of(rate))},
                {fmt::format("{} back to {}", vf, words_of(former.max))}};
    }

    std::string words(const FormerVf&) const override { return "VF rate of the physical function"; }

    std::string encode(const FormerVf& former) const override {
        Encoder out;
        out.put_string(former.physical);
        out.put(former.ifindex);
        out.put(former.number);
        out.put(former.min.bits_per_s());
        out.put(former.max.bits_per_s());
        return out.take();
    }

    Result<FormerVf> decode(std::string_view bytes) const override {
        Decoder in(bytes);
        FormerVf former;
        former.physical = in.get_string();
        former.ifindex = in.get<std::int32_t>();
        former.number = in.get<std::uint32_t>();
        former.min = BitRate::bits_per_s(in.get<std::uint64_t>());
        former.max = BitRate::bits_per_s(in.get<std::uint64_t>());
        return in.finished() ? Result<FormerVf>(std::move(former))
                             : fail(ErrorKind::kInput, "the former rate of a virtual function is damaged");
    }

private:
    /// A driver that keeps the rate in devlink has one scheduler for both, and the two do not know each other.
    static Result<void> check_unmixed(HostOps& ops, const DeviceIdentity& device) {
        const auto object =
            devlink_port_of(ops, device).and_then([&](const RateKey& key) { return find_rate(ops, key); });
        return object && *object ? refuse(device, "keeps its rate in devlink", "Write: mechanism: devlink_rate")
                                 : Result<void>();
    }
    /// The function as its physical one lists it now; nothing when one of them is gone.
    static Result<std::optional<VfRecord>> find_vf(HostOps& ops, const FormerVf& former) {
        const auto links = ops.links();
        if (!links) {
            return tl::unexpected(links.error());
        }
        const bool there = std::any_of(links->begin(), links->end(), [&](const LinkRecord& each) {
            return each.ifindex == former.ifindex && each.name == former.physical;
        });
        if (!there) {
            return std::nullopt;
        }
        return ops.vfs(former.ifindex).map([&](const std::vector<VfRecord>& list) -> std::optional<VfRecord> {
            const auto found = std::find_if(list.begin(), list.end(),
                                            [&](const VfRecord& each) { return each.number == former.number; });
            return found == list.end() ? std::nullopt : std::optional(*found);
        });
    }
    static Result<void> write(HostOps& ops, const FormerVf& former, BitRate rate) {
        return find_vf(ops, former).and_then([&](const std::optional<VfRecord>& now) -> Result<void> {
            return !now || now->max_rate == rate ? Result<void>()
                                                 : ops.set_vf_rates(former.ifindex, former.number, former.min, rate);
        });
    }
};

struct FormerRate {
    RateKey key;
    RateLimits limits;
};

class DevlinkRate final : public FacetOf<FormerRate> {
public:
    FacetKind kind() const override { return FacetKind::kDevlinkRate; }

protected:
    bool concerned(const WantedState& wanted) const override { return wanted.devlink_rate.has_value(); }

    Result<FormerRate> look(HostOps& ops, const FacetContext& context, const FaultRequest& request) const override {
        const DeviceIdentity& device = context.target.device;
        const auto key = devlink_port_of(ops, device);
        if (!key) {
            return tl::unexpected(key.error());
        }
        const auto object = find_rate(ops, *key);
        if (!object || !*object) {
            return object ? refuse(device, "has no rate of its own in devlink",
                                   "VFs and SFs have one while the device is in switchdev mode.")
                          : tl::unexpected(object.error());
        }
        FormerRate former{*key, (*object)->limits};
        auto fits = may_join(former, request).and_then([&] {
            return hardware::check_net_admin(ops.privileges(), "a devlink rate");
        });
        return fits ? Result<FormerRate>(std::move(former)) : tl::unexpected(fits.error());
    }

    Result<void> may_join(const FormerRate& former, const FaultRequest& request) const override {
        return rate_between(request.nic, request.rate, former.limits.share, former.limits.max).map([](BitRate) {});
    }

    Result<void> make(HostOps& ops, const FacetContext&, const FormerRate& former,
                      const WantedState& wanted) const override {
        return whole_mbit(*wanted.devlink_rate).and_then([&](BitRate rate) { return write(ops, former, rate); });
    }

    Result<void> undo(HostOps& ops, const FacetContext&, const FormerRate& former) const override {
        return write(ops, former, former.limits.max);
    }
    Result<void> clean_up(HostOps& ops, const FacetContext& context, const FormerRate& former) const override {
        return undo(ops, context, former);
    }

    Result<Readback> read_back(HostOps& ops, const FacetContext&, const FormerRate& former,
                               const WantedState& wanted) const override {
        const auto rate = whole_mbit(*wanted.devlink_rate);
        const auto object = find_rate(ops, former.key);
        if (!rate || !object) {
            return tl::unexpected(rate ? object.error() : rate.error());
        }
        if (!*object || (*object)->limits.max != *rate) {
            return fail(ErrorKind::kHarness,
                        fmt::format("{} does not have the wanted rate", hardware::to_string(former.key)));
        }
        return Readback{{"devlink_rate_bits_per_s", std::to_string(rate->bits_per_s())}};
    }

    Result<Notes> verify_former(HostOps& ops, const FacetContext&, const FormerRate& former) const override {
        const auto object = find_rate(ops, former.key);
        if (!object) {
            return tl::unexpected(object.error());
        }
        return *object && (*object)->limits == former.limits
                   ? Result<Notes>(Notes())
                   : fail(ErrorKind::kTeardown,
                          fmt::format("{} does not have its rates again", hardware::to_string(former.key)));
    }

    Steps steps(const FacetContext& context, const FormerRate& former, const WantedState& wanted) const override {
        const std::string rate =
            fmt::format("{}: largest rate of {}", context.target.device.name, hardware::to_string(former.key));
        return {{fmt::format("{} from {} to {}", rate, words_of(former.limits.max),
                             words_of(whole_mbit(*wanted.devlink_rate).value_or(BitRate())))},
                {fmt::format("{} back to {}", rate, words_of(former.limits.max))}};
    }

    std::string words(const FormerRate&) const override { return "devlink rate of the function"; }

    std::string encode(const FormerRate& former) const override {
        Encoder out;
        out.put_string(former.key.bus);
        out.put_string(former.key.device);
        out.put(former.key.port.value_or(0));
        out.put(former.limits.share.bits_per_s());
        out.put(former.limits.max.bits_per_s());
        return out.take();
    }

    Result<FormerRate> decode(std::string_view bytes) const override {
        Decoder in(bytes);
        FormerRate former;
        former.key.bus = in.get_string();
        former.key.device = in.get_string();
        former.key.port = in.get<std::uint32_t>();
        former.limits.share = BitRate::bits_per_s(in.get<std::uint64_t>());
        former.limits.max = BitRate::bits_per_s(in.get<std::uint64_t>());
        return in.finished() ? Result<FormerRate>(std::move(former))
                             : fail(ErrorKind::kInput, "the former devlink rate is damaged");
    }

private:
    static Result<void> write(HostOps& ops, const FormerRate& former, BitRate rate) {
        return find_rate(ops, former.key).and_then([&](const std::optional<RateObject>& now) -> Result<void> {
            return !now || now->limits.max == rate ? Result<void>() : ops.set_devlink_rate(former.key, rate);
        });
    }
};

} // namespace

const Facet& vf_rate_facet() {
    static const VfRate facet;
    return facet;
}

const Facet& devlink_rate_facet() {
    static const DevlinkRate facet;
    return facet;
}

} // namespace railbreak::injectors
