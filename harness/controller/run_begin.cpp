#include "harness/controller/run_begin.hpp"

#include <array>
#include <fstream>

#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/version.hpp"
#include "harness/lab/privilege.hpp"
#include "harness/lab/state.hpp"
#include "scenarios/plan.hpp"

namespace railbreak::controller {

using nlohmann::json;

namespace {

Result<std::string> random_hex(std::size_t bytes) {
    std::string raw(bytes, '\0');
    if (::getrandom(raw.data(), raw.size(), 0) != static_cast<ssize_t>(raw.size())) {
        return fail_errno(ErrorKind::kHarness, "get random bytes", errno);
    }
    std::string hex;
    for (const char byte : raw) {
        hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    }
    return hex;
}

std::string cpu_model() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("model name")) {
            return line.substr(line.find(':') + 2);
        }
    }
    return "unknown";
}

/// Facts about the machine and every variable that steers a collective library; never the rest of the environment,
/// which may hold secrets.
std::string environment_json() {
    utsname system{};
    ::uname(&system);
    json variables = json::object();
    for (char** entry = ::environ; *entry != nullptr; ++entry) {
        const std::string_view variable(*entry);
        for (const std::string_view prefix : {"NCCL_", "UCX_", "OMPI_", "RAILBREAK_"}) {
            if (variable.starts_with(prefix)) {
                const std::size_t equals = variable.find('=');
                variables[std::string(variable.substr(0, equals))] = std::string(variable.substr(equals + 1));
            }
        }
    }
    const BuildInfo build = build_info();
    return json{{"kernel", fmt::format("{} {}", system.sysname, system.release)},
                {"machine", system.machine},
                {"cpu", cpu_model()},
                {"cpus", ::sysconf(_SC_NPROCESSORS_ONLN)},
                {"compiler", build.compiler},
                {"build_type", build.build_type},
                {"uid", ::getuid()},
                {"variables", variables}}
        .dump(-1, ' ', false, json::error_handler_t::replace);
}

/// The lab as a cluster of its own on each machine: only runs of one are compared with each other.
std::string cluster_name() {
    utsname system{};
    ::uname(&system);
    return fmt::format("lab on {}", system.nodename);
}

/// The scenario without its faults and without what only makes sense with them.
scenarios::Scenario without_faults(scenarios::Scenario scenario) {
    scenario.faults.clear();
    scenario.workload.iterations.degraded = 0;
    scenario.workload.iterations.recovered = 0;
    std::erase_if(scenario.expectations, [](const scenarios::Expectation& expectation) {
        return expectation.phase != scenarios::Phase::kSteady;
    });
    return scenario;
}

} // namespace

Result<Run> begin_run(const scenarios::Scenario& scenario, const RunOptions& options) {
    Result<scenarios::Plan> plan =
        scenarios::expand(options.no_faults ? without_faults(scenario) : scenario, options.seed);
    if (!plan) {
        return fail(std::move(plan.error()));
    }
    const scenarios::WallTime now = scenarios::local_time(realtime_now());
    for (const scenarios::SitePolicy& policy : options.policies) { // before anything is started
        if (Result<void> allowed = scenarios::check_plan(policy, *plan, now); !allowed) {
            return fail(std::move(allowed.error()));
        }
    }
    const std::string environment = environment_json(); // before the user id becomes that of a namespace's root
    const std::string cluster = cluster_name();
    if (Result<void> allowed = lab::become_namespace_root(); !allowed) {
        return fail(std::move(allowed.error()));
    }
    if (Result<lab::StateFolder> folder = lab::StateFolder::open(); !folder) { // before anything is recorded
        return fail(std::move(folder.error()));
    }
    Result<record::Recorder> recorder = record::Recorder::open(options.database);
    if (!recorder) {
        return fail(std::move(recorder.error()));
    }
    Result<std::string> secret = random_hex(32);
    if (!secret) {
        return fail(std::move(secret.error()));
    }
    const BuildInfo build = build_info();
    const Nanoseconds started = realtime_now();
    record::RunRow row;
    row.scenario_name = plan->scenario_name;
    row.scenario_text = scenario.source_text;
    row.plan_json = plan->canonical_json;
    row.plan_hash = plan->hash;
    row.seed = options.seed;
    row.backend = "lab";
    row.cluster = cluster;
    row.version = fmt::format("{} {}", build.version, build.commit);
    row.command_line = options.command_line;
    row.environment_json = environment;
    row.started_realtime_ns = started.count();
    row.hosts = plan->cluster.hosts;
    row.bytes = static_cast<std::int64_t>(plan->workload.bytes.bytes());
    row.dtype = to_string(plan->workload.dtype);
    row.rate_bits_per_s = static_cast<std::int64_t>(plan->cluster.rate.bits_per_s());
    Result<std::int64_t> id = recorder->begin_new_run(row, std::hash<std::string>{}(*secret));
    if (!id) {
        return fail(std::move(id.error()));
    }
    return Run{std::move(*plan), std::move(*recorder), *id, row.run_id, std::move(*secret)};
}

} // namespace railbreak::controller
