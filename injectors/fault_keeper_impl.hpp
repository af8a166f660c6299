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
/// Reads them; nothing when the device is gone or does not tell. They are evidence, never a condition.
[[nodiscard]] std::optional<PortCounters> read_counters(HostOps& ops, const DeviceIdentity& device);

/// A fault in the keeper's hands.
struct Held {
    FaultRequest request;
    JournalEntry entry;
    FaultState state = FaultState::kPlanned;
    FaultEvidence evidence;
    std::optional<PortCounters> counters_at_apply; ///< nothing when they could not be read
};

/// The former state of everything that any of these faults touches on one NIC.
struct FormerState {
    PortState port;
    LinkState link;
};

[[nodiscard]] FormerState former_state(const std::vector<const Held*>& faults);

class FaultKeeper::Impl {
public:
    Impl(KeeperOptions options, HostOps& ops, Journal journal, Guard guard, RecoverReport leftovers,
         Nanoseconds lease_end)
        : options_(std::move(options)), ops_(ops), journal_(std::move(journal)), guard_(std::move(guard)),
          leftovers_(std::move(leftovers)), lease_end_(lease_end) {}

    Result<FaultEvidence> apply(const FaultRequest& request);
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
    Result<void> may_apply(const FaultRequest& request);
    Result<void> plan(Held& fault);
    Result<void> write_down(Held& fault);
    Result<void> inject(Held& fault);
    Result<void> undo(Held& fault);
    Result<void> observe(Held& fault, const WantedState& wanted);
    Result<void> go_to(std::int32_t ifindex, const FormerState& former, const WantedState& wanted);
    Result<std::vector<std::string>> verify(const Held& fault, const FormerState& former, const WantedState& wanted);
    Result<void> close_entry(Held& fault);
    Result<void> check_alone(const DeviceIdentity& device) const;
    Result<FaultEvidence> give_up(Held& fault, Error error);
    std::vector<const Held*> on_device(const DeviceIdentity& device, const Held* without) const;
    static WantedState wanted_by(const std::vector<const Held*>& faults);
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

} // namespace railbreak::injectors
