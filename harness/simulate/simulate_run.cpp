#include "harness/simulate/simulate_run.hpp"

#include <functional>
#include <optional>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/version.hpp"
#include "harness/analyse/analyse.hpp"
#include "harness/analyse/history.hpp"
#include "harness/record/reader.hpp"
#include "harness/record/recorder.hpp"
#include "harness/simulate/fault_script.hpp"
#include "harness/simulate/play.hpp"
#include "scenarios/plan.hpp"

namespace railbreak::simulate {

namespace {

struct Run {
    scenarios::Plan plan;
    record::Recorder recorder;
    std::int64_t row_id;
    std::string run_id;
};

/// What the times depend on besides the plan.
std::string environment_json(const SimulateOptions& options) {
    const BuildInfo build = build_info();
    return nlohmann::json{{"compiler", build.compiler},
                          {"build_type", build.build_type},
                          {"port_model", to_string(options.model)},
                          {"cut_through", options.cut_through},
                          {"flow_overhead_ns", options.flow_overhead.count()},
                          {"flow_latency_ns", options.flow_latency.count()},
                          {"sharing", to_string(options.sharing)},
                          {"send_buffer_bytes", options.send_buffer.bytes()},
                          {"receive_buffer_bytes", options.receive_buffer.bytes()}}
        .dump();
}

Result<Run> begin(const scenarios::Scenario& scenario, const SimulateOptions& options) {
    Result<scenarios::Plan> plan = scenarios::expand(scenario, options.seed);
    if (!plan) {
        return fail(std::move(plan.error()));
    }
    if (Result<void> playable = check_playable(*plan); !playable) {
        return fail(std::move(playable.error()));
    }
    Result<record::Recorder> recorder = record::Recorder::open(options.database);
    if (!recorder) {
        return fail(std::move(recorder.error()));
    }
    const BuildInfo build = build_info();
    const Nanoseconds started = realtime_now();
    record::RunRow row;
    row.scenario_name = plan->scenario_name;
    row.scenario_text = scenario.source_text;
    row.plan_json = plan->canonical_json;
    row.plan_hash = plan->hash;
    row.seed = options.seed;
    row.backend = record::kSimulatedBackend;
    row.cluster = record::kSimulatedBackend;
    row.version = fmt::format("{} {}", build.version, build.commit);
    row.command_line = options.command_line;
    row.environment_json = environment_json(options);
    row.started_realtime_ns = started.count();
    row.hosts = plan->cluster.hosts;
    row.bytes = static_cast<std::int64_t>(plan->workload.bytes.bytes());
    row.dtype = to_string(plan->workload.dtype);
    row.rate_bits_per_s = static_cast<std::int64_t>(plan->cluster.rate.bits_per_s());
    const std::size_t salt = std::hash<std::int64_t>{}(started.count()) ^ static_cast<std::size_t>(::getpid());
    Result<std::int64_t> id = recorder->begin_new_run(row, salt);
    if (!id) {
        return fail(std::move(id.error()));
    }
    return Run{std::move(*plan), std::move(*recorder), *id, row.run_id};
}

/// Judges the run from the database alone: judging it again gives the same.
Result<SimulatedRun> conclude(Run& run, const std::filesystem::path& database) {
    Result<record::RunReader> reader = record::RunReader::open_readonly(database);
    if (!reader) {
        return fail(std::move(reader.error()));
    }
    Result<record::RunData> data = reader->load_run(run.run_id);
    if (!data) {
        return tl::unexpected(data.error());
    }
    if (analyse::needs_history(run.plan)) {
        const Result<record::ArtefactRow> history = analyse::gather_history(*reader, data->run);
        if (!history) {
            return tl::unexpected(history.error());
        }
        if (Result<void> stored = run.recorder.add_artefact(*history); !stored) {
            return fail(std::move(stored.error()));
        }
        data->artefacts.push_back(*history);
    }
    const analyse::Analysis analysis = analyse::analyse(*data, run.plan);
    Result<void> stored = run.recorder.finish_run(run.row_id, realtime_now().count(), analysis.verdicts);
    if (!stored) {
        return fail(std::move(stored.error()));
    }
    return SimulatedRun{run.run_id, static_cast<int>(analysis.exit_code), analysis.reason};
}

} // namespace

Result<SimulatedRun> simulate_scenario(const scenarios::Scenario& scenario, const SimulateOptions& options) {
    Result<Run> run = begin(scenario, options);
    if (!run) {
        return fail(std::move(run.error()));
    }
    Play play({run->plan, options, run->recorder, run->row_id});
    Result<void> done = play.cluster();
    if (done) {
        done = play.all_algorithms();
    }
    if (!done) {
        if (Result<void> told = run->recorder.add_event(analyse::stop_event(run->row_id, play.now(), done.error()));
            !told) {
            return fail(std::move(told.error()));
        }
    }
    return conclude(*run, options.database);
}

} // namespace railbreak::simulate
