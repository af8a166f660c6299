#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/console.hpp"
#include "harness/analyse/comparison.hpp"
#include "harness/analyse/matching.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/run_selection.hpp"
#include "harness/cli/scenario_input.hpp"
#include "harness/cli/share_input.hpp"
#include "harness/record/reader.hpp"
#include "reports/compare.hpp"

namespace railbreak::cli {

using record::RunData;

namespace {

struct CompareArguments {
    std::vector<std::string> sets;
    std::string baseline;
    std::string measure = "time";
    std::string confidence = "95%";
    std::string tolerance = "3%";
};

/// The two sets as they are written.
struct Sides {
    std::string first; ///< empty: the baseline
    std::string second;
};

/// The runs of the two sets.
struct RunsOfSides {
    std::vector<RunData> first;
    std::vector<RunData> second;
};

Result<Sides> sides_of(const CompareArguments& options) {
    const auto bad = [](std::string_view what) {
        return fail(
            Error(ErrorKind::kUsage, std::string(what))
                .advise("write compare A B, compare A..B, compare A1,A2,A3 B1,B2,B3 or compare --baseline TAG B"));
    };
    if (!options.baseline.empty()) {
        std::string all;
        for (const std::string& set : options.sets) {
            all += (all.empty() ? "" : ",") + set;
        }
        return Sides{"", all.empty() ? "latest" : all};
    }
    if (options.sets.size() == 1) {
        const std::string& text = options.sets.front();
        const std::size_t dots = text.find("..");
        if (dots != std::string::npos && text.find("..", dots + 2) == std::string::npos) {
            return Sides{text.substr(0, dots), text.substr(dots + 2)};
        }
        return bad("one set of runs is nothing to compare");
    }
    if (options.sets.size() != 2) {
        return bad(fmt::format("{} sets of runs cannot be compared: two can", options.sets.size()));
    }
    return Sides{options.sets[0], options.sets[1]};
}

Result<void> not_mixed(const std::vector<RunData>& runs) {
    if (const std::string mixed = analyse::why_mixed(runs); !mixed.empty()) {
        return fail(Error(ErrorKind::kInput, fmt::format("the runs of one set are not alike: {}", mixed))
                        .advise("compare runs of one plan on one cluster; a baseline may have several"));
    }
    return {};
}

/// The runs of a set, or of a suite's items.
Result<std::vector<RunData>> load_set_or_suite(const record::RunReader& reader, const std::string& set) {
    Result<std::vector<RunData>> runs = load_set(reader, set);
    if (runs) {
        return runs;
    }
    const Result<record::SuiteData> suite = reader.load_suite(set);
    if (!suite) {
        return runs;
    }
    std::vector<RunData> of_items;
    for (const std::string& id : suite->run_ids) {
        if (id.empty()) {
            continue;
        }
        Result<RunData> run = reader.load_run(id);
        if (!run) {
            return tl::unexpected(run.error());
        }
        of_items.push_back(std::move(*run));
    }
    if (of_items.empty()) {
        return fail(ErrorKind::kInput, fmt::format("suite {} has no runs", suite->suite.suite_id));
    }
    return of_items;
}

void warn_of_shared(const std::vector<std::string>& shared) {
    if (!shared.empty()) {
        tell_user(fmt::format("railbreak: {} of the runs {} in both sets, which makes them look more alike than they "
                              "are\n",
                              shared.size(), shared.size() == 1 ? "is" : "are"));
    }
}

/// Two sets of one scenario each.
int compare_one(const CommonOptions& common, const RunsOfSides& runs, const analyse::CompareOptions& how,
                const reports::SetNames& names) {
    const analyse::SetComparison sets = analyse::compare_sets(runs.first, runs.second, how);
    print_result(common.json ? reports::compare_json(runs.first, runs.second, sets)
                             : reports::compare_table(runs.first, runs.second, sets, names));
    warn_of_shared(sets.shared);
    return 0;
}

/// Sets of several scenarios: those that both have, one after the other.
int compare_several(const CommonOptions& common, RunsOfSides runs, const analyse::CompareOptions& how,
                    const reports::SetNames& names, const std::string& baseline) {
    const analyse::Matching matching = analyse::match(std::move(runs.first), std::move(runs.second));
    if (matching.scenarios.empty()) {
        return tell(common,
                    Error(ErrorKind::kInput, fmt::format("the baseline {} has no scenario of these runs", baseline))
                        .with("baseline", fmt::format("{}", fmt::join(matching.only_a, ", ")))
                        .with("runs", fmt::format("{}", fmt::join(matching.only_b, ", "))));
    }
    std::vector<analyse::RunSets> pairs;
    for (const analyse::MatchedRuns& scenario : matching.scenarios) {
        pairs.push_back({scenario.a, scenario.b});
    }
    const std::vector<analyse::SetComparison> compared = analyse::compare_all(pairs, how);
    print_result(common.json ? reports::compare_scenarios_json(matching, compared, baseline)
                             : reports::compare_scenarios_table(matching, compared, names));
    std::vector<std::string> shared;
    for (const analyse::SetComparison& one : compared) {
        shared.insert(shared.end(), one.shared.begin(), one.shared.end());
    }
    warn_of_shared(shared);
    return 0;
}

/// The runs of both sides.
Result<RunsOfSides> load_sides(const record::RunReader& reader, const Sides& sides, const std::string& baseline) {
    Result<std::vector<RunData>> first =
        baseline.empty() ? load_set(reader, sides.first) : load_baseline(reader, baseline);
    if (!first) {
        return tl::unexpected(first.error());
    }
    Result<std::vector<RunData>> second =
        baseline.empty() ? load_set(reader, sides.second) : load_set_or_suite(reader, sides.second);
    if (!second) {
        return tl::unexpected(second.error());
    }
    return RunsOfSides{std::move(*first), std::move(*second)};
}

int compare(const CommonOptions& common, const CompareArguments& options) {
    const Result<Sides> sides = sides_of(options);
    const Result<analyse::CompareOptions> how = compare_options(options.measure, options.confidence, options.tolerance);
    if (!sides || !how) {
        return tell(common, !sides ? sides.error() : how.error());
    }
    const Result<record::RunReader> reader = record::RunReader::open_readonly(common.database);
    if (!reader) {
        return tell(common, reader.error());
    }
    Result<RunsOfSides> runs = load_sides(*reader, *sides, options.baseline);
    if (!runs) {
        return tell(common, runs.error());
    }
    const reports::SetNames names{
        options.baseline.empty() ? sides->first : fmt::format("the baseline {}", options.baseline), sides->second};
    const Result<void> alike = not_mixed(runs->first).and_then([&] { return not_mixed(runs->second); });
    if (!alike && !options.baseline.empty()) {
        return compare_several(common, std::move(*runs), *how, names, options.baseline);
    }
    return alike ? compare_one(common, *runs, *how, names) : tell(common, alike.error());
}

} // namespace

void add_compare_command(CLI::App& app, CommonOptions& common, const Choose& choose) {
    CLI::App* command = app.add_subcommand("compare", "Compare two recorded runs, or two sets of runs by statistics");
    auto options = std::make_shared<CompareArguments>();
    command->add_option("SETS", options->sets, std::string(kSetHelp) + ". Two sets A B, or A..B")
        ->type_name("RUNS")
        ->expected(1, 1000);
    command
        ->add_option("--baseline", options->baseline,
                     "The first set is the baseline TAG, which may have several scenarios; the second may be a suite")
        ->type_name("TAG");
    std::vector<std::string> words;
    for (const analyse::Measure measure : analyse::kMeasures) {
        words.emplace_back(to_string(measure));
    }
    command->add_option("--metric", options->measure, "What is compared")
        ->check(CLI::IsMember(words))
        ->capture_default_str();
    command->add_option("--confidence", options->confidence, "Of intervals and verdicts")->capture_default_str();
    command->add_option("--tolerance", options->tolerance, "Difference from which on one counts")
        ->capture_default_str();
    command->callback([&common, options, choose] {
        choose([&common, options] {
            return choose_database(common) ? compare(common, *options) : exit_code_of_bad_usage();
        });
    });
}

} // namespace railbreak::cli
