// How the harness asks for plans: in which forms an algorithm may run, and what it says of the cost of a flow.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "scenarios/model.hpp"

namespace railbreak::controller {

/// What a flow costs a port besides its bytes, and the delay between its last byte leaving and being usable. Kernel
/// TCP on capped virtual links; they steer the choice of the number of segments, never a bound or a verdict.
inline constexpr Nanoseconds kFlowOverhead = std::chrono::microseconds(30);
inline constexpr Nanoseconds kFlowLatency = std::chrono::milliseconds(1);

/// One way in which an algorithm may run.
struct Form {
    std::string algorithm;
    std::vector<std::pair<std::string, std::string>> options{};
    bool optional = false; ///< left out where it does not apply
};

/// The forms in which an algorithm may run on a damage. One with options runs in exactly that form. OptCC's schedule
/// exists for a port that carries one flow at a time and for a port that ring and straggler share; on a mild slowdown,
/// chunks may fill the straggler's idle time, which is the best there is when it fits and costly when it does not.
/// Which is faster depends on the fabric, so they are tried and the fastest is kept.
[[nodiscard]] std::vector<Form> forms_of(const scenarios::AlgorithmSpec& algorithm);

} // namespace railbreak::controller
