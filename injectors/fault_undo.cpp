// A fault's way out: revert, verify, close its entry.
#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "injectors/facet.hpp"
#include "injectors/fault_keeper_impl.hpp"
#include "injectors/restore.hpp"
#include "injectors/time_limits.hpp"

namespace railbreak::injectors {

FaultKeeper::Impl::LeaseHold::LeaseHold(Impl& keeper, Nanoseconds longest)
    : keeper_(keeper), left_(keeper.lease_left()), holds_(left_ > Nanoseconds(0) && left_ < longest) {
    if (holds_) {
        // Whatever does not work out shows itself to the call.
        (void)keeper_.end_lease_at(keeper_.ops_.boottime() + left_ + longest);
    }
}

FaultKeeper::Impl::LeaseHold::~LeaseHold() {
    if (holds_) {
        keeper_.lease_end_ = keeper_.ops_.boottime() + left_;
        (void)keeper_.guard_.renew(keeper_.lease_end_);
    }
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
    const std::optional<PortCounters> now = read_counters(ops, fault.entry.target);
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

/// What the fault's facets counted, before they go.
void FaultKeeper::Impl::add_closing_readings(Held& fault) {
    if (fault.evidence.observed_at.count() == 0 || fault.closing_read) {
        return;
    }
    fault.closing_read = true; // once: a second try of the undo would read what the first has left
    auto involved = together(fault.entry.target, &fault);
    involved.push_back(&fault);
    const auto wanted = wanted_by(involved);
    for (const FormerPart& part : fault.entry.former) {
        auto read = wanted ? facet(part.facet).closing(ops_, context_of(fault.entry), part.state, *wanted) : Readback();
        std::move(read.begin(), read.end(), std::back_inserter(fault.evidence.readback));
    }
}

/// Takes the fault's part back to what the faults that remain on its target want.
Result<Notes> FaultKeeper::Impl::undo_partly(Held& fault, const WantedState& wanted) {
    const FacetContext context = context_of(fault.entry);
    for (auto part = fault.entry.former.rbegin(); part != fault.entry.former.rend(); ++part) {
        if (auto done = facet(part->facet).go_to(ops_, context, part->state, wanted); !done) {
            return tl::unexpected(done.error());
        }
    }
    fault.evidence.reverted_at = ops_.monotonic();
    Notes notes;
    for (const FormerPart& part : fault.entry.former) {
        auto verified = facet(part.facet).verify(ops_, context, part.state, wanted);
        if (!verified) {
            return verified;
        }
        notes.insert(notes.end(), verified->begin(), verified->end());
    }
    return notes;
}

Result<void> FaultKeeper::Impl::undo(Held& fault) {
    add_carried_rates(ops_, fault);
    add_closing_readings(fault);
    const auto remaining = together(fault.entry.target, &fault);
    const auto wanted = wanted_by(remaining);
    const auto exists = target_exists(ops_, fault.entry.target);
    if (!wanted || !exists) {
        return tl::unexpected(wanted ? exists.error() : wanted.error());
    }
    auto notes = remaining.empty() || !*exists ? restore_entry(ops_, fault.entry) : undo_partly(fault, *wanted);
    if (!notes) {
        return tl::unexpected(notes.error());
    }
    if (fault.evidence.reverted_at.count() == 0) {
        fault.evidence.reverted_at = ops_.monotonic();
    }
    auto reverted = step(fault, FaultEvent::kUndone).and_then([&] {
        return journal_.mark(JournalMark::kReverted, fault.request.id);
    });
    if (!reverted) {
        return reverted;
    }
    fault.evidence.restored_at = ops_.monotonic();
    for (std::string& note : *notes) {
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
    const LeaseHold hold(*this, kOwnWork + undo_wait(fault->request.kind));
    auto done = step(*fault, FaultEvent::kRevert).and_then([&] { return undo(*fault); });
    if (!done) {
        fault->evidence.error = done.error().message();
        // Whatever step failed, the fault is to be undone again.
        fault->state = FaultState::kUndoing;
        return tl::unexpected(done.error());
    }
    return done_.at(id);
}

/// A route over several NICs comes back only once all of them are up, so what could not be undone is tried once more
/// after the others.
Result<std::vector<FaultEvidence>> FaultKeeper::Impl::revert_all() {
    std::vector<FaultEvidence> evidence;
    std::vector<std::int32_t> ids;
    for (auto fault = faults_.rbegin(); fault != faults_.rend(); ++fault) {
        ids.push_back((*fault)->request.id);
    }
    std::optional<Error> first;
    for (const bool again : {false, true}) {
        const std::vector<std::int32_t> now = std::exchange(ids, {});
        first.reset();
        for (const std::int32_t id : now) {
            auto done = revert(id);
            if (done) {
                evidence.push_back(std::move(*done));
                continue;
            }
            ids.push_back(id);
            if (!first) {
                first = std::move(done.error()).with("id", std::to_string(id));
            }
        }
        if (ids.empty() || (!again && ids.size() == now.size())) {
            break; // nothing was undone that could have been in the way
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
    return end_lease_at(ops_.boottime() + options_.lease);
}

Result<void> FaultKeeper::Impl::end_lease_at(Nanoseconds end) {
    if (auto sent = guard_.renew(end); !sent) {
        return sent;
    }
    lease_end_ = end;
    return extend_deadlines();
}

/// Moves the deadlines that the kernel itself keeps.
Result<void> FaultKeeper::Impl::extend_deadlines() {
    for (const auto& fault : faults_) {
        for (const FormerPart& part : fault->entry.former) {
            if (fault->state != FaultState::kObserved || !facet(part.facet).renews(part.state)) {
                continue;
            }
            auto done = wanted_by(together(fault->entry.target, nullptr)).and_then([&](const WantedState& wanted) {
                return facet(part.facet).go_to(ops_, context_of(fault->entry), part.state, wanted);
            });
            if (!done) {
                return tl::unexpected(std::move(done.error()).during("extending a fault's deadline"));
            }
        }
    }
    return {};
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
