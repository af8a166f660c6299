// A fault's way in: plan, preflight, journal, apply, observe.
#include <algorithm>

#include <fmt/format.h>
#include <net/if.h>

#include "injectors/fault_keeper_impl.hpp"
#include "injectors/link_state.hpp"
#include "injectors/port_cap.hpp"
#include "injectors/preflight.hpp"
#include "injectors/restore.hpp"

namespace railbreak::injectors {

namespace {

constexpr auto kObserveBudget = std::chrono::seconds(5);

void add_rate(FaultEvidence& evidence, std::string name, const std::optional<BitRate>& rate) {
    evidence.readback.emplace_back(std::move(name), rate ? std::to_string(rate->bits_per_s()) : "none");
}

} // namespace

std::optional<PortCounters> read_counters(HostOps& ops, const DeviceIdentity& device) {
    const auto found = find_device(ops, device);
    if (!found || found->empty()) {
        return std::nullopt;
    }
    return PortCounters{ops.monotonic(), found->front().sent_bytes, found->front().received_bytes};
}

FormerState former_state(const std::vector<const Held*>& faults) {
    FormerState former;
    for (const Held* fault : faults) {
        const PortState& port = fault->entry.port;
        if (former.port.send == SendMechanism::kNone && port.send != SendMechanism::kNone) {
            const bool receive = former.port.receive;
            former.port = port;
            former.port.receive = receive;
        }
        former.port.receive = former.port.receive || port.receive;
        former.port.owner = port.owner;
        if (!former.link.known && fault->entry.link.known) {
            former.link = fault->entry.link;
        }
    }
    return former;
}

Held* FaultKeeper::Impl::find(std::int32_t id) {
    const auto found =
        std::find_if(faults_.begin(), faults_.end(), [&](const auto& each) { return each->request.id == id; });
    return found == faults_.end() ? nullptr : found->get();
}

/// Faults that act on the device now: applied or being applied.
std::vector<const Held*> FaultKeeper::Impl::on_device(const DeviceIdentity& device, const Held* without) const {
    std::vector<const Held*> found;
    for (const auto& each : faults_) {
        if (each.get() != without && same_device(each->entry.device, device) && each->state != FaultState::kUndoing) {
            found.push_back(each.get());
        }
    }
    return found;
}

WantedState FaultKeeper::Impl::wanted_by(const std::vector<const Held*>& faults) {
    std::vector<ActiveFault> active;
    for (const Held* each : faults) {
        active.push_back({each->request.kind, each->request.direction, each->request.rate});
    }
    return compose(active);
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

/// Preflight: finds the NIC, refuses what is not to be touched, and collects the former state. A fault that joins
/// others on its NIC takes over the former state from them, since what it would read now is their work.
Result<void> FaultKeeper::Impl::plan(Held& fault) {
    const FaultRequest& request = fault.request;
    const auto is_down = [&](const auto& each) {
        return each->request.nic == request.nic && each->request.kind == FaultKind::kLinkDown;
    };
    const bool already_down = std::any_of(faults_.begin(), faults_.end(), is_down);
    auto nic = check_nic(ops_, request, options_.protected_nics, already_down);
    const auto boot_id = ops_.boot_id();
    if (!nic || !boot_id) {
        return tl::unexpected(nic ? boot_id.error() : nic.error());
    }
    if (auto alone = check_alone(nic->device); !alone) {
        return alone;
    }
    fault.entry.id = request.id;
    fault.entry.kind = request.kind;
    fault.entry.direction = request.direction;
    fault.entry.rate_bits_per_s = request.rate.bits_per_s();
    fault.entry.device = nic->device;
    fault.entry.boot_id = *boot_id;
    fault.entry.lease_end_boottime = lease_end_;
    // Faults whose undo failed count here: what they left must not be taken for the former state.
    std::vector<const Held*> others;
    for (const auto& each : faults_) {
        if (same_device(each->entry.device, nic->device)) {
            others.push_back(each.get());
        }
    }
    const FormerState known = former_state(others);
    const std::string owner = "railbreak " + options_.run_id;
    if (request.kind == FaultKind::kLinkDown) {
        auto link = known.link.known ? Result<LinkState>(known.link) : snapshot_link(ops_, nic->link);
        if (!link) {
            return tl::unexpected(link.error());
        }
        fault.entry.link = std::move(*link);
        return {};
    }
    fault.entry.port.owner = owner;
    if (request.direction != Direction::kReceive) {
        auto port = known.port.send != SendMechanism::kNone ? Result<PortState>(known.port)
                                                            : plan_cap(ops_, nic->device, Direction::kSend, owner);
        if (!port) {
            return tl::unexpected(port.error());
        }
        fault.entry.port = std::move(*port);
        fault.entry.port.receive = false;
    }
    if (request.direction != Direction::kSend) {
        if (!known.port.receive) {
            if (auto port = plan_cap(ops_, nic->device, Direction::kReceive, owner); !port) {
                return tl::unexpected(port.error());
            }
        }
        fault.entry.port.receive = true;
    }
    return {};
}

Result<void> FaultKeeper::Impl::check_alone(const DeviceIdentity& device) const {
    return check_other_runs(journal_.path().substr(0, journal_.path().rfind('/')), journal_.path(), device);
}

/// The plan has looked for other runs already; once more after writing, so that of two runs that start together at
/// least one sees the other's entry.
Result<void> FaultKeeper::Impl::write_down(Held& fault) {
    return journal_.intent(fault.entry).and_then([&] { return check_alone(fault.entry.device); }).and_then([&] {
        return guard_.entrust(fault.entry);
    });
}

Result<void> FaultKeeper::Impl::go_to(std::int32_t ifindex, const FormerState& former, const WantedState& wanted) {
    if (auto done = set_send_cap(ops_, ifindex, former.port, wanted.send); !done) {
        return done;
    }
    if (auto done = set_receive_cap(ops_, ifindex, former.port, wanted.receive); !done) {
        return done;
    }
    if (wanted.down) {
        return ops_.set_link_flags(ifindex, IFF_UP, 0);
    }
    return restore_and_verify_link(ops_, ifindex, former.link).map([](const auto&) {});
}

Result<void> FaultKeeper::Impl::observe(Held& fault, const WantedState& wanted) {
    const std::int32_t ifindex = fault.entry.device.ifindex;
    const auto wrong = [&](std::string_view what) {
        return fail(Error(ErrorKind::kHarness, fmt::format("the fault on {} was acknowledged but is not seen: {}",
                                                           fault.entry.device.name, what))
                        .with("nic", fault.entry.device.name));
    };
    if (fault.request.kind == FaultKind::kLinkDown) {
        const auto stopped = wait_running(ops_, ifindex, Deadline::after(kObserveBudget), false);
        if (!stopped) {
            return tl::unexpected(stopped.error());
        }
        fault.evidence.readback.emplace_back("running", *stopped ? "no" : "yes");
        return *stopped ? Result<void>() : wrong("the link is still running");
    }
    if (fault.entry.port.send != SendMechanism::kNone) {
        const auto rate = read_send_cap(ops_, ifindex, fault.entry.port);
        if (!rate) {
            return tl::unexpected(rate.error());
        }
        add_rate(fault.evidence, "send_rate_bits_per_s", *rate);
        if (!*rate || !wanted.send || **rate > *wanted.send) {
            return wrong("the send rate");
        }
    }
    if (fault.entry.port.receive) {
        const auto rate = read_receive_cap(ops_, ifindex);
        if (!rate) {
            return tl::unexpected(rate.error());
        }
        add_rate(fault.evidence, "receive_rate_bits_per_s", *rate);
        if (!*rate || !wanted.receive || **rate > *wanted.receive) {
            return wrong("the receive rate");
        }
    }
    return {};
}

Result<void> FaultKeeper::Impl::inject(Held& fault) {
    const auto together = on_device(fault.entry.device, nullptr);
    const WantedState wanted = wanted_by(together);
    if (auto done = go_to(fault.entry.device.ifindex, former_state(together), wanted); !done) {
        return done;
    }
    fault.evidence.applied_at = ops_.monotonic();
    auto noted = step(fault, FaultEvent::kApplyDone).and_then([&] {
        return journal_.mark(JournalMark::kApplied, fault.request.id);
    });
    if (!noted) {
        return noted;
    }
    if (auto seen = observe(fault, wanted); !seen) {
        return seen;
    }
    fault.evidence.observed_at = ops_.monotonic();
    fault.counters_at_apply = read_counters(ops_, fault.entry.device);
    // A guard that has undone everything meanwhile leaves a fault that nobody watches.
    return guard_.check().and_then([&] { return step(fault, FaultEvent::kSeen); });
}

Result<FaultEvidence> FaultKeeper::Impl::apply(const FaultRequest& request) {
    if (auto allowed = may_apply(request); !allowed) {
        return tl::unexpected(allowed.error());
    }
    auto held = std::make_unique<Held>();
    held->request = request;
    held->evidence.id = request.id;
    if (auto planned = plan(*held); !planned) {
        return tl::unexpected(planned.error());
    }
    const bool cap = request.kind == FaultKind::kCap;
    held->evidence.mechanism = cap ? cap_mechanism(held->entry.port) : "admin down";
    held->evidence.realism = cap ? "port" : "driver";
    held->evidence.data_path = "kernel TCP";
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
/// another run may be at work on the NIC. So only its entry is closed.
Result<FaultEvidence> FaultKeeper::Impl::give_up(Held& fault, Error error) {
    fault.evidence.error = error.message();
    const bool untouched = fault.state == FaultState::kChecked;
    auto ended = step(fault, FaultEvent::kFailed).and_then([&] {
        return untouched ? step(fault, FaultEvent::kUndone).and_then([&] { return close_entry(fault); }) : undo(fault);
    });
    if (!ended) {
        const std::string nic = fault.request.nic;
        fault.state = FaultState::kUndoing;
        return fail(Error(ErrorKind::kTeardown,
                          fmt::format("{}; and undoing it failed: {}", error.message(), ended.error().message()))
                        .with("nic", nic)
                        .with("id", std::to_string(fault.request.id)));
    }
    return fail(std::move(error));
}

} // namespace railbreak::injectors
