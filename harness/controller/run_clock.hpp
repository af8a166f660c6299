// How long the rest of a run will take.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "harness/controller/suite_progress.hpp"
#include "scenarios/model.hpp"

namespace railbreak::controller {

/// Knows the iterations that a run has ahead and learns from those that it has done, as SuiteClock does of items. What
/// a run does between its phases is not counted: it ends later than this says, by little in a long run.
class RunClock {
public:
    explicit RunClock(const scenarios::Plan& plan);

    /// An iteration of the plan is over. Those that stand before it and were left out will not come any more.
    void finished(std::string_view algorithm, std::string_view phase, Nanoseconds took);
    /// Time that the iterations ahead will take.
    [[nodiscard]] Nanoseconds left() const { return clock_.left(ahead_); }

private:
    std::vector<ExpectedItem> ahead_; ///< in order
    SuiteClock clock_;
};

} // namespace railbreak::controller
