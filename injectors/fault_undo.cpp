// A fault's way out: revert, verify, close its entry.
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "injectors/fault_keeper_impl.hpp"
#include "injectors/port_cap.hpp"
#include "injectors/restore.hpp"

namespace railbreak::injectors {

/// Reads back that the fault's own part is as the remaining faults want it; with none left, as before.
Result<std::vector<std::string>> FaultKeeper::Impl::verify(const Held& fault, const FormerState& former,
                                                           const WantedState& wanted) {
    const std::int32_t ifindex = fault.entry.device.ifindex;
    std::vector<std::string> notes;
    PortState restored = former.port;
    if (wanted.send) {
        restored.send = SendMechanism::kNone;
        const auto rate = read_send_cap(ops_, ifindex, former.port);
        if (!rate || !*rate || **rate > *wanted.send) {
            return fail(ErrorKind::kTeardown,
                        fmt::format("{} does not send at the rate of the faults that remain", fault.entry.device.name));
        }
    }
    if (wanted.receive) {
        restored.receive = false;
        const auto rate = read_receive_cap(ops_, ifindex);
        if (!rate || !*rate || **rate > *wanted.receive) {
            return fail(ErrorKind::kTeardown, fmt::format("{} does not receive at the rate of the faults that remain",
                                                          fault.entry.device.name));
        }
    }
    return verify_port(ops_, ifindex, restored);
}

Result<void> FaultKeeper::Impl::close_entry(Held& fault) {
    if (auto marked = journal_.mark(JournalMark::kRestored, fault.request.id); !marked) {
        return marked;
    }
    // A guard that is gone has nothing to release.
    (void)guard_.release(fault.request.id);
    if (auto verified = step(fault, FaultEvent::kVerified); !verified) {
        return verified;
    }
    done_[fault.request.id] = fault.evidence;
    std::erase_if(faults_, [&](const auto& each) { return each.get() == &fault; });
    return {};
}

namespace {

/// What the port carried while a cap was in force: the workload itself as evidence.
void add_carried_rates(HostOps& ops, Held& fault) {
    if (fault.request.kind != FaultKind::kCap || !fault.counters_at_apply || fault.evidence.reverted_at.count() != 0) {
        return;
    }
    const std::optional<PortCounters> now = read_counters(ops, fault.entry.device);
    const PortCounters& then = *fault.counters_at_apply;
    fault.counters_at_apply.reset(); // once: a second try of the undo would measure a time without the fault
    if (!now || now->at <= then.at || now->sent_bytes < then.sent_bytes || now->received_bytes < then.received_bytes) {
        return;
    }
    const double seconds = std::chrono::duration<double>(now->at - then.at).count();
    const auto add = [&](const char* name, std::uint64_t bytes) {
        const double bits_per_s = static_cast<double>(bytes) * 8 / seconds;
        fault.evidence.readback.emplace_back(name, std::to_string(static_cast<std::uint64_t>(bits_per_s)));
    };
    add("carried_send_bits_per_s", now->sent_bytes - then.sent_bytes);
    add("carried_receive_bits_per_s", now->received_bytes - then.received_bytes);
}

} // namespace

Result<void> FaultKeeper::Impl::undo(Held& fault) {
    add_carried_rates(ops_, fault);
    const auto remaining = on_device(fault.entry.device, &fault);
    auto involved = remaining;
    involved.push_back(&fault);
    std::vector<std::string> notes;
    const auto device = find_device(ops_, fault.entry.device);
    if (!device) {
        return tl::unexpected(device.error());
    }
    if (remaining.empty() || device->empty()) {
        auto done = restore_entry(ops_, fault.entry);
        if (!done) {
            return tl::unexpected(done.error());
        }
        notes = std::move(*done);
        fault.evidence.reverted_at = ops_.monotonic();
    } else {
        const FormerState former = former_state(involved);
        const WantedState wanted = wanted_by(remaining);
        if (auto done = go_to(fault.entry.device.ifindex, former, wanted); !done) {
            return done;
        }
        fault.evidence.reverted_at = ops_.monotonic();
        auto verified = verify(fault, former, wanted);
        if (!verified) {
            return tl::unexpected(verified.error());
        }
        notes = std::move(*verified);
    }
    auto reverted = step(fault, FaultEvent::kUndone).and_then([&] {
        return journal_.mark(JournalMark::kReverted, fault.request.id);
    });
    if (!reverted) {
        return reverted;
    }
    fault.evidence.restored_at = ops_.monotonic();
    for (std::string& note : notes) {
        fault.evidence.readback.emplace_back("note", std::move(note));
    }
    return close_entry(fault);
}

Result<FaultEvidence> FaultKeeper::Impl::revert(std::int32_t id) {
    Held* fault = find(id);
    if (fault == nullptr) {
        const auto before = done_.find(id);
        if (before != done_.end()) {
            return before->second;
        }
        return fail(Error(ErrorKind::kInput, fmt::format("there is no fault with the id {}", id))
                        .with("id", std::to_string(id)));
    }
    auto done = step(*fault, FaultEvent::kRevert).and_then([&] { return undo(*fault); });
    if (!done) {
        fault->evidence.error = done.error().message();
        // Whatever step failed, the fault is to be undone again.
        fault->state = FaultState::kUndoing;
        return tl::unexpected(done.error());
    }
    return done_.at(id);
}

Result<std::vector<FaultEvidence>> FaultKeeper::Impl::revert_all() {
    std::vector<FaultEvidence> evidence;
    std::optional<Error> first;
    std::vector<std::int32_t> ids;
    for (auto fault = faults_.rbegin(); fault != faults_.rend(); ++fault) {
        ids.push_back((*fault)->request.id);
    }
    for (const std::int32_t id : ids) {
        auto done = revert(id);
        if (done) {
            evidence.push_back(std::move(*done));
        } else if (!first) {
            first = std::move(done.error()).with("id", std::to_string(id));
        }
    }
    if (first) {
        return fail(std::move(*first));
    }
    return evidence;
}

Result<void> FaultKeeper::Impl::renew_lease() {
    if (auto alive = guard_.check(); !alive) {
        return alive;
    }
    const Nanoseconds end = ops_.boottime() + options_.lease;
    auto sent = guard_.renew(end);
    if (sent) {
        lease_end_ = end;
    }
    return sent;
}

Result<void> FaultKeeper::Impl::close() {
    if (closed_) {
        return {};
    }
    if (auto reverted = revert_all(); !reverted) {
        return tl::unexpected(reverted.error());
    }
    closed_ = true;
    (void)guard_.disarm(); // one that is gone needs no ending
    return journal_.remove();
}

} // namespace railbreak::injectors
