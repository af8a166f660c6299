#include "injectors/recover_all.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "injectors/in_child.hpp"
#include "injectors/journal.hpp"
#include "injectors/process_control.hpp"
#include "injectors/real_host_ops.hpp"
#include "injectors/time_limits.hpp"
#include "injectors/wire.hpp"

namespace railbreak::injectors {

namespace {

/// For each fault of another user, which that user's process may leave to one more process.
constexpr Nanoseconds kForeignBudget = 3 * kLongestUndo;
constexpr auto kAgentBudget = std::chrono::seconds(5); ///< then its guard does the same, beside it

enum class NamespaceKind : std::uint8_t { kNone, kNetwork, kPid };

void put_namespace(Encoder& out, const std::optional<FaultNamespace>& space) {
    NamespaceKind kind = NamespaceKind::kNone;
    NetnsIdentity identity;
    if (const auto* netns = space ? std::get_if<NetnsIdentity>(&*space) : nullptr) {
        kind = NamespaceKind::kNetwork;
        identity = *netns;
    } else if (space) {
        kind = NamespaceKind::kPid;
        identity.inode = std::get<PidNamespace>(*space).inode;
    }
    out.put(static_cast<std::uint8_t>(kind));
    out.put(identity.inode);
    out.put(identity.cookie);
}

std::optional<FaultNamespace> get_namespace(Decoder& in) {
    const auto kind = in.get<std::uint8_t>();
    NetnsIdentity identity;
    identity.inode = in.get<std::uint64_t>();
    identity.cookie = in.get<std::uint64_t>();
    if (kind == static_cast<std::uint8_t>(NamespaceKind::kNetwork)) {
        return identity;
    }
    return kind == static_cast<std::uint8_t>(NamespaceKind::kPid)
               ? std::optional<FaultNamespace>(PidNamespace{identity.inode})
               : std::nullopt;
}

std::string encode_report(const RecoverReport& report) {
    Encoder out;
    out.put(static_cast<std::uint32_t>(report.faults.size()));
    for (const RecoveredFault& fault : report.faults) {
        out.put_string(fault.run_id);
        out.put_string(fault.host_name);
        out.put(fault.id);
        out.put(static_cast<std::uint8_t>(fault.kind));
        out.put_string(fault.target);
        out.put_strings(fault.notes);
        out.put_string(fault.error);
        put_namespace(out, fault.out_of_reach);
    }
    out.put_strings(report.busy);
    out.put_strings(report.damaged);
    return out.take();
}

Result<RecoverReport> decode_report(std::string_view bytes) {
    Decoder in(bytes);
    RecoverReport report;
    const auto count = in.get<std::uint32_t>();
    for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
        RecoveredFault& fault = report.faults.emplace_back();
        fault.run_id = in.get_string();
        fault.host_name = in.get_string();
        fault.id = in.get<std::int32_t>();
        const auto kind = in.get<std::uint8_t>();
        fault.kind = kFaultKinds.at(std::min<std::size_t>(kind, kFaultKinds.size() - 1));
        fault.target = in.get_string();
        fault.notes = in.get_strings();
        fault.error = in.get_string();
        fault.out_of_reach = get_namespace(in);
    }
    report.busy = in.get_strings();
    report.damaged = in.get_strings();
    if (!in.finished()) {
        return fail(ErrorKind::kHarness, "the process that recovers for the user ended without a report");
    }
    return report;
}

/// Recovers as the user, who has the fewest rights that the user's runs had.
Result<RecoverReport> recover_as_user(const JournalFolder& folder, const std::vector<FaultNamespace>& gone) {
    const auto body = [&](const Progress& progress) {
        auto ops = open_host_ops();
        const auto report = ops ? recover_folder(**ops, folder.path, {gone, progress})
                                : Result<RecoverReport>(tl::unexpected(ops.error()));
        return report ? encode_report(*report) : std::string();
    };
    return run_as_owner(folder, body, kForeignBudget).and_then([](const std::string& bytes) {
        return decode_report(bytes);
    });
}

} // namespace

Result<RecoverReport> recover_foreign(const JournalFolder& folder) {
    auto report = recover_as_user(folder, {});
    std::vector<FaultNamespace> gone;
    for (const RecoveredFault& fault : report ? report->faults : std::vector<RecoveredFault>()) {
        if (fault.out_of_reach && is_proven_gone(*fault.out_of_reach)) {
            gone.push_back(*fault.out_of_reach);
        }
    }
    if (gone.empty()) {
        return report;
    }
    auto second = recover_as_user(folder, gone);
    if (second) {
        std::erase_if(report->faults, [](const RecoveredFault& fault) { return !fault.error.empty(); });
        second->faults.insert(second->faults.begin(), report->faults.begin(), report->faults.end());
        second->damaged.insert(second->damaged.begin(), report->damaged.begin(), report->damaged.end());
    }
    return second;
}

