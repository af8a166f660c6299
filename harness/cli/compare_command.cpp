#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "harness/analyse/comparison.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/run_selection.hpp"
#include "harness/cli/scenario_input.hpp"
#include "harness/cli/share_input.hpp"
#include "harness/record/reader.hpp"
#include "reports/compare.hpp"

namespace railbreak::cli {

using record::RunData;

namespace {

struct Options {
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

Result<Sides> sides_of(const Options& options) {
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

Result<analyse::CompareOptions> compare_options(const Options& options) {
    analyse::CompareOptions result;
    const std::optional<analyse::Measure> measure = analyse::parse_measure(options.measure);
    const Result<double> confidence = parse_share(options.confidence, 0.5, 0.9999);
    const Result<double> tolerance = parse_share(options.tolerance, 0.0001, 1);
    if (!confidence) {
        return tl::unexpected(Error(confidence.error()).with("option", "--confidence"));
    }
    if (!tolerance) {
        return tl::unexpected(Error(tolerance.error()).with("option", "--tolerance"));
    }
    result.measure = measure.value_or(analyse::Measure::kTime);
    result.confidence = *confidence;
    result.tolerance = *tolerance;
    return result;
}

Result<std::vector<RunData>> load_one(const record::RunReader& reader, const std::string& set,
                                      const std::string& baseline) {
    Result<std::vector<RunData>> runs = set.empty() ? load_baseline(reader, baseline) : load_set(reader, set);
    if (!runs) {
        return runs;
    }
    if (const std::string mixed = analyse::why_mixed(*runs); !mixed.empty()) {
        return fail(Error(ErrorKind::kInput, fmt::format("the runs of one set are not alike: {}", mixed))
                        .advise("compare runs of one plan on one cluster"));
    }
    return runs;
}

int compare(const CommonOptions& common, const Options& options) {
    const Result<Sides> sides = sides_of(options);
    const Result<analyse::CompareOptions> how = compare_options(options);
    if (!sides || !how) {
        return tell(common, !sides ? sides.error() : how.error());
    }
    const Result<record::RunReader> reader = record::RunReader::open_readonly(common.database);
    if (!reader) {
        return tell(common, reader.error());
    }
    const Result<std::vector<RunData>> first = load_one(*reader, sides->first, options.baseline);
    if (!first) {
        return tell(common, first.error());
    }
    const Result<std::vector<RunData>> second = load_one(*reader, sides->second, "");
    if (!second) {
        return tell(common, second.error());
    }
    const analyse::SetComparison sets = analyse::compare_sets(*first, *second, *how);
    print_result(common.json ? reports::compare_json(*first, *second, sets)
                             : reports::compare_table(*first, *second, sets));
    return 0;
}

} // namespace

void add_compare_command(CLI::App& app, CommonOptions& common, const Choose& choose) {
    CLI::App* command = app.add_subcommand("compare", "Compare two recorded runs, or two sets of runs by statistics");
    auto options = std::make_shared<Options>();
    command->add_option("SETS", options->sets, std::string(kSetHelp) + ". Two sets A B, or A..B")->expected(1, 1000);
    command->add_option("--baseline", options->baseline, "The first set is the baseline TAG")->type_name("TAG");
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
