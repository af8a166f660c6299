#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "harness/cli/commands.hpp"
#include "harness/cli/scenario_input.hpp"
#include "harness/record/reader.hpp"
#include "reports/compare.hpp"
#include "reports/json.hpp"
#include "reports/table.hpp"

namespace railbreak::cli {

namespace {

int report(const CommonOptions& common, const std::string& which) {
    Result<record::RunReader> reader = record::RunReader::open_readonly(common.database);
    if (!reader) {
        return tell(common, reader.error());
    }
    Result<record::RunData> data = reader->load_run(which);
    if (!data) {
        return tell(common, data.error());
    }
    print_result(common.json ? reports::run_json(*data)
                             : reports::run_table(*data, {.colour = wants_colour(STDOUT_FILENO)}));
    return 0;
}

int list(const CommonOptions& common, std::int32_t limit) {
    Result<record::RunReader> reader = record::RunReader::open_readonly(common.database);
    if (!reader) {
        return tell(common, reader.error());
    }
    Result<std::vector<record::RunSummary>> runs = reader->list_runs(limit);
    if (!runs) {
        return tell(common, runs.error());
    }
    print_result(common.json ? reports::list_json(*runs) : reports::list_table(*runs));
    return 0;
}

int compare(const CommonOptions& common, const std::string& first, const std::string& second) {
    Result<record::RunReader> reader = record::RunReader::open_readonly(common.database);
    if (!reader) {
        return tell(common, reader.error());
    }
    std::vector<record::RunData> runs;
    for (const std::string& which : {first, second}) {
        Result<record::RunData> data = reader->load_run(which);
        if (!data) {
            return tell(common, data.error());
        }
        runs.push_back(std::move(*data));
    }
    print_result(common.json ? reports::compare_json(runs[0], runs[1]) : reports::compare_table(runs[0], runs[1]));
    return 0;
}

} // namespace

void add_report_commands(CLI::App& app, CommonOptions& common, const Choose& choose) {
    CLI::App* one = app.add_subcommand("report", "Print the report of a recorded run again");
    auto which = std::make_shared<std::string>("latest");
    one->add_option("RUN", *which, "Run id, the beginning of one, or latest")->capture_default_str();
    one->callback([&common, which, choose] {
        choose(
            [&common, which] { return choose_database(common) ? report(common, *which) : exit_code_of_bad_usage(); });
    });

    CLI::App* two = app.add_subcommand("compare", "Print two recorded runs side by side");
    auto names = std::make_shared<std::pair<std::string, std::string>>();
    two->add_option("A", names->first, "Run id, the beginning of one, or latest")->required();
    two->add_option("B", names->second, "The run to compare it with")->required();
    two->callback([&common, names, choose] {
        choose([&common, names] {
            return choose_database(common) ? compare(common, names->first, names->second) : exit_code_of_bad_usage();
        });
    });

    CLI::App* all = app.add_subcommand("list", "List recorded runs, the latest first");
    auto limit = std::make_shared<std::int32_t>(20);
    all->add_option("-n,--limit", *limit, "How many")->check(CLI::Range(1, 1000000))->capture_default_str();
    all->callback([&common, limit, choose] {
        choose([&common, limit] { return choose_database(common) ? list(common, *limit) : exit_code_of_bad_usage(); });
    });
}

} // namespace railbreak::cli
