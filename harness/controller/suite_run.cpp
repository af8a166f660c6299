#include "harness/controller/suite_run.hpp"

#include <algorithm>
#include <csignal>
#include <limits>
#include <set>

#include <unistd.h>

#include <fmt/format.h>

#include "base/console.hpp"
#include "base/version.hpp"
#include "harness/analyse/suite.hpp"
#include "harness/controller/environment.hpp"
#include "harness/controller/run_clock.hpp"
#include "harness/controller/suite_progress.hpp"
#include "harness/record/location.hpp"
#include "harness/record/reader.hpp"
#include "harness/record/recorder.hpp"
#include "scenarios/plan.hpp"
#include "scenarios/suite_expand.hpp"
#include "scenarios/summary.hpp"

namespace railbreak::controller {

using record::SuiteData;
using record::SuiteItemRow;
using scenarios::SuiteItem;
using scenarios::SuitePlan;

namespace {

constexpr std::string_view kBackend = "lab";
/// So many earlier runs say how long the next one takes.
constexpr std::int32_t kEarlierRuns = 5;

/// SIGINT, SIGTERM and SIGHUP wait from now on: a run reads them, and between two runs one that waits is asked for.
class PendingSignals {
public:
    PendingSignals() {
        sigset_t signals;
        sigemptyset(&signals);
        for (const int signal : kSignals) {
            sigaddset(&signals, signal);
        }
        ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    }
    [[nodiscard]] bool any() const {
        sigset_t pending;
        sigemptyset(&pending);
        ::sigpending(&pending);
        return std::ranges::any_of(kSignals, [&](int signal) { return sigismember(&pending, signal) == 1; });
    }

private:
    static constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};
};

SuiteItemRow waiting_row(const SuiteItem& item, std::size_t index) {
    return {.item = static_cast<std::int32_t>(index),
            .name = item.name,
            .scenario_name = item.scenario.name,
            .params_json = scenarios::params_json(item.params),
            .repeat = item.repeat,
            .plan_hash = item.plan_hash,
            .state = "waiting"};
}

Result<SuiteData> begin(const SuitePlan& plan, const SuiteOptions& options, record::Recorder& recorder) {
    const BuildInfo build = build_info();
    const Nanoseconds started = realtime_now();
    SuiteData data;
    record::SuiteRow& row = data.suite;
    row.suite_id = record::make_run_id(
        started, plan.name, std::hash<std::int64_t>{}(started.count()) ^ static_cast<std::size_t>(::getpid()));
    row.name = plan.name;
    row.text = plan.source_text;
    row.plan_json = plan.canonical_json;
    row.plan_hash = plan.hash;
    row.seed = plan.seed;
    row.backend = kBackend;
    row.cluster = cluster_name();
    row.version = fmt::format("{} {}", build.version, build.commit);
    row.command_line = options.run.command_line;
    row.environment_json = environment_json();
    row.started_realtime_ns = started.count();
    for (std::size_t i = 0; i < plan.items.size(); ++i) {
        data.items.push_back(waiting_row(plan.items[i], i));
    }
    Result<std::int64_t> id = recorder.begin_suite(row, data.items);
    if (!id) {
        return fail(std::move(id.error()));
    }
    row.id = *id;
    for (SuiteItemRow& item : data.items) {
        item.suite = *id;
    }
    data.run_ids.resize(data.items.size());
    data.verdicts.resize(data.items.size());
    data.reasons.resize(data.items.size());
    return data;
}

/// The suite to go on with, which must be this one.
Result<SuiteData> find_former(const SuitePlan& plan, const std::string& which, const record::RunReader& reader) {
    std::string id = which;
    if (id.empty()) {
        const auto suites = reader.list_suites(std::numeric_limits<std::int32_t>::max());
        if (!suites) {
            return tl::unexpected(suites.error());
        }
        // One of the same plan, if there is any: single items may have been run under that name since.
        auto last = std::ranges::find_if(*suites, [&](const record::SuiteRow& suite) {
            return suite.name == plan.name && suite.plan_hash == plan.hash;
        });
        if (last == suites->end()) {
            last = std::ranges::find(*suites, plan.name, &record::SuiteRow::name);
        }
        if (last == suites->end()) {
            return fail(Error(ErrorKind::kInput,
                              fmt::format("suite {} has not run yet, so there is nothing to resume", plan.name))
                            .advise("run it without --resume"));
        }
        id = last->suite_id;
    }
    Result<SuiteData> data = reader.load_suite(id);
    if (!data) {
        return data;
    }
    std::string difference = data->suite.plan_hash == plan.hash
                                 ? ""
                                 : scenarios::difference_of_suite_plans(data->suite.plan_json, plan.canonical_json);
    if (difference.empty() && data->suite.cluster != cluster_name()) {
        difference = fmt::format("it ran on \"{}\" and this is \"{}\"", data->suite.cluster, cluster_name());
    }
    if (difference.empty() && data->items.size() != plan.items.size()) {
        difference = "its items are not those of its plan";
    }
    if (!difference.empty()) {
        return fail(
            Error(ErrorKind::kInput, fmt::format("cannot go on with suite {}: {}", data->suite.suite_id, difference))
                .advise("give the file and options that it was started with, name another suite with --resume=ID, or "
                        "start anew without --resume"));
    }
    return data;
}

/// The suite to go on with, as it stands once no other process can go on with it.
Result<SuiteData> take_former(const SuitePlan& plan, const SuiteOptions& options, record::Recorder& recorder) {
    const Result<record::RunReader> reader = record::RunReader::open_readonly(options.run.database);
    if (!reader) {
        return tl::unexpected(reader.error());
    }
    Result<SuiteData> former = find_former(plan, options.resume.value_or(""), *reader);
    if (!former) {
        return former;
    }
    if (Result<void> taken = recorder.take_suite(former->suite.id); !taken) {
        return fail(std::move(taken.error()));
    }
    return reader->load_suite(former->suite.suite_id);
}

/// How long an item takes: as the earlier runs of its plan on this cluster that passed; without one, by its plan.
Nanoseconds expected_time(const SuiteItem& item, const Result<record::RunReader>& reader) {
    std::vector<Nanoseconds> earlier;
    const auto runs = reader ? reader->find_runs(item.scenario.name, item.plan_hash, cluster_name(), kEarlierRuns)
                             : Result<std::vector<record::RunSummary>>(std::vector<record::RunSummary>());
    for (const record::RunSummary& run : runs ? *runs : std::vector<record::RunSummary>()) {
        if (run.verdict == "pass" && run.finished_realtime_ns > run.started_realtime_ns) {
            earlier.emplace_back(run.finished_realtime_ns - run.started_realtime_ns);
        }
    }
    if (!earlier.empty()) {
        return median_of(std::move(earlier));
    }
    const Result<scenarios::Plan> plan = scenarios::expand(item.scenario, item.seed);
    return plan ? RunClock(*plan).left() : Nanoseconds(0); // what cannot be planned is refused soon
}

/// What happens when an item does not pass is written down here; what a run is, elsewhere.
class SuiteRunner {
public:
    SuiteRunner(const SuitePlan& plan, const SuiteOptions& options, Progress& progress, record::Recorder& recorder,
                SuiteData& data)
        : plan_(plan), options_(options), progress_(progress), recorder_(recorder), data_(data) {}

