#include <algorithm>

#include <fmt/format.h>

#include "base/units.hpp"
#include "harness/analyse/judge.hpp"

namespace railbreak::analyse {

using record::InjectionRow;
using record::IterationRow;
using record::RunData;
using record::VerdictRow;
using scenarios::Phase;

namespace {

// From when on a fault acted in the iteration: its start, or the moment when the first of its faults was in force.
std::int64_t struck_at(const RunData& data, const IterationRow& row) {
    std::int64_t first = 0;
    const std::int64_t end = row.started_at + row.duration_ns;
    for (const InjectionRow& injection : data.injections) {
        const bool before_end = injection.applied_at > 0 && injection.applied_at <= end;
        const bool gone = injection.reverted_at > 0 && injection.reverted_at < row.started_at;
        if (injection.algorithm == row.algorithm && before_end && !gone) {
            first = first == 0 ? injection.applied_at : std::min(first, injection.applied_at);
        }
    }
    return std::max(first, row.started_at);
}

} // namespace

bool broken_off(const RunData& data) {
    const std::string outcome = fmt::format("{}{}", kStopped, to_string(ErrorKind::kOutcome));
    const std::string teardown = fmt::format("{}{}", kStopped, to_string(ErrorKind::kTeardown));
    const auto stop = std::find_if(data.events.begin(), data.events.end(), [&](const record::EventRow& event) {
        return event.kind.starts_with(kStopped) && event.kind != teardown;
    });
    return stop != data.events.end() && stop->kind != outcome;
}

const IterationRow* expected_error(const RunData& data, const scenarios::Plan& plan, std::string_view algorithm) {
    if (!plan.expects_error(algorithm)) {
        return nullptr;
    }
    const auto found = std::find_if(data.iterations.begin(), data.iterations.end(), [&](const IterationRow& row) {
        return row.algorithm == algorithm && row.phase == to_string(Phase::kDegraded) && !row.error.empty();
    });
    return found != data.iterations.end() ? &*found : nullptr;
}

VerdictRow judge_outcome(const RunData& data, const scenarios::Plan& plan, const scenarios::Expectation& expectation,
                         const std::string& algorithm) {
    VerdictRow verdict = make_row("expectation", fmt::format("{}/degraded outcome", algorithm), Verdict::kInconclusive,
                                  "no data: no degraded iteration was recorded");
    const auto ended_well = std::count_if(data.iterations.begin(), data.iterations.end(), [&](const IterationRow& row) {
        return row.algorithm == algorithm && row.phase == to_string(Phase::kDegraded) && row.error.empty();
    });
    const IterationRow* failed = expected_error(data, plan, algorithm);
    if (failed == nullptr && broken_off(data)) {
        verdict.reason = "the run was broken off before an error came";
        return verdict;
    }
    if (failed == nullptr) {
        if (ended_well > 0) {
            verdict.verdict = to_string(Verdict::kFail);
            verdict.reason =
                fmt::format("an error was expected, but all {} degraded iterations ended well", ended_well);
        }
        return verdict;
    }
    const Nanoseconds took(failed->started_at + failed->duration_ns - struck_at(data, *failed));
    const bool slow = expectation.within && took > *expectation.within;
    const auto seconds = [](Nanoseconds time) { return std::chrono::duration<double>(time).count(); };
    verdict.measured = seconds(took);
    if (expectation.within) {
        verdict.limit_max = seconds(*expectation.within);
    }
    verdict.verdict = to_string(slow ? Verdict::kFail : Verdict::kPass);
    verdict.reason =
        fmt::format("degraded iteration {} ended with an error {} after a fault began to act in it{}: {}",
                    failed->iteration, railbreak::to_string(took),
                    slow ? ", later than " + railbreak::to_string(*expectation.within) : "", failed->error);
    return verdict;
}

} // namespace railbreak::analyse