namespace {

std::vector<FolderReport> recover_folders(HostOps& ops, const std::vector<JournalFolder>& folders) {
    std::vector<FolderReport> reports;
    for (const JournalFolder& folder : folders) {
        auto report = folder.owner == geteuid() ? recover_folder(ops, folder.path) : recover_foreign(folder);
        reports.push_back(report ? FolderReport{folder, std::move(*report), {}}
                                 : FolderReport{folder, {}, report.error().to_line()});
    }
    return reports;
}

bool all_complete(const std::vector<FolderReport>& folders) {
    return std::all_of(folders.begin(), folders.end(),
                       [](const FolderReport& each) { return each.error.empty() && each.report.complete(); });
}

/// A process that has been asked to end.
struct Told {
    UniqueFd pidfd;
    std::string error; ///< why it was not asked
};

/// SIGTERM to exactly this process. `owner`: the user it must belong to.
Told tell_to_end(const ProcessIdentity& process, uid_t owner) {
    if (process.pid <= 0) {
        return {};
    }
    Told told{UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0))), {}};
    const auto found = read_process(process.pid);
    if (!told.pidfd.valid() || !found || !*found || (*found)->identity.start_ticks != process.start_ticks) {
        told.pidfd.reset(); // gone already
        return told;
    }
    // A lock is what its owner wrote into it; root must not end other people's processes by such word.
    if ((*found)->uid != owner) {
        told.error = fmt::format("process {} is not one of the user whose lock names it", process.pid);
        told.pidfd.reset();
        return told;
    }
    if (syscall(SYS_pidfd_send_signal, told.pidfd.get(), SIGTERM, nullptr, 0) != 0 && errno != ESRCH) {
        told.error = fmt::format("cannot signal process {}: {}", process.pid, strerrordesc_np(errno));
    }
    return told;
}

bool has_ended(const UniqueFd& pidfd, Deadline deadline) {
    pollfd waiter{pidfd.get(), POLLIN, 0};
    return !pidfd.valid() || poll(&waiter, 1, deadline.poll_timeout_ms()) > 0;
}

/// Guards that live, whoever they belong to: as long as a run has faults, it has a guard.
struct LivingGuards {
    std::vector<std::string> here; ///< pids of those in the namespace
    std::vector<std::string> elsewhere;
};

Result<LivingGuards> find_guards(HostOps& ops, const NetnsIdentity& netns) {
    LivingGuards guards;
    const auto names = ops.list_folder("/proc");
    if (!names) {
        return tl::unexpected(names.error());
    }
    for (const std::string& name : *names) {
        const bool is_pid = name.find_first_not_of("0123456789") == std::string::npos;
        if (!is_pid || ops.read_file("/proc/" + name + "/comm").value_or("") != std::string(kGuardName) + "\n") {
            continue;
        }
        const auto process = read_process(static_cast<std::int32_t>(std::strtol(name.c_str(), nullptr, 10)));
        if (process && (!*process || (*process)->state == 'Z')) {
            continue; // it has ended, and only waits to be reaped
        }
        struct stat space {};
        // One that may not be looked at may be here.
        const bool here = stat(("/proc/" + name + "/ns/net").c_str(), &space) != 0 || space.st_ino == netns.inode;
        (here ? guards.here : guards.elsewhere).push_back(name);
    }
    return guards;
}

} // namespace

bool RecoverAllReport::complete() const {
    return all_complete(folders) &&
           std::all_of(tagged.begin(), tagged.end(), [](const TaggedObject& each) { return each.removed; });
}

bool HaltReport::complete() const {
    return problems.empty() && all_complete(folders) && std::all_of(runs.begin(), runs.end(), [](const HaltedRun& run) {
               return run.agent_ended || run.guard_ended;
           });
}

