// Orders faults, follows them to their end, and keeps the evidence in the database: ordered, applied, observed,
// reverted, restored, each with its time on the controller's clock.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/controller/session.hpp"
#include "harness/record/recorder.hpp"
#include "scenarios/model.hpp"

namespace railbreak::controller {

/// What is left of a NIC, beside its rate.
struct NicPlight {
    bool dead = false;                   ///< carries nothing
    bool cut_off = false;                ///< carries nothing to or from some hosts
    std::optional<std::int32_t> reroute; ///< NIC that what it sends leaves through
};

/// Faults of one algorithm's degraded phase.
class FaultDriver {
public:
    FaultDriver(Session& session, record::Recorder& recorder, std::int64_t run, std::string algorithm);
    FaultDriver(const FaultDriver&) = delete;
    FaultDriver& operator=(const FaultDriver&) = delete;
    /// Forgets timers that have not run; what is in force is the agents' to revert when they end.
    ~FaultDriver() { session_.agents().cancel_timers(); }

    /// Applies every fault that lasts for the whole phase, and waits until each is in force by read-back.
    [[nodiscard]] Result<void> apply_phase_faults();
    /// Sets timers for the faults of degraded iteration `iteration` that has just started at `started_at`, and gives
    /// the ranks that are to begin it late.
    [[nodiscard]] Lateness arm_timed_faults(std::int32_t iteration, Nanoseconds started_at);
    /// Adds to the evidence of late ranks how late they were.
    [[nodiscard]] Result<void> record_lateness(std::int32_t iteration, const IterationOutcome& outcome);
    /// Waits until everything that was armed has been applied and reverted.
    [[nodiscard]] Result<void> settle_timed_faults();
    /// Reverts everything that is still in force and waits until each host's former state is verified. Evidence that
    /// could not be stored meanwhile, because the disk was full, is stored now.
    [[nodiscard]] Result<void> revert_all();
    /// Adds the measured goodput of the faulted NICs to the evidence of the caps that are in force.
    [[nodiscard]] Result<void> record_goodput(const Goodputs& ports);

    /// The lowest rate that a cap in force leaves to a port; the cluster's rate when there is none.
    [[nodiscard]] BitRate lowest_cap() const;
    /// Whether a cap is in force now.
    [[nodiscard]] bool cap_in_force() const;
    /// Whether a rank was killed: the ranks must be started anew before the next iteration.
    [[nodiscard]] bool rank_killed() const;
    /// What faults of the whole phase do to a NIC, beside slowing it down.
    [[nodiscard]] NicPlight plight_of(std::int32_t host, std::int32_t nic) const;
    /// Whether faults in force act on the packets of a NIC in ways that a plain flow feels: what a probe measures there
    /// is then not what a cap leaves.
    [[nodiscard]] bool packets_disturbed(std::int32_t host, std::int32_t nic) const;
    /// The lowest rate that caps in force leave to that direction of a NIC; the cluster's rate when there is none.
    [[nodiscard]] BitRate wanted_rate(std::int32_t host, std::int32_t nic, scenarios::Direction direction) const;
    /// Whether a cap in force acts on any NIC of a host.
    [[nodiscard]] bool host_capped(std::int32_t host) const;
    /// Whether a cap in force acts on that direction of a NIC.
    [[nodiscard]] bool nic_capped(std::int32_t host, std::int32_t nic, scenarios::Direction direction) const;

private:
    struct Injection {
        const scenarios::PlannedFault* fault;
        record::InjectionRow row;
        bool in_force = false;
        std::int64_t apply_call = 0; ///< outstanding request, 0: none
        std::int64_t revert_call = 0;
        bool revert_due = false; ///< its time has come, but it was not applied yet
        bool unsaved = false;    ///< the row could not be stored
    };
    [[nodiscard]] Result<void> order(Injection& injection);
    void order_revert(Injection& injection);
    void collect(Injection& injection);
    void arm(Injection& injection, Nanoseconds begin);
    [[nodiscard]] Result<void> store_row_of(Injection& injection);
    void store(Injection& injection);
    [[nodiscard]] Result<void> wait_for_calls(std::string_view what);
    void take_evidence(Injection& injection, const launch::Json& evidence);
    static void take_carried_rates(Injection& injection, const launch::Json& evidence);
    void note_error(const Error& error);

    Session& session_;
    record::Recorder& recorder_;
    std::int64_t run_;
    std::string algorithm_;
    std::map<std::int32_t, Injection> injections_; ///< by index of the fault in the plan; one life per phase
    std::vector<Error> timer_errors_;
    Nanoseconds last_timer_{0}; ///< when the last timer is due
};

} // namespace railbreak::controller
