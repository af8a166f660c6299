#include "harness/cli/suite_command.hpp"

#include <cstdio>

#include <unistd.h>

#include <fmt/format.h>

#include "base/console.hpp"
#include "harness/controller/suite_run.hpp"
#include "harness/record/reader.hpp"
#include "reports/suite_json.hpp"
#include "reports/suite_table.hpp"
#include "scenarios/suite_expand.hpp"

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

/// `railbreak run` with what chose the suite's plan, for the items that match a pattern (empty: all).
std::string run_command(const CommonOptions& common, const scenarios::SuitePlan& plan, const SuiteArguments& arguments,
                        const std::string& options, const std::string& only) {
    std::string command = "railbreak run" + options;
    if (arguments.database_given) {
        command += " --db " + shell_word(common.database.string());
    }
    if (arguments.seed) {
        command += fmt::format(" --seed {}", *arguments.seed);
    }
    if (!only.empty()) {
        command += " --only " + shell_word(only);
    }
    if (!arguments.policy.empty()) {
        command += " --policy " + shell_word(arguments.policy);
    }
    return command + (plan.faults ? "" : " --no-faults") + " " + shell_word(plan.source_name);
}

} // namespace

std::string item_command(const CommonOptions& common, const scenarios::SuitePlan& plan, const SuiteArguments& arguments,
                         const scenarios::SuiteItem& item) {
    return run_command(common, plan, arguments, "", scenarios::pattern_of(item.name));
}

std::string resume_command(const CommonOptions& common, const scenarios::SuitePlan& plan,
                           const SuiteArguments& arguments, const std::string& suite_id) {
    return run_command(common, plan, arguments, fmt::format(" --resume={}", suite_id), arguments.only);
}

int run_suite(const CommonOptions& common, const scenarios::SuitePlan& plan, const controller::RunOptions& run,
              const SuiteArguments& arguments, bool& stop) {
    controller::Progress progress(::isatty(STDERR_FILENO) == 1);
    controller::SuiteOptions options{.run = run, .retry_failed = arguments.retry_failed};
    options.item_command = [&](const scenarios::SuiteItem& item) {
        return item_command(common, plan, arguments, item);
    };
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
