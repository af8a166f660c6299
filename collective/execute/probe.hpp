// Bandwidth measurement of every port at once: each rank sends to its right neighbour and receives from its left one.
#pragma once

#include "base/units.hpp"
#include "collective/execute/executor.hpp"
#include "collective/schedule.hpp"

namespace railbreak::collective {

/// Rank i sends `elements` elements to i+1 and receives as many from i-1 (mod ranks), in one step of Stage::kProbe.
/// What arrives overwrites the vector. With one rank nothing moves.
class LinkProbe final : public Schedule {
public:
    LinkProbe(Rank ranks, std::int64_t elements) : ranks_(ranks), elements_(elements) {}
    [[nodiscard]] std::string name() const override { return "link-probe"; }
    [[nodiscard]] Rank ranks() const override { return ranks_; }
    [[nodiscard]] Lane lanes() const override { return 1; }
    [[nodiscard]] std::int64_t elements() const override { return elements_; }
    [[nodiscard]] std::int64_t send_count(Rank, Lane) const override { return ranks_ > 1 ? 1 : 0; }
    [[nodiscard]] std::int64_t receive_count(Rank, Lane) const override { return ranks_ > 1 ? 1 : 0; }
    [[nodiscard]] Step send_step(Rank rank, Lane lane, std::int64_t index) const override;
    [[nodiscard]] Step receive_step(Rank rank, Lane lane, std::int64_t index) const override;

private:
    Rank ranks_;
    std::int64_t elements_;
};

/// Payload rate at which a rank received during a run: bytes after the first read, over the time from the first read to
/// the last. Leaving the first read out removes the latency of the start, and the burst that a shaper lets through
/// after an idle time weighs one read at most. Zero when the run received in fewer than two reads.
[[nodiscard]] BitRate received_goodput(const ExecutionStats& stats);

} // namespace railbreak::collective
