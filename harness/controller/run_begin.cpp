#include "harness/controller/run_begin.hpp"

#include <cerrno>

#include <sys/random.h>

#include <fmt/format.h>

#include "base/version.hpp"
#include "harness/controller/environment.hpp"
#include "harness/lab/privilege.hpp"
#include "harness/lab/state.hpp"
#include "scenarios/plan.hpp"

namespace railbreak::controller {

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