    /// Runs what is to run. An Error means that it cannot go on at all.
    Result<void> run() {
        const std::vector<analyse::ItemOutcome> former = analyse::judge_suite(data_).items;
        const Result<record::RunReader> reader = record::RunReader::open_readonly(recorder_.path());
        for (std::size_t i = 0; i < plan_.items.size(); ++i) {
            kept_.push_back(former[i].finished && former[i].word != "skipped" &&
                            (former[i].word == "pass" || !options_.retry_failed));
            expected_.push_back({plan_.items[i].scenario.name, expected_time(plan_.items[i], reader)});
        }
        for (std::size_t i = 0; i < plan_.items.size() && !broken_off_; ++i) {
            Result<void> done = kept_[i] ? keep(i, former[i].word) : one(i);
            if (!done) {
                return done;
            }
        }
        return {};
    }

    [[nodiscard]] bool broken_off() const { return broken_off_; }

private:
    Result<void> store(std::size_t i) { return recorder_.update_suite_item(data_.items[i]); }

    /// An item that ended before: only its consequences count.
    Result<void> keep(std::size_t i, const std::string& word) {
        if (word != "pass" && word != "unknown") { // of a run that was deleted since nothing is known
            failed(i);
        }
        if (data_.items[i].state == "done") {
            return {};
        }
        data_.items[i].state = "done"; // its run was judged, and then its controller died
        if (data_.items[i].run == 0) {
            return store(i); // and that run was pruned since
        }
        const Result<record::RunReader> reader = record::RunReader::open_readonly(recorder_.path());
        const Result<record::RunData> run =
            reader ? reader->load_run(data_.run_ids[i]) : tl::unexpected(reader.error());
        if (!run) {
            return tl::unexpected(run.error());
        }
        if (analyse::exit_code_of(run->verdicts) == analyse::ExitCode::kTeardown) {
            data_.items[i].reason = fmt::format("{}{}", analyse::kTeardownOpen, data_.reasons[i]);
        }
        return store(i);
    }

