#include "collective/exact_bound.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "base/check.hpp"
#include "collective/exact_bound_solver.hpp"

namespace railbreak::collective::bounds {

namespace {

/// A bound is taken for the optimum when it is this close to the programme's value.
constexpr double kGap = 1e-9;
/// How far from the best weights so far towards the programme's solution another tree is looked for. The solution
/// itself jumps about until there are many rows.
constexpr double kStep = 0.2;

/// Kinds of transfers. All transfers of a kind between the same two classes weigh the same.
enum class Way : std::uint8_t {
    kLocal,   ///< between ranks of a server, through their intra-host ports
    kLoop,    ///< between ranks of a server, out of a NIC and into one
    kBetween, ///< between servers
};

/// Transfers from servers of one class to servers of another or the same one.
struct Transfer {
    std::size_t from = 0;
    std::size_t to = 0;
    Way way = Way::kBetween;
};

/// Edges of a minimum spanning tree that weigh the same.
struct TreeEdges {
    Transfer transfer;
    Rank count = 0;
};

template <class Number> struct Costs {
    Number send; ///< time of the sender's side
    Number receive;
};

template <class Number>
Costs<Number> costs_of(PortModel model, const ServerClass<Number>& from, const ServerClass<Number>& to) {
    if (model == PortModel::kFluid) {
        return {from.send, to.receive};
    }
    const Number slower = std::max(from.send, to.receive);
    return {slower, slower};
}

template <class Number> Number weight_of(PortModel model, const Cluster<Number>& cluster,
                                         const std::vector<ClassWeights<Number>>& weights, const Transfer& transfer) {
    if (transfer.way == Way::kLocal) {
        return cluster.local_cost * weights[transfer.from].local;
    }
    const Costs<Number> costs = costs_of(model, cluster.classes[transfer.from], cluster.classes[transfer.to]);
    Number weight = costs.send * weights[transfer.from].send + costs.receive * weights[transfer.to].receive;
    if (transfer.way == Way::kBetween) {
        weight -= weights[transfer.from].leave + weights[transfer.to].enter;
    }
    return weight;
}

/// Every kind of transfer of the cluster: one entry for each pair of ranks, direction and port, up to symmetry.
template <class Number> std::vector<Transfer> transfers_of(const Cluster<Number>& cluster) {
    std::vector<Transfer> transfers;
    for (std::size_t c = 0; c < cluster.classes.size(); ++c) {
        if (cluster.ranks_per_server > 1) {
            transfers.push_back({c, c, Way::kLocal});
        }
        if (cluster.ranks_per_server > 1 && cluster.loops) {
            transfers.push_back({c, c, Way::kLoop});
        }
        for (std::size_t d = 0; d < cluster.classes.size(); ++d) {
            if (c != d || cluster.classes[c].servers > 1) {
                transfers.push_back({c, d, Way::kBetween});
            }
        }
    }
    return transfers;
}

/// Kruskal's algorithm over kinds of transfers: one kind joins whole classes at once.
class Forest {
public:
    template <class Number> explicit Forest(const Cluster<Number>& cluster)
        : parts_(cluster.classes.size()), joined_(parts_.size()) {
        std::iota(joined_.begin(), joined_.end(), std::size_t{0});
        for (std::size_t c = 0; c < parts_.size(); ++c) {
            servers_.push_back(cluster.classes[c].servers);
            parts_[c] = servers_[c] * cluster.ranks_per_server;
        }
    }

    /// How many transfers of this kind the tree takes, all lighter ones having been offered.
    Rank add(const Transfer& transfer) {
        const std::size_t from = transfer.from;
        if (transfer.way != Way::kBetween) {
            return shrink(from, std::min(parts_[from], servers_[from]));
        }
        if (from == transfer.to) {
            return shrink(from, 1);
        }
        const std::size_t a = group(from);
        const std::size_t b = group(transfer.to);
        if (a == b) {
            return 0;
        }
        joined_[a] = b;
        return shrink(from, 1) + shrink(transfer.to, 1) + 1;
    }

private:
    /// The components that the ranks of class c form among themselves become `parts`; the transfers that this takes.
    Rank shrink(std::size_t c, Rank parts) {
        const Rank taken = parts_[c] - parts;
        parts_[c] = parts;
        return taken;
    }

