// From a run's rows to its verdicts: a pure function, so that judging a stored run again gives the same verdicts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "harness/analyse/verdict.hpp"
#include "harness/record/rows.hpp"

namespace railbreak::scenarios {
struct Plan;
}

namespace railbreak::analyse {

/// A time may fall below a lower bound by this share before the testbed counts as wrong: the goodput that the bound is
/// computed from is itself measured.
inline constexpr double kBoundTolerance = 0.005;

/// What an idle token-bucket shaper lets through at once, as the lab sets it: its burst of 16 kB, and one aggregate of
/// 32 kB that may overdraw it (htb sends while there is any token left). A time may be shorter by that much too.
inline constexpr std::int64_t kShaperBurstBytes = std::int64_t{16 + 32} * 1024;

/// The goodput of a capped port may differ from what the cap should leave by this share.
inline constexpr double kGoodputTolerance = 0.10;

/// A cap within an iteration is measured by what the workload carried meanwhile. A collective does not keep a port busy
/// all the time, so that may be less than the cap leaves, but not below this share of it: an idle port proves nothing.
inline constexpr double kCarriedShareMin = 0.5;

/// What a full-sized TCP segment leaves of the line rate that traffic control counts: payload (MTU less 20 bytes IPv4,
/// 20 TCP, 12 timestamps) over frame (MTU and 14 bytes of Ethernet). 1448/1514 = 0.9564 at MTU 1500.
[[nodiscard]] double payload_share(std::int32_t mtu_bytes);

/// Everything that the analysis found.
struct Analysis {
    std::vector<record::VerdictRow> verdicts; ///< "run" first, then teardown and all checks; for Recorder::finish_run
    Verdict verdict = Verdict::kInconclusive; ///< of the run
    std::string reason;                       ///< of the run's verdict, one line, never empty
    ExitCode exit_code = ExitCode::kInconclusive;
};

/// Judges a run against its plan. The checks, one VerdictRow each:
///  - correctness, per algorithm: an iteration with an error or a wrong digest on any rank fails (warm-up included: a
///    wrong sum is wrong at any time); fewer iterations or digests than planned are inconclusive, and so is the one
///    that was going on when something other than the system under test stopped the run. The error that the degraded
///    phase is expected to end with is no failure.
///  - fault, per injection: inconclusive unless applied, observed and, for a cap, seen as goodput within
///    kGoodputTolerance (with other faults on the same NIC: not above); refused when the injector refused it. A planned
///    fault that was not ordered is inconclusive, unless it is off. A further check is inconclusive when anything else
///    changed on the host while the fault was in force.
///  - bound, per algorithm and phase (not warm-up): invalid when the fastest iteration beats the fluid bound by more
///    than kBoundTolerance and the shaper's burst.
///  - expectation, per limit and algorithm: over a phase the median of a metric, or the share of right iterations; for
///    each fault the time until the system noticed it, the time until it was back, and what else changed; or whether,
///    and how soon, the degraded phase ended with an error. Without data inconclusive, and so is a limit that stands on
///    earlier runs while these are too few. They are those of history_of(data), stored with the run.
///  - teardown, beside the run's verdict: fails unless every injection is verified as restored.
/// Reasons say so where a run was simulated. Events made by stop_event() count as well. A plan without faults needs no
/// degraded and recovered iterations: for a run without faults, pass the plan with faults and the expectations about
/// those two phases taken out.
[[nodiscard]] Analysis analyse(const record::RunData& data, const scenarios::Plan& plan);

/// The event that tells the analysis that the run was stopped early and why: record it, then analyse. kOutcome becomes
/// fail, kRefused refused, kTeardown a teardown verdict, all others aborted.
[[nodiscard]] record::EventRow stop_event(std::int64_t run, Nanoseconds at, const Error& error);

/// The text for InjectionRow::error: the error's line, marked so that the analysis tells a refusal from a failure.
[[nodiscard]] std::string injection_error(const Error& error);

} // namespace railbreak::analyse
