// What pictures and traces say about a plan in words: ports, servers, the cluster. Internal to harness/planner.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.hpp"
#include "collective/schedule.hpp"
#include "collective/simulate/simulate.hpp"

namespace railbreak::planner {

/// A lower bound as a point in time.
struct BoundTime {
    Nanoseconds time{0};
    std::string name; ///< what proves it, for example "theorem 6"
};

/// "NIC 0", "local".
[[nodiscard]] std::string port_text(const collective::Port& port);

/// The cluster in one line: "5 servers of 1 rank and 1 NIC, 500 Mbit/s healthy; server 4: slowdown 2".
[[nodiscard]] std::string cluster_text(const collective::SimulationOptions& simulation);

/// What is simulated in one line: "4 MiB (1048576 elements of 4 bytes), exclusive ports, overhead 10 us, latency 0 ns".
[[nodiscard]] std::string message_text(const collective::Schedule& schedule,
                                       const collective::SimulationOptions& simulation);

/// "slowdown 2", "slowdown 2 sending, 1 receiving", "2 of 8 NICs dead"; empty for a healthy server.
[[nodiscard]] std::string slowdown_text(const collective::Topology& topology, collective::Rank server);

/// The same for a narrow place: "slowdown 2", "2 out, 1 in", "2/8 NICs dead".
[[nodiscard]] std::string short_slowdown_text(const collective::Topology& topology, collective::Rank server);

/// Whether any direction of the server's ports is slower than healthy.
[[nodiscard]] bool is_slow(const collective::PortSlowdown& server);

} // namespace railbreak::planner
