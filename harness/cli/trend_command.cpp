#include <algorithm>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/output_file.hpp"
#include "harness/analyse/trend.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/run_selection.hpp"
#include "harness/cli/scenario_input.hpp"
#include "harness/record/reader.hpp"
#include "reports/html/trend_page.hpp"
#include "reports/trend.hpp"

namespace railbreak::cli {

namespace {

struct TrendArguments {
    std::string scenario;
    std::int32_t last = 30;
    std::string measure = "time";
    std::string cluster;
    std::string algorithm;
    std::string phase;
    std::string page; ///< file of the HTML page; empty: none
};

/// Writes the page whole or not at all.
Result<void> write_page(const analyse::Trend& trend, const std::string& path) {
    return write_file(path, [&](std::ostream& out) -> Result<void> {
        out << reports::trend_html(trend);
        return {};
    });
}

Result<std::vector<record::RunData>> load_runs(const record::RunReader& reader, const TrendArguments& options) {
    const auto runs = reader.find_runs(options.scenario, "", options.cluster, options.last);
    if (!runs) {
        return tl::unexpected(runs.error());
    }
    if (runs->empty()) {
        return fail(
            Error(ErrorKind::kInput, fmt::format("there is no finished run of a scenario \"{}\"{}", options.scenario,
                                                 options.cluster.empty() ? "" : " on that cluster"))
                .advise("railbreak list shows what there is"));
    }
    std::vector<record::RunData> loaded;
    for (const record::RunSummary& run : *runs) {
        Result<record::RunData> data = reader.load_run(run.run_id);
        if (!data) {
            return tl::unexpected(data.error());
        }
        loaded.push_back(std::move(*data));
    }
    return loaded;
}

int trend(const CommonOptions& common, const TrendArguments& options) {
    const Result<record::RunReader> reader = record::RunReader::open_readonly(common.database);
    if (!reader) {
        return tell(common, reader.error());
    }
    const Result<std::vector<record::RunData>> runs = load_runs(*reader, options);
    if (!runs) {
        return tell(common, runs.error());
    }
    analyse::TrendOptions how;
    how.measure = analyse::parse_measure(options.measure).value_or(analyse::Measure::kTime);
    analyse::Trend found = analyse::trend_data(*runs, how);
    std::erase_if(found.series, [&](const analyse::TrendSeries& series) {
        return (!options.algorithm.empty() && series.algorithm != options.algorithm) ||
               (!options.phase.empty() && series.phase != options.phase);
    });
    if (!options.page.empty()) {
        if (const Result<void> written = write_page(found, options.page); !written) {
            return tell(common, written.error());
        }
    }
    print_result(common.json ? reports::trend_json(found) : reports::trend_table(found));
    return 0;
}

} // namespace

void add_trend_command(CLI::App& app, CommonOptions& common, const Choose& choose) {
    CLI::App* command = app.add_subcommand("trend", "Show how a scenario's figures move from run to run");
    auto options = std::make_shared<TrendArguments>();
    command->add_option("NAME", options->scenario, "Name of the scenario")->required()->type_name("SCENARIO");
    command->add_option("--last", options->last, "How many runs")
        ->check(CLI::Range(1, kMostRuns))
        ->capture_default_str();
    std::vector<std::string> words;
    for (const analyse::Measure measure : analyse::kMeasures) {
        words.emplace_back(to_string(measure));
    }
    command->add_option("--metric", options->measure, "What is shown")
        ->check(CLI::IsMember(words))
        ->capture_default_str();
    command->add_option("--cluster", options->cluster, "Only runs on that cluster (default: that of the latest run)");
    command->add_option("--algorithm", options->algorithm, "Only that algorithm");
    command->add_option("--phase", options->phase, "Only that phase");
    command->add_option("--html", options->page, "Write a page of it for people into FILE, besides what is printed")
        ->type_name("FILE")
        ->check(not_empty);
    command->callback([&common, options, choose] {
        choose([&common, options] {
            return choose_database(common) ? trend(common, *options) : exit_code_of_bad_usage();
        });
    });
}

} // namespace railbreak::cli
