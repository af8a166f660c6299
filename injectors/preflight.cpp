#include "injectors/preflight.hpp"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>
#include <unistd.h>

#include "injectors/drop_rules.hpp"
#include "injectors/find_netns.hpp"
#include "injectors/journal.hpp"
#include "injectors/netlink.hpp"
#include "injectors/protection.hpp"

namespace railbreak::injectors {

namespace {

Result<const LinkRecord*> find_name(const std::vector<LinkRecord>& links, const std::string& name) {
    const auto found =
        std::find_if(links.begin(), links.end(), [&](const LinkRecord& each) { return each.name == name; });
    if (found == links.end()) {
        return fail(
            Error(ErrorKind::kRefused, fmt::format("there is no network interface {}", name)).with("nic", name));
    }
    return &*found;
}

/// The NIC of a request, unless it may not be touched. Neither may the one that takes over in a reroute: it gets the
/// other's load.
Result<DeviceIdentity> find_nic(HostOps& ops, const FaultRequest& request, std::span<const std::string> protected_nics,
                                std::span<const std::int32_t> under_fault) {
    const auto links = ops.links();
    const auto netns = ops.netns();
    if (!links || !netns) {
        return tl::unexpected(links ? netns.error() : links.error());
    }
    const auto link = find_name(*links, request.nic);
    if (!link) {
        return tl::unexpected(link.error());
    }
    auto protection = find_protection(ops, protected_nics, under_fault);
    if (!protection) {
        return tl::unexpected(std::move(protection.error()).during("looking for interfaces that must not be touched"));
    }
    auto allowed = protection->check(**link);
    if (allowed && request.kind == FaultKind::kReroute) {
        allowed =
            find_name(*links, request.via_nic).and_then([&](const LinkRecord* via) { return protection->check(*via); });
    }
    if (!allowed) {
        return tl::unexpected(allowed.error());
    }
    const LinkRecord& found = **link;
    if (auto permitted = ops.may_change(found.ifindex); !permitted) {
        return tl::unexpected(std::move(permitted.error()));
    }
    return DeviceIdentity{found.name,   found.ifindex, found.mac,  found.permanent_mac,
                          netns->inode, netns->cookie, netns->user};
}

/// True for this process and those that it hangs on: their end, or their standing still, would be its own.
Result<bool> carries_us(HostOps& ops, std::int32_t pid) {
    for (std::int32_t each = getpid(); each > 0;) {
        if (each == pid) {
            return true;
        }
        const auto found = ops.process(each);
        if (!found) {
            return tl::unexpected(found.error());
        }
        each = *found ? (*found)->parent : 0;
    }
    return pid == 1;
}

Result<ProcessIdentity> find_process(HostOps& ops, std::int32_t pid) {
    const auto found = ops.process(pid);
    const auto ours = carries_us(ops, pid);
    if (!found || !ours) {
        return tl::unexpected(found ? ours.error() : found.error());
    }
    const auto refuse_process = [&](std::string_view why) {
        return fail(Error(ErrorKind::kRefused, fmt::format("process {} may not be touched: {}", pid, why))
                        .with("pid", std::to_string(pid)));
    };
    if (*ours) {
        return refuse_process("railbreak itself hangs on it");
    }
    if (!*found || (*found)->state == 'Z' || (*found)->state == 'X') {
        return fail(
            Error(ErrorKind::kInput, fmt::format("there is no process {}", pid)).with("pid", std::to_string(pid)));
    }
    if ((*found)->kernel_thread) {
        return refuse_process("it is a part of the kernel");
    }
    return (*found)->identity;
}

Result<void> find_folder(HostOps& ops, const std::string& folder, const std::string& journal_folder,
                         FaultTarget& target) {
    const auto found = ops.file_system(folder);
    const auto journal = ops.file_system(journal_folder);
    if (!found || !journal) {
        return tl::unexpected(found ? journal.error() : found.error());
    }
    const auto refuse_folder = [&](std::string_view why) {
        return fail(
            Error(ErrorKind::kRefused, fmt::format("{} may not be filled: {}", folder, why)).with("folder", folder));
    };
    if (found->holds_root) {
        return refuse_folder("it lies on the root file system");
    }
    if (found->device_id == journal->device_id) {
        return refuse_folder("the undo journal lies on the same file system");
    }
    if (!found->is_folder) {
        return fail(Error(ErrorKind::kInput, folder + " is no folder").with("folder", folder));
    }
    target.folder = found->path;
    target.device_id = found->device_id;
    return {};
}

} // namespace

Result<void> check_request(const FaultRequest& request) {
    const auto wrong = [&](std::string_view what) {
        return fail(Error(ErrorKind::kInput, std::string(what)).with("kind", std::string(to_string(request.kind))));
    };
    if (request.kind == FaultKind::kCap && request.rate < BitRate::bits_per_s(8000)) {
        return fail(Error(ErrorKind::kInput, "the rate of a cap must be at least 8 kbit/s")
                        .with("rate_bits_per_s", std::to_string(request.rate.bits_per_s()))
                        .advise("Use the fault kind link_down to stop all traffic."));
    }
    const PacketTreatment& packets = request.packets;
    const GilbertElliott bursts = packets.bursts.value_or(GilbertElliott{});
    for (const Millionths part : {packets.loss, packets.corrupt, packets.duplicate, packets.reorder, bursts.good_to_bad,
                                  bursts.bad_to_good, bursts.loss_in_bad, bursts.loss_in_good}) {
        if (part > kMillion) {
            return wrong("a probability is above one");
        }
    }
    const bool treats_packets = request.kind == FaultKind::kDelay || request.kind == FaultKind::kLoss ||
                                request.kind == FaultKind::kCorrupt || request.kind == FaultKind::kDuplicate ||
                                request.kind == FaultKind::kReorder;
    if (treats_packets && !acts(packets)) {
        return wrong("a packet fault says nothing of what happens to packets");
    }
    if (packets.jitter > packets.delay) {
        return wrong("the jitter is above the delay");
    }
    if (packets.reorder != 0 && packets.delay.count() == 0) {
        return wrong("packets can only overtake delayed ones: reorder needs a delay");
    }
    if (request.kind == FaultKind::kPartition && request.peers.empty()) {
        return wrong("a partition names no peer");
    }
    for (const std::string& peer : request.peers) {
        if (auto address = parse_peer(peer); !address) {
            return tl::unexpected(address.error());
        }
    }
    if (request.kind == FaultKind::kReroute && (request.via_nic.empty() || request.via_nic == request.nic)) {
        return wrong("a reroute needs another NIC to go through");
    }
    if (request.kind == FaultKind::kCpu && request.cpu == 0) {
        return wrong("a process that gets no time at all is a pause");
    }
    return {};
}

Result<FaultTarget> find_target(HostOps& ops, const FaultRequest& request, std::span<const std::string> protected_nics,
                                const std::string& journal_folder, std::span<const std::int32_t> under_fault) {
    FaultTarget target;
    target.kind = target_kind(request.kind);
    Result<void> done;
    switch (target.kind) {
    case TargetKind::kNic:
        done = find_nic(ops, request, protected_nics, under_fault).map([&](DeviceIdentity found) {
            target.device = std::move(found);
        });
        break;
    case TargetKind::kProcess:
        target.pid_namespace = own_pid_namespace();
        done = find_process(ops, request.pid).map([&](ProcessIdentity found) { target.process = std::move(found); });
        break;
    case TargetKind::kFolder: done = find_folder(ops, request.folder, journal_folder, target); break;
    }
    return done ? Result<FaultTarget>(std::move(target)) : tl::unexpected(done.error());
}

Result<void> check_other_runs(const std::string& folder, const std::string& own_journal, const FaultTarget& target) {
    const auto paths = list_journals(folder);
    if (!paths) {
        return tl::unexpected(paths.error());
    }
    for (const std::string& path : *paths) {
        if (path == own_journal) {
            continue;
        }
        const auto contents = read_journal_file(path);
        if (!contents && kernel_errno(contents.error()) == ENOENT) {
            continue; // deleted since it was listed: its run is over
        }
        if (!contents) {
            return tl::unexpected(contents.error());
        }
        if (contents->other_version) {
            Error unknown = other_version(path, *contents->other_version).value();
            return fail(
                Error(ErrorKind::kRefused, "it cannot be told what is broken here already: " + unknown.message())
                    .with("journal", path)
                    .advise(unknown.advice()));
        }
        for (const JournalEntry& entry : contents->open_entries()) {
            if (same_target(entry.target, target)) {
                return fail(Error(ErrorKind::kRefused, fmt::format("{} is under a fault of the railbreak run {}",
                                                                   to_string(target), contents->run_id))
                                .with("target", to_string(target))
                                .with("run", contents->run_id)
                                .with("journal", path)
                                .advise("Wait until that run has ended, or run: railbreak recover"));
            }
        }
    }
    return {};
}

} // namespace railbreak::injectors
