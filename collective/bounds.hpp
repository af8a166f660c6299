// Lower bounds on the time of an AllReduce, and the limits that plans reach. All are T/n: the time in units of the
// time that a healthy port needs for the whole vector in one direction.
//
// Two port models, always named:
//   exclusive  a port side carries one flow at a time; an element from u to v occupies u's send side and v's receive
//              side for max(send slowdown of u, receive slowdown of v). The model of the OptCC paper.
//   fluid      a port side only has a rate and any number of flows share it; the element costs u's sending and v's
//              receiving each their own slowdown. What kernel TCP does. Everything possible in the exclusive model is
//              possible in the fluid one, so a fluid bound is also an exclusive bound, and only a time below the
//              fluid bound proves that something was measured wrongly.
//
// Where they come from: in any AllReduce each element crosses the borders between q groups of ranks at least 2(q-1)
// times. Weighing the ports' times with weights w >= 0 turns this into T/n >= MST(w) / sum(w), where MST is the
// minimum spanning tree of the complete graph whose edge u-v costs max(l_u,l_v)(w_u+w_v), fluid l_u w_u + l_v w_v.
// The named bounds are choices of weights; exact_bound.hpp has the general form and finds the best weights. In the
// fluid model, with ports that send as fast as they receive, the best weights are known: with a_v = l_v w_v the tree
// hangs on the smallest a, so the quotient is linear-fractional in a and best with all a equal (theorem 2) or with one
// rank alone (its slowdown).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/rational.hpp"
#include "collective/schedule.hpp"
#include "collective/topology.hpp"

