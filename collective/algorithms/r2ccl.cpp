#include "collective/algorithms/r2ccl.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/check.hpp"
#include "collective/algorithms/ring_part.hpp"
#include "collective/split.hpp"

namespace railbreak::collective {

namespace {

/// The part of the tail that one lane does.
struct TailPart {
    TailPart(Rank members, Slice range, std::int64_t number_of_chunks)
        : ring(members, range), offset(range.offset), chunks(range.count, number_of_chunks) {}

    RingPart ring; ///< of the members of H
    std::int64_t offset;
    EvenSplit chunks; ///< from `offset` on
};

/// Members of H are numbered 0..p-2 in the order of ranks; member 0 is h. On a lane of the tail they have the hops of
/// the ring of stage 1b and then one step a piece for stage 2.
class R2cclSchedule final : public Schedule {
public:
    explicit R2cclSchedule(const R2cclParameters& parameters)
        : p_(parameters), last_member_(p_.ranks - 2), tail_hops_(2 * (std::int64_t{p_.ranks} - 2)),
          pieces_(p_.chunks * p_.pieces) {
        const std::int64_t main = p_.elements - p_.tail_elements;
        const EvenSplit main_parts(main, p_.main_lanes);
        for (Lane lane = 0; lane < p_.main_lanes; ++lane) {
            rings_.emplace_back(p_.ranks, main_parts.part(lane));
        }
        const EvenSplit tail_parts(p_.tail_elements, p_.tail_lanes);
        for (Lane lane = 0; lane < p_.tail_lanes; ++lane) {
            Slice range = tail_parts.part(lane);
            range.offset += main;
            tails_.emplace_back(p_.ranks - 1, range, p_.chunks);
        }
    }

    [[nodiscard]] std::string name() const override {
        return fmt::format("r2ccl(k={},tail={},straggler={})", p_.chunks, p_.tail_elements, p_.straggler);
    }
    [[nodiscard]] Rank ranks() const override { return p_.ranks; }
    [[nodiscard]] Lane lanes() const override { return p_.main_lanes + p_.tail_lanes; }
    [[nodiscard]] std::int64_t elements() const override { return p_.elements; }
    [[nodiscard]] std::int64_t send_count(Rank rank, Lane lane) const override {
        return lane < p_.main_lanes ? ring(lane).hops() : tail_hops_of(rank) + pieces_;
    }
    [[nodiscard]] std::int64_t receive_count(Rank rank, Lane lane) const override { return send_count(rank, lane); }

    [[nodiscard]] Step send_step(Rank rank, Lane lane, std::int64_t index) const override {
        const auto own = static_cast<std::size_t>(lane);
        if (lane < p_.main_lanes) {
            const Rank next = ring(lane).next(rank);
            Step step = ring(lane).into(next, index);
            step.peer = next;
            step.after[own] = index;
            return step;
        }
        if (rank == p_.straggler) {
            Step step = sum_step(lane, index, rank_of(0));
            for (Lane main = 0; main < p_.main_lanes; ++main) {
                step.after[static_cast<std::size_t>(main)] = ring(main).hops();
            }
            return step;
        }
        const Rank member = member_of(rank);
        if (index < tail_hops_) {
            const Rank next = tail(lane).ring.next(member);
            Step step = tail(lane).ring.into(next, index);
            step.peer = rank_of(next);
            step.after[own] = index;
            return step;
        }
        const std::int64_t piece = index - tail_hops_;
        Step step = result_step(lane, piece, member == last_member_ ? p_.straggler : rank_of(member + 1));
        step.after[own] = tail_hops_ + (member == 0 ? (piece / p_.pieces + 1) * p_.pieces : piece + 1);
        return step;
    }

