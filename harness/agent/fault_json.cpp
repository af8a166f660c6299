#include "harness/agent/fault_json.hpp"

#include <array>
#include <optional>

#include <fmt/format.h>

namespace railbreak::agent {

using injectors::Direction;
using injectors::FaultKind;
using injectors::FaultRequest;
using injectors::GilbertElliott;
using injectors::PacketTreatment;
using injectors::TargetKind;
using launch::field;
using launch::Json;

namespace {

/// The enumerator whose to_string() is `word`.
template <class Enum, std::size_t N>
std::optional<Enum> parse_enum(const std::array<Enum, N>& values, std::string_view word) {
    for (const Enum value : values) {
        if (to_string(value) == word) {
            return value;
        }
    }
    return std::nullopt;
}

/// Reads members into the request; remembers the first that is missing.
class OrderMembers {
public:
    explicit OrderMembers(const Json& json) : json_(json) {}

    template <class T, class To> void take(const char* key, To& to) {
        Result<T> value = field<T>(json_, key);
        if (value) {
            to = To(std::move(*value));
        } else if (!error_) {
            error_ = std::move(value.error());
        }
    }
    void take_rate(const char* key, BitRate& to) {
        std::uint64_t bits = 0;
        take<std::uint64_t>(key, bits);
        to = BitRate::bits_per_s(bits);
    }
    void take_direction(Direction& to) {
        std::string word;
        take<std::string>("direction", word);
        const auto direction = parse_enum(injectors::kDirections, word);
        if (direction) {
            to = *direction;
        } else if (!error_) {
            error_ = Error(ErrorKind::kHarness, fmt::format("\"{}\" is no direction", word));
        }
    }
    void note(const std::optional<Error>& error) { error_ = error_ ? error_ : error; }
    [[nodiscard]] const std::optional<Error>& error() const { return error_; }

private:
    const Json& json_;
    std::optional<Error> error_;
};

GilbertElliott bursts_from(OrderMembers& order) {
    GilbertElliott bursts;
    Json object = Json::object();
    order.take<Json>("bursts", object);
    OrderMembers members(object);
    members.take<std::uint32_t>("good_to_bad_millionths", bursts.good_to_bad);
    members.take<std::uint32_t>("bad_to_good_millionths", bursts.bad_to_good);
    members.take<std::uint32_t>("loss_in_bad_millionths", bursts.loss_in_bad);
    members.take<std::uint32_t>("loss_in_good_millionths", bursts.loss_in_good);
    order.note(members.error());
    return bursts;
}

void take_packets(OrderMembers& order, const Json& json, FaultRequest& request) {
    PacketTreatment& packets = request.packets;
    order.take_direction(request.direction);
    if (request.kind == FaultKind::kDelay || request.kind == FaultKind::kReorder) {
        order.take<std::int64_t>("delay_ns", packets.delay);
    }
    if (request.kind == FaultKind::kDelay) {
        order.take<std::int64_t>("jitter_ns", packets.jitter);
        return;
    }
    if (json.contains("bursts")) {
        packets.bursts = bursts_from(order);
        return;
    }
    std::uint32_t probability = 0;
    order.take<std::uint32_t>("probability_millionths", probability);
    packets.loss = request.kind == FaultKind::kLoss ? probability : 0;
    packets.corrupt = request.kind == FaultKind::kCorrupt ? probability : 0;
    packets.duplicate = request.kind == FaultKind::kDuplicate ? probability : 0;
    packets.reorder = request.kind == FaultKind::kReorder ? probability : 0;
}

void take_kind(OrderMembers& order, const Json& json, FaultRequest& request) {
    std::uint64_t bytes = 0;
    switch (request.kind) {
    case FaultKind::kCap:
        order.take_direction(request.direction);
        order.take_rate("rate_bits_per_s", request.rate);
        break;
    case FaultKind::kDelay:
    case FaultKind::kLoss:
    case FaultKind::kCorrupt:
    case FaultKind::kDuplicate:
    case FaultKind::kReorder: take_packets(order, json, request); break;
    case FaultKind::kBlackhole: order.take_direction(request.direction); break;
    case FaultKind::kPartition:
        order.take_direction(request.direction);
        order.take<std::vector<std::string>>("peer_addresses", request.peers);
        break;
    case FaultKind::kClassRate:
    case FaultKind::kVfRate:
    case FaultKind::kDevlinkRate:
    case FaultKind::kIbRate:
    case FaultKind::kPcieSpeed:
    case FaultKind::kPortSpeed: order.take_rate("rate_bits_per_s", request.rate); break;
    case FaultKind::kMtu: order.take<std::uint32_t>("mtu_bytes", request.mtu_bytes); break;
    case FaultKind::kReroute: order.take<std::string>("via_nic", request.via_nic); break;
    case FaultKind::kCpu: order.take<std::uint32_t>("cpu_millionths", request.cpu); break;
    case FaultKind::kDiskFull:
        order.take<std::string>("folder", request.folder);
        order.take<std::uint64_t>("leave_bytes", bytes);
        request.leave = ByteCount::bytes(bytes);
        break;
    case FaultKind::kLinkDown:
    case FaultKind::kIbDown:
    case FaultKind::kPciRemove:
    case FaultKind::kPause:
    case FaultKind::kKill: break;
    }
}

} // namespace

Result<FaultRequest> fault_request_from_json(const Json& json) {
    OrderMembers order(json);
    FaultRequest request;
    std::string kind_name;
    order.take<std::int32_t>("id", request.id);
    order.take<std::string>("kind", kind_name);
    const auto kind = parse_enum(injectors::kFaultKinds, kind_name);
    if (!order.error() && !kind) {
        return fail(ErrorKind::kHarness, fmt::format("this agent knows no fault kind \"{}\"", kind_name));
    }
    if (kind) {
        request.kind = *kind;
        if (json.contains("mechanism")) {
            std::string mechanism;
            order.take<std::string>("mechanism", mechanism);
            const auto made = injectors::kind_made_by(*kind, mechanism);
            if (!order.error() && !made) {
                return fail(ErrorKind::kHarness,
                            fmt::format("this agent knows no {} by the mechanism \"{}\"", kind_name, mechanism));
            }
            request.kind = made.value_or(*kind);
        }
        switch (target_kind(*kind)) {
        case TargetKind::kNic: order.take<std::string>("nic", request.nic); break;
        case TargetKind::kProcess: order.take<std::int32_t>("pid", request.pid); break;
        case TargetKind::kFolder: break;
        }
        take_kind(order, json, request);
    }
    if (order.error()) {
        return fail(Error(*order.error()).during("reading a fault order"));
    }
    return request;
}

Json to_json(const injectors::FaultEvidence& evidence) {
    Json readback = Json::object();
    for (const auto& [name, value] : evidence.readback) {
        readback[name] = value;
    }
    return {{"id", evidence.id},
            {"applied_at", evidence.applied_at.count()},
            {"observed_at", evidence.observed_at.count()},
            {"reverted_at", evidence.reverted_at.count()},
            {"restored_at", evidence.restored_at.count()},
            {"mechanism", evidence.mechanism},
            {"realism", evidence.realism},
            {"data_path", evidence.data_path},
            {"observation", readback},
            {"error", evidence.error}};
}

} // namespace railbreak::agent
