// railbreak events: what happened in a run, line by line, also while it goes on.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "harness/analyse/verdict.hpp"
#include "harness/cli/everyday_commands.hpp"
#include "harness/cli/scenario_input.hpp"
#include "harness/record/reader.hpp"
#include "harness/record/watch.hpp"
#include "reports/events.hpp"

namespace railbreak::cli {

namespace {

using record::RunReader;
using record::RunState;
using record::StoredEvent;

/// Events that are read at once.
constexpr std::int32_t kBatch = 1000;
/// The kernel tells of a write before it can be read, and of some not at all (a network file system), nor of the end of
/// a process: so the run is looked at as often as this.
constexpr Nanoseconds kLook = std::chrono::milliseconds(250);

struct EventsOptions {
    std::string run = "latest";
    bool follow = false;
    std::int64_t since = 0;
    std::string level = "debug";
};

/// Prints the events after `last`, in batches, and gives the number of the last one.
Result<std::int64_t> print_events(const CommonOptions& common, const RunReader& reader, const EventsOptions& options,
                                  std::int64_t run, const RunState& state, std::int64_t last) {
    for (;;) {
        const Result<std::vector<StoredEvent>> events = reader.events_since(run, last, kBatch);
        if (!events) {
            return tl::unexpected(events.error());
        }
        for (const StoredEvent& stored : *events) {
            last = stored.id;
            if (reports::level_rank(stored.event.level) >= reports::level_rank(options.level)) {
                print_result(common.json ? reports::event_json(stored, state)
                                         : reports::event_line(stored, state.origin));
            }
        }
        if (events->size() < static_cast<std::size_t>(kBatch)) {
            std::fflush(stdout); // somebody is watching
            return last;
        }
    }
}

/// Ends with the run: it prints the verdict and gives the exit code that the run itself ended with.
Result<int> follow(const CommonOptions& common, const RunReader& reader, const EventsOptions& options,
                   std::int64_t run) {
    Result<record::DatabaseWatch> watch = record::DatabaseWatch::open(common.database);
    if (!watch) {
        return tl::unexpected(watch.error());
    }
    std::int64_t last = options.since;
    for (;;) {
        // First how far it is, then the events: what comes after the end of a run is none of it.
        const Result<RunState> state = reader.run_state(run);
        if (!state) {
            return tl::unexpected(state.error());
        }
        const Result<std::int64_t> printed = print_events(common, reader, options, run, *state, last);
        if (!printed) {
            return tl::unexpected(printed.error());
        }
        last = *printed;
        if (state->finished || state->controller_gone) {
            const int exit_code = static_cast<int>(analyse::exit_code_of(state->verdicts));
            print_result(common.json ? reports::run_end_json(*state, exit_code) : reports::run_end_text(*state));
            return exit_code;
        }
        watch->wait(Deadline::after(kLook));
    }
}

Result<int> events(const CommonOptions& common, const EventsOptions& options) {
    const Result<RunReader> reader = RunReader::open_readonly(common.database);
    if (!reader) {
        return tl::unexpected(reader.error());
    }
    const Result<std::int64_t> run = reader->find_run(options.run);
    if (!run) {
        return tl::unexpected(run.error());
    }
    if (options.follow) {
        return follow(common, *reader, options, *run);
    }
    return reader->run_state(*run)
        .and_then(
            [&](const RunState& state) { return print_events(common, *reader, options, *run, state, options.since); })
        .map([](std::int64_t) { return 0; });
}

} // namespace

void add_events_command(CLI::App& app, CommonOptions& common, const Choose& choose) {
    CLI::App* command = app.add_subcommand("events", "Print the events of a run, also of one that is going on");
    auto options = std::make_shared<EventsOptions>();
    command->add_option("RUN", options->run, "Run id, the beginning of one, or latest")->capture_default_str();
    command->add_flag("-f,--follow", options->follow,
                      "Go on with what happens until the run ends, then print its verdict and end with its exit code");
    command->add_option("--since", options->since, "Only events with numbers above this one; --json tells the numbers")
        ->check(CLI::NonNegativeNumber)
        ->type_name("ID")
        ->capture_default_str();
    command->add_option("--level", options->level, "Only events of this level or a more urgent one")
        ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
        ->type_name("LEVEL")
        ->capture_default_str();
    command->callback([&common, options, choose] {
        choose([&common, options]() -> int {
            if (!choose_database(common)) {
                return exit_code_of_bad_usage();
            }
            const Result<int> done = events(common, *options);
            return done ? *done : tell(common, done.error());
        });
    });
}

} // namespace railbreak::cli
