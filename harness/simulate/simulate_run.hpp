// A scenario played in the simulator instead of on a cluster. It passes through the same phases as a run in the lab,
// plans with the same plans, tries the same forms, and leaves the same rows in the database, with the backend "sim";
// so every report works on it. Nothing is touched, no data moves: that a result would be right is proven from the
// schedule, and faults are recorded as pretended.
//
// Times in the database are those of the simulation's own clock, which begins at one second.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/units.hpp"
#include "collective/bounds.hpp"
#include "collective/simulate/simulate.hpp"
#include "collective/transport/tcp_socket.hpp"
#include "harness/controller/forms.hpp"
#include "scenarios/model.hpp"

namespace railbreak::simulate {

/// What the kernel takes of a lab's connection before it holds up the sender: TCP_NOTSENT_LOWAT of the transport that
/// has not left, and two segments of 32 KiB under way. More are never in a queue together of a connection that does not
/// have a port alone (TCP small queues), so the 20 ms queues before the ports never fill.
inline constexpr ByteCount kSendBuffer = ByteCount::bytes(collective::TcpTuning{}.notsent_lowat_bytes + 2 * 32 * 1024);
/// To what the kernel lets a receive buffer grow that is read in large pieces: half of the 32 MiB of net.ipv4.tcp_rmem.
inline constexpr ByteCount kReceiveBuffer = ByteCount::bytes(std::uint64_t{16} << 20U);

/// The model, see collective/simulate/simulate.hpp, and what the command line says.
struct SimulateOptions {
    std::filesystem::path database;
    std::uint64_t seed = 0;
    std::string command_line;
    collective::PortModel model = collective::PortModel::kFluid;
    bool cut_through = true; ///< fluid model only
    Nanoseconds flow_overhead = controller::kFlowOverhead;
    Nanoseconds flow_latency = controller::kFlowLatency;
    collective::PortSharing sharing = collective::PortSharing::kWindows; ///< fluid model only, as the buffers
    ByteCount send_buffer = kSendBuffer;
    ByteCount receive_buffer = kReceiveBuffer;
};

/// A finished simulation, whatever its verdict.
struct SimulatedRun {
    std::string run_id;
    int exit_code = 0;
    std::string reason; ///< one line, empty for a pass
};

/// Plays a scenario and judges it. An Error means that no run came into being (bad input, no database); what happens
/// later is a verdict in the database and in the SimulatedRun.
[[nodiscard]] Result<SimulatedRun> simulate_scenario(const scenarios::Scenario& scenario,
                                                     const SimulateOptions& options);

} // namespace railbreak::simulate
