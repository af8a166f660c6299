#include "injectors/recover.hpp"

#include <algorithm>
#include <memory>

#include "injectors/journal.hpp"
#include "injectors/real_host_ops.hpp"
#include "injectors/restore.hpp"

namespace railbreak::injectors {

namespace {

bool has_fact(const Error& error, std::string_view name) {
    return std::any_of(error.facts().begin(), error.facts().end(),
                       [&](const auto& fact) { return fact.first == name; });
}

/// Restores the entry in the namespace it belongs to. A namespace that is gone took its devices with it, which
/// restore_entry sees as such when it is given any other one.
Result<std::vector<std::string>> restore_anywhere(HostOps& ops, const JournalEntry& entry) {
    const DeviceIdentity& device = entry.target.device;
    const NetnsIdentity wanted{device.netns_inode, device.netns_cookie};
    const auto here = ops.netns();
    const auto boot_id = ops.boot_id();
    if (!here || !boot_id) {
        return tl::unexpected(here ? boot_id.error() : here.error());
    }
    if (entry.target.kind != TargetKind::kNic || *here == wanted || *boot_id != entry.boot_id) {
        return restore_entry(ops, entry);
    }
    const UniqueFd netns = find_netns(wanted);
    if (!netns.valid()) {
        return restore_entry(ops, entry);
    }
    auto there = open_host_ops_in(netns.get());
    if (!there) {
        return tl::unexpected(std::move(there.error()).during("entering the fault's network namespace"));
    }
    return restore_entry(**there, entry);
}

RecoveredFault recover_entry(HostOps& ops, Journal& journal, const JournalEntry& entry) {
    RecoveredFault fault{journal.contents().run_id,
                         journal.contents().host_name,
                         entry.request.id,
                         entry.request.kind,
                         to_string(entry.target),
                         {},
                         {}};
    auto restored = restore_anywhere(ops, entry);
    if (!restored) {
        fault.error = restored.error().to_line();
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

void recover_journal(HostOps& ops, const std::string& path, RecoverReport& report) {
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
        report.faults.push_back(recover_entry(ops, *journal, entry));
        all = all && report.faults.back().error.empty();
    }
    if (all) {
        // A closed journal that stays, or comes back after a crash, is closed all the same; the next recovery tries
        // again.
        (void)ops.remove_file(path);
    }
}

} // namespace

bool RecoverReport::complete() const {
    return std::all_of(faults.begin(), faults.end(), [](const RecoveredFault& fault) { return fault.error.empty(); });
}

Result<RecoverReport> recover_folder(HostOps& ops, const std::string& folder) {
    const auto paths = list_journals(folder);
    if (!paths) {
        return tl::unexpected(paths.error());
    }
    RecoverReport report;
    for (const std::string& path : *paths) {
        recover_journal(ops, path, report);
    }
    return report;
}

} // namespace railbreak::injectors
