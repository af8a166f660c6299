// Inside of FaultKeeper: what it holds, and the steps of a fault's life. The way in (plan, journal, apply, observe) is
// in fault_apply.cpp, the way out (revert, verify, close) in fault_undo.cpp.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "injectors/composer.hpp"
#include "injectors/fault_keeper.hpp"
#include "injectors/journal.hpp"

namespace railbreak::injectors {

/// What a port had carried at a time.
struct PortCounters {
    Nanoseconds at{0};
    std::uint64_t sent_bytes = 0;
    std::uint64_t received_bytes = 0;
};
/// Reads them; nothing when the target is no NIC, or the device is gone or does not tell. They are evidence, never a
/// condition.
[[nodiscard]] std::optional<PortCounters> read_counters(HostOps& ops, const FaultTarget& target);

/// A fault in the keeper's hands.
struct Held {
    FaultRequest request;
    JournalEntry entry;
    FaultState state = FaultState::kPlanned;
    FaultEvidence evidence;
    std::optional<PortCounters> counters_at_apply; ///< nothing when they could not be read
    bool closing_read = false;                     ///< the facets' counts are in the evidence
};

class FaultKeeper::Impl {
public:
    Impl(KeeperOptions options, HostOps& ops, Journal journal, Guard guard, RecoverReport leftovers,
         Nanoseconds lease_end)
        : options_(std::move(options)), ops_(ops), journal_(std::move(journal)), guard_(std::move(guard)),
          leftovers_(std::move(leftovers)), lease_end_(lease_end) {}

    Result<FaultEvidence> apply(const FaultRequest& request);
    Result<FaultPreview> preview(const FaultRequest& request);
    Result<FaultEvidence> revert(std::int32_t id);
    Result<std::vector<FaultEvidence>> revert_all();
    Result<void> renew_lease();
    Result<void> close();

    [[nodiscard]] Nanoseconds lease_left() const { return std::max(Nanoseconds(0), lease_end_ - ops_.boottime()); }
    Guard& guard() { return guard_; }
    [[nodiscard]] const std::vector<std::unique_ptr<Held>>& faults() const { return faults_; }
    [[nodiscard]] const RecoverReport& leftovers() const { return leftovers_; }
    [[nodiscard]] const Journal& journal() const { return journal_; }

private:
    class LeaseHold;
    Result<void> may_apply(const FaultRequest& request);
    Result<void> plan(Held& fault);
    Result<void> plan_facets(Held& fault);
    Result<void> check_company(const Held& fault) const;
    Result<void> write_down(Held& fault);
    Result<void> inject(Held& fault);
    void add_closing_readings(Held& fault);
    Result<void> undo(Held& fault);
    Result<Notes> undo_partly(Held& fault, const WantedState& wanted);
    Result<void> observe(Held& fault, const WantedState& wanted);
    Result<void> extend_deadlines();
    Result<void> end_lease_at(Nanoseconds end);
    Result<void> close_entry(Held& fault);
    Result<void> check_alone(const FaultTarget& target) const;
    Result<FaultEvidence> give_up(Held& fault, Error error);
    /// Faults on the target that act now, `without` one of them.
    std::vector<const Held*> together(const FaultTarget& target, const Held* without) const;
    static Result<WantedState> wanted_by(const std::vector<const Held*>& faults);
    [[nodiscard]] FacetContext context_of(const JournalEntry& entry) const {
        return {entry.target, entry.owner, lease_end_};
    }
    static Result<void> step(Held& fault, FaultEvent event);
    Held* find(std::int32_t id);

    KeeperOptions options_;
    HostOps& ops_;
    Journal journal_;
    Guard guard_;
    RecoverReport leftovers_;
    Nanoseconds lease_end_;
    std::vector<std::unique_ptr<Held>> faults_; ///< not restored, in order of application
    std::map<std::int32_t, FaultEvidence> done_;
    bool closed_ = false;
};

/// While it lives a lease that is shorter than what is to be done stands still.
class FaultKeeper::Impl::LeaseHold {
public:
    LeaseHold(Impl& keeper, Nanoseconds longest);
    ~LeaseHold();
    LeaseHold(const LeaseHold&) = delete;
    LeaseHold& operator=(const LeaseHold&) = delete;

private:
    Impl& keeper_;
    Nanoseconds left_;
    bool holds_;
};

} // namespace railbreak::injectors
