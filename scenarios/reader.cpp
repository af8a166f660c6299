#include "scenarios/reader.hpp"

#include <fmt/format.h>

#include "scenarios/algorithm_reader.hpp"
#include "scenarios/expectation_reader.hpp"
#include "scenarios/fault_reader.hpp"
#include "scenarios/limits.hpp"
#include "scenarios/map_reader.hpp"

namespace railbreak::scenarios {

namespace {

constexpr std::array kDtypes{Dtype::kFloat32, Dtype::kFloat64, Dtype::kInt32, Dtype::kBfloat16, Dtype::kFloat16};

class ScenarioReader : private MapReader {
public:
    ScenarioReader(const KnownAlgorithms& known, DiagnosticSink& sink, FieldReader& fields)
        : MapReader(sink, fields), known_(known) {}

    Scenario read(const Field& root) {
        Scenario scenario;
        scenario.lease = kDefaultLease;
        if (!fields_.check_map(root, format_section("")) || !read_version(root)) {
            return scenario;
        }
        read_name(root, scenario.name);
        read_description(root, scenario.description);
        with(root, "cluster", [&](const Field& field) { read_cluster(field, scenario.cluster); });
        with(root, "workload", [&](const Field& field) { read_workload(field, scenario.workload); });
        with(root, "lease",
             [&](const Field& field) { store(fields_.duration(field, kMinLease, kMaxLease), scenario.lease); });
        with(root, "faults", [&](const Field& field) {
            for (const Field& element : fields_.list(field, 0, kMaxFaults)) {
                read_fault(sink_, fields_, scenario.cluster, element, scenario.faults.emplace_back());
            }
        });
        with(root, "expect", [&](const Field& field) {
            std::int32_t place = 0;
            for (const Field& element : fields_.list(field, 0, kMaxExpectations)) {
                read_expectation(sink_, fields_, element, place++, scenario.expectations);
            }
        });
        return scenario;
    }

private:
    void read_cluster(const Field& map, ClusterSpec& cluster) {
        if (!fields_.check_map(map, format_section("cluster"))) {
            return;
        }
        read_integer(map, "hosts", kMinHosts, kMaxHosts, cluster.hosts);
        read_integer(map, "ranks_per_host", 1, kMaxRanksPerHost, cluster.ranks_per_host);
        read_integer(map, "nics_per_host", 1, kMaxNicsPerHost, cluster.nics_per_host);
        with(map, "rate", [&](const Field& field) { store(fields_.rate(field, kMinRate, kMaxRate), cluster.rate); });
        with(map, "local_rate",
             [&](const Field& field) { store(fields_.rate(field, kMinRate, kMaxRate), cluster.local_rate); });
        cluster.mtu_bytes = kDefaultMtuBytes;
        with(map, "mtu", [&](const Field& field) {
            if (const auto mtu = fields_.byte_count(field, kMinMtu, kMaxMtu)) {
                cluster.mtu_bytes = static_cast<std::int32_t>(mtu->bytes());
            }
        });
    }

    void read_workload(const Field& map, WorkloadSpec& workload) {
        if (!fields_.check_map(map, format_section("workload"))) {
            return;
        }
        with(map, "collective", [&](const Field& field) {
            constexpr std::array<std::string_view, 1> kCollectives{"allreduce"};
            static_cast<void>(fields_.choice(field, kCollectives));
        });
        with(map, "bytes", [&](const Field& field) {
            store(fields_.byte_count(field, ByteCount::bytes(1), kMaxVector), workload.bytes);
        });
        with(map, "dtype", [&](const Field& field) { store_choice(field, kDtypes, workload.dtype); });
        with(map, "algorithms",
             [&](const Field& field) { read_algorithms(fields_, known_, field, workload.algorithms); });
        with(map, "iterations", [&](const Field& field) { read_iterations(field, workload.iterations); });
        workload.iteration_timeout = kDefaultIterationTimeout;
        with(map, "iteration_timeout", [&](const Field& field) {
            store(fields_.duration(field, kMinIterationTimeout, kMaxIterationTimeout), workload.iteration_timeout);
        });
    }

    void read_iterations(const Field& map, IterationCounts& counts) {
        if (fields_.check_map(map, format_section("workload.iterations"))) {
            read_integer(map, "warmup", 0, kMaxIterations, counts.warmup);
            read_integer(map, "steady", 0, kMaxIterations, counts.steady);
            read_integer(map, "degraded", 0, kMaxIterations, counts.degraded);
            read_integer(map, "recovered", 0, kMaxIterations, counts.recovered);
        }
    }

    const KnownAlgorithms& known_;
};

} // namespace

Scenario read_scenario(const YamlNode& root, const KnownAlgorithms& known, DiagnosticSink& sink, Origins& origins) {
    FieldReader fields(sink, origins);
    return ScenarioReader(known, sink, fields).read({&root, ""});
}

} // namespace railbreak::scenarios
