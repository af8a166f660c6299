#include "harness/analyse/suite.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace railbreak::analyse {

namespace {

ItemOutcome outcome_of(const record::SuiteItemRow& item, const std::string& verdict) {
    if (item.state == "skipped") {
        return {"skipped", true};
    }
    const bool done = item.state == "done" || (item.state == "running" && !verdict.empty() && verdict != "aborted");
    if (!done) {
        return {item.attempts > 0 ? "interrupted" : "waiting", false};
    }
    if (!verdict.empty()) {
        return {verdict, true};
    }
    const bool refused = item.run == 0 && !item.reason.empty() && !item.reason.starts_with(kTeardownOpen);
    return {refused ? "refused" : "unknown", true};
}

/// The verdict that an item adds to its suite; a skipped one adds none.
Verdict verdict_of(const ItemOutcome& item) {
    if (!item.finished) {
        return Verdict::kAborted;
    }
    return item.word == "skipped" ? Verdict::kPass : parse_verdict(item.word).value_or(Verdict::kInconclusive);
}

} // namespace

SuiteOutcome judge_suite(const record::SuiteData& data) {
    SuiteOutcome outcome;
    std::size_t worst = 0;
    for (std::size_t i = 0; i < data.items.size(); ++i) {
        const ItemOutcome item = outcome_of(data.items[i], data.verdicts[i]);
        outcome.passed += item.word == "pass" ? 1 : 0;
        outcome.skipped += item.word == "skipped" ? 1 : 0;
        outcome.left += item.finished ? 0 : 1;
        outcome.teardown_open = outcome.teardown_open || data.items[i].reason.starts_with(kTeardownOpen);
        if (verdict_of(item) > outcome.verdict) {
            outcome.verdict = verdict_of(item);
            worst = i;
        }
        outcome.items.push_back(item);
    }
    if (outcome.verdict == Verdict::kPass) {
        return outcome;
    }
    if (!outcome.items[worst].finished) {
        outcome.reason = fmt::format("{} of {} items have not run to their end", outcome.left, data.items.size());
        return outcome;
    }
    const auto alike = std::ranges::count_if(
        outcome.items, [&](const ItemOutcome& item) { return item.finished && verdict_of(item) == outcome.verdict; });
    outcome.reason =
        fmt::format("{}{}: {}", data.items[worst].name, alike > 1 ? fmt::format(" and {} more", alike - 1) : "",
                    data.reasons[worst].empty() ? "its run was deleted since" : data.reasons[worst]);
    return outcome;
}

ExitCode exit_code_of(const SuiteOutcome& outcome) {
    if (outcome.teardown_open) {
        return ExitCode::kTeardown;
    }
    switch (outcome.verdict) {
    case Verdict::kPass: return ExitCode::kPass;
    case Verdict::kInconclusive: return ExitCode::kInconclusive;
    case Verdict::kRefused: return ExitCode::kRefused;
    case Verdict::kAborted: return ExitCode::kAborted;
    case Verdict::kFail: return ExitCode::kFail;
    case Verdict::kInvalid: break;
    }
    const bool failed = std::ranges::any_of(outcome.items, [](const ItemOutcome& item) { return item.word == "fail"; });
    return failed ? ExitCode::kFail : ExitCode::kInconclusive;
}

} // namespace railbreak::analyse