    std::size_t group(std::size_t c) const {
        while (joined_[c] != c) {
            c = joined_[c];
        }
        return c;
    }

    std::vector<Rank> servers_;
    std::vector<Rank> parts_;
    std::vector<std::size_t> joined_; ///< a class of the same component, nearer to its root; roots name themselves
};

template <class Number> struct Tree {
    std::vector<TreeEdges> edges;
    Number weight{0};
};

template <class Number> Tree<Number> minimum_tree(PortModel model, const Cluster<Number>& cluster,
                                                  const std::vector<Transfer>& transfers,
                                                  const std::vector<ClassWeights<Number>>& weights) {
    std::vector<Number> weight;
    for (const Transfer& transfer : transfers) {
        weight.push_back(weight_of(model, cluster, weights, transfer));
    }
    std::vector<std::size_t> order(transfers.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return weight[a] < weight[b]; });
    Forest forest(cluster);
    Tree<Number> tree;
    for (const std::size_t index : order) {
        if (const Rank count = forest.add(transfers[index]); count > 0) {
            tree.edges.push_back({transfers[index], count});
            tree.weight += count * weight[index];
        }
    }
    return tree;
}

template <class Number>
Number total_weight(const Cluster<Number>& cluster, const std::vector<ClassWeights<Number>>& weights) {
    Number total(0);
    for (std::size_t c = 0; c < weights.size(); ++c) {
        const ServerClass<Number>& one = cluster.classes[c];
        total += one.servers * Number(one.nics * Number(weights[c].send + weights[c].receive) +
                                      cluster.ranks_per_server * weights[c].local);
    }
    return total;
}

template <class Number>
Number total_cuts(const Cluster<Number>& cluster, const std::vector<ClassWeights<Number>>& weights) {
    Number total(0);
    for (std::size_t c = 0; c < weights.size(); ++c) {
        total += cluster.classes[c].servers * Number(weights[c].leave + weights[c].enter);
    }
    return total;
}

/// Scales the cuts down until no transfer between servers weighs less than nothing.
template <class Number> std::vector<ClassWeights<Number>> feasible(PortModel model, const Cluster<Number>& cluster,
                                                                   const std::vector<Transfer>& transfers,
                                                                   std::vector<ClassWeights<Number>> weights) {
    Number scale(1);
    for (const Transfer& transfer : transfers) {
        const Number cut = weights[transfer.from].leave + weights[transfer.to].enter;
        if (transfer.way == Way::kBetween && cut > 0) {
            const Number whole = weight_of(model, cluster, weights, transfer) + cut;
            scale = std::min(scale, Number(whole / cut));
        }
    }
    for (ClassWeights<Number>& one : weights) {
        one.leave *= scale;
        one.enter *= scale;
    }
    return weights;
}

/// Columns of the programme. Where every NIC sends as fast as it receives, both sides get one weight, and no cuts.
class Columns {
public:
    explicit Columns(const Cluster<double>& cluster)
        : classes_(cluster.classes.size()), local_(cluster.ranks_per_server > 1 && cluster.local_cost > 0),
          alike_(std::ranges::all_of(cluster.classes, [](const auto& one) { return one.send == one.receive; })),
          per_class_((alike_ ? 1U : 4U) + (local_ ? 1U : 0U)) {}