    Result<void> one(std::size_t i) {
        const SuiteItem& item = plan_.items[i];
        SuiteItemRow& row = data_.items[i];
        if (!skip_all_.empty() || skip_entries_.contains(item.entry)) {
            row.state = "skipped";
            row.pruned = {};
            row.reason = skip_all_.empty() ? fmt::format("another item of {} did not pass", item.scenario.name)
                                           : fmt::format("{} did not pass", skip_all_);
            return store(i);
        }
        if (row.state == "skipped") { // by a failure that is to be tried again
            row.state = "waiting";
            row.reason.clear();
        }
        if (signals_.any()) {
            broken_off_ = true;
            return store(i);
        }
        progress_.note(
            fmt::format("[{} of {}] {}, about {} left", i + 1, plan_.items.size(), item.name, rough(time_left(i))));
        const Nanoseconds started = monotonic_now();
        Result<RunResult> result = run_item(i);
        progress_.end_line();
        if (!result) {
            return not_begun(i, result.error());
        }
        clock_.finished(expected_[i], monotonic_now() - started);
        progress_.note(fmt::format("[{} of {}] {}: {} in {}{}{}", i + 1, plan_.items.size(), item.name, result->verdict,
                                   rough(monotonic_now() - started), result->exit_code == 0 ? "" : ": ",
                                   result->exit_code == 0 ? "" : scenarios::one_line(result->reason)));
        return ended(i, *result);
    }

    Result<RunResult> run_item(std::size_t i) {
        RunOptions options = options_.run;
        options.seed = plan_.items[i].seed;
        if (options_.item_command) {
            options.command_line = options_.item_command(plan_.items[i]);
        }
        options.on_recorded = [this, i](std::int64_t run) {
            SuiteItemRow& row = data_.items[i];
            row.state = "running";
            row.run = run;
            row.pruned = {};
            row.reason.clear();
            ++row.attempts;
            return store(i);
        };
        return options_.run_item(plan_.items[i].scenario, options, progress_);
    }

    /// No run came into being. A refusal is an answer; all else is in the way of the other items, too.
    Result<void> not_begun(std::size_t i, const Error& error) {
        SuiteItemRow& row = data_.items[i];
        if (error.kind() != ErrorKind::kRefused || row.state == "running") {
            return fail(Error(error));
        }
        tell_user(fmt::format("railbreak: {}: {}\n", row.name, error.to_line()));
        row.state = "done";
        row.run = 0;
        row.pruned = {};
        row.reason = error.to_line();
        failed(i);
        return store(i);
    }

