#include "injectors/hardware/ib_mad.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace railbreak::injectors::hardware {
namespace {

// A packet's header, byte offsets.
constexpr std::size_t kBaseVersion = 0;
constexpr std::size_t kClass = 1;
constexpr std::size_t kClassVersion = 2;
constexpr std::size_t kMethod = 3;
constexpr std::size_t kStatus = 4; // bit 15 is the direction
constexpr std::size_t kHopCount = 7;
constexpr std::size_t kTransaction = 12; // lower half of eight bytes
constexpr std::size_t kAttribute = 16;
constexpr std::size_t kModifier = 20;
constexpr std::size_t kKey = 24;
constexpr std::size_t kSourceLid = 32;
constexpr std::size_t kDestinationLid = 34;
constexpr std::size_t kData = 64;
constexpr std::size_t kPath = 128;

constexpr std::uint8_t kDirectedRoute = 0x81;
constexpr std::uint8_t kGet = 0x01;
constexpr std::uint8_t kSet = 0x02;
constexpr std::uint8_t kAnswer = 0x81;
constexpr std::uint16_t kPermissiveLid = 0xffff;
constexpr std::uint16_t kStatusBits = 0x7fff;

// PortInfo, byte offsets. Two fields of four bits share a byte: the first is the high half.
constexpr std::size_t kLid = 16;
constexpr std::size_t kSmLid = 18;
constexpr std::size_t kWidthEnabled = 29;
constexpr std::size_t kWidthSupported = 30;
constexpr std::size_t kWidthActive = 31;
constexpr std::size_t kSpeedSupportedState = 32;
constexpr std::size_t kPhysicalState = 33;
constexpr std::size_t kSpeedActiveEnabled = 35;
constexpr std::size_t kExtendedActiveSupported = 62;
constexpr std::size_t kExtendedEnabled = 63; // lower five bits
constexpr std::uint8_t kFiveBits = 0x1f;
constexpr std::size_t kNodeInfoLocalPort = 36;

template <class Bytes, class Value> void put(Bytes& bytes, std::size_t offset, Value value) {
    for (std::size_t i = sizeof value; i-- > 0; value = static_cast<Value>(value >> 4U >> 4U)) {
        bytes[offset + i] = static_cast<std::uint8_t>(value & 0xffU);
    }
}
template <class Value, class Bytes> Value get(const Bytes& bytes, std::size_t offset) {
    Value value = 0;
    for (std::size_t i = 0; i < sizeof value; ++i) {
        value = static_cast<Value>(static_cast<Value>(value << 8U) | bytes[offset + i]);
    }
    return value;
}
std::uint8_t high(std::uint8_t byte) {
    return static_cast<std::uint8_t>(byte >> 4U);
}
std::uint8_t low(std::uint8_t byte) {
    return static_cast<std::uint8_t>(byte & 0xfU);
}
void put_high(std::uint8_t& byte, std::uint8_t value) {
    byte = static_cast<std::uint8_t>((value << 4U) | low(byte));
}
void put_low(std::uint8_t& byte, std::uint8_t value) {
    byte = static_cast<std::uint8_t>((byte & 0xf0U) | low(value));
}

} // namespace

std::string_view to_string(IbPortState state) {
    switch (state) {
    case IbPortState::kNoChange: return "no_change";
    case IbPortState::kDown: return "down";
    case IbPortState::kInitialize: return "initialize";
    case IbPortState::kArmed: return "armed";
    case IbPortState::kActive: return "active";
    }
    return "?";
}

std::string_view to_string(IbPhysicalState state) {
    switch (state) {
    case IbPhysicalState::kNoChange: return "no_change";
    case IbPhysicalState::kSleep: return "sleep";
    case IbPhysicalState::kPolling: return "polling";
    case IbPhysicalState::kDisabled: return "disabled";
    case IbPhysicalState::kTraining: return "training";
    case IbPhysicalState::kLinkUp: return "link_up";
    case IbPhysicalState::kErrorRecovery: return "error_recovery";
    case IbPhysicalState::kPhyTest: return "phy_test";
    }
    return "?";
}

