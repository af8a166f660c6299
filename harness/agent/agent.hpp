// The agent: one per host, started by whatever the launcher is, spoken to over its standard streams. It owns the
// host's ranks and the host's faults.
//
// Life: say hello; recover what an earlier agent left; serve requests; end on end of file, on a signal, or when the
// lease runs out. Whatever the reason: undo every fault first, then say bye, then exit. stdout may be gone by then.
#pragma once

#include <string>

namespace railbreak::agent {

/// What the command line says.
struct AgentOptions {
    std::string executable; ///< absolute path of the railbreak binary, for ranks and for the guard
};

/// Runs the agent on stdin and stdout. Returns the exit code: 0 after a clean end, 5 when a fault could not be
/// verified as undone (reasons on stderr).
[[nodiscard]] int agent_main(const AgentOptions& options);

} // namespace railbreak::agent
