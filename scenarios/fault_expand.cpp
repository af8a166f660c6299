#include "scenarios/fault_expand.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "scenarios/fields.hpp"
#include "scenarios/plan.hpp"

namespace railbreak::scenarios {

namespace {

PlannedFault planned(const FaultSpec& fault, std::int32_t host, BitRate line_rate) {
    PlannedFault result;
    result.name = fault.name;
    result.kind = fault.kind;
    result.host = host;
    result.nic = fault.target.nic;
    result.direction = fault.direction;
    if (fault.rate) {
        result.rate = *fault.rate;
    } else if (fault.fraction) {
        result.rate = fraction_of(line_rate, *fault.fraction);
    }
    result.at_iteration = fault.at_iteration;
    result.offset = fault.offset;
    result.duration = fault.duration;
    result.rank = fault.target.rank;
    result.strength = fault.strength;
    std::sort(result.strength.peers.begin(), result.strength.peers.end());
    return result;
}

void append(PlannedFault fault, std::vector<PlannedFault>& faults) {
    fault.id = static_cast<std::int32_t>(faults.size());
    faults.push_back(std::move(fault));
}

} // namespace

bool is_random(const FaultSpec& fault) {
    return target_kind(fault.kind) != TargetKind::kRecorder && !fault.target.host;
}

std::set<std::int32_t> named_hosts(const Scenario& scenario) {
    std::set<std::int32_t> named;
    for (const FaultSpec& fault : scenario.faults) {
        if (fault.target.host) {
            named.insert(*fault.target.host);
        }
        named.insert(fault.strength.peers.begin(), fault.strength.peers.end());
    }
    return named;
}

void append_planned(const FaultSpec& fault, std::int32_t host, BitRate line_rate, SplitMix64& random,
                    std::vector<PlannedFault>& faults) {
    PlannedFault one = planned(fault, host, line_rate);
    if (!fault.flap) {
        append(std::move(one), faults);
        return;
    }
    const FlapSpec& flap = *fault.flap;
    const auto most = static_cast<std::uint64_t>(part_of(flap.period, flap.jitter).count());
    one.kind = FaultKind::kLinkDown;
    one.duration = flap.down;
    for (std::int32_t i = 0; i < flap.count; ++i) {
        const std::uint64_t late = most > 0 ? random.below(most + 1) : 0;
        one.name = fmt::format("{}#{}", fault.name, i + 1);
        one.offset = fault.offset + i * flap.period + Nanoseconds(static_cast<std::int64_t>(late));
        append(one, faults);
    }
}

} // namespace railbreak::scenarios
