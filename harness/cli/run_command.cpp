#include <csignal>
#include <cstdio>
#include <memory>

#include <unistd.h>

#include <fmt/format.h>

#include "base/console.hpp"
#include "collective/algorithm.hpp"
#include "harness/analyse/verdict.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/dry_run_output.hpp"
#include "harness/cli/policy_input.hpp"
#include "harness/cli/scenario_input.hpp"
#include "harness/cli/suite_command.hpp"
#include "harness/controller/dry_run.hpp"
#include "harness/controller/run.hpp"
#include "harness/record/location.hpp"
#include "harness/record/reader.hpp"
#include "reports/json.hpp"
#include "reports/repeat.hpp"
#include "reports/table.hpp"

namespace railbreak::cli {

namespace {

struct RunArguments {
    std::vector<std::string> scenarios;
    std::uint64_t seed = 1;
    std::int32_t repeat = 1;
    bool no_faults = false;
    bool dry_run = false;
    std::string on = "lab";
    std::string policy;                          ///< path, as given
    std::vector<scenarios::SitePolicy> policies; ///< all that hold
    SuiteArguments suites;
};

controller::RunOptions run_options(const CommonOptions& common, const RunArguments& arguments, std::uint64_t seed) {
    return {.executable = common.executable,
            .database = common.database,
            .seed = seed,
            .policies = arguments.policies,
            .no_faults = arguments.no_faults,
            .command_line = common.command_line};
}

/// A finished run as the database holds it.
Result<record::RunData> read_back(const CommonOptions& common, const std::string& run_id) {
    Result<record::RunReader> reader = record::RunReader::open_readonly(common.database);
    return reader ? reader->load_run(run_id) : Result<record::RunData>(fail(std::move(reader.error())));
}

void print(const std::string& text) {
    print_result(text);
    std::fflush(stdout); // before the next line on stderr, and before the next run
}

/// A run of which there is nothing to report. Of several repeats the others are, so the Error is told only.
int tell_failed_run(const CommonOptions& common, const RunArguments& arguments, const Error& error) {
    return arguments.repeat > 1 ? tell(error) : tell(common, error);
}

/// What a run came to.
struct Ended {
    int exit_code = 0;
    bool stop = false; ///< nothing further may run on this cluster
};

/// A run with that exit code. Refused, aborted or not torn down, it is the last one.
Ended ended_with(int exit_code, bool broken_off) {
    return {exit_code, broken_off || exit_code >= static_cast<int>(analyse::ExitCode::kRefused)};
}

/// One run; its rows are appended to `finished`.
Ended run_one(const CommonOptions& common, const RunArguments& arguments, const scenarios::Scenario& scenario,
              std::vector<record::RunData>& finished) {
    controller::Progress progress(::isatty(STDERR_FILENO) == 1);
    Result<controller::RunResult> result =
        controller::run_scenario(scenario, run_options(common, arguments, arguments.seed), progress);
    if (!result) {
        progress.end_line();
        return ended_with(tell_failed_run(common, arguments, result.error()), true);
    }
    Result<record::RunData> data = read_back(common, result->run_id);
    if (!data) {
        return ended_with(tell_failed_run(common, arguments, data.error()), true);
    }
    finished.push_back(std::move(*data));
    if (result->exit_code != 0) {
        tell_user(fmt::format("railbreak: {}: {}\n", result->run_id, result->reason));
    }
    return ended_with(result->exit_code, result->broken_off);
}

/// What a run would do to its hosts. Returns the exit code: a fault that would be refused is a refusal.
int forecast_one(const CommonOptions& common, const RunArguments& arguments, const scenarios::Scenario& scenario,
                 std::uint64_t seed) {
    controller::Progress progress(::isatty(STDERR_FILENO) == 1);
    const Result<controller::Forecast> forecast =
        controller::dry_run_scenario(scenario, run_options(common, arguments, seed), progress);
    if (!forecast) {
        return tell(common, forecast.error());
    }
    print(common.json ? forecast_json(*forecast) : forecast_text(*forecast));
    return forecast->all_possible()
               ? 0
               : tell(Error(ErrorKind::kRefused, "a fault of this scenario would be refused, see above"));
}

/// All repeats of one scenario, and their report on stdout.
Ended run_repeats(const CommonOptions& common, const RunArguments& arguments, const scenarios::Scenario& scenario) {
    Ended worst;
    std::vector<record::RunData> finished;
    for (std::int32_t i = 0; i < arguments.repeat && !worst.stop; ++i) {
        const Ended one = run_one(common, arguments, scenario, finished);
        worst = {std::max(worst.exit_code, one.exit_code), one.stop};
    }
    if (arguments.repeat > 1) {
        print(common.json ? reports::repeat_json(finished) : reports::repeat_table(finished));
    } else if (!finished.empty()) {
        print(common.json ? reports::run_json(finished.front())
                          : reports::run_table(finished.front(), {.colour = wants_colour(STDOUT_FILENO)}));
    }
    return worst;
}

Ended run_file(const CommonOptions& common, const RunArguments& arguments, const scenarios::Scenario& scenario) {
    return arguments.dry_run ? ended_with(forecast_one(common, arguments, scenario, arguments.seed), false)
                             : run_repeats(common, arguments, scenario);
}

Ended run_file(const CommonOptions& common, const RunArguments& arguments, const scenarios::SuitePlan& suite) {
    Ended worst;
    if (!arguments.dry_run) {
        worst.exit_code =
            run_suite(common, suite, run_options(common, arguments, suite.seed), arguments.suites, worst.stop);
        return worst;
    }
    for (const scenarios::SuiteItem& item : suite.items) {
        worst.exit_code = std::max(worst.exit_code, forecast_one(common, arguments, item.scenario, item.seed));
    }
    return ended_with(worst.exit_code, false);
}

/// What is wrong with options that belong to one kind of file.
std::optional<Error> misplaced_option(const RunArguments& arguments, const std::vector<ScenarioOrSuite>& files) {
    const auto suites = std::ranges::count_if(
        files, [](const ScenarioOrSuite& file) { return std::holds_alternative<scenarios::SuitePlan>(file); });
    const SuiteArguments& of_suites = arguments.suites;
    if (suites == 0 && (of_suites.resume || of_suites.retry_failed || !of_suites.only.empty())) {
        return Error(ErrorKind::kUsage, "--resume, --retry-failed and --only are for suites, and no file is one");
    }
    if (suites > 0 && arguments.repeat > 1) {
        return Error(ErrorKind::kUsage, "--repeat is for scenarios")
            .advise("the key \"repeats\" of a suite does it there");
    }
    if (of_suites.retry_failed && !of_suites.resume) {
        return Error(ErrorKind::kUsage, "--retry-failed is for a suite that is resumed").advise("add --resume");
    }
    if (suites > 1 && !of_suites.resume_id.empty()) {
        return Error(ErrorKind::kUsage, "--resume=ID is for one suite, and several are given");
    }
    return std::nullopt;
}

int run(CommonOptions& common, RunArguments& arguments) {
    if (arguments.on != "lab") {
        return tell(common, Error(ErrorKind::kUsage, fmt::format("cannot run on \"{}\"", arguments.on))
                                .advise("--on takes lab, the cluster of network namespaces on this machine"));
    }
    std::vector<ScenarioOrSuite> files;
    const scenarios::SuiteChoices choices{arguments.suites.seed, arguments.suites.only, arguments.no_faults};
    for (const std::string& path : arguments.scenarios) {
        std::optional<ScenarioOrSuite> file = read_any(common, path, choices); // all are checked before the first runs
        if (!file) {
            return exit_code_of_bad_input();
        }
        files.push_back(std::move(*file));
    }
    if (const std::optional<Error> misplaced = misplaced_option(arguments, files)) {
        return tell(common, *misplaced);
    }
    std::optional<std::vector<scenarios::SitePolicy>> policies = read_policies(common, arguments.policy);
    if (!policies) {
        return exit_code_of_bad_input();
    }
    arguments.policies = std::move(*policies);
    ::signal(SIGPIPE, SIG_IGN); // a run is not over because nobody reads its progress
    Ended worst;
    for (const ScenarioOrSuite& file : files) {
        const Ended one = std::visit([&](const auto& what) { return run_file(common, arguments, what); }, file);
        worst = {std::max(worst.exit_code, one.exit_code), one.stop};
        if (worst.stop) {
            break;
        }
    }
    return worst.exit_code;
}

} // namespace

void add_run_command(CLI::App& app, CommonOptions& common, const Choose& choose) {
    CLI::App* command =
        app.add_subcommand("run", "Run scenarios and suites: build the cluster, break it, measure, report");
    auto arguments = std::make_shared<RunArguments>();
    command->add_option("FILE", arguments->scenarios, "Scenario or suite files (YAML), - for standard input")
        ->required();
    command->add_option("--on", arguments->on, "Cluster to run on: lab")->capture_default_str();
    CLI::Option* seed = command->add_option("--seed", arguments->seed, "Seed of every random choice")
                            ->check(CLI::Validator(what_is_wrong_with_seed, ""))
                            ->capture_default_str();
    command->add_option("--repeat", arguments->repeat, "Run each scenario so many times and report the spread")
        ->check(CLI::Range(1, 10000))
        ->capture_default_str();
    command->add_flag("--dry-run", arguments->dry_run,
                      "Build the cluster, check every fault, print what would be changed and how it would be undone");
    command->add_option("--policy", arguments->policy, "Site policy to obey besides those of this host")
        ->type_name("FILE");
    command->add_flag("--no-faults", arguments->no_faults, "Measure only; apply no fault");
    CLI::Option* resume = command->add_flag("--resume{}", arguments->suites.resume_id,
                                            "Go on with the last suite of that name, or with the one of --resume=ID");
    command->add_flag("--retry-failed", arguments->suites.retry_failed,
                      "When resuming, run the items again that did not pass");
    command->add_option("--only", arguments->suites.only, "Of suites, run the items whose name matches the pattern")
        ->type_name("GLOB")
        ->check(not_empty);
    command->callback([&common, arguments, choose, seed, resume] {
        arguments->suites.database_given = !common.database.empty();
        arguments->suites.policy = arguments->policy;
        arguments->suites.resume = resume->count() > 0;
        if (seed->count() > 0) {
            arguments->suites.seed = arguments->seed;
        }
        choose([&common, arguments] {
            if (!choose_database(common)) {
                return static_cast<int>(exit_code_of_bad_usage());
            }
            return run(common, *arguments);
        });
    });
}

} // namespace railbreak::cli
