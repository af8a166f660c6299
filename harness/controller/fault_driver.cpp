#include "harness/controller/fault_driver.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "harness/analyse/analyse.hpp"

namespace railbreak::controller {

using launch::Json;
using scenarios::Direction;
using scenarios::FaultKind;
using scenarios::PlannedFault;

namespace {

/// A kernel call takes a fraction of a millisecond; a port that has to come up again may take seconds.
constexpr Nanoseconds kFaultTimeout = std::chrono::seconds(15);

Json to_request(const PlannedFault& fault) {
    Json request{
        {"id", fault.id}, {"kind", std::string(to_string(fault.kind))}, {"nic", fmt::format("rail{}", fault.nic)}};
    if (fault.kind == FaultKind::kCap) {
        request["direction"] = std::string(to_string(fault.direction));
        request["rate_bits_per_s"] = fault.rate.bits_per_s();
    }
    return request;
}

} // namespace

FaultDriver::FaultDriver(Session& session, record::Recorder& recorder, std::int64_t run, std::string algorithm)
    : session_(session), recorder_(recorder), run_(run), algorithm_(std::move(algorithm)) {}

Result<void> FaultDriver::order(Injection& injection) {
    const PlannedFault& fault = *injection.fault;
    record::InjectionRow& row = injection.row;
    row.run = run_;
    row.fault = fault.id;
    row.name = fault.name;
    row.kind = to_string(fault.kind);
    row.algorithm = algorithm_;
    row.host = fault.host;
    row.nic = fault.nic;
    if (fault.kind == FaultKind::kCap) {
        row.direction = to_string(fault.direction);
        row.wanted_rate_bits_per_s = static_cast<std::int64_t>(fault.rate.bits_per_s());
    }
    row.ordered_at = monotonic_now().count();
    Result<std::int64_t> id = recorder_.add_injection(row);
    if (!id) {
        return fail(std::move(id.error()));
    }
    row.id = *id;
    Result<std::int64_t> call = session_.agents().start_call(fault.host, "fault.apply", to_request(fault));
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

Result<void> FaultDriver::collect(Injection& injection) {
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
        if (Result<void> stored = recorder_.update_injection(injection.row); !stored) {
            return stored;
        }
        if (applying && injection.revert_due) {
            injection.revert_due = false;
            order_revert(injection);
        }
    }
    return {};
}

Result<void> FaultDriver::wait_for_calls(std::string_view what) {
    Result<void> stored;
    const auto idle = [&] {
        bool waiting = false;
        for (auto& [id, injection] : injections_) {
            if (stored) {
                stored = collect(injection);
            }
            waiting = waiting || injection.apply_call != 0 || injection.revert_call != 0;
        }
        return !waiting || !stored;
    };
    Result<void> waited = session_.agents().wait_until(idle, Deadline::after(kFaultTimeout), what);
    if (!timer_errors_.empty()) {
        Error first = std::move(timer_errors_.front());
        timer_errors_.clear();
        return fail(std::move(first));
    }
    return stored ? std::move(waited) : std::move(stored);
}

Result<void> FaultDriver::apply_phase_faults() {
    for (const PlannedFault& fault : session_.plan().faults) {
        if (!fault.at_iteration) {
            Injection& injection = injections_[fault.id] = Injection{.fault = &fault};
            if (Result<void> ordered = order(injection); !ordered) {
                return ordered;
            }
        }
    }
    return wait_for_calls("the faults to be in force");
}

void FaultDriver::arm_timed_faults(std::int32_t iteration, Nanoseconds started_at) {
    for (const PlannedFault& fault : session_.plan().faults) {
        if (fault.at_iteration != iteration) {
            continue;
        }
        Injection& injection = injections_[fault.id] = Injection{.fault = &fault};
        session_.agents().run_at(started_at + fault.offset, [this, &injection] {
            if (Result<void> ordered = order(injection); !ordered) {
                note_error(ordered.error());
            }
        });
        session_.agents().run_at(started_at + fault.offset + fault.duration.value_or(Nanoseconds::zero()),
                                 [this, &injection] {
                                     if (Result<void> collected = collect(injection); !collected) {
                                         note_error(collected.error());
                                     }
                                     order_revert(injection);
                                 });
    }
}

Result<void> FaultDriver::settle_timed_faults() {
    if (session_.agents().timers_pending()) {
        Result<void> ran = session_.agents().wait_until([&] { return !session_.agents().timers_pending(); },
                                                        Deadline::after(kFaultTimeout), "the timed faults to be over");
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
    return wait_for_calls("the faults to be reverted");
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

bool FaultDriver::nic_dead(std::int32_t host, std::int32_t nic) const {
    return std::any_of(injections_.begin(), injections_.end(), [&](const auto& entry) {
        const PlannedFault& fault = *entry.second.fault;
        return entry.second.in_force && fault.kind == FaultKind::kLinkDown && !fault.at_iteration &&
               fault.host == host && fault.nic == nic;
    });
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
        if (Result<void> stored = recorder_.update_injection(injection.row); !stored) {
            return stored;
        }
    }
    return {};
}

} // namespace railbreak::controller
