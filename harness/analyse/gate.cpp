#include "harness/analyse/gate.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "harness/analyse/history.hpp"
#include "harness/analyse/verdict.hpp"

namespace railbreak::analyse {

using record::RunData;

namespace {

/// The runs of one plan on one cluster.
struct Group {
    std::vector<RunData> baseline;
    std::vector<RunData> runs;
    bool itself = false; ///< the baseline has runs of it, but only these
};

/// What a finding calls a group: its scenario, and its plan where several are of that scenario.
std::string subject_of(const std::vector<Group>& groups, const Group& group) {
    const record::RunRow& run = group.runs.front().run;
    const auto same_name = std::ranges::count_if(
        groups, [&](const Group& other) { return other.runs.front().run.scenario_name == run.scenario_name; });
    return same_name > 1 ? fmt::format("{} ({})", run.scenario_name, run.plan_hash.substr(0, 12)) : run.scenario_name;
}

bool alike(const RunData& a, const RunData& b) {
    return a.run.plan_hash == b.run.plan_hash && place_of(a.run) == place_of(b.run);
}

/// A run that is bad by itself, whatever its times.
GateFinding finding_of(const RunData& run) {
    const auto row = std::ranges::find(run.verdicts, "run", &record::VerdictRow::scope);
    if (row == run.verdicts.end()) {
        return {GateVerdict::kCannotTell, run.run.run_id, "it was never judged"};
    }
    const bool failed = row->verdict == to_string(Verdict::kFail);
    return {failed ? GateVerdict::kRegression : GateVerdict::kCannotTell, run.run.run_id,
            fmt::format("{}: {}", row->verdict, row->reason)};
}

GateFinding finding_of(const std::string& scenario, const PhaseSamples& pair, const Comparison& result) {
    GateFinding finding{GateVerdict::kCannotTell, fmt::format("{}: {} {}", scenario, pair.algorithm, pair.phase),
                        in_words(result, "the baseline", "this")};
    if (!result.interval) {
        return finding;
    }
    const double most = 1 + result.tolerance;
    if (result.difference == Difference::kSlower && *result.ratio > most) {
        finding.verdict = GateVerdict::kRegression;
    } else if (result.interval->high <= most) {
        finding.verdict = GateVerdict::kNoRegression;
    } else if (result.difference == Difference::kSlower) {
        finding.reason +=
            fmt::format(", and whether by more than the tolerated {:g} % cannot be told", result.tolerance * 100);
    }
    return finding;
}

std::vector<Group> groups_of(std::span<const RunData> baseline, std::span<const RunData> runs, Gate& result) {
    std::vector<Group> groups;
    for (const RunData& run : runs) {
        if (!is_sound(run)) {
            result.findings.push_back(finding_of(run));
            continue;
        }
        auto group = std::ranges::find_if(groups, [&](const Group& one) { return alike(one.runs.front(), run); });
        if (group == groups.end()) {
            group = groups.insert(groups.end(), Group{});
        }
        group->runs.push_back(run);
    }
    for (Group& group : groups) {
        for (const RunData& run : baseline) {
            const bool in_both = std::ranges::any_of(
                group.runs, [&](const RunData& other) { return other.run.run_id == run.run.run_id; });
            if (!alike(run, group.runs.front()) || !is_sound(run)) {
                continue;
            }
            group.itself = group.itself || in_both;
            if (!in_both) {
                group.baseline.push_back(run);
            }
        }
    }
    return groups;
}

void compare_groups(const std::vector<Group>& groups, const CompareOptions& options, Gate& result) {
    std::vector<PhaseSamples> pairs;
    std::vector<std::string> scenarios;
    bool simulated = !groups.empty();
    for (const Group& group : groups) {
        const record::RunRow& first = group.runs.front().run;
        simulated = simulated && first.backend == record::kSimulatedBackend;
        if (group.baseline.empty()) {
            result.findings.push_back(
                {GateVerdict::kCannotTell, subject_of(groups, group),
                 fmt::format("the baseline has no {}sound run of this plan ({}) on {}", group.itself ? "other " : "",
                             first.plan_hash.substr(0, 12), place_of(first))});
            continue;
        }
        for (PhaseSamples& pair : pair_up(group.baseline, group.runs, options.measure)) {
            pairs.push_back(std::move(pair));
            scenarios.push_back(subject_of(groups, group));
        }
    }
    result.options.simulated = simulated;
    const std::vector<Comparison> compared = compare_family(pairs, result.options);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        result.findings.push_back(finding_of(scenarios[i], pairs[i], compared[i]));
    }
}

std::string sum_up(const Gate& gate) {
    const auto count = [&](GateVerdict verdict) {
        return std::ranges::count(gate.findings, verdict, &GateFinding::verdict);
    };
    const GateFinding& first = gate.findings.front();
    const auto others = count(gate.verdict) - 1;
    const std::string more = others > 0 ? fmt::format(" (and {} more)", others) : "";
    switch (gate.verdict) {
    case GateVerdict::kNoRegression:
        return fmt::format("no regression of more than {:g} % in any of {} phases", gate.options.tolerance * 100,
                           gate.findings.size());
    case GateVerdict::kCannotTell: return fmt::format("cannot tell: {}: {}{}", first.subject, first.reason, more);
    case GateVerdict::kRegression: return fmt::format("regression: {}: {}{}", first.subject, first.reason, more);
    }
    return "";
}

} // namespace

std::string_view to_string(GateVerdict verdict) {
    switch (verdict) {
    case GateVerdict::kNoRegression: return "no_regression";
    case GateVerdict::kCannotTell: return "cannot_tell";
    case GateVerdict::kRegression: return "regression";
    }
    return "cannot_tell";
}

Gate gate(std::span<const RunData> baseline, std::span<const RunData> runs, const CompareOptions& options,
          std::vector<GateFinding> more) {
    Gate result;
    result.options = options;
    result.findings = std::move(more);
    compare_groups(groups_of(baseline, runs, result), options, result);
    if (result.findings.empty()) {
        result.sentence = "cannot tell: no iteration was completed";
        return result;
    }
    std::ranges::stable_sort(result.findings, std::ranges::greater(), &GateFinding::verdict);
    result.verdict = result.findings.front().verdict;
    result.sentence = sum_up(result);
    return result;
}

} // namespace railbreak::analyse
