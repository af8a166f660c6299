#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <span>
#include <sstream>
#include <string_view>

#include <poll.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/console.hpp"
#include "base/json_text.hpp"
#include "base/version.hpp"
#include "harness/analyse/verdict.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/everyday_commands.hpp"
#include "harness/launch/child.hpp"

namespace railbreak::cli {

int tell(const Error& error) {
    tell_user(fmt::format("railbreak: {}\n", error.to_line()));
    return static_cast<int>(analyse::exit_code_of(error.kind()));
}

int tell(const CommonOptions& common, const Error& error) {
    if (common.json) {
        print_error_json(error);
    }
    return tell(error);
}

void print_error_json(const Error& error) {
    nlohmann::ordered_json facts = nlohmann::ordered_json::object();
    for (const auto& [name, value] : error.facts()) {
        facts[name] = value;
    }
    const nlohmann::ordered_json document{{"schema", "railbreak-error"},
                                          {"version", 1},
                                          {"kind", to_string(error.kind())},
                                          {"exit_code", static_cast<int>(analyse::exit_code_of(error.kind()))},
                                          {"message", error.message()},
                                          {"advice", error.advice()},
                                          {"facts", facts}};
    print_result(json_text(document));
}

void print_result(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
}

Result<void> result_written() {
    errno = 0;
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) {
        return {};
    }
    const std::string_view why = errno != 0 ? ::strerrordesc_np(errno) : "an earlier write failed";
    // Asked of the descriptor, because the failure may be of an earlier write, whose errno is gone.
    pollfd reader{STDOUT_FILENO, POLLOUT, 0};
    if (::poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR) != 0) {
        return {};
    }
    return fail(ErrorKind::kInput, fmt::format("cannot write the result to standard output: {}", why));
}

bool wants_colour(int fd) {
    const char* no_colour = std::getenv("NO_COLOR");
    const char* terminal = std::getenv("TERM");
    return ::isatty(fd) == 1 && (no_colour == nullptr || *no_colour == '\0') &&
           (terminal != nullptr && std::string_view(terminal) != "dumb");
}

namespace {

std::string join_command_line(int argc, char** argv) {
    std::string line;
    for (int i = 0; i < argc; ++i) {
        line += fmt::format("{}{}", i == 0 ? "" : " ", argv[i]); // NOLINT: argv is what it is
    }
    return line;
}

std::string version_text() {
    const BuildInfo build = build_info();
    return fmt::format("railbreak {} (commit {}, {}, {})\noptional parts: none built in", build.version, build.commit,
                       build.compiler, build.build_type);
}

void print_version_json() {
    const BuildInfo build = build_info();
    const nlohmann::ordered_json document{{"schema", "railbreak-version"},      {"version", 1},
                                          {"railbreak_version", build.version}, {"commit", build.commit},
                                          {"compiler", build.compiler},         {"build_type", build.build_type}};
    print_result(document.dump(2) + "\n");
}

/// What is wrong with the command line. Where a command is missing because a word is none, CLI11 tells only the former.
std::string reason_of(const CLI::App& app, const CLI::ParseError& error) {
    std::vector<std::string> unknown = app.remaining(true);
    std::erase(unknown, "--"); // it only ends the options
    if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::RequiredError) || unknown.empty()) {
        return error.what();
    }
    return fmt::format("there is no {} \"{}\"", unknown.front().starts_with('-') ? "option" : "command",
                       unknown.front());
}

/// Whether --json is among the words of a command line that is not understood.
bool asks_for_json(int argc, char** argv) {
    const std::span words(argv, static_cast<std::size_t>(argc));
    return std::ranges::any_of(words, [](const char* word) { return std::string_view(word) == "--json"; });
}

/// What a command has come to, unless it claims success and its result is lost.
int with_result_written(int exit_code) {
    const Result<void> written = result_written();
    if (written) {
        return exit_code;
    }
    const int lost = tell(written.error());
    return exit_code != 0 ? exit_code : lost;
}

/// --help and --version.
void print_about(const CLI::App& app, const CLI::ParseError& asked, bool json) {
    if (asked.get_name() == "CallForVersion" && json) {
        print_version_json();
        return;
    }
    std::ostringstream text;
    (void)app.exit(asked, text, text);
    print_result(text.str());
}

int parse_and_run(int argc, char** argv) {
    CommonOptions common;
    common.command_line = join_command_line(argc, argv);
    if (Result<std::string> path = launch::own_executable(); path) {
        common.executable = *path;
    } else {
        return tell(path.error());
    }
    CLI::App app{"railbreak breaks the rails of a cluster on purpose and measures what a collective does about it.\n"
                 "Exit codes: 0 pass, 1 fail, 2 inconclusive, 3 refused, 4 aborted and reverted, 5 teardown not "
                 "verified, 64 bad usage or input, 70 internal error.",
                 "railbreak"};
    app.set_version_flag("--version", version_text());
    app.add_flag("--json", common.json, "Results as JSON on stdout");
    app.add_option("--db", common.database, "Database file")->type_name("FILE")->check(not_empty);
    app.add_flag("-v,--verbose", common.verbosity, "Say more on stderr (repeat for more)");
    app.require_subcommand(1);
    app.fallthrough();
    Action action;
    const Choose choose = [&](Action chosen) { action = std::move(chosen); };
    add_run_command(app, common, choose);
    add_plan_command(app, common, choose);
    add_simulate_command(app, common, choose);
    add_scenario_commands(app, common, choose);
    add_report_commands(app, common, choose);
    add_show_command(app, common, choose);
    add_events_command(app, common, choose);
    add_compare_command(app, common, choose);
    add_trend_command(app, common, choose);
    add_gate_command(app, common, choose);
    add_import_command(app, common, choose);
    add_db_commands(app, common, choose);
    add_baseline_command(app, common, choose);
    add_lab_commands(app, common, choose);
    add_doctor_command(app, common, choose);
    add_recover_commands(app, common, choose);
    add_completion_command(app, common, choose);
    add_man_command(app, common, choose);
    add_host_commands(app, common, choose);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
            print_about(app, error, asks_for_json(argc, argv));
            return with_result_written(0);
        }
        common.json = asks_for_json(argc, argv);
        return with_result_written(
            tell(common, Error(ErrorKind::kUsage, reason_of(app, error)).advise("see railbreak --help")));
    }
    return with_result_written(action ? action() : static_cast<int>(analyse::ExitCode::kUsage));
}

} // namespace

} // namespace railbreak::cli

int main(int argc, char** argv) {
    railbreak::occupy_standard_descriptors();
    try {
        return railbreak::cli::parse_and_run(argc, argv);
    } catch (const std::exception& exception) {
        std::fprintf(stderr, "railbreak: internal error: %s\n", exception.what());
        return 70;
    }
}
