#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/console.hpp"
#include "harness/analyse/gate.hpp"
#include "harness/analyse/verdict.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/run_selection.hpp"
#include "harness/cli/scenario_input.hpp"
#include "harness/cli/share_input.hpp"
#include "harness/record/reader.hpp"
#include "reports/gate.hpp"

namespace railbreak::cli {

using record::RunData;

namespace {

struct GateArguments {
    std::string runs = "latest";
    std::string baseline;
    std::string tolerance = "3%";
    std::string confidence = "95%";
    std::string measure = "time";
    bool strict = false;
};

/// What is held against the baseline.
struct Candidates {
    std::vector<RunData> runs;
    std::vector<analyse::GateFinding> missing; ///< items of a suite without a run
};

/// An item of a suite without a run. One that was deleted since has left its verdict, and a failure is a regression by
/// itself.
analyse::GateFinding without_run(const record::SuiteItemRow& item) {
    const record::PrunedOutcome& pruned = item.pruned;
    if (item.run == 0 && !pruned.verdict.empty()) {
        const bool failed = pruned.verdict == to_string(analyse::Verdict::kFail);
        return {failed ? analyse::GateVerdict::kRegression : analyse::GateVerdict::kCannotTell, item.name,
                fmt::format("its run was deleted, and its times with it; {}{}{}", pruned.verdict,
                            pruned.reason.empty() ? "" : ": ", pruned.reason)};
    }
    const std::string_view what = item.attempts > 0 ? "its run did not end" : "it was not run";
    return {analyse::GateVerdict::kCannotTell, item.name,
            item.reason.empty() ? std::string(what) : fmt::format("{}: {}", what, item.reason)};
}

Result<Candidates> of_suite(const record::RunReader& reader, const record::SuiteData& suite) {
    Candidates candidates;
    for (std::size_t i = 0; i < suite.items.size(); ++i) {
        const record::SuiteItemRow& item = suite.items[i];
        if (i >= suite.run_ids.size() || suite.run_ids[i].empty()) {
            candidates.missing.push_back(without_run(item));
            continue;
        }
        Result<RunData> run = reader.load_run(suite.run_ids[i]);
        if (!run) {
            return tl::unexpected(run.error());
        }
        candidates.runs.push_back(std::move(*run));
    }
    return candidates;
}

Result<Candidates> load_candidates(const record::RunReader& reader, const std::string& which) {
    Result<std::vector<RunData>> runs = load_set(reader, which);
    if (runs) {
        return Candidates{std::move(*runs), {}};
    }
    if (const Result<record::SuiteData> suite = reader.load_suite(which); suite) {
        return of_suite(reader, *suite);
    }
    return tl::unexpected(runs.error());
}

int exit_code_of(const analyse::Gate& gate, bool strict) {
    switch (gate.verdict) {
    case analyse::GateVerdict::kNoRegression: return static_cast<int>(analyse::ExitCode::kPass);
    case analyse::GateVerdict::kCannotTell:
        return static_cast<int>(strict ? analyse::ExitCode::kFail : analyse::ExitCode::kInconclusive);
    case analyse::GateVerdict::kRegression: return static_cast<int>(analyse::ExitCode::kFail);
    }
    return static_cast<int>(analyse::ExitCode::kInternal);
}

int gate(const CommonOptions& common, const GateArguments& options) {
    const Result<analyse::CompareOptions> how = compare_options(options.measure, options.confidence, options.tolerance);
    if (!how) {
        return tell(common, how.error());
    }
    const Result<record::RunReader> reader = record::RunReader::open_readonly(common.database);
    if (!reader) {
        return tell(common, reader.error());
    }
    const Result<std::vector<RunData>> baseline = load_baseline(*reader, options.baseline);
    if (!baseline) {
        return tell(common, baseline.error());
    }
    const Result<Candidates> candidates = load_candidates(*reader, options.runs);
    if (!candidates) {
        return tell(common, candidates.error());
    }
    const analyse::Gate found = analyse::gate(*baseline, candidates->runs, *how, candidates->missing);
    const int exit_code = exit_code_of(found, options.strict);
    print_result(common.json ? reports::gate_json(found, options.baseline, exit_code)
                             : reports::gate_table(found, options.baseline));
    if (exit_code != 0) {
        tell_user(fmt::format("railbreak: {}\n", found.sentence));
    }
    return exit_code;
}

} // namespace

void add_gate_command(CLI::App& app, CommonOptions& common, const Choose& choose) {
    CLI::App* command = app.add_subcommand("gate", "Hold runs against a baseline: exit code 0 no regression, 1 "
                                                   "regression, 2 cannot tell");
    auto options = std::make_shared<GateArguments>();
    command->add_option("SETS", options->runs, std::string(kSetHelp) + "; or a suite")
        ->type_name("RUNS|SUITE")
        ->capture_default_str();
    command->add_option("--baseline", options->baseline, "The baseline, see railbreak baseline")
        ->type_name("TAG")
        ->required();
    command->add_option("--tolerance", options->tolerance, "How much slower is no regression yet")
        ->capture_default_str();
    command->add_option("--confidence", options->confidence, "Of intervals and verdicts")->capture_default_str();
    std::vector<std::string> words;
    for (const analyse::Measure measure : analyse::kMeasures) {
        words.emplace_back(to_string(measure));
    }
    command->add_option("--metric", options->measure, "What is compared")
        ->check(CLI::IsMember(words))
        ->capture_default_str();
    command->add_flag("--strict", options->strict, "What cannot be told counts as a regression: exit code 1");
    command->callback([&common, options, choose] {
        choose(
            [&common, options] { return choose_database(common) ? gate(common, *options) : exit_code_of_bad_usage(); });
    });
}

} // namespace railbreak::cli
