// Verdicts and exit codes: the one place where their order and their numbers are written down.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "harness/record/rows.hpp"

namespace railbreak::analyse {

/// What a check or a run came to, from best to worst. The verdict of a run is the worst of its checks:
///  - a run that was refused or aborted lacks data, so the checks without data (inconclusive) follow from that and must
///    not hide it;
///  - a proven failure stands whatever happened afterwards;
///  - an invalid measurement taints every time of the run, so it is named before all else, unless the run was refused
///  or
///    aborted: then its times are of no use, and its reason begins with what ended it.
enum class Verdict : std::uint8_t {
    kPass,
    kInconclusive, ///< no proof either way: no data, or the fault was not seen
    kRefused,      ///< an injector or the preflight said no
    kAborted,      ///< the harness failed or the user stopped it
    kFail,         ///< the system under test failed: wrong result, dead rank, limit missed
    kInvalid,      ///< faster than the fluid lower bound: the testbed is wrong
};

/// "pass", "inconclusive", "refused", "aborted", "fail", "invalid": as stored in VerdictRow::verdict.
[[nodiscard]] std::string_view to_string(Verdict verdict);
/// The inverse; nothing for an unknown word.
[[nodiscard]] std::optional<Verdict> parse_verdict(std::string_view word);

/// The exit codes of every railbreak command.
enum class ExitCode : std::uint8_t {
    kPass = 0,
    kFail = 1,
    kInconclusive = 2,
    kRefused = 3,
    kAborted = 4,  ///< aborted and reverted
    kTeardown = 5, ///< something could not be verified as restored
    kUsage = 64,   ///< bad usage or bad input
    kInternal = 70,
};

/// The exit code of a command that ended with an error.
[[nodiscard]] ExitCode exit_code_of(ErrorKind kind);

/// The exit code of a judged run, from its rows: 5 when a teardown verdict is not pass (a host may still be broken,
/// which is more urgent than the verdict, which stands beside it); otherwise by the verdict of scope "run". An invalid
/// run proves nothing, so it counts as inconclusive (2), unless some check failed as well (1). Without a verdict of
/// scope "run" the run did not reach its end: aborted.
[[nodiscard]] ExitCode exit_code_of(const std::vector<record::VerdictRow>& verdicts);

} // namespace railbreak::analyse
