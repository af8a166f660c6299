// Choosing the best of the bounds that hold for a cluster. All are valid for any slowdowns of at least 1, because a
// slower port only adds time; a cluster with a port above the reference is scaled to its fastest port first.
#include <algorithm>

#include "base/check.hpp"
#include "collective/bounds.hpp"

namespace railbreak::collective {

namespace {

constexpr const char* kSharedTerm = "2(p-1)/(p-2+1/l_s+1/l_r)";

/// Slowdowns relative to the fastest port side.
struct Scaled {
    std::vector<double> send;
    std::vector<double> receive;
    double unit = 1;
};

Scaled scale(const std::vector<double>& send, const std::vector<double>& receive) {
    RB_CHECK(send.size() == receive.size() && send.size() >= 2, "two slowdowns for each of two or more ranks");
    Scaled scaled{
        send, receive,
        std::min(*std::min_element(send.begin(), send.end()), *std::min_element(receive.begin(), receive.end()))};
    RB_CHECK(scaled.unit > 0, "a slowdown is above zero");
    for (std::vector<double>* side : {&scaled.send, &scaled.receive}) {
        for (double& value : *side) {
            value /= scaled.unit;
        }
    }
    return scaled;
}

void keep_larger(Bound& best, Bound other) {
    // Of equal bounds the first stays; rounding must not decide which name is shown.
    if (other.time_over_n > best.time_over_n * (1 + 1e-12)) {
        best = std::move(other);
    }
}

double over_rates(const std::vector<double>& slowdowns) {
    double rate = 0;
    for (const double value : slowdowns) {
        rate += 1 / value;
    }
    return 2 * (static_cast<double>(slowdowns.size()) - 1) / rate;
}

bool all_equal(const std::vector<double>& values) {
    return std::all_of(values.begin(), values.end(), [&](double value) { return value == values.front(); });
}

Bound fluid(const Scaled& scaled) {
    const bool healthy = all_equal(scaled.send) && all_equal(scaled.receive);
    const char* name = healthy ? "fault-free" : "theorem 2";
    const char* term = healthy ? "2(p-1)/p" : "2(p-1)/sum(1/l)";
    Bound best{name, "fluid", term, over_rates(scaled.send)};
    if (over_rates(scaled.receive) > best.time_over_n) {
        best.time_over_n = over_rates(scaled.receive);
    }
    for (const std::vector<double>* side : {&scaled.send, &scaled.receive}) {
        keep_larger(best, {name, "fluid", "l", *std::max_element(side->begin(), side->end())});
    }
    return best;
}

/// Spanning-tree bounds. A transfer costs at least what it would if every port were as fast in both directions as in
/// its better one.
void keep_spanning_trees(Bound& best, const Scaled& scaled) {
    std::vector<double> slowdowns(scaled.send.size());
    std::vector<double> peers(slowdowns.size());
    for (std::size_t v = 0; v < slowdowns.size(); ++v) {
        slowdowns[v] = std::min(scaled.send[v], scaled.receive[v]);
        peers[v] = std::max(0.0, 2 / slowdowns[v] - 1);
    }
    const std::vector<double> ones(slowdowns.size(), 1.0);
    keep_larger(best, {"port sum", "exclusive", "all ports alike",
                       bounds::spanning_tree(PortModel::kExclusive, slowdowns, ones)});
    keep_larger(best, {"spanning tree", "exclusive", "weights 2/l-1",
                       bounds::spanning_tree(PortModel::kExclusive, slowdowns, peers)});
}

} // namespace

Bound lower_bound_fluid(const std::vector<double>& send_slowdown, const std::vector<double>& receive_slowdown) {
    const Scaled scaled = scale(send_slowdown, receive_slowdown);
    Bound bound = fluid(scaled);
    bound.time_over_n *= scaled.unit;
    return bound;
}

Bound lower_bound_exclusive(const std::vector<double>& send_slowdown, const std::vector<double>& receive_slowdown) {
    const Scaled scaled = scale(send_slowdown, receive_slowdown);
    const auto ranks = static_cast<Rank>(scaled.send.size());
    Bound best{"fault-free", "exclusive", "2(p-1)/p", bounds::fault_free<double>(ranks)};
    for (std::size_t v = 0; v < scaled.send.size(); ++v) {
        const bool alike = scaled.send[v] == scaled.receive[v];
        const double value = bounds::asymmetric_straggler(ranks, scaled.send[v], scaled.receive[v]);
        const bool alone = value == std::max(scaled.send[v], scaled.receive[v]);
        keep_larger(best, {alike ? "theorem 6" : "one straggler, send and receive differ", "exclusive",
                           alone   ? "l"
                           : alike ? "2l(p-1)/(l(p-2)+2)"
                                   : kSharedTerm,
                           value});
    }
    keep_spanning_trees(best, scaled);
    Bound shared = fluid(scaled); // what the fluid model cannot do, the exclusive one cannot either
    shared.model = "exclusive";
    keep_larger(best, std::move(shared));
    best.time_over_n *= scaled.unit;
    return best;
}

} // namespace railbreak::collective