Result<RecoverAllReport> recover_all(HostOps& ops) {
    const auto folders = known_journal_folders(ops);
    const auto netns = ops.netns();
    if (!folders || !netns) {
        return tl::unexpected(folders ? netns.error() : folders.error());
    }
    RecoverAllReport report;
    report.folders = recover_folders(ops, *folders);
    for (const JournalFolder& folder : *folders) {
        const InUsersName rights(folder);
        (void)list_owners(state_folder_of(folder.path), true); // locks of the dead go
    }
    const auto found = find_guards(ops, *netns);
    if (!found) {
        report.not_swept = found.error().to_line();
        return report;
    }
    const LivingGuards& guards = *found;
    // The lock keeps a run from starting in the middle of the sweep.
    const auto lock = HostLock::take(state_folder_of(folders->front().path), *netns,
                                     {.run_id = "recover",
                                      .host_name = "this host",
                                      .user = current_user(),
                                      .since = realtime_now(),
                                      .agent = current_process()});
    if (!guards.here.empty() || !lock) {
        report.not_swept = !guards.here.empty()
                               ? fmt::format("anything: a run is alive here (its guard is process {})", guards.here[0])
                               : "anything: " + lock.error().message();
        return report;
    }
    if (!guards.elsewhere.empty()) {
        report.not_swept =
            fmt::format("cgroups and ballast files: a run is alive on this machine (its guard is process {})",
                        guards.elsewhere.front());
    }
    auto tagged = sweep(ops, guards.elsewhere.empty() ? SweepScope::kMachine : SweepScope::kNetwork, true);
    if (!tagged) {
        report.not_swept = tagged.error().to_line();
        return report;
    }
    report.tagged = std::move(*tagged);
    return report;
}

Result<HaltReport> halt(HostOps& ops, const std::string& reason, Nanoseconds patience) {
    const auto folders = known_journal_folders(ops);
    if (!folders) {
        return tl::unexpected(folders.error());
    }
    HaltReport report;
    std::vector<uid_t> users;
    const auto note_owners = [&](const JournalFolder& folder) {
        const auto owners = list_owners(state_folder_of(folder.path));
        if (!owners) {
            report.problems.push_back(owners.error().to_line());
            return;
        }
        for (const HostOwner& owner : *owners) {
            const bool known = std::any_of(report.runs.begin(), report.runs.end(),
                                           [&](const HaltedRun& run) { return run.owner.agent == owner.agent; });
            if (!known) {
                report.runs.push_back({owner, false, false, {}});
                users.push_back(folder.owner);
            }
        }
    };
    for (const JournalFolder& folder : *folders) {
        const InUsersName rights(folder);
        note_owners(folder); // agents end as soon as they see the file: so before
        const std::string state = state_folder_of(folder.path);
        if (auto made = make_halt_file(state, reason); made) {
            report.halt_files.push_back(halt_file(state));
        } else {
            report.problems.push_back(made.error().to_line());
        }
        note_owners(folder); // and whoever has started between
    }
    std::vector<Told> agents;
    for (std::size_t i = 0; i < report.runs.size(); ++i) {
        agents.push_back(tell_to_end(report.runs[i].owner.agent, users[i]));
        report.runs[i].error = agents.back().error;
    }
    const Deadline first = Deadline::after(std::min<Nanoseconds>(patience / 2, kAgentBudget));
    for (std::size_t i = 0; i < agents.size(); ++i) {
        report.runs[i].agent_ended = agents[i].error.empty() && has_ended(agents[i].pidfd, first);
    }
    const Deadline last = Deadline::after(patience / 2);
    for (std::size_t i = 0; i < agents.size(); ++i) {
        if (!report.runs[i].agent_ended) {
            const Told guard = tell_to_end(report.runs[i].owner.guard, users[i]);
            report.runs[i].guard_ended = guard.error.empty() && has_ended(guard.pidfd, last);
        }
    }
    report.folders = recover_folders(ops, *folders);
    for (FolderReport& folder : report.folders) {
        // An agent that stands still keeps its journal's lock, although its guard has closed the entries.
        const InUsersName rights(folder.folder);
        std::erase_if(folder.report.busy, [&](const std::string& path) {
            const auto contents = read_journal_file(path);
            const bool unknown = contents && contents->other_version.has_value();
            const std::size_t open = contents ? contents->open_entries().size() : 0;
            if (open != 0 || unknown) {
                report.problems.push_back(
                    unknown ? fmt::format("{}: only the railbreak that wrote it can say whether all is undone", path)
                            : fmt::format("{}: {} faults are not undone yet", path, open));
            }
            return open == 0 && !unknown;
        });
    }
    return report;
}

Result<std::vector<std::string>> release_halt(HostOps& ops) {
    const auto folders = known_journal_folders(ops);
    if (!folders) {
        return tl::unexpected(folders.error());
    }
    std::vector<std::string> removed;
    for (const JournalFolder& folder : *folders) {
        const std::string state = state_folder_of(folder.path);
        const InUsersName rights(folder);
        const auto done = remove_halt_file(state);
        if (!done) {
            return tl::unexpected(done.error());
        }
        if (*done) {
            removed.push_back(halt_file(state));
        }
    }
    return removed;
}

} // namespace railbreak::injectors
