// How long an OptCC plan takes when every flow costs something.
//
// A flow occupies both port sides for its transfer time plus an overhead o, and its data can be used a latency L after
// its end. A phase with h healthy ranks, ring streams of section times x, and straggler flows of section time z takes
// the largest of
//   the work of a healthy link      (h-1) sum(c x + o) + sum over stragglers of (l z + o)     two lanes: .. + sum of z
//   the work of a straggler         h (l z + o), with two lanes l at least 2: the ring has the other half of the port
//   the dependency round the ring   (h-1) (c x + o + L)
//   with several ranks a server     the local work that is done meanwhile,
// where c is the slowdown of the slowest rank that stays in the ring. Without overhead and latency, for one lane and
// slowdowns of at most 2 (one straggler: any) this is the exact time of U, BS and LAG; otherwise it is within some per
// cent of it. Where one of several stragglers gets segments a phase late (LAG, ramp), phases in truth overlap, and
// few segments may take up to a quarter less than the sum of the phases.
#pragma once

#include <cstdint>
#include <vector>

#include "collective/algorithms/optcc.hpp"
#include "collective/algorithms/optcc_program.hpp"

namespace railbreak::collective {

/// What the costs depend on besides the plan. Times in nanoseconds.
struct OptccCluster {
    Rank servers = 0;
    Rank ranks_per_server = 1;
    std::vector<double> stragglers; ///< slowdowns, the larger of both directions; the largest first
    double ring_slowdown = 1;       ///< the largest of those that are not stragglers
    double vector_ns = 0;           ///< time of one healthy NIC for the whole vector, one direction
    double overhead_ns = 0;         ///< o
    double latency_ns = 0;          ///< L
    double local_ratio = 0;         ///< speed of an intra-host port over that of a NIC; 0: without limit
    bool shared = false;            ///< two NIC lanes (fluid model)
};

/// How much slower than on an idle healthy port the flows of a straggler are: with two lanes they share the healthy
/// rank's port with a ring flow, which leaves them half of it.
[[nodiscard]] double optcc_visit_slowdown(double slowdown, bool shared);

/// Time of a plan. `program` is make_program(parameters); of the parameters themselves only sizes count.
[[nodiscard]] double optcc_cost_ns(const OptccCluster& cluster, const OptccParameters& parameters,
                                   const OptccProgram& program);

} // namespace railbreak::collective
