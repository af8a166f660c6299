#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "base/console.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/scenario_input.hpp"
#include "harness/record/reader.hpp"
#include "harness/simulate/simulate_run.hpp"
#include "reports/json.hpp"
#include "reports/table.hpp"

namespace railbreak::cli {

namespace {

struct SimulateArguments {
    std::vector<std::string> scenarios;
    std::uint64_t seed = 1;
    std::string model{to_string(collective::PortModel::kFluid)};
    std::string overhead = to_string(simulate::SimulateOptions{}.flow_overhead);
    std::string latency = to_string(simulate::SimulateOptions{}.flow_latency);
    bool no_cut_through = false;
    std::string sharing{to_string(simulate::SimulateOptions{}.sharing)};
    std::string send_buffer = to_string(simulate::SimulateOptions{}.send_buffer);
    std::string receive_buffer = to_string(simulate::SimulateOptions{}.receive_buffer);
};

/// Empty for a duration that the simulator takes.
std::string what_is_wrong_with_duration(const std::string& text) {
    constexpr Nanoseconds kLongest = std::chrono::hours(1);
    const Result<Nanoseconds> duration = parse_duration(text);
    if (!duration) {
        return duration.error().to_line();
    }
    return *duration <= kLongest ? "" : fmt::format("\"{}\" is too long; at most an hour", text);
}

/// Empty for a size that the simulator takes.
std::string what_is_wrong_with_size(const std::string& text) {
    constexpr ByteCount kMost = ByteCount::bytes(std::uint64_t{1} << 50U);
    const Result<ByteCount> size = parse_byte_count(text);
    if (!size) {
        return size.error().to_line();
    }
    return *size <= kMost ? "" : fmt::format("\"{}\" is too much; at most 1024 TiB", text);
}

Result<simulate::SimulateOptions> options_of(const CommonOptions& common, const SimulateArguments& arguments) {
    simulate::SimulateOptions options{
        .database = common.database, .seed = arguments.seed, .command_line = common.command_line};
    const bool fluid = arguments.model == to_string(collective::PortModel::kFluid);
    options.model = fluid ? collective::PortModel::kFluid : collective::PortModel::kExclusive;
    options.cut_through = fluid && !arguments.no_cut_through;
    const Result<Nanoseconds> overhead = parse_duration(arguments.overhead);
    const Result<Nanoseconds> latency = parse_duration(arguments.latency);
    if (!overhead || !latency) {
        return tl::unexpected(overhead ? latency.error() : overhead.error());
    }
    options.flow_overhead = *overhead;
    options.flow_latency = *latency;
    const bool max_min = arguments.sharing == to_string(collective::PortSharing::kMaxMin);
    options.sharing = max_min ? collective::PortSharing::kMaxMin : collective::PortSharing::kWindows;
    const Result<ByteCount> send_buffer = parse_byte_count(arguments.send_buffer);
    const Result<ByteCount> receive_buffer = parse_byte_count(arguments.receive_buffer);
    if (!send_buffer || !receive_buffer) {
        return tl::unexpected(send_buffer ? receive_buffer.error() : send_buffer.error());
    }
    options.send_buffer = *send_buffer;
    options.receive_buffer = *receive_buffer;
    return options;
}

/// One scenario, with its report on stdout. Returns the exit code.
int simulate_one(const CommonOptions& common, const scenarios::Scenario& scenario,
                 const simulate::SimulateOptions& options) {
    const Result<simulate::SimulatedRun> run = simulate::simulate_scenario(scenario, options);
    if (!run) {
        return tell(common, run.error());
    }
    const Result<record::RunReader> reader = record::RunReader::open_readonly(common.database);
    if (!reader) {
        return tell(common, reader.error());
    }
    const Result<record::RunData> data = reader->load_run(run->run_id);
    if (!data) {
        return tell(common, data.error());
    }
    print_result(common.json ? reports::run_json(*data)
                             : reports::run_table(*data, {.colour = wants_colour(STDOUT_FILENO)}));
    if (run->exit_code != 0) {
        tell_user(fmt::format("railbreak: {}: {}\n", run->run_id, run->reason));
    }
    return run->exit_code;
}

int simulate_all(const CommonOptions& common, const SimulateArguments& arguments) {
    const Result<simulate::SimulateOptions> options = options_of(common, arguments);
    if (!options) {
        return tell(common, options.error());
    }
    std::vector<scenarios::Scenario> scenarios;
    for (const std::string& path : arguments.scenarios) {
        std::optional<scenarios::Scenario> scenario = read_scenario(common, path); // all checked first
        if (!scenario) {
            return exit_code_of_bad_input();
        }
        scenarios.push_back(std::move(*scenario));
    }
    int worst = 0;
    for (const scenarios::Scenario& scenario : scenarios) {
        worst = std::max(worst, simulate_one(common, scenario, *options));
    }
    return worst;
}

} // namespace

void add_simulate_command(CLI::App& app, CommonOptions& common, const Choose& choose) {
    CLI::App* command = app.add_subcommand(
        "simulate", "Play scenarios on a model of the cluster: same plans and phases as run, nothing is touched");
    auto arguments = std::make_shared<SimulateArguments>();
    command->add_option("SCENARIO", arguments->scenarios, "Scenario files (YAML), - for standard input")
        ->type_name("FILE")
        ->required();
    command
        ->add_option("--model", arguments->model,
                     "How flows share a port: fluid (its rate is divided among them) or exclusive (one at a time)")
        ->check(CLI::IsMember({to_string(collective::PortModel::kFluid), to_string(collective::PortModel::kExclusive)}))
        ->capture_default_str();
    command->add_option("--overhead", arguments->overhead, "What every flow costs its port besides its bytes")
        ->check(CLI::Validator(what_is_wrong_with_duration, "DURATION"))
        ->capture_default_str();
    command->add_option("--latency", arguments->latency, "From the end of a flow until its data can be used")
        ->check(CLI::Validator(what_is_wrong_with_duration, "DURATION"))
        ->capture_default_str();
    command->add_flag("--no-cut-through", arguments->no_cut_through,
                      "Forward only what has arrived completely (the exclusive model always does)");
    command
        ->add_option("--sharing", arguments->sharing,
                     "Fluid: how flows divide a port: windows (as TCP does) or max-min (evenly)")
        ->check(
            CLI::IsMember({to_string(collective::PortSharing::kWindows), to_string(collective::PortSharing::kMaxMin)}))
        ->capture_default_str();
    command
        ->add_option("--send-buffer", arguments->send_buffer,
                     "Fluid: how much a sender may leave on its way to a peer and go on; 0B: it waits for the end")
        ->check(CLI::Validator(what_is_wrong_with_size, "SIZE"))
        ->capture_default_str();
    command
        ->add_option("--receive-buffer", arguments->receive_buffer,
                     "Fluid: how much of a peer may come in before the receiver is ready for it")
        ->check(CLI::Validator(what_is_wrong_with_size, "SIZE"))
        ->capture_default_str();
    command->add_option("--seed", arguments->seed, "Seed of every random choice")
        ->check(CLI::Validator(what_is_wrong_with_seed, ""))
        ->capture_default_str();
    command->callback([&common, arguments, choose] {
        choose([&common, arguments] {
            if (!choose_database(common)) {
                return static_cast<int>(exit_code_of_bad_usage());
            }
            return simulate_all(common, *arguments);
        });
    });
}

} // namespace railbreak::cli
