#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/analyse/judge.hpp"

namespace railbreak::analyse {

using record::IterationRow;
using record::RunData;
using record::VerdictRow;
using scenarios::Phase;

namespace {

struct PlannedPhase {
    Phase phase;
    std::int32_t iterations;
};

std::vector<PlannedPhase> planned_phases(const scenarios::Plan& plan) {
    const scenarios::IterationCounts& counts = plan.workload.iterations;
    std::vector<PlannedPhase> phases{{Phase::kWarmup, counts.warmup}, {Phase::kSteady, counts.steady}};
    if (!plan.faults.empty()) {
        phases.push_back({Phase::kDegraded, counts.degraded});
        phases.push_back({Phase::kRecovered, counts.recovered});
    }
    return phases;
}

// The phases with fewer iterations than planned; empty when all are there.
std::string missing_iterations(const RunData& data, const scenarios::Plan& plan, const std::string& algorithm) {
    std::string missing;
    for (const PlannedPhase& planned : planned_phases(plan)) {
        const std::string_view phase = to_string(planned.phase);
        const auto recorded =
            std::count_if(data.iterations.begin(), data.iterations.end(),
                          [&](const IterationRow& row) { return row.algorithm == algorithm && row.phase == phase; });
        const bool ended_early = planned.phase == Phase::kDegraded && expected_error(data, plan, algorithm) != nullptr;
        if (recorded < planned.iterations && !ended_early) {
            missing += fmt::format("{}{} of {} {} iterations recorded", missing.empty() ? "only " : ", ", recorded,
                                   planned.iterations, phase);
        }
    }
    return missing;
}

// One iteration's judgement: the verdict and, unless pass, the reason.
std::pair<Verdict, std::string> judge(const RunData& data, const IterationRow& row) {
    const std::string place = fmt::format("{} iteration {}", row.phase, row.iteration);
    if (!row.error.empty()) {
        return broken_off(data) ? std::pair(Verdict::kInconclusive, fmt::format("{} was broken off", place))
                                : std::pair(Verdict::kFail, fmt::format("{} failed: {}", place, row.error));
    }
    const std::vector<std::int32_t> wrong = record::wrong_ranks(data, row);
    if (row.expected_digest.empty()) {
        return {Verdict::kInconclusive, fmt::format("{} has no expected digest", place)};
    }
    if (!wrong.empty()) {
        return {Verdict::kFail, fmt::format("{}: wrong result at rank {} of {}", place, fmt::join(wrong, ", "),
                                            record::rank_count(data))};
    }
    if (!row.correct) {
        return {Verdict::kFail, fmt::format("{}: wrong result", place)};
    }
    if (const std::int32_t ranks = record::reporting_ranks(data, row); ranks < record::rank_count(data)) {
        return {Verdict::kInconclusive,
                fmt::format("{}: only {} of {} ranks gave a digest", place, ranks, record::rank_count(data))};
    }
    return {Verdict::kPass, ""};
}

/// ": " and why there was no plan for the algorithm, from the event "ALGORITHM: REASON"; empty when there is none.
std::string why_no_plan(const RunData& data, const std::string& algorithm) {
    for (const record::EventRow& event : data.events) {
        if (event.kind == "no_plan" && event.text.starts_with(algorithm + ": ")) {
            return event.text.substr(algorithm.size());
        }
    }
    return "";
}

VerdictRow judge_algorithm(const RunData& data, const scenarios::Plan& plan, const std::string& algorithm) {
    Verdict worst = Verdict::kPass;
    std::string reason;
    std::int32_t bad = 0;
    std::int32_t total = 0;
    const IterationRow* failed_as_expected = expected_error(data, plan, algorithm);
    for (const IterationRow& row : data.iterations) {
        if (row.algorithm != algorithm || &row == failed_as_expected) {
            continue;
        }
        ++total;
        auto [verdict, why] = judge(data, row);
        bad += verdict == Verdict::kFail ? 1 : 0;
        if (verdict > worst) {
            worst = verdict;
            reason = std::move(why);
        }
    }
    if (bad > 1) {
        reason += fmt::format(" (first of {} bad iterations)", bad);
    }
    const std::vector<std::string> planned = plan.workload.labels();
    const bool is_planned = std::find(planned.begin(), planned.end(), algorithm) != planned.end();
    if (worst == Verdict::kPass && total == 0) {
        return make_row("correctness", algorithm, Verdict::kInconclusive,
                        "no iteration was recorded" + why_no_plan(data, algorithm));
    }
    if (worst == Verdict::kPass && is_planned) {
        if (std::string missing = missing_iterations(data, plan, algorithm); !missing.empty()) {
            return make_row("correctness", algorithm, Verdict::kInconclusive, missing + why_no_plan(data, algorithm));
        }
    }
    if (worst == Verdict::kPass) {
        reason = data.run.backend == record::kSimulatedBackend
                     ? fmt::format("{} simulated iterations: no data moved, but every schedule is proven to give the "
                                   "right sum on {} ranks",
                                   total, record::rank_count(data))
                     : fmt::format("{} iterations, every digest right on {} ranks", total, record::rank_count(data));
    }
    return make_row("correctness", algorithm, worst, std::move(reason));
}

} // namespace

void judge_correctness(const RunData& data, const scenarios::Plan& plan, std::vector<VerdictRow>& rows) {
    for (const std::string& algorithm : algorithms_of(data, plan)) {
        rows.push_back(judge_algorithm(data, plan, algorithm));
    }
}

} // namespace railbreak::analyse
