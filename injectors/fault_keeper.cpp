#include "injectors/fault_keeper.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <net/if.h>

#include "injectors/composer.hpp"
#include "injectors/journal.hpp"
#include "injectors/link_state.hpp"
#include "injectors/port_cap.hpp"
#include "injectors/preflight.hpp"
#include "injectors/restore.hpp"

namespace railbreak::injectors {

namespace {

constexpr auto kObserveBudget = std::chrono::seconds(5);

/// A fault in the keeper's hands.
struct Held {
    FaultRequest request;
    JournalEntry entry;
    FaultState state = FaultState::kPlanned;
    FaultEvidence evidence;
};

/// The former state of everything that any of these faults touches on one NIC.
struct FormerState {
    PortState port;
    LinkState link;
};

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

void add_rate(FaultEvidence& evidence, std::string name, const std::optional<BitRate>& rate) {
    evidence.readback.emplace_back(std::move(name), rate ? std::to_string(rate->bits_per_s()) : "none");
}

} // namespace

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

FaultKeeper::FaultKeeper(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FaultKeeper::FaultKeeper(FaultKeeper&&) noexcept = default;
FaultKeeper& FaultKeeper::operator=(FaultKeeper&&) noexcept = default;
FaultKeeper::~FaultKeeper() = default;

Result<FaultKeeper> FaultKeeper::open(KeeperOptions options, HostOps& ops) {
    if (options.lease <= Nanoseconds(0)) {
        return fail(ErrorKind::kInput, "a lease must be longer than nothing");
    }
    auto leftovers = recover(ops, options.journal_folder);
    if (!leftovers) {
        return tl::unexpected(leftovers.error());
    }
    for (const RecoveredFault& fault : leftovers->faults) {
        if (!fault.error.empty()) {
            return fail(Error(ErrorKind::kTeardown,
                              fmt::format("an earlier run left a fault that could not be undone: {}", fault.error))
                            .with("run", fault.run_id)
                            .with("nic", fault.nic)
                            .advise("Run: railbreak recover"));
        }
    }
    auto folder =
        options.journal_folder.empty() ? default_journal_folder(ops) : Result<std::string>(options.journal_folder);
    if (!folder) {
        return tl::unexpected(folder.error());
    }
    auto journal = Journal::create(ops, *folder, options.run_id, options.host_name);
    if (!journal) {
        return tl::unexpected(journal.error());
    }
    const Nanoseconds lease_end = ops.boottime() + options.lease;
    auto guard = Guard::launch(options.guard, journal->fd(), lease_end);
    if (!guard) {
        return tl::unexpected(guard.error());
    }
    return FaultKeeper(std::make_unique<Impl>(std::move(options), ops, std::move(*journal), std::move(*guard),
                                              std::move(*leftovers), lease_end));
}

Result<RecoverReport> FaultKeeper::recover(HostOps& ops, const std::string& journal_folder) {
    auto folder = journal_folder.empty() ? default_journal_folder(ops) : Result<std::string>(journal_folder);
    return folder ? recover_folder(ops, *folder) : tl::unexpected(folder.error());
}

Result<FaultEvidence> FaultKeeper::apply(const FaultRequest& request) {
    return impl_->apply(request);
}
Result<FaultEvidence> FaultKeeper::revert(std::int32_t id) {
    return impl_->revert(id);
}
Result<std::vector<FaultEvidence>> FaultKeeper::revert_all() {
    return impl_->revert_all();
}
Result<void> FaultKeeper::renew_lease() {
    return impl_->renew_lease();
}
Nanoseconds FaultKeeper::lease_left() const {
    return impl_->lease_left();
}
int FaultKeeper::guard_fd() const {
    return impl_->guard().fd();
}
std::int32_t FaultKeeper::guard_pid() const {
    return impl_->guard().pid();
}
Result<void> FaultKeeper::check_guard() {
    return impl_->guard().check();
}
const RecoverReport& FaultKeeper::leftovers() const {
    return impl_->leftovers();
}
const std::string& FaultKeeper::journal_path() const {
    return impl_->journal().path();
}
Result<void> FaultKeeper::close() {
    return impl_->close();
}

std::vector<OpenFault> FaultKeeper::open_faults() const {
    std::vector<OpenFault> open;
    for (const auto& each : impl_->faults()) {
        open.push_back({each->request, each->state, each->evidence});
    }
    return open;
}

} // namespace railbreak::injectors
