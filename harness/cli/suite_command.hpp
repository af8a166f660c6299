// Suites on the command line of `railbreak run`.
#pragma once

#include <optional>
#include <string>

#include "harness/cli/commands.hpp"
#include "harness/controller/run.hpp"
#include "scenarios/suite.hpp"

namespace railbreak::cli {

/// What the command line says about suites beside what it says about runs.
struct SuiteArguments {
    bool resume = false;
    std::string resume_id; ///< empty: the last suite of that name
    bool retry_failed = false;
    std::string only; ///< already applied to the plan
    std::optional<std::uint64_t> seed;
    bool database_given = false; ///< --db stands on the command line
    std::string policy;          ///< --policy as given; empty: not given
};

/// Runs a suite, or what is left of one, and prints its report on stdout. `stop`: nothing further may run.
[[nodiscard]] int run_suite(const CommonOptions& common, const scenarios::SuitePlan& plan,
                            const controller::RunOptions& run, const SuiteArguments& arguments, bool& stop);

/// The command that runs one item of a suite by itself, with the same plan, ready for a shell.
[[nodiscard]] std::string item_command(const CommonOptions& common, const scenarios::SuitePlan& plan,
                                       const SuiteArguments& arguments, const scenarios::SuiteItem& item);

/// The command that goes on with a suite, ready for a shell.
[[nodiscard]] std::string resume_command(const CommonOptions& common, const scenarios::SuitePlan& plan,
                                         const SuiteArguments& arguments, const std::string& suite_id);

} // namespace railbreak::cli
