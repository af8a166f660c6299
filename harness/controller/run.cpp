#include "harness/controller/run.hpp"

#include <array>
#include <fstream>

#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/version.hpp"
#include "harness/analyse/analyse.hpp"
#include "harness/controller/run_steps.hpp"
#include "harness/controller/session.hpp"
#include "harness/lab/privilege.hpp"
#include "harness/lab/state.hpp"
#include "harness/record/location.hpp"
#include "harness/record/reader.hpp"
#include "harness/record/recorder.hpp"
#include "kernels/digest.hpp"
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

struct Run {
    scenarios::Plan plan;
    record::Recorder recorder;
    std::int64_t row_id;
    std::string run_id;
    std::string token_hex;
};

Result<Run> begin(const scenarios::Scenario& scenario, const RunOptions& options) {
    Result<scenarios::Plan> plan =
        scenarios::expand(options.no_faults ? without_faults(scenario) : scenario, options.seed);
    if (!plan) {
        return fail(std::move(plan.error()));
    }
    const std::string environment = environment_json(); // before the user id becomes that of a namespace's root
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
    row.run_id = record::make_run_id(started, plan->scenario_name, std::hash<std::string>{}(*secret));
    row.scenario_name = plan->scenario_name;
    row.scenario_text = scenario.source_text;
    row.plan_json = plan->canonical_json;
    row.plan_hash = plan->hash;
    row.seed = options.seed;
    row.backend = "lab";
    row.version = fmt::format("{} {}", build.version, build.commit);
    row.command_line = options.command_line;
    row.environment_json = environment;
    row.started_realtime_ns = started.count();
    row.hosts = plan->cluster.hosts;
    row.bytes = static_cast<std::int64_t>(plan->workload.bytes.bytes());
    row.dtype = to_string(plan->workload.dtype);
    row.rate_bits_per_s = static_cast<std::int64_t>(plan->cluster.rate.bits_per_s());
    Result<std::int64_t> id = recorder->begin_run(row);
    if (!id) {
        return fail(std::move(id.error()));
    }
    return Run{std::move(*plan), std::move(*recorder), *id, row.run_id, std::move(*secret)};
}

/// One fault that its agent undid without being told to.
struct OwnUndo {
    std::int32_t host;
    std::int32_t fault;
    std::int64_t reverted_at; ///< controller's clock
    std::int64_t restored_at;
};

/// The faults that an agent's last words say it undid by itself: its controller was silent or gone, or its guard was.
std::vector<OwnUndo> own_undos_in(std::int32_t host, const launch::RpcMessage& message, const ClockOffset& clock) {
    std::vector<OwnUndo> undos;
    const auto list = message.params.find("reverted");
    if (list == message.params.end() || !list->is_array()) {
        return undos;
    }
    for (const launch::Json& evidence : *list) {
        const Result<std::int32_t> fault = launch::field<std::int32_t>(evidence, "id");
        const Result<std::int64_t> reverted = launch::field<std::int64_t>(evidence, "reverted_at");
        const Result<std::int64_t> restored = launch::field<std::int64_t>(evidence, "restored_at");
        if (fault && reverted && restored && *restored != 0) {
            undos.push_back({host, *fault, *reverted - clock.offset.count(), *restored - clock.offset.count()});
        }
    }
    return undos;
}

/// Adds to the injections that nobody heard the end of what their agents said of it later.
Result<void> store_own_undos(Run& run, record::RunData& data, const std::vector<OwnUndo>& undos) {
    for (record::InjectionRow& row : data.injections) {
        for (const OwnUndo& undo : undos) {
            if (row.restored_at != 0 || row.host != undo.host || row.fault != undo.fault ||
                undo.restored_at < row.ordered_at) {
                continue;
            }
            row.reverted_at = undo.reverted_at;
            row.restored_at = undo.restored_at;
            if (Result<void> stored = run.recorder.update_injection(row); !stored) {
                return stored;
            }
        }
    }
    return {};
}

/// What ended the measurements early, and what the teardown could not confirm. Both are facts of the run.
struct Ending {
    std::optional<Error> failure;
    std::vector<Error> teardown;
    std::vector<OwnUndo> own_undos;
};

