// Ring AllReduce. Node i receives from i-1 and sends to i+1. In reduce-scatter hop r = 0..p-2 it receives section
// i-1-r and adds its own values, so that section d travels d, d+1, ..., d-1 and is finished at node d-1. In allgather
// hop r it receives the finished section i-r. What node i sends in hop r+1 of either half is what it received in hop
// r, and what it sends first in the allgather is what it received last in the reduce-scatter: send number q always
// waits for exactly q receives.
#include "collective/algorithms/ring.hpp"

#include <fmt/format.h>

#include "base/check.hpp"
#include "collective/split.hpp"

namespace railbreak::collective {

namespace {

class RingSchedule final : public Schedule {
public:
    RingSchedule(Rank ranks, std::int64_t elements) : ranks_(ranks), elements_(elements), sections_(elements, ranks) {}

    [[nodiscard]] std::string name() const override { return fmt::format("ring(p={})", ranks_); }
    [[nodiscard]] Rank ranks() const override { return ranks_; }
    [[nodiscard]] Lane lanes() const override { return 1; }
    [[nodiscard]] std::int64_t elements() const override { return elements_; }
    [[nodiscard]] std::int64_t send_count(Rank, Lane) const override { return 2 * (std::int64_t{ranks_} - 1); }
    [[nodiscard]] std::int64_t receive_count(Rank, Lane) const override { return 2 * (std::int64_t{ranks_} - 1); }

    [[nodiscard]] Step send_step(Rank rank, Lane, std::int64_t index) const override {
        const Rank next = wrap(std::int64_t{rank} + 1);
        Step step = hop(next, index);
        step.peer = next;
        step.after[0] = index;
        return step;
    }

    [[nodiscard]] Step receive_step(Rank rank, Lane, std::int64_t index) const override {
        // No wait for own sends: the allgather copy of a section exists only after this rank's own part of it has
        // left, been added further down the ring and come back.
        Step step = hop(rank, index);
        step.peer = wrap(std::int64_t{rank} - 1);
        return step;
    }

private:
    [[nodiscard]] Rank wrap(std::int64_t node) const { return static_cast<Rank>((node + 2 * ranks_) % ranks_); }

    /// What crosses the link into `head` as its index-th message.
    [[nodiscard]] Step hop(Rank head, std::int64_t index) const {
        const bool reducing = index < ranks_ - 1;
        const std::int64_t section = reducing ? wrap(head - 1 - index) : wrap(head - (index - (ranks_ - 1)));
        Step step;
        step.slice = sections_.part(section);
        step.stage = reducing ? Stage::kReduceScatter : Stage::kAllGather;
        step.combine = reducing ? Combine::kReduce : Combine::kCopy;
        return step;
    }

    Rank ranks_;
    std::int64_t elements_;
    EvenSplit sections_;
};

} // namespace

std::unique_ptr<const Schedule> make_ring(Rank ranks, std::int64_t elements) {
    RB_CHECK(ranks >= 2, "a ring has at least two ranks");
    RB_CHECK(elements >= 1, "a vector has at least one element");
    return std::make_unique<RingSchedule>(ranks, elements);
}

} // namespace railbreak::collective
