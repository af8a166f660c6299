#include "harness/controller/run.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "harness/analyse/analyse.hpp"
#include "harness/analyse/history.hpp"
#include "harness/controller/run_begin.hpp"
#include "harness/controller/run_steps.hpp"
#include "harness/controller/session.hpp"
#include "harness/record/reader.hpp"
#include "kernels/digest.hpp"

namespace railbreak::controller {

namespace {

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

Result<void> record_notification(Run& run, const std::string& host, const launch::RpcMessage& message) {
    const bool bad =
        message.method == "guard_lost" || message.method == "rank_ended" || message.method == "faults_lifted";
    return run.recorder.add_event({.run = run.row_id,
                                   .at = monotonic_now().count(),
                                   .level = bad                                      ? "error"
                                            : message.method == launch::kPathStalled ? "warning"
                                                                                     : "info",
                                   .source = "agent " + host,
                                   .kind = message.method,
                                   .text = message.params.value("text", message.method),
                                   .facts_json = message.params.dump()});
}

Ending measure(Run& run, const RunOptions& options, Progress& progress) {
    Ending ending;
    std::optional<Error> faults_lost;
    std::optional<Error> unrecorded;
    Session* live = nullptr;
    const auto on_notification = [&](std::int32_t host, const launch::RpcMessage& message) {
        if (Result<void> stored = record_notification(run, fmt::format("h{}", host), message); !stored && !unrecorded) {
            unrecorded = std::move(stored.error());
        }
        const ClockOffset clock = live != nullptr ? live->agents().link(host).clock() : ClockOffset{};
        for (const OwnUndo& undo : own_undos_in(host, message, clock)) {
            ending.own_undos.push_back(undo);
        }
        if (message.method == "guard_lost") {
            faults_lost =
                Error(ErrorKind::kHarness, fmt::format("the guard on host h{} ended ({}); its faults were reverted at "
                                                       "once, because none may be in force unguarded",
                                                       host, message.params.value("reason", "no reason given")));
        } else if (message.method == "faults_lifted") {
            faults_lost = Error(ErrorKind::kHarness, fmt::format("host h{} reverted its faults by itself: {}", host,
                                                                 message.params.value("reason", "no reason given")));
        }
    };
    progress.doing(fmt::format("building {} hosts", run.plan.cluster.hosts));
    Result<std::unique_ptr<Session>> session = Session::open(run.plan,
                                                             {.executable = options.executable,
                                                              .run_id = run.run_id,
                                                              .token_hex = run.token_hex,
                                                              .fill_seed = run.plan.seed,
                                                              .policies = options.policies},
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
                        .faults_lost = faults_lost,
                        .unrecorded = unrecorded});
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
    if (!ending.failure && unrecorded) {
        ending.failure = std::move(unrecorded);
    }
    return ending;
}

/// What is told of a run whose end cannot be stored. A host that is not as before comes first, whatever the disk does.
Error told_without_record(const Ending& ending, const Error& storing) {
    const Error* first = !ending.teardown.empty() ? &ending.teardown.front()
                         : ending.failure         ? &*ending.failure
                                                  : nullptr;
    if (first == nullptr || first->message() == storing.message()) {
        return storing;
    }
    std::string message;
    for (const Error& error : ending.teardown) {
        message += error.message() + "; ";
    }
    if (ending.failure) {
        message += ending.failure->message() + "; ";
    }
    Error told = Error(ending.teardown.empty() ? ErrorKind::kHarness : ErrorKind::kTeardown,
                       message + "the end of the run could not be recorded: " + storing.message())
                     .advise(first->advice().empty() ? storing.advice() : first->advice());
    for (const auto& [name, value] : first->facts()) {
        told.add_fact(name, value);
    }
    return told;
}

/// What earlier runs measured, where the plan has limits that stand on it: stored with the run, so that judging it
/// again does not depend on what is recorded or pruned later.
Result<void> store_history(Run& run, const record::RunReader& reader, record::RunData& data) {
    if (!analyse::needs_history(run.plan)) {
        return {};
    }
    Result<record::ArtefactRow> history = analyse::gather_history(reader, data.run);
    if (!history) {
        return fail(std::move(history.error()));
    }
    data.artefacts.push_back(*history);
    return run.recorder.add_artefact(*history);
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
    if (Result<void> stored = store_history(run, *reader, *data); !stored) {
        return fail(std::move(stored.error()));
    }
    const analyse::Analysis analysis = analyse::analyse(*data, run.plan);
    Result<void> stored = run.recorder.finish_run(run.row_id, realtime_now().count(), analysis.verdicts);
    if (!stored) {
        return fail(std::move(stored.error()));
    }
    const bool broken_off = ending.failure && ending.failure->kind() != ErrorKind::kOutcome;
    const bool interrupted = ending.failure && is_interruption(*ending.failure);
    const auto verdict = std::ranges::find(analysis.verdicts, "run", &record::VerdictRow::scope);
    return RunResult{.run_id = run.run_id,
                     .exit_code = static_cast<int>(analysis.exit_code),
                     .reason = analysis.reason,
                     .verdict = verdict != analysis.verdicts.end() ? verdict->verdict : "inconclusive",
                     .broken_off = broken_off,
                     .interrupted = interrupted};
}

} // namespace

Result<RunResult> run_scenario(const scenarios::Scenario& scenario, const RunOptions& options, Progress& progress) {
    Result<Run> run = begin_run(scenario, options);
    if (!run) {
        return fail(std::move(run.error()));
    }
    if (options.on_recorded) {
        if (Result<void> told = options.on_recorded(run->row_id); !told) {
            return fail(std::move(told.error()));
        }
    }
    const Ending ending = measure(*run, options, progress);
    progress.end_line();
    Result<RunResult> result = conclude(*run, options, ending);
    return result ? std::move(result) : fail(told_without_record(ending, result.error()));
}

} // namespace railbreak::controller
