#include <memory>

#include "harness/agent/agent.hpp"
#include "harness/agent/rank.hpp"
#include "harness/cli/commands.hpp"
#include "injectors/guard.hpp"

namespace railbreak::cli {

namespace {

void hide(CLI::App* command) {
    command->group(""); // internal commands: not in --help
}

} // namespace

void add_host_commands(CLI::App& app, CommonOptions& common, const Choose& choose) {
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
