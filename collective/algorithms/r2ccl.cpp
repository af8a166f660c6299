#include "collective/algorithms/r2ccl.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/check.hpp"
#include "collective/algorithms/ring_part.hpp"
#include "collective/split.hpp"

namespace railbreak::collective {

namespace {

/// Members of H are numbered 0..p-2 in the order of ranks; member 0 is h. Their lane 1 has one step a piece for stage
/// 1b and then one a piece for stage 2.
class R2cclSchedule final : public Schedule {
public:
    explicit R2cclSchedule(const R2cclParameters& parameters)
        : p_(parameters), last_member_(p_.ranks - 2), pieces_(p_.chunks * p_.pieces),
          chunks_(p_.tail_elements, p_.chunks) {
        const EvenSplit shares(p_.elements - p_.tail_elements, p_.main_lanes);
        for (Lane lane = 0; lane < p_.main_lanes; ++lane) {
            rings_.emplace_back(p_.ranks, shares.part(lane));
        }
    }

    [[nodiscard]] std::string name() const override {
        return fmt::format("r2ccl(k={},tail={},straggler={})", p_.chunks, p_.tail_elements, p_.straggler);
    }
    [[nodiscard]] Rank ranks() const override { return p_.ranks; }
    [[nodiscard]] Lane lanes() const override { return p_.main_lanes + 1; }
    [[nodiscard]] std::int64_t elements() const override { return p_.elements; }
    [[nodiscard]] std::int64_t send_count(Rank rank, Lane lane) const override {
        if (lane < p_.main_lanes) {
            return ring(lane).hops();
        }
        return pieces_ + sums_sent(rank);
    }
    [[nodiscard]] std::int64_t receive_count(Rank rank, Lane lane) const override {
        if (lane < p_.main_lanes) {
            return ring(lane).hops();
        }
        return pieces_ + sums_received(rank);
    }

    [[nodiscard]] Step send_step(Rank rank, Lane lane, std::int64_t index) const override {
        if (lane < p_.main_lanes) {
            const Rank next = ring(lane).next(rank);
            Step step = ring(lane).into(next, index);
            step.peer = next;
            step.after[static_cast<std::size_t>(lane)] = index;
            return step;
        }
        if (rank == p_.straggler) {
            Step step = sum_step(index, rank_of(0));
            for (Lane main = 0; main < p_.main_lanes; ++main) {
                step.after[static_cast<std::size_t>(main)] = ring(main).hops();
            }
            return step;
        }
        const auto own = static_cast<std::size_t>(lane);
        const Rank member = member_of(rank);
        if (index < sums_sent(rank)) {
            Step step = sum_step(index, rank_of(member - 1));
            step.after[own] = member == last_member_ ? 0 : index + 1;
            return step;
        }
        const std::int64_t piece = index - sums_sent(rank);
        Step step = result_step(piece, member == last_member_ ? p_.straggler : rank_of(member + 1));
        step.after[own] = sums_received(rank) + (member == 0 ? (piece / p_.pieces + 1) * p_.pieces : piece + 1);
        return step;
    }

    // No receive waits: a result overwrites a rank's part only after that has left and been added.
    [[nodiscard]] Step receive_step(Rank rank, Lane lane, std::int64_t index) const override {
        if (lane < p_.main_lanes) {
            Step step = ring(lane).into(rank, index);
            step.peer = ring(lane).previous(rank);
            return step;
        }
        if (rank == p_.straggler) {
            return result_step(index, rank_of(last_member_));
        }
        const Rank member = member_of(rank);
        if (index < sums_received(rank)) {
            return sum_step(index, rank_of(member + 1));
        }
        const std::int64_t piece = index - sums_received(rank);
        return member == 0 ? sum_step(piece, p_.straggler) : result_step(piece, rank_of(member - 1));
    }

private:
    [[nodiscard]] const RingPart& ring(Lane lane) const { return rings_[static_cast<std::size_t>(lane)]; }
    [[nodiscard]] Rank member_of(Rank rank) const { return rank < p_.straggler ? rank : rank - 1; }
    [[nodiscard]] Rank rank_of(Rank member) const { return member < p_.straggler ? member : member + 1; }
    /// Steps of stage 1b: every member but the first sends, every one but the last receives.
    [[nodiscard]] std::int64_t sums_sent(Rank rank) const {
        return rank == p_.straggler || member_of(rank) == 0 ? 0 : pieces_;
    }
    [[nodiscard]] std::int64_t sums_received(Rank rank) const {
        return rank == p_.straggler || member_of(rank) == last_member_ ? 0 : pieces_;
    }

    [[nodiscard]] Slice piece(std::int64_t number) const {
        const Slice chunk = chunks_.part(number / p_.pieces);
        Slice slice = EvenSplit(chunk.count, p_.pieces).part(number % p_.pieces);
        slice.offset += p_.elements - p_.tail_elements + chunk.offset;
        return slice;
    }
    [[nodiscard]] Step sum_step(std::int64_t number, Rank peer) const {
        return {peer, piece(number), Stage::kReduce, Combine::kReduce, {}};
    }
    [[nodiscard]] Step result_step(std::int64_t number, Rank peer) const {
        return {peer, piece(number), Stage::kBroadcast, Combine::kCopy, {}};
    }

    R2cclParameters p_;
    std::vector<RingPart> rings_; ///< of main, by lane
    Rank last_member_;
    std::int64_t pieces_; ///< of the whole tail
    EvenSplit chunks_;
};

} // namespace

std::unique_ptr<const Schedule> make_r2ccl(const R2cclParameters& parameters) {
    RB_CHECK(parameters.ranks >= 3, "a degraded rank and two healthy ones");
    RB_CHECK(parameters.straggler >= 0 && parameters.straggler < parameters.ranks, "the straggler is a rank");
    RB_CHECK(parameters.elements >= 1 && parameters.tail_elements >= 0 &&
                 parameters.tail_elements <= parameters.elements,
             "the tail is a part of the vector");
    RB_CHECK(parameters.chunks >= 1 && parameters.pieces >= 1, "a chunk and a piece");
    RB_CHECK(parameters.main_lanes >= 1 && parameters.main_lanes < kMaxLanes, "one lane is for the tail");
    return std::make_unique<R2cclSchedule>(parameters);
}

Lane r2ccl_main_lanes(const Rational& slowdown) {
    Lane lanes = 1;
    while (lanes < kMaxLanes - 1 && lanes * (slowdown - 1) < 1) {
        ++lanes;
    }
    return lanes;
}

Rational r2ccl_share(const Rational& slowdown) {
    return 1 - 1 / slowdown;
}

Rational r2ccl_best_share(Rank ranks, const Rational& slowdown) {
    const Rational p = ranks;
    const Rational a = (p - 1) * (p - 1) / (p * (p - 2));
    const Rational lost = r2ccl_share(slowdown);
    return a * lost / (1 - lost + a * lost);
}

} // namespace railbreak::collective
