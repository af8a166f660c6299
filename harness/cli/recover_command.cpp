#include <algorithm>
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/json_text.hpp"
#include "harness/cli/commands.hpp"
#include "harness/lab/lab.hpp"
#include "injectors/fault_keeper.hpp"
#include "injectors/journal.hpp"
#include "injectors/real_host_ops.hpp"
#include "injectors/recover_all.hpp"
#include "injectors/time_limits.hpp"

namespace railbreak::cli {

namespace {

using injectors::FolderReport;
using nlohmann::json;

/// A half for agents to undo everything and end, the other for guards.
constexpr Nanoseconds kHaltPatience = 4 * injectors::kLongestUndo;
constexpr Nanoseconds kLabPatience = std::chrono::seconds(20);

void print_json(const json& document) {
    print_result(json_text(document));
}

/// Gives whether there was anything to tell.
bool print_text(const injectors::RecoverReport& report) {
    for (const injectors::RecoveredFault& fault : report.faults) {
        print_result(fmt::format("{} {} on {} (run {}, host {}): {}\n", to_string(fault.kind), fault.id, fault.target,
                                 fault.run_id, fault.host_name,
                                 fault.error.empty() ? "undone and verified" : fault.error));
        for (const std::string& note : fault.notes) {
            print_result(fmt::format("    {}\n", note));
        }
    }
    for (const std::string& path : report.busy) {
        print_result(fmt::format("{}: its run is alive, left alone\n", path));
    }
    for (const std::string& path : report.damaged) {
        print_result(fmt::format("{}: a damaged tail was cut\n", path));
    }
    return !report.faults.empty();
}

json to_json(const injectors::RecoverReport& report) {
    json faults = json::array();
    for (const injectors::RecoveredFault& fault : report.faults) {
        faults.push_back({{"run_id", fault.run_id},
                          {"host", fault.host_name},
                          {"id", fault.id},
                          {"kind", to_string(fault.kind)},
                          {"target", fault.target},
                          {"notes", fault.notes},
                          {"error", fault.error}});
    }
    return {{"schema", "railbreak-recover"}, {"version", 1},
            {"complete", report.complete()}, {"faults", faults},
            {"busy_journals", report.busy},  {"damaged_journals", report.damaged}};
}

json to_json(const std::vector<FolderReport>& folders) {
    json list = json::array();
    for (const FolderReport& each : folders) {
        json one = to_json(each.report);
        one.erase("schema");
        one.erase("version");
        one["folder"] = each.folder.path;
        one["user"] = each.folder.owner;
        one["error"] = each.error;
        list.push_back(std::move(one));
    }
    return list;
}

bool print_folders(const std::vector<FolderReport>& folders) {
    bool any = false;
    for (const FolderReport& each : folders) {
        any = print_text(each.report) || any;
        if (!each.error.empty()) {
            print_result(fmt::format("{}: {}\n", each.folder.path, each.error));
            any = true;
        }
    }
    return any;
}

int tell_incomplete() {
    return tell(Error(ErrorKind::kTeardown, "some faults could not be undone")
                    .advise("see the list above; run railbreak recover again once the cause is gone"));
}

/// Labs of runs that were killed together with the lab's keeper.
struct OrphanedLabs {
    /// One that was taken down, or could not be.
    struct Outcome {
        std::string lab;
        std::string error; ///< empty: taken down
    };
    std::vector<Outcome> outcomes;

