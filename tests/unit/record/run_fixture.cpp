#include "tests/unit/record/run_fixture.hpp"

#include <array>

#include <fmt/format.h>

namespace railbreak::record {

namespace {

constexpr std::int32_t kHosts = 8;
constexpr std::int32_t kSlowHost = 3;
constexpr std::int64_t kGoodput = 478'000'000; // payload bits per second of a 500 Mbit/s port
constexpr std::int64_t kBytes = 32LL << 20;
constexpr std::int64_t kStart = 5'000'000'000; // monotonic
constexpr std::string_view kDigest = "9e3779b97f4a7c15f39cc0605cedc834";

// time_over_n of a bound as nanoseconds at the healthy goodput.
std::int64_t time_ns(double time_over_n) {
    return static_cast<std::int64_t>(time_over_n * 8.0 * static_cast<double>(kBytes) / kGoodput * 1e9);
}

struct PhaseShape {
    std::string_view phase;
    std::int32_t iterations;
    double overhead; // over the fluid bound
};

RunRow make_run() {
    RunRow run;
    run.id = 1;
    run.run_id = "20260131T123456Z-half-rate-nic-3f9c";
    run.scenario_name = "half-rate-nic";
    run.scenario_text = "version: 1\nname: half-rate-nic\n";
    run.plan_json = R"({"scenario_name":"half-rate-nic","seed":7})";
    run.plan_hash = "0123456789abcdef0123456789abcdef";
    run.seed = 18'446'744'073'709'551'615ULL; // the largest there is
    run.backend = "lab";
    run.cluster = "lab on node7";
    run.version = "0.1.0 (abcdef0)";
    run.command_line = "railbreak run half-rate-nic.yaml";
    run.environment_json = R"({"compiler":"GNU 12.2.0","cpu":"Example CPU","kernel":"6.1.0"})";
    run.started_realtime_ns = 1'769'862'896'123'456'789;
    run.finished_realtime_ns = 1'769'862'938'000'000'000;
    run.hosts = kHosts;
    run.bytes = kBytes;
    run.dtype = "float32";
    run.rate_bits_per_s = 500'000'000;
    return run;
}

void add_cluster(RunData& data) {
    for (std::int32_t host = 0; host < kHosts; ++host) {
        data.hosts.push_back({1, host, fmt::format("h{}", host), "b00710d0-0000-4000-8000-000000000001",
                              fmt::format("{}", 4026532000 + host), 0, 1500});
        data.nics.push_back({1, host, 0, "rail0", fmt::format("02:00:00:00:00:{:02x}", host),
                             fmt::format("10.77.0.{}", host + 1), 500'000'000, kGoodput + host * 10'000,
                             kGoodput - host * 10'000});
        data.ranks.push_back({1, host, host, 4000 + host});
    }
}

void add_phase(RunData& data, std::string_view algorithm, const PhaseShape& shape, double exclusive, double fluid,
               std::int64_t& now) {
    for (std::int32_t i = 1; i <= shape.iterations; ++i) {
        IterationRow row;
        row.id = static_cast<std::int64_t>(data.iterations.size()) + 1;
        row.run = 1;
        row.algorithm = algorithm;
        row.phase = shape.phase;
        row.iteration = i;
        row.schedule = algorithm == "ring" ? "ring" : "optcc U";
        row.started_at = now;
        row.duration_ns =
            static_cast<std::int64_t>(static_cast<double>(time_ns(fluid)) * shape.overhead) + i * 1'000'000;
        row.expected_digest = kDigest;
        row.correct = true;
        for (std::int32_t rank = 0; rank < kHosts; ++rank) {
            data.rank_iterations.push_back({row.id, rank, row.started_at + rank,
                                            row.started_at + row.duration_ns - rank, 2 * (kHosts - 1) * kBytes / kHosts,
                                            2 * (kHosts - 1) * kBytes / kHosts, std::string(kDigest)});
        }
        now += row.duration_ns + 2'000'000;
        data.iterations.push_back(row);
    }
    if (shape.phase != "warmup") {
        const double slowdown = shape.phase == "degraded" ? 2.0 : 1.0;
        const std::string branch = shape.phase == "degraded" ? "spanning trees" : "port";
        data.bounds.push_back({1, std::string(algorithm), std::string(shape.phase), "Theorem 6", "exclusive", branch,
                               slowdown, exclusive, time_ns(exclusive)});
        data.bounds.push_back({1, std::string(algorithm), std::string(shape.phase), "fluid spanning tree", "fluid",
                               branch, slowdown, fluid, time_ns(fluid)});
    }
}

void add_injection(RunData& data, std::string_view algorithm, std::int64_t from, std::int64_t until) {
    InjectionRow row;
    row.id = static_cast<std::int64_t>(data.injections.size()) + 1;
    row.run = 1;
    row.name = "half";
    row.kind = "cap";
    row.algorithm = algorithm;
    row.host = kSlowHost;
    row.direction = "both";
    row.wanted_rate_bits_per_s = 250'000'000;
    row.ordered_at = from;
    row.applied_at = from + 412'000;
    row.observed_at = from + 1'377'000;
    row.reverted_at = until;
    row.restored_at = until + 903'000;
    row.mechanism = "htb class change";
    row.realism = "port";
    row.data_path = "kernel TCP";
    row.observation_json = R"({"rate_bytes_per_s":31250000})";
    row.measured_send_bits_per_s = 239'100'000;
    row.measured_receive_bits_per_s = 238'700'000;
    data.injections.push_back(row);
}

} // namespace

RunData fixture_run() {
    RunData data;
    data.run = make_run();
    add_cluster(data);
    std::int64_t now = kStart;
    for (const std::string_view algorithm : {"ring", "optcc", "optcc-shared"}) {
        const double degraded = algorithm == "ring" ? 1.72 : algorithm == "optcc" ? 1.19 : 1.16;
        const std::array<PhaseShape, 4> shapes{
            {{"warmup", 1, 1.09}, {"steady", 3, 1.01}, {"degraded", 3, degraded}, {"recovered", 3, 1.012}}};
        for (const PhaseShape& shape : shapes) {
            const bool slow = shape.phase == "degraded";
            const std::int64_t from = now;
            add_phase(data, algorithm, shape, slow ? 2.25 : 1.75, slow ? 2.0357 : 1.75, now);
            if (slow) {
                add_injection(data, algorithm, from - 5'000'000, now + 1'000'000);
                now += 10'000'000;
            }
        }
    }
    data.events.push_back({1, kStart - 2'000'000'000, "info", "controller", "run_started", "run started", "{}"});
    data.events.push_back({1, now, "info", "controller", "run_ended", "all iterations done", "{}"});
    for (std::int32_t host = 0; host < 2; ++host) {
        data.counters.push_back({1, host, 0, now, "rtnl_link_stats64", "tx_bytes", 2'000'000'000LL + host});
    }
    return data;
}

std::vector<IterationRow*> iterations_of(RunData& data, std::string_view algorithm, std::string_view phase) {
    std::vector<IterationRow*> rows;
    for (IterationRow& row : data.iterations) {
        if (row.algorithm == algorithm && row.phase == phase) {
            rows.push_back(&row);
        }
    }
    return rows;
}

} // namespace railbreak::record
