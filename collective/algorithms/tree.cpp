#include "collective/algorithms/tree.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "base/check.hpp"
#include "collective/algorithms/plan_options.hpp"
#include "collective/algorithms/ring_algorithm.hpp"
#include "collective/split.hpp"

namespace railbreak::collective {

namespace {

constexpr Rank kNoParent = -1;
constexpr std::int64_t kMostChunks = 1024;
constexpr std::int64_t kMostChosenChunks = 256;
constexpr std::size_t kUpLanes = 2; ///< the others go down
constexpr Lane kTreeLanes = 4;

std::vector<Rank> binary_tree(Rank members) {
    std::vector<Rank> parents(static_cast<std::size_t>(members), kNoParent);
    for (Rank member = 1; member < members; ++member) {
        const Rank lowest = member & -member;
        const Rank cleared = member - lowest;
        const Rank moved = cleared | (2 * lowest);
        parents[static_cast<std::size_t>(member)] = moved < members ? moved : cleared;
    }
    return parents;
}

/// An edge of a tree.
struct Edge {
    Rank child = 0;
    Rank parent = 0;
    int depth = 0; ///< of the child below the root
    Lane color = 0;
};

/// The edges of a tree, those nearest to the root first.
std::vector<Edge> edges_of(const std::vector<Rank>& parents) {
    std::vector<Edge> edges;
    for (Rank child = 0; child < std::ssize(parents); ++child) {
        int depth = 0;
        for (Rank at = child; parents[static_cast<std::size_t>(at)] != kNoParent; ++depth) {
            at = parents[static_cast<std::size_t>(at)];
        }
        if (depth > 0) {
            edges.push_back({child, parents[static_cast<std::size_t>(child)], depth, 0});
        }
    }
    std::stable_sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.depth < b.depth; });
    return edges;
}

using Trees = std::array<std::vector<Edge>, 2>;

/// Gives the edges of both trees one of two colors, so that the two edges up from a rank differ and those down from a
/// rank come in pairs that differ. Every edge has to differ from one other at its child and from one at its parent, so
/// the edges form paths and, since those two kinds alternate, even cycles: two colors always do.
void color(Trees& trees, Rank ranks) {
    std::vector<Edge*> edges;
    for (std::vector<Edge>& tree : trees) {
        for (Edge& edge : tree) {
            edges.push_back(&edge);
        }
    }
    constexpr std::size_t kNone = SIZE_MAX;
    std::array<std::vector<std::size_t>, 2> mates; // by child, by parent
    for (std::size_t end = 0; end < 2; ++end) {
        mates[end].assign(edges.size(), kNone);
        std::vector<std::size_t> single(static_cast<std::size_t>(ranks), kNone);
        for (std::size_t i = 0; i < edges.size(); ++i) {
            std::size_t& other = single[static_cast<std::size_t>(end == 0 ? edges[i]->child : edges[i]->parent)];
            if (other != kNone) {
                mates[end][i] = other;
                mates[end][other] = i;
            }
            other = other == kNone ? i : kNone;
        }
    }
    std::vector<bool> colored(edges.size());
    for (std::size_t start = 0; start < edges.size(); ++start) {
        // Along the path both ways from its start; in a cycle the first way goes all round.
        for (std::size_t way = 0; way < 2; ++way) {
            Lane next = edges[start]->color;
            std::size_t end = way;
            for (std::size_t at = start; at != kNone && (at == start || !colored[at]); end = 1 - end) {
                edges[at]->color = next;
                colored[at] = true;
                next = 1 - next;
                at = mates[end][at];
            }
        }
    }
}

/// Where a slow leaf goes in each tree: below the member nearest to the root that has one child at most there and none
/// in the other tree. There is one: the root, or, when a shift makes the root an inner rank of the other tree, the last
/// member.
std::array<Rank, 2> places_for_leaf(const DoubleTree& trees, const std::array<std::vector<Edge>, 2>& edges) {
    const auto members = static_cast<Rank>(trees.first.size());
    std::array<std::vector<int>, 2> children;
    std::array<std::vector<int>, 2> depths;
    for (std::size_t tree = 0; tree < 2; ++tree) {
        children[tree].resize(trees.first.size());
        depths[tree].resize(trees.first.size());
        for (const Edge& edge : edges[tree]) {
            ++children[tree][static_cast<std::size_t>(edge.parent)];
            depths[tree][static_cast<std::size_t>(edge.child)] = edge.depth;
        }
    }
    std::array<Rank, 2> places{-1, -1};
    for (std::size_t tree = 0; tree < 2; ++tree) {
        for (Rank member = 0; member < members; ++member) {
            const auto at = static_cast<std::size_t>(member);
            const bool has_room = children[tree][at] <= 1 && children[1 - tree][at] == 0;
            const Rank best = places[tree];
            if (has_room && (best < 0 || depths[tree][at] < depths[tree][static_cast<std::size_t>(best)])) {
                places[tree] = member;
            }
        }
        RB_CHECK(places[tree] >= 0, "a tree has room for one more leaf");
    }
    return places;
}

