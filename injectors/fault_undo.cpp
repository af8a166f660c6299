// A fault's way out: revert, verify, close its entry.
#include <algorithm>

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

Result<void> FaultKeeper::Impl::undo(Held& fault) {
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