    Result<void> ended(std::size_t i, const RunResult& result) {
        SuiteItemRow& row = data_.items[i];
        const bool open = result.exit_code == static_cast<int>(analyse::ExitCode::kTeardown);
        broken_off_ = result.interrupted || open;
        row.reason = open ? fmt::format("{}{}", analyse::kTeardownOpen, result.reason) : "";
        row.state = result.interrupted ? "waiting" : "done";
        if (result.exit_code != 0 && !result.interrupted) {
            failed(i);
        }
        return store(i);
    }

    void failed(std::size_t i) {
        switch (plan_.items[i].on_failure) {
        case scenarios::OnFailure::kContinue: break;
        case scenarios::OnFailure::kStop: skip_all_ = plan_.items[i].name; break;
        case scenarios::OnFailure::kSkipScenario: skip_entries_.insert(plan_.items[i].entry); break;
        }
    }

    [[nodiscard]] Nanoseconds time_left(std::size_t from) const {
        std::vector<ExpectedItem> items;
        for (std::size_t i = from; i < expected_.size(); ++i) {
            if (!kept_[i] && !skip_entries_.contains(plan_.items[i].entry)) {
                items.push_back(expected_[i]);
            }
        }
        return clock_.left(items);
    }

    const SuitePlan& plan_;
    const SuiteOptions& options_;
    Progress& progress_;
    record::Recorder& recorder_;
    SuiteData& data_;
    PendingSignals signals_;
    SuiteClock clock_;
    std::vector<ExpectedItem> expected_;
    std::vector<bool> kept_; ///< items that ended before and are not run again
    std::string skip_all_;   ///< the item after whose failure nothing else runs
    std::set<std::int32_t> skip_entries_;
    bool broken_off_ = false;
};

/// What the suite has come to, as the database tells it.
Result<SuiteResult> conclude(const std::string& suite_id, record::Recorder& recorder, bool broken_off) {
    Result<record::RunReader> reader = record::RunReader::open_readonly(recorder.path());
    if (!reader) {
        return fail(std::move(reader.error()));
    }
    const Result<SuiteData> data = reader->load_suite(suite_id);
    if (!data) {
        return tl::unexpected(data.error());
    }
    const analyse::SuiteOutcome outcome = analyse::judge_suite(*data);
    if (outcome.left == 0) {
        if (Result<void> stored = recorder.finish_suite(data->suite.id, realtime_now().count()); !stored) {
            return fail(std::move(stored.error()));
        }
    }
    return SuiteResult{suite_id, static_cast<int>(exit_code_of(outcome)), outcome.reason, outcome.left, broken_off};
}

} // namespace

Result<void> check_parallel(const SuitePlan& plan, std::string_view backend) {
    if (plan.parallel > 1 && backend == "lab") {
        return fail(Error(ErrorKind::kUsage,
                          fmt::format("suite {} wants {} items at a time, and all hosts of a lab are this machine: "
                                      "items would slow each other down",
                                      plan.name, plan.parallel))
                        .advise("write parallel: 1, or leave the key out"));
    }
    return {};
}

Result<SuiteResult> run_suite(const SuitePlan& plan, const SuiteOptions& options, Progress& progress) {
    if (Result<void> allowed = check_parallel(plan, kBackend); !allowed) {
        return fail(std::move(allowed.error()));
    }
    Result<record::Recorder> recorder = record::Recorder::open(options.run.database);
    if (!recorder) {
        return fail(std::move(recorder.error()));
    }
    Result<SuiteData> data = options.resume ? take_former(plan, options, *recorder) : begin(plan, options, *recorder);
    if (!data) {
        return fail(std::move(data.error()));
    }
    SuiteRunner runner(plan, options, progress, *recorder, *data);
    if (Result<void> done = runner.run(); !done) {
        return fail(std::move(done.error()).with("suite", data->suite.suite_id));
    }
    return conclude(data->suite.suite_id, *recorder, runner.broken_off());
}

} // namespace railbreak::controller