    [[nodiscard]] int count() const { return static_cast<int>(classes_ * per_class_) + 1; }
    [[nodiscard]] int value() const { return count() - 1; }
    [[nodiscard]] bool has_cuts() const { return !alike_; }
    [[nodiscard]] bool has_local() const { return local_; }
    [[nodiscard]] int send(std::size_t c) const { return static_cast<int>(c * per_class_); }
    [[nodiscard]] int receive(std::size_t c) const { return send(c) + (alike_ ? 0 : 1); }
    [[nodiscard]] int leave(std::size_t c) const { return send(c) + 2; }
    [[nodiscard]] int enter(std::size_t c) const { return send(c) + 3; }
    [[nodiscard]] int local(std::size_t c) const { return send(c) + (alike_ ? 1 : 4); }

    [[nodiscard]] std::vector<ClassWeights<double>> weights(std::span<const double> solution) const {
        const auto at = [&](int column) { return std::max(0.0, solution[static_cast<std::size_t>(column)]); };
        std::vector<ClassWeights<double>> weights(classes_);
        for (std::size_t c = 0; c < classes_; ++c) {
            weights[c].send = at(send(c));
            weights[c].receive = at(receive(c));
            weights[c].local = local_ ? at(local(c)) : 0;
            weights[c].leave = alike_ ? 0 : at(leave(c));
            weights[c].enter = alike_ ? 0 : at(enter(c));
        }
        return weights;
    }

private:
    std::size_t classes_;
    bool local_;
    bool alike_;
    std::size_t per_class_;
};

/// Sums up the coefficients of a row.
class RowBuilder {
public:
    void add(int column, double value) { values_[column] += value; }
    [[nodiscard]] std::vector<Coefficient> row() const {
        std::vector<Coefficient> row;
        for (const auto& [column, value] : values_) {
            row.push_back({column, value});
        }
        return row;
    }

private:
    std::map<int, double> values_;
};

/// The programme: maximise `value` over weights whose sum is that of all weights 1, where for every tree
/// 2 weight(tree) + cuts >= value, and no transfer between servers weighs less than nothing.
class Search {
public:
    Search(PortModel model, const Cluster<double>& cluster, LinearProgramme programme)
        : model_(model), cluster_(cluster), columns_(cluster), transfers_(transfers_of(cluster)),
          programme_(std::move(programme)) {
        const std::vector<ClassWeights<double>> ones(cluster.classes.size(), {1, 1, local_unit(), 0, 0});
        unit_ = total_weight(cluster, ones);
        add_total();
        if (columns_.has_cuts()) {
            add_cut_limits();
        }
        keep(ones);
    }

    /// The weights with the largest bound that `rounds` solutions lead to. `best` gets the programme's value.
    Result<std::vector<ClassWeights<double>>> run(std::int32_t rounds, BestWeights& best) {
        while (best.rounds < rounds && !best.optimal) {
            if (Result<void> solved = programme_.solve(); !solved) {
                return tl::unexpected(solved.error());
            }
            ++best.rounds;
            const std::span<const double> solution = programme_.solution();
            const double value = solution[static_cast<std::size_t>(columns_.value())] / unit_;
            best.programme_value = value;
            const std::vector<ClassWeights<double>> weights = columns_.weights(solution);
            const double middle = keep(between(weights, best_));
            best.optimal = std::max(middle, keep(weights)) >= value * (1 - kGap);
        }
        return best_;
    }

private:
    static std::vector<ClassWeights<double>> between(const std::vector<ClassWeights<double>>& found,
                                                     const std::vector<ClassWeights<double>>& best) {
        std::vector<ClassWeights<double>> middle;
        for (std::size_t c = 0; c < found.size(); ++c) {
            const auto mean = [&](double ClassWeights<double>::*weight) {
                return kStep * found[c].*weight + (1 - kStep) * best[c].*weight;
            };
            using W = ClassWeights<double>;
            middle.push_back({mean(&W::send), mean(&W::receive), mean(&W::local), mean(&W::leave), mean(&W::enter)});
        }
        return middle;
    }

    [[nodiscard]] double local_unit() const { return columns_.has_local() ? 1 : 0; }

