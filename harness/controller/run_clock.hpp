// How long the rest of a run will take.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "harness/controller/suite_progress.hpp"
#include "scenarios/model.hpp"

namespace railbreak::controller {

/// Knows from the plan what a run has ahead: building the cluster, measuring its ports, iterations, measuring damage
/// and trying forms while faults hold, tearing down. Learns from the iterations that it has done, as SuiteClock does of
/// items; what lasts as long on any machine is only counted.
class RunClock {
public:
    explicit RunClock(const scenarios::Plan& plan);

    /// An iteration of the plan is over. What stands before it is over too: left out, or done.
    void finished(std::string_view algorithm, std::string_view phase, Nanoseconds took);
    /// Time until the end of the run.
    [[nodiscard]] Nanoseconds left() const;
    /// The part of it that is no iteration.
    [[nodiscard]] Nanoseconds left_around() const;

private:
    struct Part {
        ExpectedItem item;
        bool fixed = false; ///< nothing that iterations teach something about
    };
    void add_fixed(Nanoseconds time) { ahead_.push_back({.item = {"", time}, .fixed = true}); }
    void add_damage(const scenarios::Plan& plan, const scenarios::AlgorithmSpec& algorithm, Nanoseconds degraded);

    std::vector<Part> ahead_; ///< in order
    SuiteClock clock_;
};

} // namespace railbreak::controller
