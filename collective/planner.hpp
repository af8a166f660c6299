// The planner: for this cluster, this damage and this message, what is the best possible time, what does each algorithm
// take, and which one should run? Pure functions of the request; nothing is read or written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/units.hpp"
#include "collective/algorithm.hpp"
#include "collective/bounds.hpp"
#include "collective/simulate/simulate.hpp"

namespace railbreak::collective {

/// An algorithm has to be this much faster than the ring with the stragglers in it before it is worth while.
inline constexpr double kWorthWhile = 0.98;

/// What is to be planned.
struct PlannerInput {
    PlanRequest request; ///< options are for the algorithms in `algorithms`, all of them
    PortModel model = PortModel::kExclusive;
    /// Entries of the registry, never null. "auto" stands for the planner itself and is not among them.
    std::vector<const Algorithm*> algorithms;
    bool simulate = false; ///< also run each schedule on the port model, and recommend by that
    /// With `simulate`, and where no options are given: for the algorithms that cut the message into segments (options
    /// plan and k), simulate other plans and numbers of segments too and keep the one that is fastest. What they
    /// predict knows nothing of data that is passed on while it arrives.
    bool tune = false;
    /// Called before a schedule is simulated that many flows make long (kManyFlows). Empty: nobody listens.
    std::function<void(const Schedule& schedule, std::int64_t flows)> on_long_simulation;
};

/// Flows of a schedule whose simulation takes seconds, and of one that is not simulated at all.
inline constexpr std::int64_t kManyFlows = 100'000;
inline constexpr std::int64_t kTooManyFlows = 20'000'000;

/// Every algorithm of this build but "auto".
[[nodiscard]] std::vector<const Algorithm*> plannable_algorithms();

/// What one algorithm would do.
struct PlanRow {
    std::string algorithm;
    Result<Plan> plan; ///< or why it does not apply
    /// Time if every slow port were kSlowdownMargin times slower than stated: what this very schedule takes in the
    /// simulator, else what the algorithm predicts. Empty: it does not apply then. The recommendation goes by it.
    std::optional<Nanoseconds> careful;
    /// Several lanes share a port: meant for the fluid model. In the exclusive one only its simulated time is of use.
    bool shares_ports = false;
    std::optional<Result<Nanoseconds>> simulated;

    /// Simulated time where there is one, else the predicted one. Only for a row whose plan applies.
    [[nodiscard]] Nanoseconds time() const;
};

/// What each algorithm would do, and which one should run.
struct Choice {
    std::vector<PlanRow> rows;              ///< one per algorithm, in their order
    std::optional<std::size_t> recommended; ///< row
    /// One sentence: why that row, or why none; and which row would be faster if the slowdowns are just as stated.
    std::string why;
};

/// Plans with every algorithm, simulates if asked to, and compares. That an algorithm does not apply is no error, it is
/// said in its row. Errors (kInput): fewer than two servers, no ranks, no elements, no rate, a slowdown below 1, a
/// server without a NIC; a schedule of more than kTooManyFlows to simulate.
[[nodiscard]] Result<Choice> choose(const PlannerInput& input);

/// Everything the planner finds out.
struct Evaluation {
    std::vector<Bound> exclusive; ///< all_bounds in each model; the time of T/n = 1 is vector_time
    std::vector<Bound> fluid;
    Nanoseconds vector_time{0}; ///< n: a healthy NIC for the whole vector, one direction
    Nanoseconds bound_time{0};  ///< the binding bound of the input's model
    /// The ring before anything was slow; simulated when asked for and not too long, else predicted. Empty: there is no
    /// ring for this.
    std::optional<Nanoseconds> healthy_ring;
    Choice choice;
};

/// choose() with the bounds beside it. Errors as there.
[[nodiscard]] Result<Evaluation> evaluate(const PlannerInput& input);

/// What the schedules of this input are simulated on. Flows of the fluid model pass on data while it arrives, as the
/// executor does.
[[nodiscard]] SimulationOptions simulation_of(const PlannerInput& input);

/// From which message size on an algorithm beats the ring with the stragglers in it by 1 - kWorthWhile (predicted).
struct BreakEven {
    std::string algorithm;
    ByteCount smallest; ///< within one sixteenth of a doubling, or the smallest size that is tried
};

/// Sizes that break_even tries.
inline constexpr std::uint64_t kSmallestTried = 1024;
inline constexpr std::uint64_t kLargestTried = std::uint64_t{1} << 36;

/// Where it pays to leave the ring. When the message is one for which the recommended algorithm beats the ring: the
/// smallest size from which on, up to the message, it does. When the ring is recommended: the smallest larger size for
/// which another algorithm beats it. Nothing when there is no such size, or no ring among the algorithms.
[[nodiscard]] std::optional<BreakEven> break_even(const PlannerInput& input, const Choice& choice);

/// A cluster whose servers are all slow is as good as a healthy one of that speed: the same request with the fastest
/// server taken for healthy. Unchanged when some server is healthy or has dead NICs.
[[nodiscard]] PlanRequest relative_to_fastest(const PlanRequest& request);
/// The request with every noticeably slow port slowed further by kSlowdownMargin. Dead NICs are certain: no margin.
[[nodiscard]] PlanRequest with_margin(const PlanRequest& request);

} // namespace railbreak::collective
