#include "injectors/restore.hpp"

#include <fmt/format.h>

#include "injectors/facet.hpp"
#include "injectors/find_netns.hpp"
#include "injectors/time_limits.hpp"

namespace railbreak::injectors {

namespace {

void append(std::vector<std::string>& notes, std::vector<std::string> more) {
    notes.insert(notes.end(), more.begin(), more.end());
}

} // namespace

Result<std::vector<LinkRecord>> find_device(HostOps& ops, const DeviceIdentity& device) {
    const auto links = ops.links();
    if (!links) {
        return tl::unexpected(links.error());
    }
    for (const LinkRecord& link : *links) {
        // A name and an address may both be changed by people; the index then still tells, unless all three differ.
        if (link.ifindex == device.ifindex &&
            (link.mac == device.mac || link.name == device.name ||
             (!device.permanent_mac.empty() && link.permanent_mac == device.permanent_mac))) {
            return std::vector{link};
        }
    }
    return std::vector<LinkRecord>();
}

Result<LinkRecord> find_hardware(HostOps& ops, const DeviceIdentity& device) {
    const auto found = find_device(ops, device);
    if (!found || found->empty()) {
        return found ? fail(ErrorKind::kInput, fmt::format("the interface {} is gone", device.name))
                     : tl::unexpected(found.error());
    }
    const LinkRecord& link = found->front();
    const auto refuse = [&](std::string why) {
        return fail(Error(ErrorKind::kRefused, fmt::format("{} {}", link.name, why)).with("nic", link.name));
    };
    if (!link.kind.empty()) {
        return refuse(fmt::format("is no hardware ({})", link.kind));
    }
    const auto index = ops.sysfs().read_number(fmt::format("class/net/{}/ifindex", link.name));
    if (!index || *index != static_cast<std::uint64_t>(link.ifindex)) {
        return refuse("is not to be found in sysfs: the one that is mounted shows another network namespace");
    }
    return link;
}

Result<std::vector<std::string>> restore_and_verify_link(HostOps& ops, std::int32_t ifindex, const LinkState& former) {
    const Deadline carrier = Deadline::after(kTraining);
    auto restored = restore_link(ops, ifindex, former, carrier);
    const Deadline settle = Deadline::after(kSettling);
    for (;;) {
        auto verified = restored ? verify_link(ops, ifindex, former) : tl::unexpected(restored.error());
        if (verified || settle.passed()) {
            return verified;
        }
        if (auto event = ops.wait_event(settle); !event) {
            return tl::unexpected(event.error());
        }
        restored = restore_link(ops, ifindex, former, carrier);
    }
}

namespace {

/// Every facet is tried even when another fails; the first failure is reported. `gone`: the target does not exist.
Result<Notes> undo_facets(HostOps& ops, const JournalEntry& entry, bool gone) {
    const FacetContext context{entry.target, entry.owner, entry.lease_end_boottime};
    const WantedState nothing;
    Notes notes;
    std::optional<Error> first;
    const auto note_failure = [&](Error error) {
        if (!first) {
            first = std::move(error);
        }
    };
    for (auto part = entry.former.rbegin(); part != entry.former.rend(); ++part) {
        const Facet& each = facet(part->facet);
        auto done = gone ? each.target_gone(ops, context, part->state) : each.go_to(ops, context, part->state, nothing);
        if (!done) {
            note_failure(std::move(done.error()));
        }
    }
    for (const FormerPart& part : entry.former) {
        if (gone || first) {
            break;
        }
        auto verified = facet(part.facet).verify(ops, context, part.state, nothing);
        if (verified) {
            append(notes, std::move(*verified));
        } else {
            note_failure(std::move(verified.error()));
        }
    }
    return first ? fail(std::move(*first)) : Result<Notes>(std::move(notes));
}

/// Pids count in a namespace of their own: what one stands for elsewhere is another process, or none.
Result<bool> process_exists(HostOps& ops, const FaultTarget& target) {
    if (target.pid_namespace != own_pid_namespace()) {
        const auto inhabited = is_inhabited_pid_namespace(target.pid_namespace);
        return inhabited && *inhabited
                   ? fail(Error(ErrorKind::kTeardown, fmt::format("{} is in another pid namespace (pid:[{}])",
                                                                  to_string(target), target.pid_namespace))
                              .with("pidns", fmt::format("pid:[{}]", target.pid_namespace))
                              .advise("Run railbreak recover inside of it (nsenter --pid, or in that container)."))
                   : inhabited;
    }
    return ops.process(target.process.pid).map([&](const std::optional<ProcessRecord>& found) {
        return found && found->identity.start_ticks == target.process.start_ticks && found->state != 'Z';
    });
}

} // namespace

Result<bool> target_exists(HostOps& ops, const FaultTarget& target) {
    switch (target.kind) {
    case TargetKind::kNic: return find_device(ops, target.device).map([](const auto& found) { return !found.empty(); });
    case TargetKind::kProcess: return process_exists(ops, target);
    case TargetKind::kFolder: return true;
    }
    return true;
}

Result<Notes> restore_entry(HostOps& ops, const JournalEntry& entry) {
    const auto boot_id = ops.boot_id();
    const auto netns = ops.netns();
    if (!boot_id || !netns) {
        return tl::unexpected(boot_id ? netns.error() : boot_id.error());
    }
    const bool same_boot = *boot_id == entry.boot_id;
    // What lies on a disk outlives a restart; everything else does not.
    if (!same_boot && entry.target.kind != TargetKind::kFolder) {
        return Notes{"the host was restarted since; nothing is left to undo"};
    }
    const DeviceIdentity& device = entry.target.device;
    if (entry.target.kind == TargetKind::kNic && netns->inode != device.netns_inode) {
        return fail(ErrorKind::kInternal, "a fault can only be undone in its own network namespace");
    }
    // Only one namespace at a time has the number.
    if (entry.target.kind == TargetKind::kNic && netns->cookie != device.netns_cookie) {
        return Notes{"the network namespace is gone; nothing is left to undo"};
    }
    const auto exists = target_exists(ops, entry.target);
    if (!exists) {
        return tl::unexpected(exists.error());
    }
    return *exists ? undo_facets(ops, entry, false) : restore_without_target(ops, entry);
}

Result<Notes> restore_without_target(HostOps& ops, const JournalEntry& entry) {
    auto notes = undo_facets(ops, entry, true);
    if (notes) {
        const bool came_back = entry.request.kind == FaultKind::kPciRemove;
        notes->push_back(fmt::format("{} {}", to_string(entry.target),
                                     came_back ? "is back on its bus, as another interface with what it had"
                                               : "is gone; nothing is left to undo on it"));
    }
    return notes;
}

} // namespace railbreak::injectors
