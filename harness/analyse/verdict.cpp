#include "harness/analyse/verdict.hpp"

#include <algorithm>
#include <array>

namespace railbreak::analyse {

std::string_view to_string(Verdict verdict) {
    switch (verdict) {
    case Verdict::kPass: return "pass";
    case Verdict::kInconclusive: return "inconclusive";
    case Verdict::kRefused: return "refused";
    case Verdict::kAborted: return "aborted";
    case Verdict::kFail: return "fail";
    case Verdict::kInvalid: return "invalid";
    }
    return "inconclusive";
}

std::optional<Verdict> parse_verdict(std::string_view word) {
    constexpr std::array kAll{Verdict::kPass,    Verdict::kInconclusive, Verdict::kRefused,
                              Verdict::kAborted, Verdict::kFail,         Verdict::kInvalid};
    const auto* found = std::find_if(kAll.begin(), kAll.end(), [&](Verdict v) { return to_string(v) == word; });
    return found != kAll.end() ? std::optional(*found) : std::nullopt;
}

ExitCode exit_code_of(ErrorKind kind) {
    switch (kind) {
    case ErrorKind::kUsage:
    case ErrorKind::kInput: return ExitCode::kUsage;
    case ErrorKind::kRefused: return ExitCode::kRefused;
    case ErrorKind::kOutcome: return ExitCode::kFail;
    case ErrorKind::kHarness: return ExitCode::kAborted;
    case ErrorKind::kTeardown: return ExitCode::kTeardown;
    case ErrorKind::kInternal: return ExitCode::kInternal;
    }
    return ExitCode::kInternal;
}

ExitCode exit_code_of(const std::vector<record::VerdictRow>& verdicts) {
    Verdict run = Verdict::kAborted; // until there is a verdict
    bool failed = false;
    for (const record::VerdictRow& row : verdicts) {
        const std::optional<Verdict> verdict = parse_verdict(row.verdict);
        if (row.scope == "teardown" && verdict != Verdict::kPass) {
            return ExitCode::kTeardown;
        }
        if (row.scope == "run") {
            run = verdict.value_or(Verdict::kInconclusive);
        }
        failed = failed || verdict == Verdict::kFail;
    }
    switch (run) {
    case Verdict::kPass: return ExitCode::kPass;
    case Verdict::kInconclusive: return ExitCode::kInconclusive;
    case Verdict::kRefused: return ExitCode::kRefused;
    case Verdict::kAborted: return ExitCode::kAborted;
    case Verdict::kFail: return ExitCode::kFail;
    case Verdict::kInvalid: return failed ? ExitCode::kFail : ExitCode::kInconclusive;
    }
    return ExitCode::kInternal;
}

} // namespace railbreak::analyse