    [[nodiscard]] Step receive_step(Rank rank, Lane lane, std::int64_t index) const override {
        if (lane < p_.main_lanes) {
            Step step = ring(lane).into(rank, index);
            step.peer = ring(lane).previous(rank);
            return step;
        }
        if (rank == p_.straggler) {
            return result_step(lane, index, rank_of(last_member_));
        }
        const Rank member = member_of(rank);
        if (index < tail_hops_) {
            Step step = tail(lane).ring.into(member, index);
            step.peer = rank_of(tail(lane).ring.previous(member));
            return step;
        }
        const std::int64_t piece = index - tail_hops_;
        Step step = member == 0 ? sum_step(lane, piece, p_.straggler) : result_step(lane, piece, rank_of(member - 1));
        step.after[static_cast<std::size_t>(lane)] = tail_hops_; // a sum without A may still be on its way out
        return step;
    }

private:
    [[nodiscard]] const RingPart& ring(Lane lane) const { return rings_[static_cast<std::size_t>(lane)]; }
    [[nodiscard]] const TailPart& tail(Lane lane) const {
        return tails_[static_cast<std::size_t>(lane - p_.main_lanes)];
    }
    [[nodiscard]] Rank member_of(Rank rank) const { return rank < p_.straggler ? rank : rank - 1; }
    [[nodiscard]] Rank rank_of(Rank member) const { return member < p_.straggler ? member : member + 1; }
    /// Steps of stage 1b on each side.
    [[nodiscard]] std::int64_t tail_hops_of(Rank rank) const { return rank == p_.straggler ? 0 : tail_hops_; }

    [[nodiscard]] Slice piece(Lane lane, std::int64_t number) const {
        const Slice chunk = tail(lane).chunks.part(number / p_.pieces);
        Slice slice = EvenSplit(chunk.count, p_.pieces).part(number % p_.pieces);
        slice.offset += tail(lane).offset + chunk.offset;
        return slice;
    }
    [[nodiscard]] Step sum_step(Lane lane, std::int64_t number, Rank peer) const {
        return {peer, piece(lane, number), Stage::kReduce, Combine::kReduce, {}};
    }
    [[nodiscard]] Step result_step(Lane lane, std::int64_t number, Rank peer) const {
        return {peer, piece(lane, number), Stage::kBroadcast, Combine::kCopy, {}};
    }

    R2cclParameters p_;
    std::vector<RingPart> rings_; ///< of main, by lane
    std::vector<TailPart> tails_; ///< by lane from the first after main's
    Rank last_member_;
    std::int64_t tail_hops_;
    std::int64_t pieces_; ///< of a lane's part of the tail
};

} // namespace

std::unique_ptr<const Schedule> make_r2ccl(const R2cclParameters& parameters) {
    RB_CHECK(parameters.ranks >= 3, "a degraded rank and two healthy ones");
    RB_CHECK(parameters.straggler >= 0 && parameters.straggler < parameters.ranks, "the straggler is a rank");
    RB_CHECK(parameters.elements >= 1 && parameters.tail_elements >= 0 &&
                 parameters.tail_elements <= parameters.elements,
             "the tail is a part of the vector");
    RB_CHECK(parameters.chunks >= 1 && parameters.pieces >= 1, "a chunk and a piece");
    RB_CHECK(parameters.main_lanes >= 1 && parameters.tail_lanes >= 1 &&
                 parameters.main_lanes + parameters.tail_lanes <= kMaxLanes,
             "lanes for main and for the tail");
    return std::make_unique<R2cclSchedule>(parameters);
}

R2cclLanes r2ccl_lanes(const Rational& slowdown) {
    R2cclLanes best{kMaxLanes - 1, 1};
    for (Lane main = 1; main < kMaxLanes; ++main) {
        for (Lane tail = 1; main + tail <= kMaxLanes; ++tail) {
            const R2cclLanes lanes{main, tail};
            if (lanes.main_share() * slowdown >= 1 && lanes.main_share() < best.main_share()) {
                best = lanes;
            }
        }
    }
    return best;
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
