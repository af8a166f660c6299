#include "scenarios/plan.hpp"

#include <algorithm>
#include <numeric>

#include "scenarios/fault_expand.hpp"
#include "scenarios/plan_json.hpp"
#include "scenarios/random.hpp"

namespace railbreak::scenarios {

namespace {

std::vector<std::int32_t> free_hosts(const Scenario& scenario) {
    std::vector<std::int32_t> hosts(static_cast<std::size_t>(scenario.cluster.hosts));
    std::iota(hosts.begin(), hosts.end(), 0);
    for (const std::int32_t host : named_hosts(scenario)) {
        std::erase(hosts, host);
    }
    return hosts;
}

} // namespace

BitRate fraction_of(BitRate rate, const Rational& fraction) {
    const boost::multiprecision::cpp_int bits = rate.bits_per_s() * numerator(fraction) / denominator(fraction);
    return BitRate::bits_per_s(static_cast<std::uint64_t>(bits));
}

Result<Plan> expand(const Scenario& scenario, std::uint64_t seed) {
    Plan plan;
    plan.scenario_name = scenario.name;
    plan.seed = seed;
    plan.cluster = scenario.cluster;
    plan.workload = scenario.workload;
    plan.expectations = scenario.expectations;
    plan.lease = scenario.lease;
    std::vector<std::int32_t> free = free_hosts(scenario);
    SplitMix64 random(seed);
    for (const FaultSpec& fault : scenario.faults) {
        std::int32_t host = fault.target.host.value_or(0);
        if (is_random(fault)) {
            if (free.empty()) {
                return fail(ErrorKind::kInput, "more random faults than hosts that no other fault names");
            }
            const auto chosen = free.begin() + static_cast<std::ptrdiff_t>(random.below(free.size()));
            host = *chosen;
            free.erase(chosen);
        }
        append_planned(fault, host, scenario.cluster.rate, random, plan.faults);
    }
    plan.canonical_json = canonical_json(plan);
    plan.hash = plan_hash(plan.canonical_json);
    return plan;
}

} // namespace railbreak::scenarios
