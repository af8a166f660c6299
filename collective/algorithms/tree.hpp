// Double binary tree AllReduce: two trees, each for one half of the vector, in which a rank that passes data on in one
// is a leaf in the other. Each half is cut into chunks that follow one another up the tree, being summed, and down
// again.
//
// A rank between two children and a parent sends and receives 2n in all, a rank that is a leaf in both trees n. So a
// slow rank is hung into both trees as an extra leaf, below a rank that has a child less than others: a root, if it can
// be.
//
// Two lanes carry sums up and two carry results down. The edges of both trees are colored with the two lanes of a
// direction so that a rank has one peer at most on each side of a lane: no flow waits for an unrelated one. All four
// lanes share the NIC.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "collective/algorithm.hpp"
#include "collective/schedule.hpp"

namespace railbreak::collective {

/// Parents in the two trees over `members` >= 2 ranks 0..members-1; -1 for a root. In the first tree a rank's parent is
/// the number with its lowest set bit moved up by one, if there is such a member, else with that bit cleared; rank 0 is
/// the root. The second is the first mirrored, or, for an odd number of members, shifted by one.
struct DoubleTree {
    std::vector<Rank> first;
    std::vector<Rank> second;
};
[[nodiscard]] DoubleTree double_tree(Rank members);

/// Everything that determines a schedule.
struct TreeParameters {
    Rank ranks = 0;            ///< >= 2, >= 3 with a leaf
    std::int64_t elements = 0; ///< >= 1
    std::int64_t chunks = 1;   ///< of each half, >= 1
    std::optional<Rank> leaf;  ///< the rank to keep out of both trees but for a place as an extra leaf
};

/// The schedule, four lanes. Every step in O(1); what every rank sends to whom is kept, O(p).
[[nodiscard]] std::unique_ptr<const Schedule> make_tree(const TreeParameters& parameters);

/// "tree": at least two servers of one rank. Option chunks. The predicted time is for ports that flows share; one flow
/// at a time takes up to half as much again, because flows then wait for each other's ports.
class TreeAlgorithm final : public Algorithm {
public:
    [[nodiscard]] std::string_view name() const override { return "tree"; }
    [[nodiscard]] std::string_view summary() const override;
    [[nodiscard]] std::vector<OptionHelp> options() const override;
    [[nodiscard]] Result<Plan> plan(const PlanRequest& request) const override;
};

} // namespace railbreak::collective
