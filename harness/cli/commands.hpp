// The subcommands. Each pair of functions below adds one command to the command line and runs it; main() only parses.
// A command's function returns the exit code; every failure has been told on stderr by then, in one line.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "base/error.hpp"

namespace railbreak::cli {

/// Options that every command takes.
struct CommonOptions {
    bool json = false;
    std::filesystem::path database; ///< empty: the default place
    int verbosity = 0;
    std::string executable;   ///< absolute path of this binary
    std::string command_line; ///< as typed, for the record
};

/// Runs a command after parsing; returns the exit code.
using Action = std::function<int()>;
/// Called by a command when it was chosen.
using Choose = std::function<void(Action)>;

void add_run_command(CLI::App& app, CommonOptions& common, const Choose& choose);
void add_plan_command(CLI::App& app, CommonOptions& common, const Choose& choose);
void add_simulate_command(CLI::App& app, CommonOptions& common, const Choose& choose);
void add_scenario_commands(CLI::App& app, CommonOptions& common, const Choose& choose); ///< validate, schema
void add_report_commands(CLI::App& app, CommonOptions& common, const Choose& choose);   ///< report, list
void add_compare_command(CLI::App& app, CommonOptions& common, const Choose& choose);
void add_trend_command(CLI::App& app, CommonOptions& common, const Choose& choose);
void add_gate_command(CLI::App& app, CommonOptions& common, const Choose& choose);
void add_import_command(CLI::App& app, CommonOptions& common, const Choose& choose);
void add_db_commands(CLI::App& app, CommonOptions& common, const Choose& choose); ///< db check|prune|export
void add_baseline_command(CLI::App& app, CommonOptions& common, const Choose& choose);
void add_lab_commands(CLI::App& app, CommonOptions& common, const Choose& choose); ///< lab up|down|list|exec
void add_doctor_command(CLI::App& app, CommonOptions& common, const Choose& choose);
void add_recover_commands(CLI::App& app, CommonOptions& common, const Choose& choose); ///< recover, halt
void add_host_commands(CLI::App& app, CommonOptions& common, const Choose& choose);    ///< agent, guard, rank

/// For options whose value may not be empty: a variable of a script that is not set must not mean "as if not given".
[[nodiscard]] inline std::string not_empty(const std::string& value) {
    return value.empty() ? "its value is empty" : "";
}

/// Writes a result to stdout. A failure is kept for result_written().
void print_result(std::string_view text);
/// Flushes stdout; the Error when something that was printed did not arrive. A reader that closed its end early, as
/// `| head` does, has what it wanted.
[[nodiscard]] Result<void> result_written();
/// Tells an Error in one line on stderr and gives the exit code of its kind.
[[nodiscard]] int tell(const Error& error);
/// The same for an Error that stands in the place of a result: with --json it is the result, an object of schema
/// "railbreak-error" on stdout.
[[nodiscard]] int tell(const CommonOptions& common, const Error& error);
/// Prints that object alone, for a failure that was told already.
void print_error_json(const Error& error);
/// Whether stdout (or stderr) is a terminal that wants colours: NO_COLOR and TERM=dumb are honoured.
[[nodiscard]] bool wants_colour(int fd);

} // namespace railbreak::cli
