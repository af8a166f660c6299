// Bounds by weights, and the best weights, for clusters of any servers.
//
// Lower bounds on AllReduce are statements about trees. Split the ranks into q groups: every element crosses borders at
// least 2(q-1) times, and at least once into and once out of every group. Give each port side a weight >= 0; a transfer
// then weighs the time that it takes of either side times the side's weight, and if each port is busy for at most T the
// transfers of all n elements weigh at most T times the sum of the weights. With a minimum spanning tree over the
// weights of the transfers (the cheaper direction, the cheaper port) this gives
//     T/n >= (2 MST + sum of cuts) / sum of weights,
// where a cut is an amount taken off the transfers out of (or into) one server in advance, because every element leaves
// and enters it once anyway. Cuts help only where a port sends and receives at different rates.
//
// Ranks of a server reach each other through their intra-host ports too, and share the server's NICs. Servers that are
// alike get the same weights: an average over their permutations is never worse.
//
// The best weights are the solution of a linear programme with a row for every tree; it is built by cutting planes:
// solve, look for the tree that the weights violate most (which is the minimum spanning tree), add its row, again. In
// the exclusive model, if every NIC sends as fast as it receives, its optimum is not only a bound but reached, with
// many segments: by duality it is the least load of a fractional spanning tree, and a mixture of trees can be run in a
// pipeline, reducing along a tree and broadcasting back.
//
// The solver works in floating point. Its weights are therefore rounded to simple fractions, and what is reported is
// the bound that these fractions give, computed exactly: a proof that needs no trust in the solver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/error.hpp"
#include "base/rational.hpp"
#include "collective/bounds.hpp"
#include "collective/schedule.hpp"
#include "collective/topology.hpp"

namespace railbreak::collective::bounds {

/// Servers that are alike in everything a bound depends on. Slowdowns are those of each NIC that is alive, > 0.
template <class Number> struct ServerClass {
    Rank servers = 1;
    std::int32_t nics = 1; ///< alive NICs of each server, >= 1; the server's ranks share them
    Number send{1};
    Number receive{1};
};

/// A cluster of two or more servers.
template <class Number> struct Cluster {
    std::vector<ServerClass<Number>> classes;
    Rank ranks_per_server = 1;
    /// Time of an element through an intra-host port in units of that through a healthy NIC (1/V); 0: no time.
    Number local_cost{0};
    /// Whether ranks of a server may also talk out of one NIC of theirs and into another (or the same). Where they may,
    /// bounds are lower; plans that are any good do not.
    bool loops = false;
};

/// Weights of the ports of each server of a class, all >= 0.
template <class Number> struct ClassWeights {
    Number send{0};    ///< send side of each NIC
    Number receive{0}; ///< receive side of each NIC
    Number local{0};   ///< intra-host port of each rank, both sides together
    Number leave{0};   ///< taken off every transfer that leaves the server
    Number enter{0};   ///< taken off every transfer that enters it
};

/// The classes of a topology, healthiest first. A server with dead NICs has fewer NICs at full rate. No loops.
[[nodiscard]] Cluster<Rational> cluster_of(const Topology& topology);
/// The same cluster in floating point.
[[nodiscard]] Cluster<double> approximate(const Cluster<Rational>& cluster);

/// The bound that these weights give (one entry per class, not all 0). Cuts that are too large, so that a transfer
/// would weigh less than nothing, are scaled down. Instantiated for Rational and double.
template <class Number> [[nodiscard]] Number weighted_bound(PortModel model, const Cluster<Number>& cluster,
                                                            const std::vector<ClassWeights<Number>>& weights);

/// The best weights found, and what they prove.
struct BestWeights {
    Rational time_over_n; ///< weighted_bound of the weights below, exactly
    std::vector<ClassWeights<Rational>> weights;
    bool optimal = false;       ///< no weights prove more than a billionth more
    double programme_value = 0; ///< what no weights can exceed, according to the solver
    std::int32_t rounds = 0;    ///< how often the programme was solved
};

/// Classes up to which best_weights answers: 32 different kinds of damaged servers beside the healthy ones.
inline constexpr std::size_t kMostClasses = 33;
/// Rounds after which the search ends. Few classes need a handful; 33 that send and receive at different rates need
/// hundreds, which takes seconds.
inline constexpr std::int32_t kMostRounds = 1000;

/// The best weights for a cluster of at most kMostClasses classes, or the best of the first `rounds` >= 1 rounds, which
/// prove a bound all the same. Errors: kHarness when the solver library is not there, kInput for too many classes,
/// kInternal when the solver finds no solution.
[[nodiscard]] Result<BestWeights> best_weights(PortModel model, const Cluster<Rational>& cluster,
                                               std::int32_t rounds = kMostRounds);

} // namespace railbreak::collective::bounds
