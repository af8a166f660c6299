#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/agent/agent.hpp"
#include "harness/agent/rank.hpp"
#include "harness/cli/commands.hpp"
#include "injectors/fault_keeper.hpp"
#include "injectors/guard.hpp"
#include "injectors/real_host_ops.hpp"

namespace railbreak::cli {

namespace {

void print_text(const injectors::RecoverReport& report) {
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
    if (report.faults.empty()) {
        print_result("nothing to undo\n");
    }
}

nlohmann::json to_json(const injectors::RecoverReport& report) {
    nlohmann::json faults = nlohmann::json::array();
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

int print_recovery(const CommonOptions& common, const injectors::RecoverReport& report) {
    if (common.json) {
        print_result(
            fmt::format("{}\n", to_json(report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace)));
    } else {
        print_text(report);
    }
    if (report.complete()) {
        return 0;
    }
    return tell(Error(ErrorKind::kTeardown, "some faults could not be undone")
                    .advise("see the list above; run railbreak recover again once the cause is gone"));
}

int recover(const CommonOptions& common) {
    Result<std::unique_ptr<injectors::HostOps>> ops = injectors::open_host_ops();
    if (!ops) {
        return tell(ops.error());
    }
    Result<injectors::RecoverReport> report = injectors::FaultKeeper::recover(**ops, "");
    if (!report) {
        return tell(report.error());
    }
    return print_recovery(common, *report);
}

void hide(CLI::App* command) {
    command->group(""); // internal commands: not in --help
}

} // namespace

void add_host_commands(CLI::App& app, CommonOptions& common, const Choose& choose) {
    CLI::App* undo = app.add_subcommand("recover", "Undo every fault that a dead run left on this host");
    undo->callback([&common, choose] { choose([&common] { return recover(common); }); });

    CLI::App* agent = app.add_subcommand("agent", "Internal: serve a controller on stdin and stdout");
    hide(agent);
    agent->add_flag("--stdio")->description("Speak on stdin and stdout (the only way there is)");
    agent->callback(
        [&common, choose] { choose([&common] { return agent::agent_main({.executable = common.executable}); }); });

    CLI::App* rank = app.add_subcommand("rank", "Internal: one member of the collective");
    hide(rank);
    rank->callback([choose] { choose([] { return agent::rank_main(); }); });

    CLI::App* guard = app.add_subcommand("guard", "Internal: undo the faults of an agent that cannot");
    hide(guard);
    auto socket = std::make_shared<std::string>();
    auto journal = std::make_shared<std::string>();
    guard->add_option("--socket", *socket)->description("Descriptor of the socket to the agent")->required();
    guard->add_option("--journal", *journal)->description("Descriptor of the journal")->required();
    guard->callback([socket, journal, choose] {
        choose([socket, journal] {
            const std::vector<std::string> arguments{"--socket", *socket, "--journal", *journal};
            return injectors::guard_main(arguments);
        });
    });
}

} // namespace railbreak::cli