void record_notification(Run& run, const std::string& host, const launch::RpcMessage& message) {
    const bool bad = message.method == "guard_lost" || message.method == "rank_ended";
    (void)run.recorder.add_event({.run = run.row_id,
                                  .at = monotonic_now().count(),
                                  .level = bad ? "error" : "info",
                                  .source = "agent " + host,
                                  .kind = message.method,
                                  .text = message.method,
                                  .facts_json = message.params.dump()});
}

Ending measure(Run& run, const RunOptions& options, Progress& progress) {
    Ending ending;
    std::optional<Error> guard_lost;
    Session* live = nullptr;
    const auto on_notification = [&](std::int32_t host, const launch::RpcMessage& message) {
        record_notification(run, fmt::format("h{}", host), message);
        const ClockOffset clock = live != nullptr ? live->agents().link(host).clock() : ClockOffset{};
        for (const OwnUndo& undo : own_undos_in(host, message, clock)) {
            ending.own_undos.push_back(undo);
        }
        if (message.method == "guard_lost") {
            guard_lost =
                Error(ErrorKind::kHarness, fmt::format("the guard on host h{} ended ({}); its faults were reverted at "
                                                       "once, because none may be in force unguarded",
                                                       host, message.params.value("reason", "no reason given")));
        }
    };
    progress.doing(fmt::format("building {} hosts", run.plan.cluster.hosts));
    Result<std::unique_ptr<Session>> session = Session::open(run.plan,
                                                             {.executable = options.executable,
                                                              .run_id = run.run_id,
                                                              .token_hex = run.token_hex,
                                                              .fill_seed = run.plan.seed},
                                                             run.recorder, run.row_id, on_notification);
    if (!session) {
        ending.failure = std::move(session.error());
        return ending;
    }
    live = session->get();
    Result<std::string> expected = kernels::expected_digest(run.plan.seed, run.plan.cluster.ranks(),
                                                            (*session)->elements(), run.plan.workload.dtype);
    Result<void> done;
    if (!expected) {
        done = fail(std::move(expected.error()));
    } else {
        RunSteps steps({.session = **session,
                        .recorder = run.recorder,
                        .run = run.row_id,
                        .progress = progress,
                        .expected_digest = *expected,
                        .guard_lost = guard_lost});
        done = steps.baseline();
        if (done) {
            done = steps.all_algorithms();
        }
    }
    if (!done) {
        ending.failure = std::move(done.error());
    }
    progress.doing("tearing down");
    ending.teardown = (*session)->close();
    return ending;
}

/// Writes how the run ended, then judges it from the database alone: judging it again gives the same.
Result<RunResult> conclude(Run& run, const RunOptions& options, const Ending& ending) {
    std::vector<Error> ends = ending.teardown;
    if (ending.failure) {
        ends.insert(ends.begin(), *ending.failure);
    }
    for (const Error& error : ends) {
        Result<void> stored = run.recorder.add_event(analyse::stop_event(run.row_id, monotonic_now(), error));
        if (!stored) {
            return fail(std::move(stored.error()));
        }
    }
    Result<record::RunReader> reader = record::RunReader::open_readonly(options.database);
    if (!reader) {
        return fail(std::move(reader.error()));
    }
    Result<record::RunData> data = reader->load_run(run.run_id);
    if (!data) {
        return fail(std::move(data.error()));
    }
    if (Result<void> stored = store_own_undos(run, *data, ending.own_undos); !stored) {
        return fail(std::move(stored.error()));
    }
    const analyse::Analysis analysis = analyse::analyse(*data, run.plan);
    Result<void> stored = run.recorder.finish_run(run.row_id, realtime_now().count(), analysis.verdicts);
    if (!stored) {
        return fail(std::move(stored.error()));
    }
    return RunResult{run.run_id, static_cast<int>(analysis.exit_code), analysis.reason};
}

} // namespace

Result<RunResult> run_scenario(const scenarios::Scenario& scenario, const RunOptions& options, Progress& progress) {
    Result<Run> run = begin(scenario, options);
    if (!run) {
        return fail(std::move(run.error()));
    }
    const Ending ending = measure(*run, options, progress);
    progress.end_line();
    return conclude(*run, options, ending);
}

} // namespace railbreak::controller
