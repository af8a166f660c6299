// The rank: one member of the collective, a process of its own so that it can be stopped, killed and throttled.
// It serves its agent's requests one at a time: open, prepare a plan, fill, run, probe. During a run it does nothing
// else; its agent can only kill it.
#pragma once

namespace railbreak::agent {

/// Serves requests on stdin and stdout until end of file. Returns the exit code.
[[nodiscard]] int rank_main();

} // namespace railbreak::agent
