// A fault's way in: plan, preflight, journal, apply, observe.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "injectors/facet.hpp"
#include "injectors/fault_keeper_impl.hpp"
#include "injectors/link_settings.hpp"
#include "injectors/preflight.hpp"
#include "injectors/restore.hpp"
#include "injectors/time_limits.hpp"

namespace railbreak::injectors {

namespace {

std::string mechanism_of(const JournalEntry& entry) {
    std::vector<std::string> words;
    for (const FormerPart& part : entry.former) {
        if (std::string word = facet(part.facet).mechanism(part.state, entry.request); !word.empty()) {
            words.push_back(std::move(word));
        }
    }
    return fmt::format("{}", fmt::join(words, " + "));
}

const FormerPart* find_part(const JournalEntry& entry, FacetKind kind) {
    const auto found = std::find_if(entry.former.begin(), entry.former.end(),
                                    [&](const FormerPart& part) { return part.facet == kind; });
    return found == entry.former.end() ? nullptr : &*found;
}

} // namespace

std::optional<PortCounters> read_counters(HostOps& ops, const FaultTarget& target) {
    if (target.kind != TargetKind::kNic) {
        return std::nullopt;
    }
    const auto found = find_device(ops, target.device);
    if (!found || found->empty()) {
        return std::nullopt;
    }
    return PortCounters{ops.monotonic(), found->front().sent_bytes, found->front().received_bytes};
}

Held* FaultKeeper::Impl::find(std::int32_t id) {
    const auto found =
        std::find_if(faults_.begin(), faults_.end(), [&](const auto& each) { return each->request.id == id; });
    return found == faults_.end() ? nullptr : found->get();
}

std::vector<const Held*> FaultKeeper::Impl::together(const FaultTarget& target, const Held* without) const {
    std::vector<const Held*> found;
    for (const auto& each : faults_) {
        if (each.get() != without && same_target(each->entry.target, target) && each->state != FaultState::kUndoing) {
            found.push_back(each.get());
        }
    }
    return found;
}

Result<WantedState> FaultKeeper::Impl::wanted_by(const std::vector<const Held*>& faults) {
    std::vector<FaultRequest> requests;
    for (const Held* each : faults) {
        requests.push_back(each->request);
    }
    return compose(requests);
}

Result<void> FaultKeeper::Impl::step(Held& fault, FaultEvent event) {
    const auto next = next_state(fault.state, event);
    if (!next) {
        return tl::unexpected(next.error());
    }
    fault.state = *next;
    return {};
}

Result<void> FaultKeeper::Impl::may_apply(const FaultRequest& request) {
    if (closed_) {
        return fail(ErrorKind::kInternal, "the fault keeper is closed");
    }
    if (find(request.id) != nullptr) {
        return fail(Error(ErrorKind::kInput, fmt::format("a fault with the id {} is open already", request.id))
                        .with("id", std::to_string(request.id)));
    }
    if (lease_left() <= Nanoseconds(0)) {
        return fail(ErrorKind::kHarness, "the lease has run out; no fault may start");
    }
    return guard_.check();
}

namespace {

/// True when the kernel forgets routes of the NIC with that fault.
bool takes_routes(const FaultRequest& request) {
    return request.kind == FaultKind::kLinkDown || request.kind == FaultKind::kPciRemove ||
           (request.kind == FaultKind::kMtu && request.mtu_bytes < kSmallestIpv6Mtu);
}

} // namespace

/// Refuses what cannot be combined with the faults that are open. A reroute's table lives on the NIC that takes over,
/// and a link that goes down would empty it.
Result<void> FaultKeeper::Impl::check_company(const Held& fault) const {
    const FaultRequest& request = fault.request;
    std::vector<FaultRequest> requests{request};
    for (const auto& each : faults_) {
        const FaultRequest& other = each->request;
        if (same_target(each->entry.target, fault.entry.target)) {
            requests.push_back(other);
        }
        const bool under_way =
            (takes_routes(request) && other.kind == FaultKind::kReroute && other.via_nic == request.nic) ||
            (request.kind == FaultKind::kReroute && takes_routes(other) && other.nic == request.via_nic);
        if (under_way) {
            return fail(
                Error(ErrorKind::kRefused, fmt::format("{} cannot go together with the {} of {}",
                                                       to_string(request.kind), to_string(other.kind), other.nic))
                    .with("id", std::to_string(request.id))
                    .with("other", std::to_string(other.id)));
        }
    }
    return compose(requests).map([](const WantedState&) {});
}

/// Former state of every facet that the fault touches. A fault that joins others on its target takes it over from them,
/// since what it would read now is their work; those whose undo failed count too.
Result<void> FaultKeeper::Impl::plan_facets(Held& fault) {
    std::vector<const JournalEntry*> entries;
    for (const auto& each : faults_) {
        entries.push_back(&each->entry);
    }
    FacetContext context = context_of(fault.entry);
    context.open_entries = entries;
    for (const FacetKind kind : facets_of(fault.request)) {
        const FormerPart* known = nullptr;
        for (const auto& each : faults_) {
            if (known == nullptr && same_target(each->entry.target, fault.entry.target)) {
                known = find_part(each->entry, kind);
            }
        }
        if (known != nullptr) {
            if (auto joined = facet(kind).join(known->state, fault.request); !joined) {
                return joined;
            }
            fault.entry.former.push_back(*known);
            continue;
        }
        auto former = facet(kind).plan(ops_, context, fault.request);
        if (!former) {
            return tl::unexpected(former.error());
        }
        fault.entry.former.push_back({kind, std::move(*former)});
    }
    return {};
}

/// Preflight: finds the target, refuses what is not to be touched, and collects the former state.
Result<void> FaultKeeper::Impl::plan(Held& fault) {
    const FaultRequest& request = fault.request;
    if (auto sensible = check_request(request); !sensible) {
        return sensible;
    }
    if (target_kind(request.kind) == TargetKind::kProcess && request.pid == guard_.pid()) {
        return fail(Error(ErrorKind::kRefused, "the guard may not be touched: it undoes all faults")
                        .with("pid", std::to_string(request.pid)));
    }
    const std::string folder = journal_.path().substr(0, journal_.path().rfind('/'));
    std::vector<std::int32_t> under_fault;
    for (const auto& each : faults_) {
        if (each->entry.target.kind == TargetKind::kNic) {
            under_fault.push_back(each->entry.target.device.ifindex);
        }
    }
    auto target = find_target(ops_, request, options_.protected_nics, folder, under_fault);
    const auto boot_id = ops_.boot_id();
    if (!target || !boot_id) {
        return tl::unexpected(target ? boot_id.error() : target.error());
    }
    fault.entry.request = request;
    fault.entry.target = std::move(*target);
    fault.entry.owner = "railbreak " + options_.run_id;
    fault.entry.boot_id = *boot_id;
    fault.entry.lease_end_boottime = lease_end_;
    return check_alone(fault.entry.target).and_then([&] { return check_company(fault); }).and_then([&] {
        return plan_facets(fault);
    });
}

Result<void> FaultKeeper::Impl::check_alone(const FaultTarget& target) const {
    return check_other_runs(journal_.path().substr(0, journal_.path().rfind('/')), journal_.path(), target);
}

/// The plan has looked for other runs already; once more after writing, so that of two runs that start together at
/// least one sees the other's entry.
Result<void> FaultKeeper::Impl::write_down(Held& fault) {
    return journal_.intent(fault.entry).and_then([&] { return check_alone(fault.entry.target); }).and_then([&] {
        return guard_.entrust(fault.entry);
    });
}

Result<void> FaultKeeper::Impl::observe(Held& fault, const WantedState& wanted) {
    for (const FormerPart& part : fault.entry.former) {
        auto seen = facet(part.facet).observe(ops_, context_of(fault.entry), part.state, wanted);
        if (!seen) {
            return fail(
                Error(seen.error().kind(), "the fault was acknowledged but is not seen: " + seen.error().message())
                    .with("target", to_string(fault.entry.target)));
        }
        for (auto& value : *seen) {
            fault.evidence.readback.push_back(std::move(value));
        }
    }
    return {};
}

Result<void> FaultKeeper::Impl::inject(Held& fault) {
    const auto wanted = wanted_by(together(fault.entry.target, nullptr));
    if (!wanted) {
        return tl::unexpected(wanted.error());
    }
    for (const FormerPart& part : fault.entry.former) {
        if (auto done = facet(part.facet).go_to(ops_, context_of(fault.entry), part.state, *wanted); !done) {
            return done;
        }
    }
    fault.evidence.applied_at = ops_.monotonic();
    auto noted = step(fault, FaultEvent::kApplyDone).and_then([&] {
        return journal_.mark(JournalMark::kApplied, fault.request.id);
    });
    if (!noted) {
        return noted;
    }
    if (auto seen = observe(fault, *wanted); !seen) {
        return seen;
    }
    fault.evidence.observed_at = ops_.monotonic();
    fault.counters_at_apply = read_counters(ops_, fault.entry.target);
    // A guard that has undone everything meanwhile leaves a fault that nobody watches.
    return guard_.check().and_then([&] { return step(fault, FaultEvent::kSeen); });
}

Result<FaultPreview> FaultKeeper::Impl::preview(const FaultRequest& request) {
    if (auto allowed = may_apply(request); !allowed) {
        return tl::unexpected(allowed.error());
    }
    Held held;
    held.request = request;
    if (auto planned = plan(held); !planned) {
        return tl::unexpected(planned.error());
    }
    auto involved = together(held.entry.target, nullptr);
    involved.push_back(&held);
    const auto wanted = wanted_by(involved);
    if (!wanted) {
        return tl::unexpected(wanted.error());
    }
    FaultPreview preview{held.entry.target,
                         mechanism_of(held.entry),
                         std::string(realism_of(request.kind)),
                         std::string(data_path_of(request.kind)),
                         {}};
    std::vector<std::string>& undo = preview.steps.undo;
    for (const FormerPart& part : held.entry.former) {
        Steps steps = facet(part.facet).describe(context_of(held.entry), part.state, *wanted);
        std::move(steps.changes.begin(), steps.changes.end(), std::back_inserter(preview.steps.changes));
        undo.insert(undo.begin(), std::make_move_iterator(steps.undo.begin()),
                    std::make_move_iterator(steps.undo.end()));
    }
    return preview;
}

Result<FaultEvidence> FaultKeeper::Impl::apply(const FaultRequest& request) {
    if (auto allowed = may_apply(request); !allowed) {
        return tl::unexpected(allowed.error());
    }
    const LeaseHold hold(*this, kOwnWork + apply_wait(request.kind));
    auto held = std::make_unique<Held>();
    held->request = request;
    held->evidence.id = request.id;
    if (auto planned = plan(*held); !planned) {
        return tl::unexpected(planned.error());
    }
    held->evidence.mechanism = mechanism_of(held->entry);
    held->evidence.realism = realism_of(request.kind);
    held->evidence.data_path = data_path_of(request.kind);
    faults_.push_back(std::move(held));
    done_.erase(request.id);
    Held& fault = *faults_.back();
    auto done = step(fault, FaultEvent::kPreflightPassed).and_then([&] { return write_down(fault); });
    if (done) {
        done = step(fault, FaultEvent::kJournalWritten).and_then([&] { return inject(fault); });
    }
    return done ? Result<FaultEvidence>(fault.evidence) : give_up(fault, std::move(done.error()));
}

/// Ends a fault that failed. One that did not get past its journal entry has changed nothing, and perhaps must not:
/// another run may be at work on the target. So only its entry is closed.
Result<FaultEvidence> FaultKeeper::Impl::give_up(Held& fault, Error error) {
    fault.evidence.error = error.message();
    const bool untouched = fault.state == FaultState::kChecked;
    auto ended = step(fault, FaultEvent::kFailed).and_then([&] {
        return untouched ? step(fault, FaultEvent::kUndone).and_then([&] { return close_entry(fault); }) : undo(fault);
    });
    if (!ended) {
        const std::string target = to_string(fault.entry.target);
        fault.state = FaultState::kUndoing;
        return fail(Error(ErrorKind::kTeardown,
                          fmt::format("{}; and undoing it failed: {}", error.message(), ended.error().message()))
                        .with("target", target)
                        .with("id", std::to_string(fault.request.id)));
    }
    return fail(std::move(error));
}

} // namespace railbreak::injectors
