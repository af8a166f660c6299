#include "injectors/recover.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>

#include "injectors/find_netns.hpp"
#include "injectors/journal.hpp"
#include "injectors/real_host_ops.hpp"
#include "injectors/restore.hpp"
#include "injectors/time_limits.hpp"
#include "injectors/wire.hpp"

namespace railbreak::injectors {

namespace {

bool has_fact(const Error& error, std::string_view name) {
    return std::any_of(error.facts().begin(), error.facts().end(),
                       [&](const auto& fact) { return fact.first == name; });
}

using Notes = std::vector<std::string>;

/// What a child process says of an undo.
enum class Outcome : std::uint8_t { kNotEntered, kFailed, kDone };

std::string encode(Outcome outcome, const std::string& error, const Notes& notes) {
    Encoder out;
    out.put(static_cast<std::uint8_t>(outcome));
    out.put_string(error);
    out.put_strings(notes);
    return out.take();
}

/// A normal user may enter a network namespace only after the user namespace that it belongs to, and that one only with
/// a process of one thread, which stays there. `entered` becomes false when it was not possible.
Result<Notes> restore_by_user_namespace(int netns_fd, const JournalEntry& entry, bool& entered) {
    const auto body = [&](const Progress&) -> std::string {
        const UniqueFd users(ioctl(netns_fd, NS_GET_USERNS));
        if (!users.valid() || setns(users.get(), CLONE_NEWUSER) != 0) {
            return encode(Outcome::kNotEntered, strerrordesc_np(errno), {});
        }
        auto there = open_host_ops_in(netns_fd);
        if (!there) {
            return encode(Outcome::kNotEntered, there.error().message(), {});
        }
        auto restored = restore_entry(**there, entry);
        return restored ? encode(Outcome::kDone, "", *restored)
                        : encode(Outcome::kFailed, restored.error().to_line(), {});
    };
    const auto answer = run_in_child(body, 2 * kLongestUndo);
    if (!answer) {
        return tl::unexpected(answer.error());
    }
    Decoder in(*answer);
    const auto outcome = static_cast<Outcome>(in.get<std::uint8_t>());
    std::string error = in.get_string();
    Notes notes = in.get_strings();
    entered = outcome != Outcome::kNotEntered;
    return outcome == Outcome::kDone ? Result<Notes>(std::move(notes)) : fail(ErrorKind::kTeardown, std::move(error));
}

Error not_entered(const NetnsIdentity& netns, const std::string& why) {
    return Error(ErrorKind::kTeardown,
                 fmt::format("the fault's network namespace net:[{}] is there, but could not be entered: {}",
                             netns.inode, why))
        .with("netns", fmt::format("net:[{}]", netns.inode))
        .advise("Run railbreak recover inside of it (nsenter, or railbreak lab exec) as the user whose run "
                "it was.");
}

bool is_known_gone(const RecoverOrder& order, const FaultNamespace& space) {
    return std::find(order.gone.begin(), order.gone.end(), space) != order.gone.end();
}

/// The namespace in which the entry's target is to be found. Nothing for what is found from everywhere.
std::optional<FaultNamespace> namespace_of(const FaultTarget& target) {
    switch (target.kind) {
    case TargetKind::kNic:
        return NetnsIdentity{target.device.netns_inode, target.device.netns_cookie, target.device.netns_user};
    case TargetKind::kProcess: return PidNamespace{target.pid_namespace};
    case TargetKind::kFolder: return std::nullopt;
    }
    return std::nullopt;
}

/// Of a process in another pid namespace: nothing can be done to it from here. What lies outside of it (a cgroup) is
/// undone once it is gone. `reached` as restore_anywhere().
Result<Notes> restore_foreign_process(HostOps& ops, const JournalEntry& entry, const RecoverOrder& order,
                                      bool& reached) {
    if (!is_known_gone(order, PidNamespace{entry.target.pid_namespace})) {
        const auto exists = target_exists(ops, entry.target);
        if (!exists) {
            reached = false;
            return tl::unexpected(exists.error());
        }
    }
    return restore_without_target(ops, entry);
}

/// Restores the entry in the namespace that it belongs to. `reached` becomes false when that could not be entered and
/// is not proven to be gone: then nothing was done.
Result<Notes> restore_anywhere(HostOps& ops, const JournalEntry& entry, const RecoverOrder& order, bool& reached) {
    const DeviceIdentity& device = entry.target.device;
    const NetnsIdentity wanted{device.netns_inode, device.netns_cookie, device.netns_user};
    const auto here = ops.netns();
    const auto boot_id = ops.boot_id();
    if (!here || !boot_id) {
        return tl::unexpected(here ? boot_id.error() : here.error());
    }
    const bool same_boot = *boot_id == entry.boot_id;
    if (same_boot && entry.target.kind == TargetKind::kProcess && entry.target.pid_namespace != own_pid_namespace()) {
        return restore_foreign_process(ops, entry, order, reached);
    }
    if (entry.target.kind != TargetKind::kNic || *here == wanted || !same_boot) {
        return restore_entry(ops, entry);
    }
    const Result<UniqueFd> netns = is_known_gone(order, wanted) ? Result<UniqueFd>(UniqueFd()) : find_netns(wanted);
    if (!netns) {
        reached = false;
        return tl::unexpected(netns.error());
    }
    if (!netns->valid()) {
        return Notes{"the network namespace is gone; nothing is left to undo"};
    }
    auto there = open_host_ops_in(netns->get());
    if (there) {
        return restore_entry(**there, entry);
    }
    auto restored = restore_by_user_namespace(netns->get(), entry, reached);
    return restored || reached ? restored : fail(not_entered(wanted, there.error().message()));
}

RecoveredFault recover_entry(HostOps& ops, Journal& journal, const JournalEntry& entry, const RecoverOrder& order) {
    RecoveredFault fault{journal.contents().run_id,
                         journal.contents().host_name,
                         entry.request.id,
                         entry.request.kind,
                         to_string(entry.target),
                         {},
                         {},
                         {}};
    bool reached = true;
    auto restored = restore_anywhere(ops, entry, order, reached);
    if (!restored) {
        fault.error = restored.error().to_line();
        if (!reached) {
            fault.out_of_reach = namespace_of(entry.target);
        }
        return fault;
    }
    fault.notes = std::move(*restored);
    auto marked = journal.mark(JournalMark::kReverted, entry.request.id).and_then([&] {
        return journal.mark(JournalMark::kRestored, entry.request.id);
    });
    if (!marked) {
        fault.error = marked.error().to_line();
    }
    return fault;
}

void recover_journal(HostOps& ops, const std::string& path, const RecoverOrder& order, RecoverReport& report) {
    auto journal = Journal::adopt(ops, path);
    if (!journal) {
        if (has_fact(journal.error(), "busy")) {
            report.busy.push_back(path);
        } else if (!std::any_of(journal.error().facts().begin(), journal.error().facts().end(),
                                [](const auto& fact) { return fact.second == "ENOENT"; })) {
            // Gone between listing and opening means that another recovery has finished with it.
            RecoveredFault unreadable;
            unreadable.run_id = path;
            unreadable.error = journal.error().to_line();
            report.faults.push_back(std::move(unreadable));
        }
        return;
    }
    if (journal->contents().torn) {
        report.damaged.push_back(path);
    }
    bool all = true;
    for (const JournalEntry& entry : journal->contents().open_entries()) {
        report.faults.push_back(recover_entry(ops, *journal, entry, order));
        if (order.progress) {
            order.progress();
        }
        all = all && report.faults.back().error.empty();
    }
    if (all) {
        // A closed journal that stays, or comes back after a crash, is closed all the same; the next recovery tries
        // again.
        (void)ops.remove_file(path);
    }
}

} // namespace

bool is_proven_gone(const FaultNamespace& space) {
    if (const auto* pids = std::get_if<PidNamespace>(&space)) {
        const auto inhabited = is_inhabited_pid_namespace(pids->inode);
        return inhabited && !*inhabited;
    }
    const auto& netns = std::get<NetnsIdentity>(space);
    const auto found = find_netns(netns);
    if (!found || !found->valid()) {
        return found.has_value();
    }
    // Numbers are given again, cookies never.
    const auto there = open_host_ops_in(found->get());
    const auto present = there ? (*there)->netns() : tl::unexpected(there.error());
    return present && netns.cookie != 0 && present->cookie != 0 && present->cookie != netns.cookie;
}

bool RecoverReport::complete() const {
    return std::all_of(faults.begin(), faults.end(), [](const RecoveredFault& fault) { return fault.error.empty(); });
}

Result<RecoverReport> recover_folder(HostOps& ops, const std::string& folder, const RecoverOrder& order) {
    const auto paths = list_journals(folder);
    if (!paths) {
        return tl::unexpected(paths.error());
    }
    RecoverReport report;
    for (const std::string& path : *paths) {
        recover_journal(ops, path, order, report);
    }
    return report;
}

} // namespace railbreak::injectors