/// Both trees over all ranks, with the leaf in place, colored.
Trees trees_over(Rank ranks, std::optional<Rank> leaf) {
    const DoubleTree trees = double_tree(leaf ? ranks - 1 : ranks);
    Trees result{edges_of(trees.first), edges_of(trees.second)};
    if (leaf) {
        const std::array<Rank, 2> places = places_for_leaf(trees, result);
        const auto rank_of = [&](Rank member) {
            return member == ranks - 1 ? *leaf : member < *leaf ? member : member + 1;
        };
        for (std::size_t tree = 0; tree < 2; ++tree) {
            result[tree].push_back({ranks - 1, places[tree], 0, 0});
            for (Edge& edge : result[tree]) {
                edge.child = rank_of(edge.child);
                edge.parent = rank_of(edge.parent);
            }
        }
    }
    color(result, ranks);
    return result;
}

/// Every rank keeps whom each of its lanes leads to; entry i of any queue is chunk i.
class TreeSchedule final : public Schedule {
public:
    explicit TreeSchedule(const TreeParameters& parameters)
        : p_(parameters), ranks_(static_cast<std::size_t>(p_.ranks)), halves_(p_.elements, 2) {
        for (Lane tree = 0; tree < 2; ++tree) {
            chunks_.emplace_back(halves_.part(tree).count, p_.chunks);
        }
        const Trees trees = trees_over(p_.ranks, p_.leaf);
        for (std::size_t tree = 0; tree < 2; ++tree) {
            for (const Edge& edge : trees[tree]) {
                const auto up = static_cast<std::size_t>(edge.color);
                const std::size_t down = kUpLanes + up;
                Ends& child = ranks_[static_cast<std::size_t>(edge.child)];
                Ends& parent = ranks_[static_cast<std::size_t>(edge.parent)];
                child.sends[up] = {edge.parent, static_cast<int>(tree)};
                parent.receives[up] = {edge.child, static_cast<int>(tree)};
                parent.sends[down] = {edge.child, static_cast<int>(tree)};
                child.receives[down] = {edge.parent, static_cast<int>(tree)};
            }
        }
    }

    [[nodiscard]] std::string name() const override {
        return p_.leaf ? fmt::format("tree(p={},chunks={},leaf={})", p_.ranks, p_.chunks, *p_.leaf)
                       : fmt::format("tree(p={},chunks={})", p_.ranks, p_.chunks);
    }
    [[nodiscard]] Rank ranks() const override { return p_.ranks; }
    [[nodiscard]] Lane lanes() const override { return kTreeLanes; }
    [[nodiscard]] std::int64_t elements() const override { return p_.elements; }
    [[nodiscard]] std::int64_t send_count(Rank rank, Lane lane) const override {
        return of(rank).sends[static_cast<std::size_t>(lane)].peer < 0 ? 0 : p_.chunks;
    }
    [[nodiscard]] std::int64_t receive_count(Rank rank, Lane lane) const override {
        return of(rank).receives[static_cast<std::size_t>(lane)].peer < 0 ? 0 : p_.chunks;
    }

    [[nodiscard]] Step send_step(Rank rank, Lane lane, std::int64_t index) const override {
        const Ends& ends = of(rank);
        const End& to = ends.sends[static_cast<std::size_t>(lane)];
        Step step = chunk_step(lane, to, index);
        // Going up, and at the root, a chunk needs what the children sent; going down, what the parent sent.
        bool root = true;
        for (std::size_t up = 0; up < kUpLanes; ++up) {
            root = root && (ends.sends[up].peer < 0 || ends.sends[up].tree != to.tree);
        }
        const bool from_parent = static_cast<std::size_t>(lane) >= kUpLanes && !root;
        for (std::size_t up = 0; up < kUpLanes; ++up) {
            const std::size_t from = from_parent ? kUpLanes + up : up;
            if (ends.receives[from].peer >= 0 && ends.receives[from].tree == to.tree) {
                step.after[from] = index + 1;
            }
        }
        return step;
    }
    // A result overwrites a rank's part of a chunk only after that has gone up.
    [[nodiscard]] Step receive_step(Rank rank, Lane lane, std::int64_t index) const override {
        return chunk_step(lane, of(rank).receives[static_cast<std::size_t>(lane)], index);
    }

private:
    /// The other end of a lane; no peer: the lane is not used in that direction.
    struct End {
        Rank peer = -1;
        int tree = 0;
    };
    struct Ends {
        std::array<End, kTreeLanes> sends;
        std::array<End, kTreeLanes> receives;
    };

