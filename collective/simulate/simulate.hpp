// Runs a schedule on a model of the cluster: how long would it take? The very schedule object that is verified and
// executed is walked, every flow of it, by discrete events.
//
// Engines work in order, as an executor's do: a flow begins when both its engines have come to it and the steps that
// its ends wait for are over. What was received can be used a latency L after the flow's end, what was sent has left at
// its end. Empty slices are skipped by both ends at no cost.
//
// Port models (see bounds.hpp):
//   exclusive  a flow holds the sender's send side and the receiver's receive side of the two ports from its start to
//              its end, for a fixed overhead o plus its size times the slower of the two sides. Flows that want the
//              same side get it in the order in which they became ready; at the same instant, in that of rank and lane
//              of the sender. A flow whose sides are not both free lets others go first.
//   fluid      all flows of a port side share its rate, max-min fair over both ends. The overhead o is a delay of the
//              two engines before the flow begins to move, it holds no bandwidth.
// With cut-through (fluid model; what the executor does) a flow that forwards data still arriving may begin before that
// has ended, a latency behind it, but is never ahead of it and ends no sooner.
//
// Time is counted in whole picoseconds.
// Deterministic: the same input gives the same result, bit for bit.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/rational.hpp"
#include "base/units.hpp"
#include "collective/bounds.hpp"
#include "collective/schedule.hpp"
#include "collective/topology.hpp"

namespace railbreak::collective {

/// One flow as it went.
struct SimulatedFlow {
    Rank from = 0;
    Rank to = 0;
    Lane lane = 0;
    Port from_port;
    Port to_port;
    std::int64_t send_index = 0; ///< entry of the sender's queue
    std::int64_t receive_index = 0;
    Slice slice;
    Stage stage = Stage::kReduceScatter;
    Combine combine = Combine::kCopy;
    Nanoseconds start{0}; ///< when its engines began with it, overhead included
    Nanoseconds end{0};
};

/// From `at` on, NICs of a server have another rate.
struct RateChange {
    Nanoseconds at{0}; ///< since the start of the simulation
    Rank server = 0;
    std::optional<std::int32_t> nic; ///< empty: every NIC of the server
    /// Fraction of the healthy rate, 0 (down) and above; empty: as it was.
    std::optional<double> send;
    std::optional<double> receive;
};

/// How flows share a port in the fluid model.
enum class PortSharing : std::uint8_t {
    kMaxMin,  ///< evenly: none can have more without one that has less or as much having less still
    kWindows, ///< as TCP connections with equal windows do: one squeezed at both ends gets less than its even share
};
/// "max-min" or "windows".
[[nodiscard]] std::string_view to_string(PortSharing sharing);

/// What a schedule is simulated on.
struct SimulationOptions {
    PortModel model = PortModel::kExclusive;
    Topology topology;       ///< as many ranks as the schedule
    BitRate healthy_goodput; ///< payload rate of a healthy NIC, one direction; > 0
    std::uint32_t element_bytes = 4;
    bool cut_through = false;                   ///< fluid model only
    PortSharing sharing = PortSharing::kMaxMin; ///< fluid model only
    ByteCount send_buffer;    ///< fluid model only: how much the send engine may leave behind it on its way to a peer
    ByteCount receive_buffer; ///< fluid model only: how much of a peer may arrive before the receive engine takes it
    Nanoseconds flow_overhead{0};        ///< o
    Nanoseconds flow_latency{0};         ///< L
    std::vector<RateChange> timeline;    ///< in order of time
    std::vector<Nanoseconds> rank_start; ///< when each rank begins; empty: all at 0
    /// Called once for every flow with data, in no particular order across ports. Empty: nobody listens.
    std::function<void(const SimulatedFlow&)> on_flow;
};

/// What came out.
struct SimulationResult {
    Nanoseconds makespan{0};                   ///< end of the last flow plus its latency
    std::vector<Nanoseconds> rank_ends;        ///< when each rank had sent and received everything
    std::int64_t flows = 0;                    ///< flows with data
    std::vector<std::uint64_t> bytes_sent;     ///< per rank, payload, all ports
    std::vector<std::uint64_t> bytes_received; ///< per rank
};

/// Errors: kInput when topology and schedule do not fit or a rate is not usable; kOutcome when nothing can move any
/// more (a port stays down for ever, or the schedule deadlocks), with the step that waits.
[[nodiscard]] Result<SimulationResult> simulate(const Schedule& schedule, const SimulationOptions& options);

/// Makespan in the exclusive model without overhead and latency, exactly, in units of the time that a healthy NIC
/// needs for one element. Errors as above.
[[nodiscard]] Result<Rational> simulate_exact(const Schedule& schedule, const Topology& topology);

} // namespace railbreak::collective
