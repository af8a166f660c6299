// The steps of a run between the standing cluster and its end: probing, planning, iterating through the phases. Every
// step writes what it learned to the database before the next begins.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/controller/damage.hpp"
#include "harness/controller/fault_driver.hpp"
#include "harness/controller/forms.hpp"
#include "harness/controller/progress.hpp"
#include "harness/controller/run_clock.hpp"
#include "harness/controller/session.hpp"

namespace railbreak::controller {

/// See the file comment. Uses the session and the recorder of its run.
class RunSteps {
public:
    struct Context {
        Session& session;
        record::Recorder& recorder;
        std::int64_t run;
        Progress& progress;
        std::string expected_digest;
        const std::optional<Error>& faults_lost; ///< set by a notification; ends the run
        std::optional<Error>& unrecorded;        ///< why an event could not be stored; ends the run at its next step
    };
    explicit RunSteps(const Context& context) : context_(context), clock_(context.session.plan()) {}

    /// Measures every port without any fault; stores NICs with their goodput.
    [[nodiscard]] Result<void> baseline();
    /// Runs every algorithm of the plan through its phases.
    [[nodiscard]] Result<void> all_algorithms();

private:
    [[nodiscard]] Result<void> one_algorithm(const scenarios::AlgorithmSpec& spec);
    [[nodiscard]] Result<void> degraded_phase(const scenarios::AlgorithmSpec& spec, const PreparedPlan& steady,
                                              FaultDriver& faults);
    [[nodiscard]] Result<std::vector<PreparedPlan>> candidates(const scenarios::AlgorithmSpec& algorithm);
    /// New connections start slowly: one iteration that does not count for a plan with more lanes than were warm.
    [[nodiscard]] Result<Nanoseconds> warm_up(const std::string& algorithm, const PreparedPlan& plan,
                                              collective::Lane& warm_lanes);
    [[nodiscard]] Result<PreparedPlan> degraded_plan(const scenarios::AlgorithmSpec& spec, const PreparedPlan& steady);
    /// The degraded phase, with all faults of it undone at its end.
    [[nodiscard]] Result<void> with_faults(const scenarios::AlgorithmSpec& spec, const PreparedPlan& steady);
    [[nodiscard]] Result<NicSlowdowns> measure_damage(FaultDriver& faults);
    void add_caps(const FaultDriver& faults, const Goodputs& ports, NicSlowdowns& damage) const;
    [[nodiscard]] Result<Goodputs> probe_capped(const FaultDriver& faults, const std::vector<std::uint64_t>& dead);
    [[nodiscard]] Result<void> iterations(const std::string& algorithm, scenarios::Phase phase,
                                          const PreparedPlan& plan, std::int32_t count, FaultDriver* faults);
    /// The same, without what stands around them.
    [[nodiscard]] Result<void> iterate_all(const std::string& algorithm, scenarios::Phase phase,
                                           const PreparedPlan& plan, std::int32_t count, FaultDriver* faults);
    /// Notes what every NIC has carried. A host that does not answer that ends no run.
    [[nodiscard]] Result<void> count_bytes();
    /// Keeps a picture of the schedule that met the damage, or of the steady one where none did.
    [[nodiscard]] Result<void> draw_schedule(const std::string& algorithm, const PreparedPlan& plan);
    [[nodiscard]] Result<Nanoseconds> iterate(const std::string& algorithm, std::string_view phase,
                                              std::int32_t iteration, const PreparedPlan& plan, FaultDriver* faults);
    /// The failure of the first event that could not be stored.
    [[nodiscard]] Result<void> recorded() const;
    [[nodiscard]] agent::PlanSpec spec_for(const Form& form, const collective::Topology& topology) const;
    [[nodiscard]] Result<void> store_bounds(const std::string& algorithm, scenarios::Phase phase,
                                            const NicSlowdowns& damage);
    [[nodiscard]] const scenarios::ClusterSpec& cluster() const { return context_.session.plan().cluster; }
    /// Starts the ranks anew after a phase that broke them, with their connections warm. Gives the steady plan as the
    /// new ranks know it.
    [[nodiscard]] Result<PreparedPlan> renew_ranks(const scenarios::AlgorithmSpec& spec);
    /// The plan for the healthy cluster.
    [[nodiscard]] Result<PreparedPlan> steady_plan(const scenarios::AlgorithmSpec& spec);
    /// Whether the Error is what the scenario expects of the degraded phase; the phase ends with it then.
    [[nodiscard]] bool is_expected(const std::string& algorithm, scenarios::Phase phase, const Error& error) const;
    /// An algorithm has no schedule for the cluster as it is. That is a finding, not a failure: the phase stays empty,
    /// which is inconclusive, and the next algorithm has its turn.
    void no_plan(const std::string& algorithm, const Error& why);
    void event(std::string_view kind, std::string text);

    Context context_;
    RunClock clock_;
    Goodputs healthy_ports_;
    BitRate healthy_goodput_;                   ///< of the fastest healthy NIC: bounds never claim more than is proven
    NicSlowdowns damage_;                       ///< measured while the faults of the present algorithm are in force
    std::optional<PreparedPlan> degraded_plan_; ///< of the present algorithm, once it ran
    std::int32_t warmups_ = 0;                  ///< warm-up iterations of the present algorithm so far
    bool ranks_broken_ = false;                 ///< an iteration failed, or a rank was killed: they can do nothing more
};

} // namespace railbreak::controller
