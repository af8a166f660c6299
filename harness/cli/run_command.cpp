#include <cstdio>
#include <memory>

#include <unistd.h>

#include <fmt/format.h>

#include "collective/algorithm.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/scenario_input.hpp"
#include "harness/controller/run.hpp"
#include "harness/record/location.hpp"
#include "harness/record/reader.hpp"
#include "reports/json.hpp"
#include "reports/table.hpp"

namespace railbreak::cli {

namespace {

struct RunArguments {
    std::vector<std::string> scenarios;
    std::uint64_t seed = 1;
    std::int32_t repeat = 1;
    bool no_faults = false;
    std::string on = "lab";
};

/// Prints the report of a finished run on stdout.
Result<void> print_report(const CommonOptions& common, const std::string& run_id) {
    Result<record::RunReader> reader = record::RunReader::open_readonly(common.database);
    if (!reader) {
        return fail(std::move(reader.error()));
    }
    Result<record::RunData> data = reader->load_run(run_id);
    if (!data) {
        return fail(std::move(data.error()));
    }
    const std::string text =
        common.json ? reports::run_json(*data) : reports::run_table(*data, {.colour = wants_colour(STDOUT_FILENO)});
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    return {};
}

int run_one(const CommonOptions& common, const RunArguments& arguments, const scenarios::Scenario& scenario) {
    controller::Progress progress(::isatty(STDERR_FILENO) == 1);
    const controller::RunOptions options{.executable = common.executable,
                                         .database = common.database,
                                         .seed = arguments.seed,
                                         .no_faults = arguments.no_faults,
                                         .command_line = common.command_line};
    Result<controller::RunResult> result = controller::run_scenario(scenario, options, progress);
    if (!result) {
        progress.end_line();
        return tell(result.error());
    }
    if (Result<void> printed = print_report(common, result->run_id); !printed) {
        return tell(printed.error());
    }
    if (result->exit_code != 0) {
        fmt::print(stderr, "railbreak: {}: {}\n", result->run_id, result->reason);
    }
    return result->exit_code;
}

int run(CommonOptions& common, const RunArguments& arguments) {
    if (arguments.on != "lab") {
        return tell(Error(ErrorKind::kUsage, fmt::format("cannot run on \"{}\"", arguments.on))
                        .advise("--on takes lab, the cluster of network namespaces on this machine"));
    }
    std::vector<scenarios::Scenario> scenarios;
    for (const std::string& path : arguments.scenarios) {
        std::optional<scenarios::Scenario> scenario = read_scenario(path); // all are checked before the first runs
        if (!scenario) {
            return exit_code_of_bad_input();
        }
        scenarios.push_back(std::move(*scenario));
    }
    int worst = 0;
    for (const scenarios::Scenario& scenario : scenarios) {
        for (std::int32_t i = 0; i < arguments.repeat; ++i) {
            worst = std::max(worst, run_one(common, arguments, scenario));
            if (worst >= 3) {
                return worst; // refused, aborted or not torn down: nothing further may run on this cluster
            }
        }
    }
    return worst;
}

} // namespace

void add_run_command(CLI::App& app, CommonOptions& common, const Choose& choose) {
    CLI::App* command = app.add_subcommand("run", "Run scenarios: build the cluster, break it, measure, report");
    auto arguments = std::make_shared<RunArguments>();
    command->add_option("SCENARIO", arguments->scenarios, "Scenario files (YAML), - for standard input")->required();
    command->add_option("--on", arguments->on, "Cluster to run on: lab")->capture_default_str();
    command->add_option("--seed", arguments->seed, "Seed of every random choice")->capture_default_str();
    command->add_option("--repeat", arguments->repeat, "Run each scenario so many times")
        ->check(CLI::Range(1, 10000))
        ->capture_default_str();
    command->add_flag("--no-faults", arguments->no_faults, "Measure only; apply no fault");
    command->callback([&common, arguments, choose] {
        choose([&common, arguments] {
            if (!choose_database(common)) {
                return static_cast<int>(exit_code_of_bad_usage());
            }
            return run(common, *arguments);
        });
    });
}

} // namespace railbreak::cli