    void add_total() {
        RowBuilder builder;
        for (std::size_t c = 0; c < cluster_.classes.size(); ++c) {
            const ServerClass<double>& one = cluster_.classes[c];
            builder.add(columns_.send(c), one.servers * one.nics);
            builder.add(columns_.receive(c), one.servers * one.nics);
            if (columns_.has_local()) {
                builder.add(columns_.local(c), one.servers * cluster_.ranks_per_server);
            }
        }
        programme_.add_row(unit_, unit_, builder.row());
    }

    void add_transfer(RowBuilder& builder, const Transfer& transfer, double times) const {
        if (transfer.way == Way::kLocal) {
            if (columns_.has_local()) {
                builder.add(columns_.local(transfer.from), times * cluster_.local_cost);
            }
            return;
        }
        const Costs<double> costs = costs_of(model_, cluster_.classes[transfer.from], cluster_.classes[transfer.to]);
        builder.add(columns_.send(transfer.from), times * costs.send);
        builder.add(columns_.receive(transfer.to), times * costs.receive);
        if (transfer.way == Way::kBetween && columns_.has_cuts()) {
            builder.add(columns_.leave(transfer.from), -times);
            builder.add(columns_.enter(transfer.to), -times);
        }
    }

    void add_cut_limits() {
        for (const Transfer& transfer : transfers_) {
            if (transfer.way == Way::kBetween) {
                RowBuilder builder;
                add_transfer(builder, transfer, 1);
                programme_.add_row(0, std::numeric_limits<double>::max(), builder.row());
            }
        }
    }

    /// Adds the row of the tree that binds at these weights, and keeps the weights if they are the best so far.
    /// Returns their bound.
    double keep(const std::vector<ClassWeights<double>>& weights) {
        const Tree<double> tree = minimum_tree(model_, cluster_, transfers_, weights);
        RowBuilder builder;
        for (const TreeEdges& edges : tree.edges) {
            add_transfer(builder, edges.transfer, 2.0 * edges.count);
        }
        for (std::size_t c = 0; columns_.has_cuts() && c < weights.size(); ++c) {
            builder.add(columns_.leave(c), cluster_.classes[c].servers);
            builder.add(columns_.enter(c), cluster_.classes[c].servers);
        }
        builder.add(columns_.value(), -1);
        programme_.add_row(0, std::numeric_limits<double>::max(), builder.row());
        const double bound = (2 * tree.weight + total_cuts(cluster_, weights)) / total_weight(cluster_, weights);
        if (best_.empty() || bound > best_bound_) {
            best_ = weights;
            best_bound_ = bound;
        }
        return bound;
    }

    PortModel model_;
    const Cluster<double>& cluster_;
    Columns columns_;
    std::vector<Transfer> transfers_;
    LinearProgramme programme_;
    double unit_ = 1;
    std::vector<ClassWeights<double>> best_;
    double best_bound_ = 0;
};

/// The fraction with the smallest denominator that its continued fraction reaches within the tolerance.
Rational simple_fraction(double value) {
    constexpr double kTolerance = 1e-10;
    using boost::multiprecision::cpp_int;
    cpp_int above = 1;
    cpp_int below = 0;
    cpp_int above_before = 0;
    cpp_int below_before = 1;
    double rest = value;
    for (int term = 0; term < 40; ++term) {
        const double whole = std::floor(rest);
        const cpp_int digit(whole);
        above_before = std::exchange(above, cpp_int(digit * above + above_before));
        below_before = std::exchange(below, cpp_int(digit * below + below_before));
        if (std::abs(Rational(above, below).convert_to<double>() - value) <= kTolerance || rest == whole) {
            break;
        }
        rest = 1 / (rest - whole);
    }
    return {above, below};
}

std::vector<ClassWeights<Rational>> rounded(const std::vector<ClassWeights<double>>& weights) {
    double largest = 0;
    for (const ClassWeights<double>& one : weights) {
        largest = std::max({largest, one.send, one.receive});
    }
    RB_CHECK(largest > 0, "some NIC has a weight");
    std::vector<ClassWeights<Rational>> fractions;
    for (const ClassWeights<double>& one : weights) {
        const auto fraction = [&](double value) { return simple_fraction(value / largest); };
        fractions.push_back(
            {fraction(one.send), fraction(one.receive), fraction(one.local), fraction(one.leave), fraction(one.enter)});
    }
    return fractions;
}

} // namespace