    [[nodiscard]] const Ends& of(Rank rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
    [[nodiscard]] Step chunk_step(Lane lane, const End& end, std::int64_t index) const {
        const bool up = static_cast<std::size_t>(lane) < kUpLanes;
        Slice slice = chunks_[static_cast<std::size_t>(end.tree)].part(index);
        slice.offset += halves_.part(end.tree).offset;
        return {end.peer, slice, up ? Stage::kReduce : Stage::kBroadcast, up ? Combine::kReduce : Combine::kCopy, {}};
    }

    TreeParameters p_;
    std::vector<Ends> ranks_;
    EvenSplit halves_;
    std::vector<EvenSplit> chunks_; ///< of each half
};

/// The busiest port has 2n to carry in 4 flows a chunk, a leaf n in 2; then the first chunk has to climb and come down,
/// through ports that it shares with one more flow on average.
double tree_cost_ns(const CostInput& cost, std::int64_t chunks, double others, int depth) {
    const auto count = static_cast<double>(chunks);
    const double busiest = 2 * others * cost.vector_ns + 4 * count * cost.overhead_ns;
    const double leaf = cost.slowdown * cost.vector_ns + 2 * count * cost.overhead_ns;
    const double level = others * cost.vector_ns / count + cost.overhead_ns + cost.latency_ns;
    return std::max(busiest, leaf) + 2 * depth * level;
}

} // namespace

DoubleTree double_tree(Rank members) {
    RB_CHECK(members >= 2, "a tree has at least two members");
    DoubleTree trees{binary_tree(members), std::vector<Rank>(static_cast<std::size_t>(members), kNoParent)};
    const auto twin = [&](Rank member) {
        return members % 2 == 0 ? members - 1 - member : member + 1 == members ? 0 : member + 1;
    };
    for (Rank member = 0; member < members; ++member) {
        const Rank parent = trees.first[static_cast<std::size_t>(member)];
        trees.second[static_cast<std::size_t>(twin(member))] = parent == kNoParent ? kNoParent : twin(parent);
    }
    return trees;
}

std::unique_ptr<const Schedule> make_tree(const TreeParameters& parameters) {
    RB_CHECK(parameters.ranks >= (parameters.leaf ? 3 : 2) && parameters.chunks >= 1, "enough ranks and a chunk");
    RB_CHECK(parameters.elements >= 1, "a vector has at least one element");
    return std::make_unique<TreeSchedule>(parameters);
}

std::string_view TreeAlgorithm::summary() const {
    return "double binary tree, chunks pipelined; a slow rank is a leaf of both trees";
}

std::vector<OptionHelp> TreeAlgorithm::options() const {
    return {{"chunks", "1..1024", "pieces of each half of the vector (default: by the cost model)"}};
}

Result<Plan> TreeAlgorithm::plan(const PlanRequest& request) const {
    if (const Result<void> known = check_option_names(request, *this); !known) {
        return tl::unexpected(known.error());
    }
    const auto asked = whole_option(request, "chunks", 1, kMostChunks);
    if (!asked) {
        return tl::unexpected(asked.error());
    }
    if (const Result<void> single = check_one_rank_servers(request, name(), "hierarchical or ring"); !single) {
        return tl::unexpected(single.error());
    }
    const Result<CostInput> cost = check_request(request, name(), 2);
    if (!cost) {
        return tl::unexpected(cost.error());
    }
    const Topology& topology = request.topology;
    if (const Result<void> alive = check_nics_alive(request, name(), nics_in_use(topology)); !alive) {
        return tl::unexpected(alive.error());
    }
    const std::optional<Rank> leaf = cost->ranks >= 3 ? slowest_rank(topology) : std::nullopt;
    double others = 1;
    for (Rank rank = 0; rank < cost->ranks; ++rank) {
        if (rank != leaf) {
            others = std::max(others, to_double(topology.server(rank).worst()));
        }
    }
    const auto trees = trees_over(cost->ranks, leaf);
    int depth = 1;
    for (const std::vector<Edge>& edges : trees) {
        for (const Edge& edge : edges) {
            depth = std::max(depth, edge.depth);
        }
    }
    std::int64_t chunks = asked->value_or(1);
    double predicted = tree_cost_ns(*cost, chunks, others, depth);
    for (std::int64_t more = 2; !asked->has_value() && more <= kMostChosenChunks; ++more) {
        const double time = tree_cost_ns(*cost, more, others, depth);
        if (time < predicted) {
            predicted = time;
            chunks = more;
        }
    }
    return Plan{
        make_tree({.ranks = cost->ranks, .elements = request.elements, .chunks = chunks, .leaf = leaf}),
        Nanoseconds(static_cast<std::int64_t>(predicted)),
        fmt::format("two trees of depth {}, {} chunks each{}", depth, chunks,
                    leaf ? fmt::format("; slow rank {} (slowdown {:.3f}) is a leaf of both", *leaf, cost->slowdown)
                         : "")};
}

} // namespace railbreak::collective
