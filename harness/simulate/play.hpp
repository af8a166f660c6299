// The steps of a simulated run: planning, playing every iteration of every phase, recording. The counterpart of
// controller::RunSteps.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collective/algorithm.hpp"
#include "collective/simulate/simulate.hpp"
#include "harness/record/recorder.hpp"
#include "harness/simulate/simulate_run.hpp"

namespace railbreak::simulate {

/// See the file comment. Writes each step to the database before the next begins.
class Play {
public:
    struct Context {
        const scenarios::Plan& plan;
        const SimulateOptions& options;
        record::Recorder& recorder;
        std::int64_t run;
    };
    explicit Play(const Context& context);

    /// Hosts, NICs with the goodput that the simulation gives them, ranks.
    [[nodiscard]] Result<void> cluster();
    /// Every algorithm of the plan through its phases.
    [[nodiscard]] Result<void> all_algorithms();
    /// The simulation's clock.
    [[nodiscard]] Nanoseconds now() const { return now_; }

private:
    /// A schedule to play. Play remembers what it takes where no timed fault interferes.
    struct Prepared {
        std::unique_ptr<const collective::Schedule> schedule;
        std::string reason;
        std::string proof;          ///< "proven", or empty
        bool proof_skipped = false; ///< too long to prove
        std::optional<collective::SimulationResult> healthy;
        std::optional<collective::SimulationResult> damaged;
    };
    enum class Damage : std::uint8_t { kNone, kPhaseFaults };

    /// The cluster as algorithms plan for it.
    [[nodiscard]] collective::Topology topology(bool damaged) const;
    [[nodiscard]] Result<void> one_algorithm(const scenarios::AlgorithmSpec& spec);
    [[nodiscard]] Result<void> degraded_phase(const scenarios::AlgorithmSpec& spec, Prepared& steady);
    [[nodiscard]] Result<void> degraded_iterations(const std::string& algorithm, Prepared& prepared);
    [[nodiscard]] Result<std::vector<Prepared>> candidates(const scenarios::AlgorithmSpec& algorithm);
    [[nodiscard]] Result<std::size_t> fastest(const std::string& algorithm, std::vector<Prepared>& candidates);
    [[nodiscard]] Result<Prepared> prepare(const controller::Form& form, bool damaged);
    void prove(Prepared& prepared);
    [[nodiscard]] Result<void> healthy_iterations(const std::string& algorithm, scenarios::Phase phase,
                                                  Prepared& prepared, std::int32_t count);
    [[nodiscard]] Result<Nanoseconds> iterate(const std::string& algorithm, std::string_view phase,
                                              std::int32_t iteration, Prepared& prepared, Damage damage);
    [[nodiscard]] Result<collective::SimulationResult> simulated(Prepared& prepared, Damage damage,
                                                                 std::int32_t iteration);
    [[nodiscard]] Result<void> record_phase_faults(const std::string& algorithm, Nanoseconds from);
    [[nodiscard]] Result<void> record_timed_faults(const std::string& algorithm, std::int32_t iteration,
                                                   Nanoseconds started_at, Nanoseconds took);
    /// What a schedule is simulated on.
    [[nodiscard]] collective::SimulationOptions simulation(bool damaged) const;
    /// Keeps a picture of the first schedule of an algorithm that is asked for.
    [[nodiscard]] Result<void> draw_schedule(const std::string& algorithm, const Prepared& prepared, bool damaged);
    [[nodiscard]] Result<void> store_bounds(const std::string& algorithm, scenarios::Phase phase, bool damaged);
    /// Without a time: now.
    void event(std::string_view kind, std::string text, std::optional<Nanoseconds> at = {});

    Context context_;
    std::optional<Error> unrecorded_; // why an event could not be stored
    BitRate goodput_;                 ///< of a healthy NIC
    std::string drawn_;               ///< algorithm of the last picture
    Nanoseconds now_{std::chrono::seconds(1)};
};

} // namespace railbreak::simulate