Cluster<Rational> cluster_of(const Topology& topology) {
    RB_CHECK(topology.server_count() >= 2, "a bound needs two servers");
    std::map<std::tuple<Rational, Rational, std::int32_t>, Rank> counted;
    for (const PortSlowdown& server : topology.servers) {
        const std::int32_t alive = topology.nics_per_server - std::popcount(server.failed_nics);
        RB_CHECK(alive >= 1, "a server has a NIC that is alive");
        const Rational share(alive, topology.nics_per_server);
        ++counted[{server.send * share, server.receive * share, -alive}];
    }
    Cluster<Rational> cluster;
    cluster.ranks_per_server = topology.ranks_per_server;
    cluster.local_cost = topology.local_ratio == 0 ? Rational(0) : Rational(1 / topology.local_ratio);
    for (const auto& [key, servers] : counted) {
        const auto& [send, receive, alive] = key;
        cluster.classes.push_back({servers, -alive, send, receive});
    }
    return cluster;
}

Cluster<double> approximate(const Cluster<Rational>& cluster) {
    Cluster<double> same{{}, cluster.ranks_per_server, to_double(cluster.local_cost), cluster.loops};
    for (const ServerClass<Rational>& one : cluster.classes) {
        same.classes.push_back({one.servers, one.nics, to_double(one.send), to_double(one.receive)});
    }
    return same;
}

template <class Number> Number weighted_bound(PortModel model, const Cluster<Number>& cluster,
                                              const std::vector<ClassWeights<Number>>& weights) {
    RB_CHECK(cluster.classes.size() == weights.size() && !weights.empty(), "weights for each class");
    const std::vector<Transfer> transfers = transfers_of(cluster);
    const std::vector<ClassWeights<Number>> sound = feasible(model, cluster, transfers, weights);
    const Number total = total_weight(cluster, sound);
    RB_CHECK(total > 0, "some weight is above zero");
    const Tree<Number> tree = minimum_tree(model, cluster, transfers, sound);
    return Number(2 * tree.weight + total_cuts(cluster, sound)) / total;
}

template Rational weighted_bound(PortModel, const Cluster<Rational>&, const std::vector<ClassWeights<Rational>>&);
template double weighted_bound(PortModel, const Cluster<double>&, const std::vector<ClassWeights<double>>&);

Result<BestWeights> best_weights(PortModel model, const Cluster<Rational>& cluster, std::int32_t rounds) {
    RB_CHECK(rounds >= 1, "one solution at least");
    if (cluster.classes.size() > kMostClasses) {
        return fail(ErrorKind::kInput, fmt::format("{} different kinds of servers; the best weights are sought for at "
                                                   "most {}",
                                                   cluster.classes.size(), kMostClasses));
    }
    const Cluster<double> numbers = approximate(cluster);
    const Columns columns(numbers);
    Result<LinearProgramme> programme = LinearProgramme::create(columns.count(), columns.value());
    if (!programme) {
        return tl::unexpected(programme.error());
    }
    BestWeights best;
    Search search(model, numbers, std::move(*programme));
    const Result<std::vector<ClassWeights<double>>> weights = search.run(rounds, best);
    if (!weights) {
        return tl::unexpected(weights.error());
    }
    best.weights = rounded(*weights);
    best.time_over_n = weighted_bound(model, cluster, best.weights);
    return best;
}

} // namespace railbreak::collective::bounds
