// Recursive halving and doubling, the classic short AllReduce: log2 p rounds in which pairs of ranks halve what they
// still care for and add the other's half, then as many in which the same pairs give each other what is finished.
//
// With p no power of two the ranks beyond the largest power of two first add their whole vector to a partner each and
// get the result back at the end. A slow rank is kept out of those pairs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "collective/algorithm.hpp"
#include "collective/schedule.hpp"

namespace railbreak::collective {

/// The schedule, one lane, for `order.size()` >= 2 ranks. `order` lists all ranks; with c ranks in the power of two and
/// f = p - c beyond it, order[2i+1] is folded into order[2i] for i < f and the rest take part by themselves.
/// A table of about 2 p log2 p flows.
[[nodiscard]] std::unique_ptr<const Schedule> make_halving_doubling(const std::vector<Rank>& order,
                                                                    std::int64_t elements);

/// "halving-doubling": at least two servers of one rank. No options. The predicted time is exact, but for the rounding
/// of parts to whole elements.
class HalvingDoublingAlgorithm final : public Algorithm {
public:
    [[nodiscard]] std::string_view name() const override { return "halving-doubling"; }
    [[nodiscard]] std::string_view summary() const override;
    [[nodiscard]] Result<Plan> plan(const PlanRequest& request) const override;
};

} // namespace railbreak::collective
