// A NIC limits what it sends in each of its traffic classes (hardware/dcb.hpp): below the kernel's queues, so that RoCE
// is limited too. All eight classes get the limit, for which of them the traffic uses is decided elsewhere.
#include <algorithm>

#include <fmt/format.h>

#include "injectors/facet_of.hpp"
#include "injectors/facets.hpp"
#include "injectors/hardware/pci.hpp"
#include "injectors/hardware/refusal.hpp"
#include "injectors/wire.hpp"

namespace railbreak::injectors {

namespace {

using hardware::ClassRates;

struct FormerClasses {
    ClassRates rates{};
    std::string driver; ///< decides what the hardware can keep
};

/// Every class at the wanted rate, or at its own where that is lower.
Result<ClassRates> limited(const FormerClasses& former, BitRate wanted) {
    return hardware::plan_class_rate(former.driver, wanted).map([&](BitRate rate) {
        ClassRates rates = former.rates;
        for (BitRate& each : rates) {
            each = each == BitRate() ? rate : std::min(each, rate);
        }
        return rates;
    });
}

class ClassRate final : public FacetOf<FormerClasses> {
public:
    FacetKind kind() const override { return FacetKind::kClassRate; }

protected:
    bool concerned(const WantedState& wanted) const override { return wanted.class_rate.has_value(); }

    Result<FormerClasses> look(HostOps& ops, const FacetContext& context, const FaultRequest& request) const override {
        const DeviceIdentity& device = context.target.device;
        auto state = ops.dcb(device.ifindex);
        if (!state) {
            return tl::unexpected(std::move(state.error()));
        }
        auto usable = hardware::check_dcb_usable(device.name, *state).and_then([&] {
            return hardware::check_net_admin(ops.privileges(), "a rate limit per traffic class");
        });
        if (!usable) {
            return tl::unexpected(usable.error());
        }
        const auto function = hardware::pci_function_of_nic(ops.sysfs(), device.name);
        FormerClasses former{*state->max_rates, function ? function->driver : std::string()};
        auto fits = may_join(former, request);
        return fits ? Result<FormerClasses>(std::move(former)) : tl::unexpected(fits.error());
    }

    Result<void> may_join(const FormerClasses& former, const FaultRequest& request) const override {
        return limited(former, request.rate).and_then([&](const ClassRates& rates) -> Result<void> {
            return rates != former.rates
                       ? Result<void>()
                       : fail(Error(ErrorKind::kInput, fmt::format("{} limits its classes to {} as it "
                                                                   "is",
                                                                   request.nic, hardware::to_line(rates)))
                                  .with("nic", request.nic));
        });
    }

    Result<void> make(HostOps& ops, const FacetContext& context, const FormerClasses& former,
                      const WantedState& wanted) const override {
        return limited(former, *wanted.class_rate).and_then([&](const ClassRates& rates) {
            return write(ops, context.target.device, rates);
        });
    }

    Result<void> undo(HostOps& ops, const FacetContext& context, const FormerClasses& former) const override {
        return write(ops, context.target.device, former.rates);
    }

    Result<Readback> read_back(HostOps& ops, const FacetContext& context, const FormerClasses& former,
                               const WantedState& wanted) const override {
        const auto rates = limited(former, *wanted.class_rate);
        const auto now = read(ops, context.target.device);
        if (!rates || !now) {
            return tl::unexpected(rates ? now.error() : rates.error());
        }
        return hardware::check_class_rates(context.target.device.name, *rates, *now).map([&] {
            const BitRate most = *std::max_element(rates->begin(), rates->end());
            return Readback{{"class_rate_bits_per_s", std::to_string(most.bits_per_s())}};
        });
    }

    Result<Notes> verify_former(HostOps& ops, const FacetContext& context, const FormerClasses& former) const override {
        const auto now = read(ops, context.target.device);
        if (!now) {
            return tl::unexpected(now.error());
        }
        auto same = hardware::check_class_rates(context.target.device.name, former.rates, *now);
        return same ? Result<Notes>(Notes()) : fail(hardware::as_teardown(same.error()));
    }

    Steps steps(const FacetContext& context, const FormerClasses& former, const WantedState& wanted) const override {
        const std::string& nic = context.target.device.name;
        const auto rates = limited(former, *wanted.class_rate);
        return {
            {fmt::format("{}: rate limit of its 8 traffic classes from {} to {}", nic, hardware::to_line(former.rates),
                         hardware::to_line(rates.value_or(former.rates)))},
            {fmt::format("{}: rate limit of its 8 traffic classes back to {}", nic, hardware::to_line(former.rates))}};
    }

    std::string words(const FormerClasses&) const override { return "DCB rate limit per traffic class"; }

    std::string encode(const FormerClasses& former) const override {
        Encoder out;
        for (const BitRate rate : former.rates) {
            out.put(rate.bits_per_s());
        }
        out.put_string(former.driver);
        return out.take();
    }

    Result<FormerClasses> decode(std::string_view bytes) const override {
        Decoder in(bytes);
        FormerClasses former;
        for (BitRate& rate : former.rates) {
            rate = BitRate::bits_per_s(in.get<std::uint64_t>());
        }
        former.driver = in.get_string();
        return in.finished() ? Result<FormerClasses>(std::move(former))
                             : fail(ErrorKind::kInput, "the former class rates are damaged");
    }

private:
    static Result<ClassRates> read(HostOps& ops, const DeviceIdentity& device) {
        return ops.dcb(device.ifindex).map([](const hardware::DcbState& state) {
            return state.max_rates.value_or(ClassRates{});
        });
    }
    static Result<void> write(HostOps& ops, const DeviceIdentity& device, const ClassRates& rates) {
        return read(ops, device).and_then([&](const ClassRates& now) -> Result<void> {
            return now == rates ? Result<void>() : ops.set_class_rates(device.ifindex, rates);
        });
    }
};

} // namespace

const Facet& class_rate_facet() {
    static const ClassRate facet;
    return facet;
}

} // namespace railbreak::injectors
