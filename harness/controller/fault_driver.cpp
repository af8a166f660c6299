#include "harness/controller/fault_driver.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "harness/analyse/analyse.hpp"
#include "harness/controller/fault_order.hpp"

namespace railbreak::controller {

using launch::Json;
using scenarios::Direction;
using scenarios::FaultKind;
using scenarios::PlannedFault;

namespace {

/// For an answer, besides what agents may be busy for with what they were told.
constexpr Nanoseconds kAnswerTime = std::chrono::seconds(10);

} // namespace

FaultDriver::FaultDriver(Session& session, record::Recorder& recorder, std::int64_t run, std::string algorithm)
    : session_(session), recorder_(recorder), run_(run), algorithm_(std::move(algorithm)) {}

Result<void> FaultDriver::store_row_of(Injection& injection) {
    injection.row = injection_row(*injection.fault, session_.plan().cluster);
    injection.row.run = run_;
    injection.row.algorithm = algorithm_;
    injection.row.ordered_at = monotonic_now().count();
    Result<std::int64_t> id = recorder_.add_injection(injection.row);
    if (!id) {
        return fail(std::move(id.error()));
    }
    injection.row.id = *id;
    return {};
}

/// A full disk must not keep faults from being followed to their end: what cannot be stored now is stored later.
void FaultDriver::store(Injection& injection) {
    injection.unsaved = !recorder_.update_injection(injection.row).has_value();
}

Result<void> FaultDriver::order(Injection& injection) {
    const PlannedFault& fault = *injection.fault;
    if (Result<void> stored = store_row_of(injection); !stored) {
        return stored;
    }
    const auto address_of = [&](std::int32_t host, std::int32_t nic) { return session_.address(host, nic); };
    Result<std::int64_t> call = session_.agents().start_call(
        fault.host, "fault.apply", fault_order(fault, address_of, recorder_.path().parent_path()));
    if (!call) {
        return fail(std::move(call.error()));
    }
    injection.apply_call = *call;
    return {};
}

void FaultDriver::order_revert(Injection& injection) {
    if (injection.apply_call != 0) {
        injection.revert_due = true; // reverted as soon as the apply has been answered
        return;
    }
    if (!injection.in_force || injection.revert_call != 0) {
        return;
    }
    Result<std::int64_t> call =
        session_.agents().start_call(injection.fault->host, "fault.revert", {{"id", injection.fault->id}});
    if (!call) {
        note_error(call.error());
        return;
    }
    injection.revert_call = *call;
}

void FaultDriver::note_error(const Error& error) {
    timer_errors_.push_back(error);
}

void FaultDriver::take_evidence(Injection& injection, const Json& evidence) {
    record::InjectionRow& row = injection.row;
    const auto time_of = [&](const char* key) {
        const std::int64_t there = evidence.value(key, std::int64_t{0});
        return there == 0 ? 0 : session_.to_controller_clock(injection.fault->host, Nanoseconds(there)).count();
    };
    row.applied_at = time_of("applied_at");
    row.observed_at = time_of("observed_at");
    row.reverted_at = time_of("reverted_at");
    row.restored_at = time_of("restored_at");
    row.mechanism = evidence.value("mechanism", row.mechanism);
    row.realism = evidence.value("realism", row.realism);
    row.data_path = evidence.value("data_path", row.data_path);
    if (const auto observation = evidence.find("observation"); observation != evidence.end()) {
        row.observation_json = observation->dump();
    }
    if (const auto collateral = evidence.find("collateral"); collateral != evidence.end() && !collateral->empty()) {
        row.collateral_json = collateral->dump();
    }
    row.error = evidence.value("error", row.error);
    take_carried_rates(injection, evidence);
}

/// A cap that comes and goes within an iteration leaves no time for a probe of its own. What the workload got through
/// the port meanwhile, by the NIC's counters, is the measurement then.
void FaultDriver::take_carried_rates(Injection& injection, const Json& evidence) {
    const PlannedFault& fault = *injection.fault;
    const auto observation = evidence.find("observation");
    if (fault.kind != FaultKind::kCap || !fault.at_iteration || observation == evidence.end()) {
        return;
    }
    const auto carried = [&](const char* key) {
        const std::string digits = observation->value(key, "");
        std::int64_t value = 0;
        std::from_chars(digits.data(), digits.data() + digits.size(), value);
        return value;
    };
    if (fault.direction != Direction::kReceive) {
        injection.row.measured_send_bits_per_s = carried("carried_send_bits_per_s");
    }
    if (fault.direction != Direction::kSend) {
        injection.row.measured_receive_bits_per_s = carried("carried_receive_bits_per_s");
    }
}

void FaultDriver::collect(Injection& injection) {
    const std::int32_t host = injection.fault->host;
    for (std::int64_t* call : {&injection.apply_call, &injection.revert_call}) {
        if (*call == 0) {
            continue;
        }
        std::optional<Result<Json>> reply = session_.agents().take_reply(host, *call);
        if (!reply) {
            continue;
        }
        const bool applying = call == &injection.apply_call;
        *call = 0;
        if (*reply) {
            take_evidence(injection, **reply);
            injection.in_force = applying;
        } else {
            injection.row.error = analyse::injection_error(reply->error());
            if (applying && reply->error().kind() != ErrorKind::kTeardown && !session_.agents().link(host).lost()) {
                // An agent that could not apply a fault has left the host as it was, or says that it could not.
                injection.row.restored_at = monotonic_now().count();
            }
            timer_errors_.push_back(std::move(reply->error()));
        }
        store(injection);
        if (applying && injection.revert_due) {
            injection.revert_due = false;
            order_revert(injection);
        }
    }
}

Result<void> FaultDriver::wait_for_calls(std::string_view what) {
    const auto idle = [&] {
        bool waiting = false;
        for (auto& [id, injection] : injections_) {
            collect(injection);
            waiting = waiting || injection.apply_call != 0 || injection.revert_call != 0;
        }
        return !waiting;
    };
    Result<void> waited =
        session_.agents().wait_until(idle, Deadline::after(session_.agents().busy_for() + kAnswerTime), what);
    if (!timer_errors_.empty()) {
        Error first = std::move(timer_errors_.front());
        timer_errors_.clear();
        return fail(std::move(first));
    }
    return waited;
}

Result<void> FaultDriver::apply_phase_faults() {
    for (const PlannedFault& fault : session_.plan().faults) {
        if (fault.at_iteration || fault.kind == FaultKind::kLate || is_off(fault)) {
            continue;
        }
        Injection& injection = injections_[fault.id] = Injection{.fault = &fault};
        if (Result<void> ordered = order(injection); !ordered) {
            return ordered;
        }
    }
    return wait_for_calls("the faults to be in force");
}

Lateness FaultDriver::arm_timed_faults(std::int32_t iteration, Nanoseconds started_at) {
    Lateness late;
    for (const PlannedFault& fault : session_.plan().faults) {
        const bool acts = fault.at_iteration == iteration || (fault.kind == FaultKind::kLate && !fault.at_iteration);
        if (!acts || is_off(fault)) {
            continue;
        }
        if (fault.kind == FaultKind::kLate) {
            const auto [place, first] = injections_.try_emplace(fault.id, Injection{.fault = &fault});
            if (Result<void> stored = first ? store_row_of(place->second) : Result<void>(); !stored) {
                note_error(stored.error());
            }
            late[global_rank(fault, session_.plan().cluster)] = fault.strength.late;
            continue;
        }
        arm(injections_[fault.id] = Injection{.fault = &fault}, started_at + fault.offset);
    }
    return late;
}

void FaultDriver::arm(Injection& injection, Nanoseconds begin) {
    session_.agents().run_at(begin, [this, &injection] {
        if (Result<void> ordered = order(injection); !ordered) {
            note_error(ordered.error());
        }
    });
    last_timer_ = std::max(last_timer_, begin);
    if (!injection.fault->duration) {
        return; // a kill: what there is to undo of it is undone with the phase
    }
    const Nanoseconds end = begin + *injection.fault->duration;
    session_.agents().run_at(end, [this, &injection] {
        collect(injection);
        order_revert(injection);
    });
    last_timer_ = std::max(last_timer_, end);
}

Result<void> FaultDriver::record_lateness(std::int32_t iteration, const IterationOutcome& outcome) {
    for (auto& [id, injection] : injections_) {
        const PlannedFault& fault = *injection.fault;
        if (fault.kind != FaultKind::kLate || (fault.at_iteration && fault.at_iteration != iteration)) {
            continue;
        }
        const RankOutcome& rank =
            outcome.ranks.at(static_cast<std::size_t>(global_rank(fault, session_.plan().cluster)));
        note_lateness(injection.row, fault, rank, rank.started_at - outcome.started_at);
        store(injection);
    }
    return wait_for_calls("late ranks"); // tells of a row that could not be stored
}

Result<void> FaultDriver::settle_timed_faults() {
    if (session_.agents().timers_pending()) {
        const Nanoseconds left = std::max(last_timer_ - monotonic_now(), Nanoseconds::zero());
        Result<void> ran = session_.agents().wait_until(
            [&] { return !session_.agents().timers_pending(); },
            Deadline::after(left + session_.agents().busy_for() + kAnswerTime), "the timed faults to be over");
        if (!ran) {
            return ran;
        }
    }
    return wait_for_calls("the timed faults to be reverted");
}

Result<void> FaultDriver::revert_all() {
    session_.agents().cancel_timers();
    for (auto& [id, injection] : injections_) {
        order_revert(injection);
    }
    Result<void> reverted = wait_for_calls("the faults to be reverted");
    for (auto& [id, injection] : injections_) {
        if (!injection.unsaved) {
            continue;
        }
        Result<void> stored = recorder_.update_injection(injection.row);
        injection.unsaved = !stored;
        if (!stored && reverted) {
            reverted = std::move(stored);
        }
    }
    return reverted;
}

BitRate FaultDriver::lowest_cap() const {
    BitRate lowest = session_.plan().cluster.rate;
    for (const auto& [id, injection] : injections_) {
        if (injection.in_force && injection.fault->kind == FaultKind::kCap) {
            lowest = std::min(lowest, injection.fault->rate);
        }
    }
    return lowest;
}

bool FaultDriver::cap_in_force() const {
    return std::any_of(injections_.begin(), injections_.end(), [](const auto& entry) {
        return entry.second.in_force && entry.second.fault->kind == FaultKind::kCap;
    });
}

bool FaultDriver::rank_killed() const {
    return std::any_of(injections_.begin(), injections_.end(), [](const auto& entry) {
        return entry.second.fault->kind == FaultKind::kKill && entry.second.row.applied_at != 0;
    });
}

NicPlight FaultDriver::plight_of(std::int32_t host, std::int32_t nic) const {
    NicPlight plight;
    for (const auto& [id, injection] : injections_) {
        const PlannedFault& fault = *injection.fault;
        if (!injection.in_force || fault.at_iteration || fault.host != host || fault.nic != nic ||
            target_kind(fault.kind) != scenarios::TargetKind::kNic) {
            continue;
        }
        if (fault.kind == FaultKind::kReroute) {
            plight.reroute = fault.strength.via_nic;
        } else if (stops_traffic(fault.kind, fault.strength)) {
            (fault.kind == FaultKind::kPartition ? plight.cut_off : plight.dead) = true;
        }
    }
    return plight;
}

bool FaultDriver::packets_disturbed(std::int32_t host, std::int32_t nic) const {
    return std::any_of(injections_.begin(), injections_.end(), [&](const auto& entry) {
        const PlannedFault& fault = *entry.second.fault;
        return entry.second.in_force && target_kind(fault.kind) == scenarios::TargetKind::kNic &&
               fault.kind != FaultKind::kCap && fault.host == host &&
               (fault.nic == nic || (fault.kind == FaultKind::kReroute && fault.strength.via_nic == nic));
    });
}

BitRate FaultDriver::wanted_rate(std::int32_t host, std::int32_t nic, Direction direction) const {
    BitRate lowest = session_.plan().cluster.rate;
    for (const auto& [id, injection] : injections_) {
        const PlannedFault& fault = *injection.fault;
        if (injection.in_force && fault.kind == FaultKind::kCap && fault.host == host && fault.nic == nic &&
            share_a_side(fault.direction, direction)) {
            lowest = std::min(lowest, fault.rate);
        }
    }
    return lowest;
}

bool FaultDriver::host_capped(std::int32_t host) const {
    return std::any_of(injections_.begin(), injections_.end(), [&](const auto& entry) {
        const PlannedFault& fault = *entry.second.fault;
        return entry.second.in_force && fault.kind == FaultKind::kCap && fault.host == host;
    });
}

bool FaultDriver::nic_capped(std::int32_t host, std::int32_t nic, Direction direction) const {
    return std::any_of(injections_.begin(), injections_.end(), [&](const auto& entry) {
        const PlannedFault& fault = *entry.second.fault;
        return entry.second.in_force && fault.kind == FaultKind::kCap && fault.host == host && fault.nic == nic &&
               (fault.direction == direction || fault.direction == Direction::kBoth);
    });
}

Result<void> FaultDriver::record_goodput(const Goodputs& ports) {
    for (auto& [id, injection] : injections_) {
        if (!injection.in_force || injection.fault->kind != FaultKind::kCap) {
            continue;
        }
        const PortGoodput& port = ports.at(static_cast<std::size_t>(injection.fault->host))
                                      .at(static_cast<std::size_t>(injection.fault->nic));
        if (injection.fault->direction != Direction::kReceive) {
            injection.row.measured_send_bits_per_s = static_cast<std::int64_t>(port.send.bits_per_s());
        }
        if (injection.fault->direction != Direction::kSend) {
            injection.row.measured_receive_bits_per_s = static_cast<std::int64_t>(port.receive.bits_per_s());
        }
        store(injection);
    }
    return {};
}

} // namespace railbreak::controller
