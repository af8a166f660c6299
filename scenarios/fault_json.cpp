#include "scenarios/fault_json.hpp"

#include "scenarios/json_fields.hpp"
#include "scenarios/limits.hpp"

namespace railbreak::scenarios {

using nlohmann::json;

namespace {

json to_json(const LossBursts& bursts) {
    return {{"bad_to_good_millionths", bursts.bad_to_good},
            {"good_to_bad_millionths", bursts.good_to_bad},
            {"loss_in_bad_millionths", bursts.loss_in_bad},
            {"loss_in_good_millionths", bursts.loss_in_good}};
}

Millionths millionths(const json& object, const char* key, std::int64_t min = 0) {
    return static_cast<Millionths>(integer(object, key, min, kMillion));
}

Nanoseconds nanoseconds(const json& object, const char* key, Nanoseconds max) {
    return Nanoseconds(integer(object, key, 0, max.count()));
}

std::optional<Mechanism> unusual(Mechanism mechanism, Mechanism usual) {
    return mechanism == usual ? std::nullopt : std::optional(mechanism);
}

LossBursts bursts_from(const json& object) {
    return {.good_to_bad = millionths(object, "good_to_bad_millionths"),
            .bad_to_good = millionths(object, "bad_to_good_millionths"),
            .loss_in_bad = millionths(object, "loss_in_bad_millionths"),
            .loss_in_good = millionths(object, "loss_in_good_millionths")};
}

std::vector<std::int32_t> peers_from(const json& object, const ClusterSpec& cluster) {
    auto peers = object.at("peers").get<std::vector<std::int32_t>>();
    for (const std::int32_t peer : peers) {
        if (peer < 0 || peer >= cluster.hosts) {
            throw std::out_of_range("\"peers\" names a host that is not there");
        }
    }
    return peers;
}

FaultStrength strength_from(const json& object, FaultKind kind, const ClusterSpec& cluster) {
    FaultStrength result;
    switch (kind) {
    case FaultKind::kDelay:
        result.delay = nanoseconds(object, "delay_ns", kMaxDelay);
        result.jitter = nanoseconds(object, "jitter_ns", kMaxDelay);
        break;
    case FaultKind::kLoss:
        if (object.contains("bursts")) {
            result.bursts = bursts_from(object.at("bursts"));
            break;
        }
        result.probability = millionths(object, "probability_millionths");
        break;
    case FaultKind::kReorder: result.delay = nanoseconds(object, "delay_ns", kMaxDelay); [[fallthrough]];
    case FaultKind::kCorrupt:
    case FaultKind::kDuplicate: result.probability = millionths(object, "probability_millionths"); break;
    case FaultKind::kPartition: result.peers = peers_from(object, cluster); break;
    case FaultKind::kMtu:
        result.mtu_bytes = small(object, "mtu_bytes", static_cast<std::int64_t>(kMinMtu.bytes()), cluster.mtu_bytes);
        break;
    case FaultKind::kReroute: result.via_nic = small(object, "via_nic", 0, cluster.nics_per_host - 1); break;
    case FaultKind::kCpu: result.cpu = millionths(object, "cpu_millionths", kMinCpu); break;
    case FaultKind::kLate: result.late = nanoseconds(object, "late_ns", kMaxIterationTimeout); break;
    case FaultKind::kDiskFull:
        result.leave = ByteCount::bytes(static_cast<std::uint64_t>(
            integer(object, "leave_bytes", 0, static_cast<std::int64_t>(kMaxVector.bytes()))));
        break;
    case FaultKind::kCap:
        if (object.contains("mechanism")) {
            result.mechanism = unusual(word(object, "mechanism", kCapMechanisms), kCapMechanisms.front());
        }
        break;
    case FaultKind::kLinkDown:
        if (object.contains("mechanism")) {
            result.mechanism = unusual(word(object, "mechanism", kLinkDownMechanisms), kLinkDownMechanisms.front());
        }
        break;
    case FaultKind::kFlap:
    case FaultKind::kBlackhole:
    case FaultKind::kPause:
    case FaultKind::kKill: break;
    }
    return result;
}

} // namespace

json strength_to_json(const PlannedFault& fault) {
    const FaultStrength& strength = fault.strength;
    switch (fault.kind) {
    case FaultKind::kDelay: return {{"delay_ns", strength.delay.count()}, {"jitter_ns", strength.jitter.count()}};
    case FaultKind::kLoss:
        return strength.bursts ? json{{"bursts", to_json(*strength.bursts)}}
                               : json{{"probability_millionths", strength.probability}};
    case FaultKind::kCorrupt:
    case FaultKind::kDuplicate: return {{"probability_millionths", strength.probability}};
    case FaultKind::kReorder:
        return {{"delay_ns", strength.delay.count()}, {"probability_millionths", strength.probability}};
    case FaultKind::kPartition: return {{"peers", strength.peers}};
    case FaultKind::kMtu: return {{"mtu_bytes", strength.mtu_bytes}};
    case FaultKind::kReroute: return {{"via_nic", strength.via_nic}};
    case FaultKind::kCpu: return {{"cpu_millionths", strength.cpu}};
    case FaultKind::kLate: return {{"late_ns", strength.late.count()}};
    case FaultKind::kDiskFull: return {{"leave_bytes", strength.leave.bytes()}};
    case FaultKind::kCap:
    case FaultKind::kLinkDown: // the usual mechanism is not written: plans of before keep their hashes
        return strength.mechanism ? json{{"mechanism", to_string(*strength.mechanism)}} : json::object();
    case FaultKind::kFlap:
    case FaultKind::kBlackhole:
    case FaultKind::kPause:
    case FaultKind::kKill: return json::object();
    }
    return json::object();
}

json to_json(const PlannedFault& fault) {
    json result = strength_to_json(fault);
    result["host"] = fault.host;
    result["id"] = fault.id;
    result["kind"] = to_string(fault.kind);
    result["name"] = fault.name;
    switch (target_kind(fault.kind)) {
    case TargetKind::kNic: result["nic"] = fault.nic; break;
    case TargetKind::kRank: result["rank"] = fault.rank; break;
    case TargetKind::kRecorder: break;
    }
    if (has_direction(fault.kind)) {
        result["direction"] = to_string(fault.direction);
    }
    if (fault.kind == FaultKind::kCap) {
        result["rate_bits_per_s"] = fault.rate.bits_per_s();
    }
    if (fault.at_iteration) {
        result["at_iteration"] = *fault.at_iteration;
        result["offset_ns"] = fault.offset.count();
    }
    if (fault.duration) {
        result["duration_ns"] = fault.duration->count();
    }
    return result;
}

PlannedFault fault_from(const json& object, const ClusterSpec& cluster, std::int32_t id) {
    PlannedFault result;
    result.id = small(object, "id", id, id);
    result.name = object.at("name").get<std::string>();
    result.kind = word(object, "kind", kFaultKinds);
    if (result.kind == FaultKind::kFlap) {
        throw std::out_of_range("a plan holds each time that a flapping link goes down as a link_down");
    }
    result.host = small(object, "host", 0, cluster.hosts - 1);
    switch (target_kind(result.kind)) {
    case TargetKind::kNic: result.nic = small(object, "nic", 0, cluster.nics_per_host - 1); break;
    case TargetKind::kRank: result.rank = small(object, "rank", 0, cluster.ranks_per_host - 1); break;
    case TargetKind::kRecorder: break;
    }
    if (has_direction(result.kind)) {
        result.direction = word(object, "direction", kDirections);
    }
    if (result.kind == FaultKind::kCap) {
        result.rate = rate(object, "rate_bits_per_s", cluster.rate);
    }
    result.strength = strength_from(object, result.kind, cluster);
    if (object.contains("at_iteration")) {
        result.at_iteration = small(object, "at_iteration", 1, kMaxIterations);
        result.offset = Nanoseconds(integer(object, "offset_ns", 0, 2 * kMaxIterationTimeout.count()));
    }
    if (object.contains("duration_ns")) {
        result.duration = Nanoseconds(integer(object, "duration_ns", 1, kMaxIterationTimeout.count()));
    }
    return result;
}

} // namespace railbreak::scenarios