namespace railbreak::collective {

/// How flows share a port side; see the head of this file.
enum class PortModel : std::uint8_t { kExclusive, kFluid };

/// "exclusive", "fluid".
[[nodiscard]] std::string_view to_string(PortModel model);

/// A lower bound as reports show it.
struct Bound {
    std::string name;       ///< "theorem 6", "theorem 2", "one straggler, send and receive differ", ...
    std::string proof;      ///< where it is proved: "OptCC paper, Theorem 6"; "weights: all 1" (of the ports), ...
    std::string model;      ///< "exclusive" or "fluid"
    std::string branch;     ///< which term of the maximum decides, for example "2l(p-1)/(l(p-2)+2)"
    double time_over_n = 0; ///< T/n
};

/// Every bound that applies to the topology (two or more servers, each with a NIC alive) in this port model; those that
/// are easiest to check come first. n is the time that one healthy NIC needs for the whole vector. With several ranks a
/// server, exclusive bounds hold for plans that keep traffic between ranks of a server off its NICs; fluid ones always.
/// The best weights are sought with the solver, for some tenths of a second at most; when its library is missing, or
/// there are more than bounds::kMostClasses kinds of servers, the named bounds stand alone.
[[nodiscard]] std::vector<Bound> all_bounds(const Topology& topology, PortModel model);
/// The bound that binds: the first among the largest, where differences that rounding explains do not count.
[[nodiscard]] const Bound& binding(const std::vector<Bound>& bounds);

/// The binding one of all_bounds, exclusive model, for one rank and NIC a server. One entry per rank: healthy bandwidth
/// over present bandwidth of its port in that direction, > 0 (1 = healthy; below 1 is allowed, a port may beat the
/// reference). At least two ranks.
[[nodiscard]] Bound lower_bound_exclusive(const std::vector<double>& send_slowdown,
                                          const std::vector<double>& receive_slowdown);
/// The same in the fluid model. A measured time below it is invalid.
[[nodiscard]] Bound lower_bound_fluid(const std::vector<double>& send_slowdown,
                                      const std::vector<double>& receive_slowdown);

/// Closed forms, instantiated for Rational and double. p = ranks >= 2; slowdowns >= 1.
namespace bounds {

/// 2(p-1)/p: the fault-free optimum, reached by the ring.
template <class Number> [[nodiscard]] Number fault_free(Rank ranks);
/// l T0: the plain ring when its slowest port is l times slower. Not a bound for other algorithms.
template <class Number> [[nodiscard]] Number degraded_ring(Rank ranks, const Number& slowest);
/// max{2l(p-1)/(l(p-1)+1), l}: one straggler, OptCC theorem 1. Exact in the fluid model.
template <class Number> [[nodiscard]] Number theorem1(Rank ranks, const Number& slowdown);
/// max{2l(p-1)/(l(p-2)+2), l}: one straggler, OptCC theorem 6, exclusive model. Exact.
template <class Number> [[nodiscard]] Number theorem6(Rank ranks, const Number& slowdown);
/// max{2(p-1)/(p-m+sum 1/l_i), max l_i}: m stragglers, OptCC theorem 2. Exact in the fluid model.
template <class Number> [[nodiscard]] Number theorem2(Rank ranks, const std::vector<Number>& stragglers);
/// theorem1(q, l)/g: one of q servers slow, each with g ranks and g NICs; OptCC theorem 3.
template <class Number> [[nodiscard]] Number theorem3(Rank servers, Rank per_server, const Number& slowdown);
/// theorem6(q, l)/g: the same in the exclusive model; OptCC theorem 13. Exact when intra-host ports are fast enough.
template <class Number> [[nodiscard]] Number theorem13(Rank servers, Rank per_server, const Number& slowdown);
/// theorem6(qg, l)/g: the same when every intra-host port is g-1 times as fast as a NIC. Exact.
template <class Number> [[nodiscard]] Number local_ports(Rank servers, Rank per_server, const Number& slowdown);
/// Healthy ranks with weight 1, straggler i with max(0, 2/l_i - 1), so that its transfers with healthy ranks weigh as
/// much as those among these; exclusive model. At least one of the ranks is healthy.
template <class Number> [[nodiscard]] Number peers(Rank ranks, const std::vector<Number>& stragglers);
/// (2(p-m-1) + 2 sum l_i)/p: all ports weighed alike, exclusive model, m >= 1 stragglers.
template <class Number> [[nodiscard]] Number port_sum(Rank ranks, const std::vector<Number>& stragglers);
/// One straggler with different slowdowns for sending and receiving, exclusive model:
/// max{l_s, l_r, 2(p-1)/(p-2+1/l_s+1/l_r)}, the last term only while both are at most 2 (beyond, it is smaller anyway).
template <class Number>
[[nodiscard]] Number asymmetric_straggler(Rank ranks, const Number& send, const Number& receive);
/// m equal stragglers with 1 <= l <= 2 and p-m >= 2 healthy ranks, exclusive model. Exact.
template <class Number> [[nodiscard]] Number equal_stragglers(Rank ranks, Rank stragglers, const Number& slowdown);
/// MST(w)/sum(w) for any weights w >= 0, not all 0; slowdowns of all ranks. Valid for any positive slowdowns.
template <class Number> [[nodiscard]] Number spanning_tree(PortModel model, const std::vector<Number>& slowdowns,
                                                           const std::vector<Number>& weights);

/// What plans reach with many segments; m stragglers, h = p-m >= 1 healthy ranks.
/// Windows of max(2, l_1) sections kept in step: max(2, l_1)(p-1)/h.
template <class Number> [[nodiscard]] Number windows_limit(Rank ranks, const std::vector<Number>& stragglers);
/// The same with star chunks, 2(p-1)/(p-2m+2 sum 1/l_i); nothing when some l_i > 2.
template <class Number>
[[nodiscard]] std::optional<Number> star_limit(Rank ranks, const std::vector<Number>& stragglers);
/// Without windows, each port side working through its queue: max{l_1, (2(h-1) + sum l_i)/h}.
template <class Number> [[nodiscard]] Number queues_limit(Rank ranks, const std::vector<Number>& stragglers);

} // namespace bounds

} // namespace railbreak::collective
