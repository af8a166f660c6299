#include "harness/cli/suite_command.hpp"

#include <cstdio>

#include <unistd.h>

#include <fmt/format.h>

#include "base/console.hpp"
#include "harness/controller/suite_run.hpp"
#include "harness/record/reader.hpp"
#include "reports/suite_json.hpp"
#include "reports/suite_table.hpp"

namespace railbreak::cli {

namespace {

/// A word as a shell takes it for one word.
std::string shell_word(const std::string& word) {
    constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+=-";
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
        return word;
    }
    std::string quoted = "'";
    for (const char c : word) {
        quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    }
    return quoted + "'";
}

Result<record::SuiteData> read_back(const CommonOptions& common, const std::string& suite_id) {
    Result<record::RunReader> reader = record::RunReader::open_readonly(common.database);
    return reader ? reader->load_suite(suite_id) : Result<record::SuiteData>(fail(std::move(reader.error())));
}

} // namespace

std::string resume_command(const CommonOptions& common, const scenarios::SuitePlan& plan,
                           const SuiteArguments& arguments, const std::string& suite_id) {
    std::string command = fmt::format("railbreak run --resume={}", suite_id);
    if (arguments.database_given) {
        command += " --db " + shell_word(common.database.string());
    }
    if (arguments.seed) {
        command += fmt::format(" --seed {}", *arguments.seed);
    }
    if (!arguments.only.empty()) {
        command += " --only " + shell_word(arguments.only);
    }
    return command + (plan.faults ? "" : " --no-faults") + " " + shell_word(plan.source_name);
}

int run_suite(const CommonOptions& common, const scenarios::SuitePlan& plan, const controller::RunOptions& run,
              const SuiteArguments& arguments, bool& stop) {
    controller::Progress progress(::isatty(STDERR_FILENO) == 1);
    controller::SuiteOptions options{.run = run, .retry_failed = arguments.retry_failed};
    if (arguments.resume) {
        options.resume = arguments.resume_id;
    }
    const Result<controller::SuiteResult> result = controller::run_suite(plan, options, progress);
    progress.end_line();
    if (!result) {
        stop = true;
        return tell(common, result.error());
    }
    const Result<record::SuiteData> data = read_back(common, result->suite_id);
    if (!data) {
        stop = true;
        return tell(common, data.error());
    }
    print_result(common.json ? reports::suite_json(*data) : reports::suite_table(*data));
    std::fflush(stdout); // before the next line on stderr, and before the next run
    if (result->exit_code != 0) {
        tell_user(fmt::format("railbreak: {}: {}\n", result->suite_id, scenarios::one_line(result->reason)));
    }
    if (result->left > 0) {
        tell_user(fmt::format("railbreak: {} of {} items are left; go on with: {}\n", result->left, plan.items.size(),
                              resume_command(common, plan, arguments, result->suite_id)));
    }
    stop = result->broken_off;
    return result->exit_code;
}

} // namespace railbreak::cli
