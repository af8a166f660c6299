// OptCC as an entry of the registry: reads the options, picks the plan, explains the choice.
#pragma once

#include "collective/algorithm.hpp"

namespace railbreak::collective {

/// "optcc" (one lane, exclusive ports) or "optcc-shared" (two lanes, fluid ports).
///
/// Options: plan = auto | u | bs | star, k = number of segments >= 1. Without options the cheapest balanced or uniform
/// plan, or the plain ring when that is faster at the measured slowdown. Star only when asked for, with at most 16
/// ranks and a slowdown of at most 1.5: it pays only while a pause has room to spare and its size is well known.
/// Without a straggler (every slowdown below kNoticeableSlowdown) the plan is the plain ring, whatever the options.
/// Errors (kInput): fewer than three ranks, several stragglers, unknown or wrong options, no elements, no rate.
class OptccAlgorithm final : public Algorithm {
public:
    explicit OptccAlgorithm(bool shared) : shared_(shared) {}
    [[nodiscard]] std::string_view name() const override { return shared_ ? "optcc-shared" : "optcc"; }
    [[nodiscard]] std::string_view summary() const override;
    [[nodiscard]] Result<Plan> plan(const PlanRequest& request) const override;

private:
    bool shared_;
};

} // namespace railbreak::collective
