#include "injectors/hardware/dcb.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <linux/dcbnl.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "injectors/hardware/attributes.hpp"
#include "injectors/hardware/refusal.hpp"

namespace railbreak::injectors::hardware {
namespace {

static_assert(kTrafficClasses == IEEE_8021QAZ_MAX_TCS);

constexpr std::string_view kMechanism = "rate limit per traffic class (DCB ieee maxrate)";
constexpr std::uint64_t kKilo = 1'000;
constexpr std::uint64_t kFine = 100'000'000;      // bit/s: mlx5's 100 Mbit/s unit
constexpr std::uint64_t kCoarse = 1'000'000'000;  // bit/s: its 1 Gbit/s unit
constexpr std::uint64_t kLargestFieldValue = 255; // of either unit: an 8-bit field

NetlinkMessage dcb_message(int type, std::uint8_t command, std::string_view nic) {
    NetlinkMessage message(type, 0);
    dcbmsg header{};
    header.dcb_family = AF_UNSPEC;
    header.cmd = command;
    message.append_header(header);
    message.put_string(DCB_ATTR_IFNAME, nic);
    return message;
}

bool is_dcb(const nlmsghdr& record, int type, std::uint8_t command) {
    return record.nlmsg_type == type && record.nlmsg_len >= NLMSG_LENGTH(sizeof(dcbmsg)) &&
           static_cast<const dcbmsg*>(NLMSG_DATA(&record))->cmd == command;
}

/// Proves that the limits are the given ones.
Result<void> check_rates(NetlinkChannel& channel, std::string_view nic, const ClassRates& wanted) {
    const auto state = read_dcb(channel, nic);
    return state ? check_class_rates(nic, wanted, state->max_rates.value_or(ClassRates{})) : fail(Error(state.error()));
}

} // namespace

std::string to_line(const ClassRates& rates) {
    const bool alike = std::all_of(rates.begin(), rates.end(), [&](BitRate rate) { return rate == rates.front(); });
    std::string line;
    for (const BitRate rate : rates) {
        line += fmt::format("{}{}", line.empty() ? "" : ", ",
                            rate == BitRate() ? std::string("unlimited") : to_string(rate));
        if (alike) {
            break;
        }
    }
    return line;
}

bool host_owns_dcb(const DcbState& state) {
    if (!state.dcbx) {
        return true;
    }
    return (*state.dcbx & DCB_CAP_DCBX_HOST) != 0 && (*state.dcbx & DCB_CAP_DCBX_LLD_MANAGED) == 0;
}

NetlinkMessage dcb_get_request(std::string_view nic) {
    return dcb_message(RTM_GETDCB, DCB_CMD_IEEE_GET, nic);
}

Result<NetlinkMessage> dcb_set_request(std::string_view nic, const ClassRates& rates) {
    ieee_maxrate kernel{};
    for (std::size_t i = 0; i < kTrafficClasses; ++i) {
        if (rates[i].bits_per_s() % kKilo != 0) {
            return fail(Error(ErrorKind::kInput, "a class rate is a whole number of kbit/s")
                            .with("rate_bits_per_s", std::to_string(rates[i].bits_per_s())));
        }
        kernel.tc_maxrate[i] = rates[i].bits_per_s() / kKilo;
    }
    auto message = dcb_message(RTM_SETDCB, DCB_CMD_IEEE_SET, nic);
    nlattr* nest = message.begin_nest(DCB_ATTR_IEEE);
    message.put_bytes(DCB_ATTR_IEEE_MAXRATE, &kernel, sizeof kernel);
    message.end_nest(nest);
    return message;
}

Result<DcbState> parse_dcb_state(const nlmsghdr& record) {
    const auto attributes = AttributeView::of(record, sizeof(dcbmsg));
    if (!is_dcb(record, RTM_GETDCB, DCB_CMD_IEEE_GET) || !attributes.has(DCB_ATTR_IEEE)) {
        return fail(ErrorKind::kHarness, "the kernel's answer is no DCB state");
    }
    DcbState state;
    state.dcbx = attributes.value<std::uint8_t>(DCB_ATTR_DCBX);
    const auto ieee = attributes.nest(DCB_ATTR_IEEE);
    if (const auto rates = ieee.value<ieee_maxrate>(DCB_ATTR_IEEE_MAXRATE)) {
        state.max_rates.emplace();
        for (std::size_t i = 0; i < kTrafficClasses; ++i) {
            (*state.max_rates)[i] = BitRate::bits_per_s(rates->tc_maxrate[i] * kKilo);
        }
    }
    if (const auto ets = ieee.value<ieee_ets>(DCB_ATTR_IEEE_ETS)) {
        state.class_of_priority.emplace();
        std::memcpy(state.class_of_priority->data(), ets->prio_tc, sizeof ets->prio_tc);
    }
    return state;
}

Result<int> parse_dcb_set_status(const nlmsghdr& record) {
    const auto status = AttributeView::of(record, sizeof(dcbmsg)).value<std::int8_t>(DCB_ATTR_IEEE);
    if (!is_dcb(record, RTM_SETDCB, DCB_CMD_IEEE_SET) || !status) {
        return fail(ErrorKind::kHarness, "the kernel's answer holds no verdict on the DCB setting");
    }
    // A negative errno cut to eight bits; EBADMSG stands for one that came out positive.
    return *status <= 0 ? -*status : EBADMSG;
}

Result<BitRate> mlx5_class_rate(BitRate wanted) {
    const std::uint64_t rate = wanted.bits_per_s();
    if (rate < kFine) {
        return fail(Error(ErrorKind::kInput, "an mlx5 port limits a traffic class to no less than 100 Mbit/s")
                        .with("rate_bits_per_s", std::to_string(rate)));
    }
    if (rate <= kLargestFieldValue * kFine) {
        return BitRate::bits_per_s(rate / kFine * kFine);
    }
    if (rate < (kLargestFieldValue / 10 + 1) * kCoarse) {
        return BitRate::bits_per_s(kLargestFieldValue * kFine); // 25.6 to 25.9 Gbit/s overflow the finer field
    }
    if (rate <= kLargestFieldValue * kCoarse) {
        return BitRate::bits_per_s(rate / kCoarse * kCoarse);
    }
    return fail(Error(ErrorKind::kRefused, "an mlx5 port limits a traffic class to no more than 255 Gbit/s")
                    .with("rate_bits_per_s", std::to_string(rate)));
}

BitRate mlx5_wrapped_rate(BitRate wanted) {
    return BitRate::bits_per_s(wanted.bits_per_s() / kCoarse % (kLargestFieldValue + 1) * kCoarse);
}

Result<BitRate> plan_class_rate(std::string_view driver, BitRate wanted) {
    if (driver == "mlx5_core") {
        return mlx5_class_rate(wanted);
    }
    if (wanted.bits_per_s() < kKilo) {
        return fail(ErrorKind::kInput, "a class rate below 1 kbit/s would mean unlimited");
    }
    return BitRate::bits_per_s(wanted.bits_per_s() / kKilo * kKilo);
}

Result<DcbState> read_dcb(NetlinkChannel& channel, std::string_view nic) {
    auto message = dcb_get_request(nic);
    Result<DcbState> state = fail(ErrorKind::kHarness, fmt::format("{}: no answer to the question for DCB", nic));
    const auto asked = channel.query(message, fmt::format("read the DCB state of {}", nic),
                                     [&](const nlmsghdr& record) { state = parse_dcb_state(record); });
    if (!asked) {
        return fail(name_missing(asked.error(), nic, kMechanism));
    }
    return state;
}

Result<void> write_class_rates(NetlinkChannel& channel, std::string_view nic, const ClassRates& rates) {
    auto message = dcb_set_request(nic, rates);
    if (!message) {
        return fail(std::move(message.error()));
    }
    Result<int> status = fail(ErrorKind::kHarness, fmt::format("{}: no answer to the new class rates", nic));
    const auto sent = channel.query(*message, fmt::format("set the class rates of {}", nic),
                                    [&](const nlmsghdr& record) { status = parse_dcb_set_status(record); });
    if (!sent) {
        return fail(name_missing(sent.error(), nic, kMechanism));
    }
    if (!status) {
        return fail(std::move(status.error()));
    }
    if (*status != 0) {
        auto refused =
            fail_errno(ErrorKind::kHarness, fmt::format("set the class rates of {} in its driver", nic), *status);
        return fail(name_missing(refused.value(), nic, kMechanism));
    }
    return {};
}

Result<void> check_class_rates(std::string_view nic, const ClassRates& written, const ClassRates& read) {
    if (written == read) {
        return {};
    }
    const auto wrapped = [&] {
        for (std::size_t i = 0; i < kTrafficClasses; ++i) {
            if (written[i].bits_per_s() > kLargestFieldValue * kCoarse && read[i] == mlx5_wrapped_rate(written[i])) {
                return true;
            }
        }
        return false;
    };
    return fail(Error(ErrorKind::kHarness, fmt::format("{}: class rates read back differ from those written", nic))
                    .with("written", to_line(written))
                    .with("read", to_line(read))
                    .advise(wrapped() ? "this kernel's mlx5 driver wraps rates above 255 Gbit/s; ask for less" : ""));
}

Result<void> check_dcb_usable(std::string_view nic, const DcbState& state) {
    if (!state.max_rates) {
        return fail(Error(ErrorKind::kRefused, fmt::format("{}: the driver has no {}", nic, kMechanism)));
    }
    if (!host_owns_dcb(state)) {
        return fail(Error(ErrorKind::kRefused, fmt::format("{}: a DCBX agent owns the port's DCB settings", nic))
                        .with("dcbx", fmt::format("0x{:02x}", *state.dcbx))
                        .advise("give DCBX to the host first; the agent would overwrite the limit"));
    }
    return {};
}

Result<void> set_class_rates(NetlinkChannel& channel, std::string_view nic, const ClassRates& wanted) {
    const auto state = read_dcb(channel, nic);
    if (!state) {
        return fail(Error(state.error()));
    }
    auto done = check_dcb_usable(nic, *state);
    if (done) {
        done = write_class_rates(channel, nic, wanted);
    }
    return done ? check_rates(channel, nic, wanted) : done;
}

Result<void> restore_class_rates(NetlinkChannel& channel, std::string_view nic, const ClassRates& former) {
    auto written = write_class_rates(channel, nic, former);
    if (written) {
        written = check_rates(channel, nic, former);
    }
    return written ? written : fail(as_teardown(written.error()));
}

} // namespace railbreak::injectors::hardware
