#include "collective/bounds.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace railbreak::collective {

std::string_view to_string(PortModel model) {
    switch (model) {
    case PortModel::kExclusive: return "exclusive";
    case PortModel::kFluid: return "fluid";
    }
    return "unknown";
}

namespace bounds {

namespace {

template <class Number> Number sum(const std::vector<Number>& values) {
    Number total(0);
    for (const Number& value : values) {
        total += value;
    }
    return total;
}

template <class Number> Number sum_of_inverses(const std::vector<Number>& values) {
    Number total(0);
    for (const Number& value : values) {
        total += Number(1) / value;
    }
    return total;
}

template <class Number> const Number& largest(const std::vector<Number>& values) {
    RB_CHECK(!values.empty(), "at least one slowdown");
    return *std::max_element(values.begin(), values.end());
}

/// Named, so that a quotient of multiprecision expressions becomes a number before it is compared.
template <class Number> Number quotient(const Number& above, const Number& below) {
    return above / below;
}

template <class Number> Rank healthy(Rank ranks, const std::vector<Number>& stragglers) {
    return ranks - static_cast<Rank>(stragglers.size());
}

} // namespace

template <class Number> Number fault_free(Rank ranks) {
    return quotient(Number(2 * (ranks - 1)), Number(ranks));
}

template <class Number> Number degraded_ring(Rank ranks, const Number& slowest) {
    return slowest * fault_free<Number>(ranks);
}

template <class Number> Number theorem1(Rank ranks, const Number& slowdown) {
    return theorem2(ranks, std::vector<Number>{slowdown});
}

template <class Number> Number theorem6(Rank ranks, const Number& slowdown) {
    return asymmetric_straggler(ranks, slowdown, slowdown);
}

template <class Number> Number theorem2(Rank ranks, const std::vector<Number>& stragglers) {
    const Number rate = Number(healthy(ranks, stragglers)) + sum_of_inverses(stragglers);
    return std::max(quotient(Number(2 * (ranks - 1)), rate), largest(stragglers));
}

template <class Number> Number theorem3(Rank servers, Rank per_server, const Number& slowdown) {
    return theorem1(servers, slowdown) / per_server;
}

template <class Number> Number theorem13(Rank servers, Rank per_server, const Number& slowdown) {
    return theorem6(servers, slowdown) / per_server;
}

template <class Number> Number local_ports(Rank servers, Rank per_server, const Number& slowdown) {
    return theorem6(servers * per_server, slowdown) / per_server;
}

template <class Number> Number peers(Rank ranks, const std::vector<Number>& stragglers) {
    std::vector<Number> slowdowns(static_cast<std::size_t>(ranks), Number(1));
    std::copy(stragglers.begin(), stragglers.end(), slowdowns.begin());
    std::vector<Number> weights;
    for (const Number& slowdown : slowdowns) {
        weights.push_back(std::max(Number(0), Number(quotient(Number(2), slowdown) - Number(1))));
    }
    return spanning_tree(PortModel::kExclusive, slowdowns, weights);
}

template <class Number> Number port_sum(Rank ranks, const std::vector<Number>& stragglers) {
    const Number time = Number(2 * (healthy(ranks, stragglers) - 1)) + 2 * sum(stragglers);
    return quotient(time, Number(ranks));
}

// The proof of the last term: let a and b be the straggler's sends and receives per element, both >= 1, and c the
// transfers among the healthy, a+b+c >= 2(p-1). All healthy port sides together are busy for 2c + l_s a + l_r b <=
// 2(p-1)T, and l_s a <= T, l_r b <= T. Eliminating a, b, c, which needs l <= 2, gives the term.
template <class Number> Number asymmetric_straggler(Rank ranks, const Number& send, const Number& receive) {
    const Number alone = std::max(send, receive);
    if (alone > Number(2)) {
        return alone;
    }
    const Number rate = Number(ranks - 2) + sum_of_inverses(std::vector<Number>{send, receive});
    return std::max(alone, quotient(Number(2 * (ranks - 1)), rate));
}

template <class Number> Number equal_stragglers(Rank ranks, Rank stragglers, const Number& slowdown) {
    RB_CHECK(slowdown <= Number(2) && ranks - stragglers >= 2, "the closed form holds up to half speed");
    const Number excess = Number(2) * (slowdown - Number(1));
    const Number base(2 * (ranks - 1));
    const Number all_ports = quotient(Number(base + stragglers * excess), Number(ranks));
    const Number weight = Number(ranks - stragglers) + quotient(Number(stragglers * (2 - slowdown)), slowdown);
    const Number peers = quotient(Number(base - (stragglers - 1) * excess), weight);
    return std::max(std::max(all_ports, peers), slowdown);
}

// Prim's algorithm on the complete graph.
template <class Number>
Number spanning_tree(PortModel model, const std::vector<Number>& slowdowns, const std::vector<Number>& weights) {
    RB_CHECK(slowdowns.size() == weights.size() && slowdowns.size() >= 2, "one weight for each of two or more ranks");
    const std::size_t count = slowdowns.size();
    const auto edge = [&](std::size_t u, std::size_t v) -> Number {
        if (model == PortModel::kFluid) {
            return slowdowns[u] * weights[u] + slowdowns[v] * weights[v];
        }
        return std::max(slowdowns[u], slowdowns[v]) * (weights[u] + weights[v]);
    };
    std::vector<bool> inside(count, false);
    std::vector<Number> nearest(count);
    inside[0] = true;
    for (std::size_t v = 1; v < count; ++v) {
        nearest[v] = edge(0, v);
    }
    Number tree(0);
    for (std::size_t added = 1; added < count; ++added) {
        std::size_t best = 0;
        for (std::size_t v = 1; v < count; ++v) {
            if (!inside[v] && (best == 0 || nearest[v] < nearest[best])) {
                best = v;
            }
        }
        tree += nearest[best];
        inside[best] = true;
        for (std::size_t v = 1; v < count; ++v) {
            if (!inside[v]) {
                nearest[v] = std::min(nearest[v], edge(best, v));
            }
        }
    }
    return quotient(tree, sum(weights));
}

template <class Number> Number windows_limit(Rank ranks, const std::vector<Number>& stragglers) {
    const Number window = std::max(Number(2), largest(stragglers));
    return quotient(Number(window * (ranks - 1)), Number(healthy(ranks, stragglers)));
}

template <class Number> std::optional<Number> star_limit(Rank ranks, const std::vector<Number>& stragglers) {
    if (largest(stragglers) > Number(2)) {
        return std::nullopt;
    }
    const Number rate = Number(2 * healthy(ranks, stragglers) - ranks) + 2 * sum_of_inverses(stragglers);
    return quotient(Number(2 * (ranks - 1)), rate);
}

template <class Number> Number queues_limit(Rank ranks, const std::vector<Number>& stragglers) {
    const Rank count = healthy(ranks, stragglers);
    const Number ring = Number(2 * (count - 1)) + sum(stragglers);
    return std::max(largest(stragglers), quotient(ring, Number(count)));
}

#define RB_INSTANTIATE(Number)                                                                                         \
    template Number fault_free<Number>(Rank);                                                                          \
    template Number degraded_ring(Rank, const Number&);                                                                \
    template Number theorem1(Rank, const Number&);                                                                     \
    template Number theorem6(Rank, const Number&);                                                                     \
    template Number theorem2(Rank, const std::vector<Number>&);                                                        \
    template Number theorem3(Rank, Rank, const Number&);                                                               \
    template Number theorem13(Rank, Rank, const Number&);                                                              \
    template Number local_ports(Rank, Rank, const Number&);                                                            \
    template Number peers(Rank, const std::vector<Number>&);                                                           \
    template Number port_sum(Rank, const std::vector<Number>&);                                                        \
    template Number asymmetric_straggler(Rank, const Number&, const Number&);                                          \
    template Number equal_stragglers(Rank, Rank, const Number&);                                                       \
    template Number spanning_tree(PortModel, const std::vector<Number>&, const std::vector<Number>&);                  \
    template Number windows_limit(Rank, const std::vector<Number>&);                                                   \
    template std::optional<Number> star_limit(Rank, const std::vector<Number>&);                                       \
    template Number queues_limit(Rank, const std::vector<Number>&)

RB_INSTANTIATE(Rational);
RB_INSTANTIATE(double);
#undef RB_INSTANTIATE

} // namespace bounds

} // namespace railbreak::collective
