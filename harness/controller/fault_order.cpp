#include "harness/controller/fault_order.hpp"

#include <fmt/format.h>

#include "scenarios/fault_json.hpp"

namespace railbreak::controller {

using launch::Json;
using scenarios::FaultKind;
using scenarios::PlannedFault;
using scenarios::TargetKind;

std::int32_t global_rank(const PlannedFault& fault, const scenarios::ClusterSpec& cluster) {
    return fault.host * cluster.ranks_per_host + fault.rank;
}

Json fault_order(const PlannedFault& fault, const AddressOf& address_of, const std::filesystem::path& folder) {
    Json order = scenarios::strength_to_json(fault);
    order["id"] = fault.id;
    order["kind"] = std::string(to_string(fault.kind));
    switch (target_kind(fault.kind)) {
    case TargetKind::kNic: order["nic"] = fmt::format("rail{}", fault.nic); break;
    case TargetKind::kRank: order["local_rank"] = fault.rank; break;
    case TargetKind::kRecorder: order["folder"] = std::filesystem::absolute(folder).string(); break;
    }
    if (has_direction(fault.kind)) {
        order["direction"] = std::string(to_string(fault.direction));
    }
    if (fault.kind == FaultKind::kCap) {
        order["rate_bits_per_s"] = fault.rate.bits_per_s();
    }
    if (fault.kind == FaultKind::kReroute) {
        order["via_nic"] = fmt::format("rail{}", fault.strength.via_nic);
    }
    if (fault.kind == FaultKind::kPartition) {
        Json addresses = Json::array(); // of the same rail: NICs of other rails are not reached from this one
        for (const std::int32_t peer : fault.strength.peers) {
            addresses.push_back(address_of(peer, fault.nic));
        }
        order["peer_addresses"] = std::move(addresses);
    }
    return order;
}

record::InjectionRow injection_row(const PlannedFault& fault, const scenarios::ClusterSpec& cluster) {
    record::InjectionRow row;
    row.fault = fault.id;
    row.name = fault.name;
    row.kind = to_string(fault.kind);
    row.host = fault.host;
    row.nic = target_kind(fault.kind) == TargetKind::kNic ? fault.nic : -1;
    row.rank = target_kind(fault.kind) == TargetKind::kRank ? global_rank(fault, cluster) : -1;
    row.direction = has_direction(fault.kind) ? to_string(fault.direction) : "";
    row.wanted_rate_bits_per_s = fault.kind == FaultKind::kCap ? static_cast<std::int64_t>(fault.rate.bits_per_s()) : 0;
    row.params_json = scenarios::strength_to_json(fault).dump();
    return row;
}

void note_lateness(record::InjectionRow& row, const PlannedFault& fault, const RankOutcome& rank,
                   Nanoseconds lateness) {
    Json seen = Json::parse(row.observation_json, nullptr, false);
    if (!seen.is_object()) {
        seen = Json::object();
    }
    const std::int64_t iterations = seen.value("iterations", std::int64_t{0});
    const std::int64_t least = seen.value("least_late_ns", lateness.count());
    seen["iterations"] = iterations + 1;
    seen["least_late_ns"] = std::min(least, lateness.count());
    row.observation_json = seen.dump();
    row.mechanism = "the rank waits on a timer before it begins";
    row.realism = "process";
    row.data_path = "every path of the rank";
    if (iterations == 0) {
        row.applied_at = rank.called_at.count();
    }
    // The first rank may have been told later than this one, by as much as it takes to tell all of them.
    const bool all_late = Nanoseconds(seen.value("least_late_ns", std::int64_t{0})) >= fault.strength.late / 2;
    row.observed_at = !all_late ? 0 : row.observed_at != 0 ? row.observed_at : rank.started_at.count();
    row.reverted_at = row.restored_at = rank.started_at.count();
    row.error = all_late ? "" : fmt::format("the rank began only {} later than the first", to_string(lateness));
}

} // namespace railbreak::controller
