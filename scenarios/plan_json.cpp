#include "scenarios/plan_json.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "scenarios/expectation_json.hpp"
#include "scenarios/fault_json.hpp"
#include "scenarios/json_fields.hpp"
#include "scenarios/limits.hpp"
#include "scenarios/plan.hpp"

namespace railbreak::scenarios {

namespace {

using nlohmann::json; // an object is a std::map: its keys are sorted

constexpr int kPlanVersion = 1;
constexpr std::size_t kMaxPlanBytes = 4U << 20U;

json to_json(const ClusterSpec& cluster) {
    json result{{"hosts", cluster.hosts},
                {"mtu_bytes", cluster.mtu_bytes},
                {"nics_per_host", cluster.nics_per_host},
                {"rate_bits_per_s", cluster.rate.bits_per_s()}};
    // What the format did not have from the start stands there only when it says something: old plans keep their hash.
    if (cluster.ranks_per_host > 1) {
        result["ranks_per_host"] = cluster.ranks_per_host;
    }
    if (cluster.local_rate.bits_per_s() > 0) {
        result["local_rate_bits_per_s"] = cluster.local_rate.bits_per_s();
    }
    return result;
}

json to_json(const AlgorithmSpec& algorithm) {
    if (algorithm.options.empty() && algorithm.label == algorithm.name) {
        return algorithm.name;
    }
    json options = json::array();
    for (const auto& [name, value] : algorithm.options) {
        options.push_back({name, value});
    }
    return {{"label", algorithm.label}, {"name", algorithm.name}, {"options", std::move(options)}};
}

json to_json(const WorkloadSpec& workload) {
    json algorithms = json::array();
    for (const AlgorithmSpec& algorithm : workload.algorithms) {
        algorithms.push_back(to_json(algorithm));
    }
    return {{"algorithms", std::move(algorithms)},
            {"collective", "allreduce"},
            {"dtype", to_string(workload.dtype)},
            {"iteration_timeout_ns", workload.iteration_timeout.count()},
            {"iterations",
             {{"degraded", workload.iterations.degraded},
              {"recovered", workload.iterations.recovered},
              {"steady", workload.iterations.steady},
              {"warmup", workload.iterations.warmup}}},
            {"vector_bytes", workload.bytes.bytes()}};
}

AlgorithmSpec algorithm_from(const json& value) {
    if (value.is_string()) {
        const auto name = value.get<std::string>();
        return {.name = name, .label = name};
    }
    return {.name = value.at("name").get<std::string>(),
            .options = value.at("options").get<std::vector<std::pair<std::string, std::string>>>(),
            .label = value.at("label").get<std::string>()};
}

ClusterSpec cluster_from(const json& object) {
    ClusterSpec cluster;
    cluster.hosts = small(object, "hosts", kMinHosts, kMaxHosts);
    cluster.nics_per_host = small(object, "nics_per_host", 1, kMaxNicsPerHost);
    cluster.mtu_bytes = small(object, "mtu_bytes", static_cast<std::int64_t>(kMinMtu.bytes()),
                              static_cast<std::int64_t>(kMaxMtu.bytes()));
    cluster.rate = rate(object, "rate_bits_per_s", kMaxRate);
    if (object.contains("ranks_per_host")) {
        cluster.ranks_per_host = small(object, "ranks_per_host", 1, kMaxRanksPerHost);
    }
    if (object.contains("local_rate_bits_per_s")) {
        cluster.local_rate = rate(object, "local_rate_bits_per_s", kMaxRate);
    }
    return cluster;
}

WorkloadSpec workload_from(const json& object) {
    constexpr std::array kDtypes{Dtype::kFloat32, Dtype::kFloat64, Dtype::kInt32, Dtype::kBfloat16, Dtype::kFloat16};
    WorkloadSpec result;
    for (const json& algorithm : object.at("algorithms")) {
        result.algorithms.push_back(algorithm_from(algorithm));
    }
    result.dtype = word(object, "dtype", kDtypes);
    result.iteration_timeout = Nanoseconds(
        integer(object, "iteration_timeout_ns", kMinIterationTimeout.count(), kMaxIterationTimeout.count()));
    result.bytes = ByteCount::bytes(
        static_cast<std::uint64_t>(integer(object, "vector_bytes", 1, static_cast<std::int64_t>(kMaxVector.bytes()))));
    const json& counts = object.at("iterations");
    result.iterations = {.warmup = small(counts, "warmup", 0, kMaxIterations),
                         .steady = small(counts, "steady", 0, kMaxIterations),
                         .degraded = small(counts, "degraded", 0, kMaxIterations),
                         .recovered = small(counts, "recovered", 0, kMaxIterations)};
    return result;
}

Plan plan_from(const json& object) {
    Plan plan;
    plan.scenario_name = object.at("scenario").get<std::string>();
    plan.cluster = cluster_from(object.at("cluster"));
    plan.workload = workload_from(object.at("workload"));
    for (const json& fault : object.at("faults")) {
        plan.faults.push_back(fault_from(fault, plan.cluster, static_cast<std::int32_t>(plan.faults.size())));
    }
    for (const json& expectation : object.at("expectations")) {
        plan.expectations.push_back(expectation_from(expectation));
    }
    plan.lease = Nanoseconds(integer(object, "lease_ns", kMinLease.count(), kMaxLease.count()));
    return plan;
}

} // namespace

std::string canonical_json(const Plan& plan) {
    json faults = json::array();
    for (const PlannedFault& fault : plan.faults) {
        faults.push_back(to_json(fault));
    }
    json expectations = json::array();
    for (const Expectation& expectation : plan.expectations) {
        expectations.push_back(to_json(expectation));
    }
    const json object{{"cluster", to_json(plan.cluster)},  {"expectations", std::move(expectations)},
                      {"faults", std::move(faults)},       {"lease_ns", plan.lease.count()},
                      {"plan_version", kPlanVersion},      {"scenario", plan.scenario_name},
                      {"workload", to_json(plan.workload)}};
    return object.dump();
}

std::string plan_hash(std::string_view canonical_json) {
    const XXH128_hash_t hash = XXH3_128bits(canonical_json.data(), canonical_json.size());
    return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

Result<Plan> plan_from_json(std::string_view text, std::uint64_t seed) {
    const auto bad = [](std::string_view why) {
        return fail(Error(ErrorKind::kInput, fmt::format("not a plan of this build: {}", why))
                        .advise("a plan is the canonical JSON that railbreak stores with each run"));
    };
    if (text.size() > kMaxPlanBytes) {
        return bad(fmt::format("larger than {} bytes", kMaxPlanBytes));
    }
    try {
        Plan plan = plan_from(json::parse(text));
        plan.canonical_json = canonical_json(plan);
        if (plan.canonical_json != text) {
            return bad("its bytes are not the canonical ones of what it says");
        }
        plan.seed = seed;
        plan.hash = plan_hash(plan.canonical_json);
        return plan;
    } catch (const std::exception& error) { // nlohmann's errors, and those thrown above
        return bad(error.what());
    }
}

} // namespace railbreak::scenarios