    [[nodiscard]] bool complete() const {
        return std::ranges::all_of(outcomes, [](const Outcome& each) { return each.error.empty(); });
    }
    [[nodiscard]] json to_json() const {
        json list = json::array();
        for (const Outcome& each : outcomes) {
            list.push_back({{"lab", each.lab}, {"error", each.error}});
        }
        return list;
    }
    /// Gives whether there was anything to tell.
    bool print() const {
        for (const Outcome& each : outcomes) {
            print_result(fmt::format("lab {}: {}\n", each.lab,
                                     each.error.empty() ? "nobody looked after it any more, taken down" : each.error));
        }
        return !outcomes.empty();
    }
};

/// First of all, because whoever is left in such a lab undoes its faults when it is told to end. Who cannot have labs
/// has left none.
OrphanedLabs clear_labs(const std::string& state_folder = "") {
    const auto outcomes = lab::lab_clear_orphans(Deadline::after(kLabPatience), state_folder);
    OrphanedLabs labs;
    for (const lab::LabDownOutcome& each : outcomes ? *outcomes : std::vector<lab::LabDownOutcome>()) {
        labs.outcomes.push_back({each.name, each.result ? "" : each.result.error().to_line()});
    }
    return labs;
}

/// The same for another user, in that user's name.
void add_labs_of(const injectors::JournalFolder& folder, OrphanedLabs& labs) {
    const std::string state_folder = injectors::state_folder_of(folder.path);
    const auto body = [&](const injectors::Progress&) { return clear_labs(state_folder).to_json().dump(); };
    const Result<std::string> answer = injectors::run_as_owner(folder, body, kLabPatience + kLabPatience / 2);
    const json list = answer ? json::parse(*answer, nullptr, false) : json();
    if (!list.is_array()) {
        const std::string why = answer ? std::string("no answer") : answer.error().to_line();
        labs.outcomes.push_back({fmt::format("of the user {}", folder.owner), why});
        return;
    }
    for (const json& each : list) {
        labs.outcomes.push_back({each.value("lab", ""), each.value("error", "")});
    }
}

OrphanedLabs clear_all_labs(injectors::HostOps& ops) {
    OrphanedLabs labs = clear_labs();
    const auto folders = injectors::known_journal_folders(ops);
    for (const injectors::JournalFolder& folder : folders ? *folders : std::vector<injectors::JournalFolder>()) {
        if (folder.owner != ::geteuid()) {
            add_labs_of(folder, labs);
        }
    }
    return labs;
}

int recover_own(const CommonOptions& common, injectors::HostOps& ops) {
    const Result<std::string> folder = injectors::default_journal_folder(ops);
    if (!folder) {
        return tell(common, folder.error());
    }
    const OrphanedLabs labs = clear_labs();
    const Result<injectors::RecoverReport> report = injectors::FaultKeeper::recover(ops, *folder);
    if (!report) {
        return tell(common, report.error());
    }
    (void)injectors::list_owners(injectors::state_folder_of(*folder), true); // locks of the dead go
    const bool complete = report->complete() && labs.complete();
    if (common.json) {
        json document = to_json(*report);
        document["labs"] = labs.to_json();
        document["complete"] = complete;
        print_json(document);
        return complete ? 0 : tell_incomplete();
    }
    const bool any = labs.print();
    if (!print_text(*report) && !any) {
        print_result("nothing to undo\n");
    }
    return complete ? 0 : tell_incomplete();
}

int recover_everything(const CommonOptions& common, injectors::HostOps& ops) {
    const OrphanedLabs labs = clear_all_labs(ops);
    const Result<injectors::RecoverAllReport> report = injectors::recover_all(ops);
    if (!report) {
        return tell(common, report.error());
    }
    const bool complete = report->complete() && labs.complete();
    if (common.json) {
        json tagged = json::array();
        for (const injectors::TaggedObject& object : report->tagged) {
            tagged.push_back({{"object", object.what}, {"removed", object.removed}, {"error", object.error}});
        }
        print_json({{"schema", "railbreak-recover-all"},
                    {"version", 1},
                    {"complete", complete},
                    {"labs", labs.to_json()},
                    {"folders", to_json(report->folders)},
                    {"tagged_objects", tagged},
                    {"not_swept", report->not_swept}});
        return complete ? 0 : tell_incomplete();
    }
    bool any = labs.print();
    any = print_folders(report->folders) || any;
    for (const injectors::TaggedObject& object : report->tagged) {
        print_result(
            fmt::format("{}: {}\n", object.what, object.removed ? "no journal knew of it, removed" : object.error));
        any = true;
    }
    if (!report->not_swept.empty()) {
        print_result(fmt::format("not looked at for what carries railbreak's tags: {}\n", report->not_swept));
    } else if (!any) {
        print_result("nothing to undo\n");
    }
    return complete ? 0 : tell_incomplete();
}

int recover(const CommonOptions& common, bool all) {
    const Result<std::unique_ptr<injectors::HostOps>> ops = injectors::open_host_ops();
    if (!ops) {
        return tell(common, ops.error());
    }
    return all ? recover_everything(common, **ops) : recover_own(common, **ops);
}

std::string outcome_of(const injectors::HaltedRun& run) {
    if (!run.error.empty()) {
        return run.error;
    }
    return run.agent_ended   ? "its agent has undone its faults and ended"
           : run.guard_ended ? "its agent does not answer; its guard has undone its faults and ended"
                             : "neither its agent nor its guard has ended";
}

json to_json(const injectors::HaltReport& report) {
    json runs = json::array();
    for (const injectors::HaltedRun& run : report.runs) {
        runs.push_back({{"run_id", run.owner.run_id},
                        {"host", run.owner.host_name},
                        {"user", run.owner.user},
                        {"agent_pid", run.owner.agent.pid},
                        {"guard_pid", run.owner.guard.pid},
                        {"agent_ended", run.agent_ended},
                        {"guard_ended", run.guard_ended},
                        {"error", run.error}});
    }
    return {{"schema", "railbreak-halt"},      {"version", 1},
            {"complete", report.complete()},   {"runs", runs},
            {"halt_files", report.halt_files}, {"folders", to_json(report.folders)},
            {"problems", report.problems}};
}

int halt(const CommonOptions& common) {
    const Result<std::unique_ptr<injectors::HostOps>> ops = injectors::open_host_ops();
    if (!ops) {
        return tell(common, ops.error());
    }
    const std::string reason =
        fmt::format("railbreak halt by {} at {}", injectors::current_user(), to_iso8601(realtime_now()));
    const Result<injectors::HaltReport> report = injectors::halt(**ops, reason, kHaltPatience);
    if (!report) {
        return tell(common, report.error());
    }
    if (common.json) {
        print_json(to_json(*report));
    } else {
        for (const injectors::HaltedRun& run : report->runs) {
            print_result(fmt::format("run {} on host {} (agent {}, user {}): {}\n", run.owner.run_id,
                                     run.owner.host_name, run.owner.agent.pid, run.owner.user, outcome_of(run)));
        }
        print_folders(report->folders);
        for (const std::string& problem : report->problems) {
            print_result(problem + "\n");
        }
        if (report->runs.empty()) {
            print_result("no run is alive here\n");
        }
        for (const std::string& file : report->halt_files) {
            print_result(fmt::format("{}: no run starts while this file is there (railbreak halt --release)\n", file));
        }
    }
    if (report->complete()) {
        return 0;
    }
    return tell(Error(ErrorKind::kTeardown, "not every run could be seen to have undone its faults")
                    .advise("see the list above; railbreak recover --all tries again"));
}

int release(const CommonOptions& common) {
    const Result<std::unique_ptr<injectors::HostOps>> ops = injectors::open_host_ops();
    if (!ops) {
        return tell(common, ops.error());
    }
    const Result<std::vector<std::string>> removed = injectors::release_halt(**ops);
    if (!removed) {
        return tell(common, removed.error());
    }
    if (common.json) {
        print_json({{"schema", "railbreak-halt-release"}, {"version", 1}, {"removed", *removed}});
        return 0;
    }
    for (const std::string& file : *removed) {
        print_result(fmt::format("{} removed: runs may start again\n", file));
    }
    if (removed->empty()) {
        print_result("nothing was halted\n");
    }
    return 0;
}

} // namespace

void add_recover_commands(CLI::App& app, CommonOptions& common, const Choose& choose) {
    CLI::App* undo = app.add_subcommand("recover", "Undo every fault that a dead run left on this host");
    auto all = std::make_shared<bool>(false);
    undo->add_flag("--all", *all)
        ->description("Journals of all users (as root), then whatever carries railbreak's tags and has no journal");
    undo->callback([&common, all, choose] { choose([&common, all] { return recover(common, *all); }); });

    CLI::App* stop = app.add_subcommand("halt", "Emergency stop: end every run on this host, undo, allow none");
    auto again = std::make_shared<bool>(false);
    stop->add_flag("--release", *again)->description("Allow runs again");
    stop->callback(
        [&common, again, choose] { choose([&common, again] { return *again ? release(common) : halt(common); }); });
}

} // namespace railbreak::cli
