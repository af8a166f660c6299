#include "scenarios/reader.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "scenarios/algorithm_reader.hpp"
#include "scenarios/limits.hpp"

namespace railbreak::scenarios {

namespace {

/// The words of an enumeration, in the order of its values.
template <class Enum, std::size_t N> std::vector<std::string_view> words_of(const std::array<Enum, N>& values) {
    std::vector<std::string_view> words;
    for (const Enum value : values) {
        words.push_back(to_string(value));
    }
    return words;
}

constexpr std::array kDtypes{Dtype::kFloat32, Dtype::kFloat64, Dtype::kInt32, Dtype::kBfloat16, Dtype::kFloat16};

class ScenarioReader {
public:
    ScenarioReader(const KnownAlgorithms& known, DiagnosticSink& sink, Origins& origins)
        : known_(known), sink_(sink), fields_(sink, origins) {}

    Scenario read(const Field& root) {
        Scenario scenario;
        scenario.lease = kDefaultLease;
        if (!fields_.check_map(root, format_section("")) || !read_version(root)) {
            return scenario;
        }
        read_name(root, scenario.name);
        read_description(root, scenario);
        with(root, "cluster", [&](const Field& field) { read_cluster(field, scenario.cluster); });
        with(root, "workload", [&](const Field& field) { read_workload(field, scenario.workload); });
        with(root, "lease",
             [&](const Field& field) { store(fields_.duration(field, kMinLease, kMaxLease), scenario.lease); });
        with(root, "faults", [&](const Field& field) {
            for (const Field& element : fields_.list(field, 0, kMaxFaults)) {
                read_fault(element, scenario.faults.emplace_back());
            }
        });
        with(root, "expect", [&](const Field& field) {
            for (const Field& element : fields_.list(field, 0, kMaxExpectations)) {
                read_expectation(element, scenario.expectations.emplace_back());
            }
        });
        return scenario;
    }

private:
    template <class Use> void with(const Field& map, std::string_view key, Use use) {
        if (const std::optional<Field> field = fields_.find(map, key); field && !sink_.full()) {
            use(*field);
        }
    }

    template <class From, class To> static void store(const std::optional<From>& from, To& to) {
        if (from) {
            to = static_cast<To>(*from);
        }
    }

    template <class Enum, std::size_t N>
    void store_choice(const Field& field, const std::array<Enum, N>& values, Enum& to) {
        if (const auto index = fields_.choice(field, words_of(values))) {
            to = values[*index];
        }
    }

    template <class Integer>
    void read_integer(const Field& map, std::string_view key, std::int64_t min, std::int64_t max, Integer& to) {
        with(map, key, [&](const Field& field) { store(fields_.integer(field, min, max), to); });
    }

    /// A file of another version is not read further: its errors would only mislead.
    bool read_version(const Field& root) {
        bool supported = true;
        with(root, "railbreak", [&](const Field& field) {
            const auto text = fields_.text(field);
            supported = text == "1";
            if (text && !supported) {
                fields_.complain(field, fmt::format("format version {} is not supported", quote(*text)),
                                 "this build reads version 1: write \"railbreak: 1\"");
            }
        });
        return supported;
    }

    void read_name(const Field& map, std::string& to) {
        with(map, "name", [&](const Field& field) {
            const auto text = fields_.text(field);
            if (!text) {
                return;
            }
            if (text->empty() || text->size() > kMaxNameLength ||
                text->find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != std::string::npos) {
                fields_.complain(field, fmt::format("{} is not a name", quote(*text)),
                                 fmt::format("allowed: 1 to {} of the characters a-z, 0-9 and -", kMaxNameLength));
                return;
            }
            to = *text;
        });
    }

    void read_description(const Field& root, Scenario& scenario) {
        with(root, "description", [&](const Field& field) {
            const auto text = fields_.text(field);
            if (text && text->size() > kMaxDescriptionLength) {
                fields_.complain(field, fmt::format("has {} bytes", text->size()),
                                 fmt::format("allowed: at most {}", kMaxDescriptionLength));
            }
            store(text, scenario.description);
        });
    }

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

    void read_target(const Field& map, TargetSpec& target) {
        if (!fields_.check_map(map, format_section("faults[].target"))) {
            return;
        }
        with(map, "host", [&](const Field& field) {
            const YamlNode& node = *field.node;
            if (node.kind == YamlNode::Kind::kScalar && !node.text.empty() &&
                node.text.find_first_not_of("-0123456789") != std::string::npos) {
                const auto word = fields_.text(field);
                if (word && *word != "random") {
                    fields_.complain(field, fmt::format("{} is not a host", quote(*word)),
                                     "allowed: a host number from 0, or random (chosen from the seed)");
                }
                target.host.reset();
            } else {
                target.host = 0;
                store(fields_.integer(field, 0, kMaxHosts - 1), *target.host);
            }
        });
        read_integer(map, "nic", 0, kMaxNicsPerHost - 1, target.nic);
    }

    void read_fault(const Field& map, FaultSpec& fault) {
        if (!fields_.check_map(map, format_section("faults[]"))) {
            return;
        }
        read_name(map, fault.name);
        with(map, "kind", [&](const Field& field) { store_choice(field, kFaultKinds, fault.kind); });
        with(map, "target", [&](const Field& field) { read_target(field, fault.target); });
        with(map, "direction", [&](const Field& field) { store_choice(field, kDirections, fault.direction); });
        with(map, "rate", [&](const Field& field) { fault.rate = fields_.rate(field, kMinRate, kMaxRate); });
        with(map, "fraction", [&](const Field& field) { fault.fraction = fields_.fraction(field); });
        with(map, "during", [&](const Field& field) {
            constexpr std::array<std::string_view, 1> kWords{"degraded"};
            static_cast<void>(fields_.choice(field, kWords));
        });
        with(map, "at", [&](const Field& field) {
            if (fields_.check_map(field, format_section("faults[].at"))) {
                fault.at_iteration = 1;
                read_integer(field, "iteration", 1, kMaxIterations, *fault.at_iteration);
                with(field, "offset", [&](const Field& offset) {
                    store(fields_.duration(offset, Nanoseconds(0), kMaxIterationTimeout), fault.offset);
                });
            }
        });
        with(map, "for", [&](const Field& field) {
            fault.duration = fields_.duration(field, Nanoseconds(1), kMaxIterationTimeout);
        });
    }

    void read_expectation(const Field& map, Expectation& expectation) {
        if (!fields_.check_map(map, format_section("expect[]"))) {
            return;
        }
        with(map, "algorithm", [&](const Field& field) { expectation.algorithm = fields_.text(field); });
        with(map, "phase", [&](const Field& field) { store_choice(field, kPhases, expectation.phase); });
        with(map, "metric", [&](const Field& field) { store_choice(field, kMetrics, expectation.metric); });
        with(map, "min", [&](const Field& field) { expectation.min = fields_.limit(field); });
        with(map, "max", [&](const Field& field) { expectation.max = fields_.limit(field); });
    }

    const KnownAlgorithms& known_;
    DiagnosticSink& sink_;
    FieldReader fields_;
};

} // namespace

Scenario read_scenario(const YamlNode& root, const KnownAlgorithms& known, DiagnosticSink& sink, Origins& origins) {
    return ScenarioReader(known, sink, origins).read({&root, ""});
}

} // namespace railbreak::scenarios