IbPortInfo decode_port_info(const SmpData& data) {
    IbPortInfo info;
    info.lid = get<std::uint16_t>(data, kLid);
    info.sm_lid = get<std::uint16_t>(data, kSmLid);
    info.state = static_cast<IbPortState>(low(data[kSpeedSupportedState]));
    info.physical_state = static_cast<IbPhysicalState>(high(data[kPhysicalState]));
    info.width_enabled = data[kWidthEnabled];
    info.width_supported = data[kWidthSupported];
    info.width_active = data[kWidthActive];
    info.speed_supported = high(data[kSpeedSupportedState]);
    info.speed_active = high(data[kSpeedActiveEnabled]);
    info.speed_enabled = low(data[kSpeedActiveEnabled]);
    info.extended_speed_active = high(data[kExtendedActiveSupported]);
    info.extended_speed_supported = low(data[kExtendedActiveSupported]);
    info.extended_speed_enabled = static_cast<std::uint8_t>(data[kExtendedEnabled] & kFiveBits);
    return info;
}

Result<SmpData> encode_port_change(const SmpData& read, const IbPortChange& change) {
    SmpData data = read;
    for (const std::size_t field : {kLid, kSmLid}) {
        if (get<std::uint16_t>(data, field) != 0) {
            continue;
        }
        if (!change.lid_when_none) {
            return fail(Error(ErrorKind::kRefused, "the port has no LID: no subnet manager has configured it")
                            .advise("a change would have to invent one, which the port keeps"));
        }
        put(data, field, *change.lid_when_none);
    }
    put_low(data[kSpeedSupportedState], static_cast<std::uint8_t>(change.state));
    put_high(data[kPhysicalState], static_cast<std::uint8_t>(change.physical_state));
    data[kWidthEnabled] = change.width_enabled.value_or(0);
    put_low(data[kSpeedActiveEnabled], change.speed_enabled.value_or(0));
    data[kExtendedEnabled] = static_cast<std::uint8_t>((data[kExtendedEnabled] & ~kFiveBits) |
                                                       (change.extended_speed_enabled.value_or(0) & kFiveBits));
    return data;
}

Result<SmpBytes> encode_smp(const SmpRequest& request) {
    if (request.route.size() > kLongestIbRoute) {
        return fail(Error(ErrorKind::kInput, "a directed route has at most 63 hops")
                        .with("hops", std::to_string(request.route.size())));
    }
    SmpBytes packet{};
    packet[kBaseVersion] = 1;
    packet[kClass] = kDirectedRoute;
    packet[kClassVersion] = 1;
    packet[kMethod] = request.set ? kSet : kGet;
    packet[kHopCount] = static_cast<std::uint8_t>(request.route.size());
    put(packet, kTransaction, request.transaction);
    put(packet, kAttribute, request.attribute);
    put(packet, kModifier, request.modifier);
    put(packet, kKey, request.management_key);
    put(packet, kSourceLid, kPermissiveLid);
    put(packet, kDestinationLid, kPermissiveLid);
    std::copy(request.data.begin(), request.data.end(), packet.begin() + kData);
    std::copy(request.route.begin(), request.route.end(), packet.begin() + kPath + 1);
    return packet;
}

std::uint32_t smp_transaction(const SmpBytes& packet) {
    return get<std::uint32_t>(packet, kTransaction);
}

Result<SmpData> decode_smp_answer(const SmpBytes& packet) {
    if (packet[kClass] != kDirectedRoute || packet[kMethod] != kAnswer) {
        return fail(ErrorKind::kHarness, "the packet is no answer of a management agent");
    }
    const auto status = static_cast<std::uint16_t>(get<std::uint16_t>(packet, kStatus) & kStatusBits);
    if (status != 0) {
        return fail(Error(ErrorKind::kHarness, "the port's management agent refused the request")
                        .with("mad_status", fmt::format("0x{:04x}", status)));
    }
    SmpData data{};
    std::copy_n(packet.begin() + kData, kSmpDataBytes, data.begin());
    return data;
}

std::uint8_t node_info_local_port(const SmpData& data) {
    return data[kNodeInfoLocalPort];
}

} // namespace railbreak::injectors::hardware
