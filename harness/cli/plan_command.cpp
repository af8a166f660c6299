#include <iostream>
#include <memory>

#include <fmt/format.h>

#include "base/console.hpp"
#include "collective/planner.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/offered.hpp"
#include "harness/cli/plan_arguments.hpp"
#include "harness/cli/plan_output.hpp"
#include "harness/cli/plan_sweep.hpp"
#include "harness/planner/export.hpp"

namespace railbreak::cli {

namespace {

void tell_of_simulation(const collective::Schedule& schedule, std::int64_t flows) {
    tell_user(fmt::format("railbreak: simulating {} flows of {}\n", flows, schedule.name()));
}

int run_sweep(const CommonOptions& common, PlanArguments arguments) {
    if (!arguments.slow.empty() || !arguments.dead.empty()) {
        return tell(common, Error(ErrorKind::kUsage, "--sweep slows servers itself, which --slow and --dead contradict")
                                .advise("use m=NUMBER,ell=SLOWDOWN in the sweep"));
    }
    if (arguments.servers == 0) {
        arguments.servers = 2; // replaced by the sweep's
    }
    Result<collective::PlannerInput> input = read_plan_arguments(arguments);
    if (!input) {
        return tell(common, input.error());
    }
    input->on_long_simulation = tell_of_simulation;
    const Result<SweepSpec> spec = parse_sweep(arguments.sweep, *input);
    if (!spec) {
        return tell(common, spec.error());
    }
    const Result<std::vector<SweepRow>> rows = sweep(*spec, *input);
    if (!rows) {
        return tell(common, rows.error());
    }
    print_result(common.json     ? sweep_json(*rows, *input)
                 : arguments.csv ? sweep_csv(*rows)
                                 : sweep_table(*rows, *input));
    return 0;
}

/// The plan to draw or export: that of the only algorithm asked for, else the recommended one.
Result<const collective::PlanRow*> row_to_export(const collective::Choice& choice) {
    const std::optional<std::size_t> index = choice.rows.size() == 1 ? std::size_t{0} : choice.recommended;
    if (!index) {
        return fail(ErrorKind::kUsage, fmt::format("there is no plan to export: {}", choice.why));
    }
    const collective::PlanRow& row = choice.rows[*index];
    return row.plan ? Result<const collective::PlanRow*>(&row) : tl::unexpected(row.plan.error());
}

/// Writes the picture and the export that were asked for; the export to stdout when no file was named for it, step by
/// step, since a large plan is larger than its steps in memory.
Result<void> export_row(const PlanArguments& arguments, const collective::PlannerInput& input,
                        const collective::Evaluation& evaluation, const collective::PlanRow& row) {
    const collective::SimulationOptions simulation = collective::simulation_of(input);
    const bool exclusive = input.model == collective::PortModel::kExclusive;
    const collective::Bound& bound = collective::binding(exclusive ? evaluation.exclusive : evaluation.fluid);
    const planner::PlanExport plan{*row.plan->schedule, simulation,
                                   planner::BoundTime{evaluation.bound_time, bound.name}};
    Result<planner::Notes> notes = planner::Notes{};
    if (!arguments.gantt.empty()) {
        notes = planner::export_plan(planner::Format::kGantt, plan, std::filesystem::path(arguments.gantt));
    }
    if (notes && !arguments.export_format.empty()) {
        const Result<planner::Format> format = planner::parse_format(arguments.export_format);
        if (!format) {
            return tl::unexpected(format.error());
        }
        notes = arguments.output.empty() ? planner::export_plan(*format, plan, std::cout)
                                         : planner::export_plan(*format, plan, std::filesystem::path(arguments.output));
    }
    if (!notes) {
        return tl::unexpected(notes.error());
    }
    for (const std::string& note : *notes) {
        tell_user(fmt::format("railbreak: {}\n", note));
    }
    return {};
}

/// What contradicts itself among the options of output.
Result<void> check_output(const PlanArguments& arguments) {
    const bool exports = !arguments.export_format.empty() || !arguments.gantt.empty();
    if (!arguments.sweep.empty() && exports) {
        return fail(Error(ErrorKind::kUsage, "--gantt and --export are for one plan, not for a sweep")
                        .advise("leave --sweep out"));
    }
    if (arguments.sweep.empty() && arguments.csv) {
        return fail(Error(ErrorKind::kUsage, "--csv is for --sweep").advise("use --json"));
    }
    if (arguments.export_format.empty() && !arguments.output.empty()) {
        return fail(Error(ErrorKind::kUsage, "--output is for --export").advise("use --export FORMAT --output FILE"));
    }
    if (const Result<planner::Format> format = planner::parse_format(arguments.export_format);
        !format && !arguments.export_format.empty()) {
        return tl::unexpected(format.error());
    }
    return {};
}

int run_plan(const CommonOptions& common, const PlanArguments& arguments) {
    if (const Result<void> fine = check_output(arguments); !fine) {
        return tell(common, fine.error());
    }
    if (!arguments.sweep.empty()) {
        return run_sweep(common, arguments);
    }
    Result<collective::PlannerInput> input = read_plan_arguments(arguments);
    if (!input) {
        return tell(common, input.error());
    }
    input->on_long_simulation = tell_of_simulation;
    const Result<collective::Evaluation> evaluation = collective::evaluate(*input);
    if (!evaluation) {
        return tell(common, evaluation.error());
    }
    const auto& rows = evaluation->choice.rows;
    if (!input->request.options.empty() && !rows.front().plan) { // what was asked for exactly there is not
        return tell(common, rows.front().plan.error());
    }
    if (!arguments.gantt.empty() || !arguments.export_format.empty()) {
        const Result<const collective::PlanRow*> row = row_to_export(evaluation->choice);
        if (!row) {
            return tell(common, row.error());
        }
        if (const Result<void> written = export_row(arguments, *input, *evaluation, **row); !written) {
            return tell(common, written.error());
        }
        if (!arguments.export_format.empty() && arguments.output.empty()) {
            return 0; // the plan is the answer
        }
    }
    const std::optional<collective::BreakEven> break_even = collective::break_even(*input, evaluation->choice);
    print_result(common.json ? plan_json(*input, *evaluation, break_even) : plan_text(*input, *evaluation, break_even));
    return 0;
}

} // namespace

namespace {

/// Which cluster, which damage, which message.
void add_question(CLI::App& plan, PlanArguments& arguments) {
    plan.add_option("--servers", arguments.servers, "Servers, 2 to 65536; a sweep over p may leave it out")
        ->type_name("N");
    plan.add_option("--ranks-per-server", arguments.ranks_per_server, "Ranks of each server, 1 to 64")
        ->type_name("N")
        ->capture_default_str();
    plan.add_option("--nics", arguments.nics, "NICs of each server, 1 to 64; default: as many as ranks")
        ->type_name("N");
    plan.add_option("--nvlink", arguments.nvlink,
                    "Bandwidth of a rank's intra-host port over that of a NIC; default: without limit")
        ->type_name("RATIO");
    plan.add_option("--bytes", arguments.bytes, "Size of the vector on each rank, as in 1GiB")
        ->type_name("SIZE")
        ->required();
    plan.add_option("--rate", arguments.rate, "Payload rate of a healthy NIC in one direction, as in 400Gbit/s")
        ->type_name("RATE")
        ->required();
    plan.add_option("--slow", arguments.slow,
                    "Slow servers: HOST:FRACTION of the bandwidth that is left, as in 3:1/2,7:7/8; one direction: "
                    "3:send=1/2; each its own: 3:send=1/2+receive=3/4")
        ->type_name("HOST:FRACTION,...")
        ->delimiter(',');
    plan.add_option("--dead", arguments.dead, "Dead NICs, the others of the server at full rate, as in 3:0,3:1")
        ->type_name("HOST:NIC,...")
        ->delimiter(',');
    plan.add_option("--latency", arguments.latency, "From the end of a flow until its data can be used")
        ->type_name("TIME")
        ->capture_default_str();
    plan.add_option("--overhead", arguments.overhead, "Time that every flow costs its ports beside the transfer")
        ->type_name("TIME")
        ->capture_default_str();
    plan.add_option("--model", arguments.model,
                    "How flows share a port: exclusive (one at a time) or fluid (as kernel TCP does)")
        ->check(offered({"exclusive", "fluid"}))
        ->type_name("MODEL")
        ->capture_default_str();
}

std::vector<std::string> algorithm_names() {
    std::vector<std::string> names;
    for (const collective::Algorithm* algorithm : collective::plannable_algorithms()) {
        names.emplace_back(algorithm->name());
    }
    return names;
}

/// What is done about it, and how it is shown.
void add_answer(CLI::App& plan, PlanArguments& arguments) {
    plan.add_option("--algorithm", arguments.algorithms, "Only these algorithms; default: all")
        ->check(offered(algorithm_names()))
        ->type_name("NAME,...")
        ->delimiter(',');
    plan.add_option("--option", arguments.options, "A parameter of the one algorithm asked for, as in k=16")
        ->type_name("NAME=VALUE");
    plan.add_flag("--simulate", arguments.simulate, "Also simulate every schedule, flow by flow");
    plan.add_flag("--tune", arguments.tune,
                  "Simulate OptCC with other plans and numbers of segments too, and keep the fastest");
    plan.add_option("--sweep", arguments.sweep,
                    "A table over p (servers), m (slow servers), ell (their slowdown) and bytes, as in "
                    "p=16..256,ell=1..4; LOW..HIGH doubles, LOW..HIGH:STEP adds, + joins")
        ->type_name("SPEC");
    plan.add_flag("--csv", arguments.csv, "The sweep's table as CSV");
    plan.add_option("--gantt", arguments.gantt, "Draw the recommended plan, or that of the only --algorithm")
        ->type_name("FILE.svg");
    plan.add_option("--export", arguments.export_format,
                    "Print that plan instead of the answer: json, msccl-xml, chrome-trace or svg")
        ->check(offered({"json", "msccl-xml", "chrome-trace", "svg"}))
        ->type_name("FORMAT");
    plan.add_option("-o,--output", arguments.output, "Write the exported plan into this file")->type_name("FILE");
}

} // namespace

void add_plan_command(CLI::App& app, CommonOptions& common, const Choose& choose) {
    CLI::App* plan = app.add_subcommand(
        "plan", "Say what is best possible on a damaged cluster, what each algorithm takes, and which to run");
    auto arguments = std::make_shared<PlanArguments>();
    add_question(*plan, *arguments);
    add_answer(*plan, *arguments);
    plan->callback(
        [&common, arguments, choose] { choose([&common, arguments] { return run_plan(common, *arguments); }); });
}

} // namespace railbreak::cli
