// OptCC as an entry of the registry: reads the options, picks the plan, explains the choice.
#pragma once

#include <vector>

#include "collective/algorithm.hpp"

namespace railbreak::collective {

/// "optcc" (one lane a NIC, exclusive ports) or "optcc-shared" (two lanes, fluid ports).
///
/// Any number of stragglers, any number of ranks a server. Without options choose_optcc() picks the plan (U, BS, LAG or
/// ramp, see optcc_choice.hpp), or the plain ring is taken when that is predicted to be faster. Star plans only when
/// asked for, with at most 16 servers and a slowdown of at most 1.5: they pay only while a pause has room to spare and
/// its size is well known. Without a straggler (every slowdown below kNoticeableSlowdown) the plan is the plain ring,
/// whatever the options. A straggler whose two directions differ is planned for as if both were as slow as the slower.
/// Errors (kInput): fewer than three servers, a dead NIC that a rank would use, unknown or wrong options, no elements,
/// no rate.
class OptccAlgorithm final : public Algorithm {
public:
    explicit OptccAlgorithm(bool shared) : shared_(shared) {}
    [[nodiscard]] std::string_view name() const override { return shared_ ? "optcc-shared" : "optcc"; }
    [[nodiscard]] std::string_view summary() const override;
    [[nodiscard]] std::vector<OptionHelp> options() const override;
    [[nodiscard]] Result<Plan> plan(const PlanRequest& request) const override;

private:
    bool shared_;
};

/// "optcc-abcd": the four interleaved patterns of the OptCC paper, for comparison with "optcc". The slowest server is
/// the straggler, others stay in the ring. Option k, a multiple of 4; without it the cheapest one.
class OptccPatternsAlgorithm final : public Algorithm {
public:
    [[nodiscard]] std::string_view name() const override { return "optcc-abcd"; }
    [[nodiscard]] std::string_view summary() const override;
    [[nodiscard]] std::vector<OptionHelp> options() const override;
    [[nodiscard]] Result<Plan> plan(const PlanRequest& request) const override;
};

} // namespace railbreak::collective
