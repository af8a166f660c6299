#include "injectors/fault_keeper.hpp"

#include <fmt/format.h>

#include "injectors/fault_keeper_impl.hpp"

namespace railbreak::injectors {

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
        // One of a namespace that cannot be reached from here is in the way of none that is.
        if (!fault.error.empty() && !fault.out_of_reach) {
            return fail(Error(ErrorKind::kTeardown,
                              fmt::format("an earlier run left a fault that could not be undone: {}", fault.error))
                            .with("run", fault.run_id)
                            .with("target", fault.target)
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
Result<FaultPreview> FaultKeeper::preview(const FaultRequest& request) {
    return impl_->preview(request);
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
