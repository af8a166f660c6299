// OptCC for one straggler, in closed form.
//
// The h = p-1 healthy ranks are nodes 0..h-1 of a ring, in rank order. Link i joins the send side of node i-1 to the
// receive side of node i. A phase has h windows; in window i link i pauses for the straggler and otherwise makes one
// hop of each ring stream of the phase. In its pause node i gets the straggler's own values of section i+1 (download,
// added: node i is where the reduce-scatter of that section ends), and node i-1 hands the straggler the finished
// section i of the segment before (upload). A section is therefore complete at its owner when the phase ends, is
// gathered in the next phase, and the straggler meets one link per window.
//
// Uniform: phase b reduces segment b and gathers segment b-1. The first and the last phase have half the ring work.
// Balanced: the ring works on k+1 slices, two streams in every phase (phase 0 reduces slices 0 and 1, phase k gathers
// k-1 and k), while the straggler still works on k segments; segment j is the rest of slice j and the front of j+1.
// Star: in the same pauses every node also sends its own values of a chunk, which the straggler sums and returns in
// the next phase.
//
// All nodes and sections are numbered modulo h.
#include "collective/algorithms/optcc.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/check.hpp"
#include "collective/algorithms/optcc_layout.hpp"

namespace railbreak::collective {

namespace {

constexpr std::size_t kOptccLanes = 2; ///< ring and straggler flows on one lane, or on a lane each

class OptccSchedule final : public Schedule {
public:
    explicit OptccSchedule(const OptccParameters& parameters)
        : p_(parameters), healthy_(parameters.ranks - 1), last_phase_(parameters.segments), layout_(parameters),
          streams_(parameters.plan == OptccPlan::kBalanced ? PerPhase{2, 2, 2} : PerPhase{1, 2, 1}),
          // Straggler to node: download while there are segments, then the star chunk of the phase before.
          downs_(parameters.plan == OptccPlan::kStar ? PerPhase{1, 2, 1} : PerPhase{1, 1, 0}),
          // Node to straggler: upload of the segment before, then the star chunk of this phase.
          ups_(parameters.plan == OptccPlan::kStar ? PerPhase{1, 2, 1} : PerPhase{0, 1, 1}),
          send_shapes_{shape(0, ups_), shape(1, ups_)}, receive_shapes_{shape(0, downs_), shape(1, downs_)} {}

    [[nodiscard]] std::string name() const override {
        return fmt::format("optcc-{}{}(k={},straggler={})", p_.shared ? "shared-" : "", to_string(p_.plan), p_.segments,
                           p_.straggler);
    }
    [[nodiscard]] Rank ranks() const override { return p_.ranks; }
    [[nodiscard]] Lane lanes() const override { return p_.shared ? 2 : 1; }
    [[nodiscard]] std::int64_t elements() const override { return p_.elements; }

    [[nodiscard]] std::int64_t send_count(Rank rank, Lane lane) const override {
        if (rank == p_.straggler) {
            return lane == visit_lane() ? straggler_sends().count() : 0;
        }
        return send_shapes_[static_cast<std::size_t>(lane)].count();
    }
    [[nodiscard]] std::int64_t receive_count(Rank rank, Lane lane) const override {
        if (rank == p_.straggler) {
            return lane == visit_lane() ? straggler_receives().count() : 0;
        }
        return receive_shapes_[static_cast<std::size_t>(lane)].count();
    }

    [[nodiscard]] Step send_step(Rank rank, Lane lane, std::int64_t index) const override {
        if (rank == p_.straggler) {
            const Place place = straggler_sends().locate(index);
            return make_step(rank_of(place.window), visit_down(place, place.window), straggler_needs(place));
        }
        const std::int64_t node = node_of(rank);
        const std::int64_t link = wrap(node + 1);
        const Place place = sends(node, lane).locate(index);
        if (place.pause) {
            return make_step(p_.straggler, visit_up(place, link), needs(place, node));
        }
        return make_step(rank_of(link), ring_hop(place, link), needs(place, node));
    }

    /// Receive steps wait for no send. A rank's own values of an element are overwritten only by the finished sum of
    /// that element, and the finished sum exists only because those values left this rank before.
    [[nodiscard]] Step receive_step(Rank rank, Lane lane, std::int64_t index) const override {
        if (rank == p_.straggler) {
            const Place place = straggler_receives().locate(index);
            return make_step(rank_of(wrap(place.window - 1)), visit_up(place, place.window), {});
        }
        const std::int64_t node = node_of(rank);
        const Place place = receives(node, lane).locate(index);
        if (place.pause) {
            return make_step(p_.straggler, visit_down(place, node), {});
        }
        return make_step(rank_of(wrap(node - 1)), ring_hop(place, node), {});
    }

private:
    /// A ring stream of a phase: reduce-scatter or allgather of one unit (segment or slice).
    struct Stream {
        bool gather;
        std::int64_t unit;
    };
    /// Phase and stream number of the reduce-scatter of a unit.
    struct Reduction {
        std::int64_t phase;
        std::int64_t stream;
    };

    /// What a step carries. A Step is put together from it in one go: changing members of a Step and copying it
    /// afterwards makes the processor wait for its own stores.
    struct Cargo {
        Slice slice;
        Stage stage;
        Combine combine;
    };

    static Step make_step(Rank peer, const Cargo& cargo, const PrefixCounts& after) {
        return {peer, cargo.slice, cargo.stage, cargo.combine, after};
    }

    [[nodiscard]] bool balanced() const { return p_.plan == OptccPlan::kBalanced; }
    [[nodiscard]] Lane ring_lane() const { return 0; }
    [[nodiscard]] Lane visit_lane() const { return p_.shared ? 1 : 0; }
    /// Node modulo h, for -h <= node < 2h. A walk over all steps spends its time in divisions, so none here.
    [[nodiscard]] std::int64_t wrap(std::int64_t node) const {
        return node < 0 ? node + healthy_ : node >= healthy_ ? node - healthy_ : node;
    }
    [[nodiscard]] std::int64_t node_of(Rank rank) const { return rank < p_.straggler ? rank : rank - 1; }
    [[nodiscard]] Rank rank_of(std::int64_t node) const {
        return static_cast<Rank>(node < p_.straggler ? node : node + 1);
    }

    [[nodiscard]] LinkShape shape(Lane lane, const PerPhase& pauses) const {
        return {healthy_, p_.segments, lane == ring_lane() ? streams_ : PerPhase{},
                lane == visit_lane() ? pauses : PerPhase{}};
    }
    [[nodiscard]] LinkQueue sends(std::int64_t node, Lane lane) const {
        return {send_shapes_[static_cast<std::size_t>(lane)], wrap(node + 1)};
    }
    [[nodiscard]] LinkQueue receives(std::int64_t node, Lane lane) const {
        return {receive_shapes_[static_cast<std::size_t>(lane)], node};
    }
    [[nodiscard]] StragglerQueue straggler_sends() const { return {healthy_, p_.segments, downs_}; }
    [[nodiscard]] StragglerQueue straggler_receives() const { return {healthy_, p_.segments, ups_}; }

    [[nodiscard]] Stream stream(std::int64_t phase, std::int64_t number) const {
        if (!balanced()) {
            const bool gather = phase == last_phase_ || number == 1;
            return {gather, gather ? phase - 1 : phase};
        }
        if (phase == 0) {
            return {false, number};
        }
        if (phase == last_phase_) {
            return {true, phase - 1 + number};
        }
        return number == 0 ? Stream{false, phase + 1} : Stream{true, phase - 1};
    }

    [[nodiscard]] Reduction reduction(std::int64_t unit) const {
        if (!balanced()) {
            return {unit, 0};
        }
        return unit <= 1 ? Reduction{0, unit} : Reduction{unit - 1, 0};
    }

    [[nodiscard]] Cargo ring_hop(const Place& place, std::int64_t link) const {
        const Stream what = stream(place.phase, place.entry);
        const std::int64_t section = wrap(what.gather ? link - place.window : link - 1 - place.window);
        return {layout_.ring_part(what.unit, section), what.gather ? Stage::kAllGather : Stage::kReduceScatter,
                what.gather ? Combine::kCopy : Combine::kReduce};
    }

    [[nodiscard]] bool is_star_up(const Place& place) const { return place.entry == (place.phase == 0 ? 0 : 1); }
    [[nodiscard]] bool is_star_down(const Place& place) const {
        return place.entry == (place.phase == last_phase_ ? 0 : 1);
    }

    [[nodiscard]] Cargo visit_up(const Place& place, std::int64_t link) const {
        if (is_star_up(place)) {
            return {layout_.star_chunk(place.phase), Stage::kStarUp, Combine::kReduce};
        }
        return {layout_.segment_part(place.phase - 1, link), Stage::kUpload, Combine::kCopy};
    }

    [[nodiscard]] Cargo visit_down(const Place& place, std::int64_t link) const {
        if (is_star_down(place)) {
            return {layout_.star_chunk(place.phase - 1), Stage::kStarDown, Combine::kCopy};
        }
        return {layout_.segment_part(place.phase, wrap(link + 1)), Stage::kDownload, Combine::kReduce};
    }

    /// The receive steps whose data a send step of the straggler carries: its own values need none.
    [[nodiscard]] PrefixCounts straggler_needs(const Place& place) const {
        PrefixCounts after{};
        if (is_star_down(place)) {
            // The chunk is summed when the node of the last window of the phase before has added its part.
            const std::int64_t phase = place.phase - 1;
            need(after, visit_lane(), straggler_receives().index(phase, healthy_ - 1, phase == 0 ? 0 : 1));
        }
        return after;
    }

    /// The receive steps whose data a send step of a healthy node carries.
    [[nodiscard]] PrefixCounts needs(const Place& place, std::int64_t node) const {
        PrefixCounts after{};
        if (place.pause) {
            if (!is_star_up(place)) {
                // Segment j spans the slices j and j+1 of a balanced plan; the later one is reduced last.
                const std::int64_t segment = place.phase - 1;
                need_owned(after, node, balanced() ? segment + 1 : segment, segment);
            }
            return after;
        }
        const Stream what = stream(place.phase, place.entry);
        if (place.window > 0) {
            need(after, ring_lane(), receives(node, ring_lane()).hop_index(place.phase, place.entry, place.window - 1));
        } else if (what.gather) {
            // Slice x of a balanced plan holds parts of the segments x-1 and x.
            need_owned(after, node, what.unit, std::min(what.unit, last_phase_ - 1));
        }
        return after;
    }

    /// The section that `node` owns: last hop of its reduce-scatter, and the straggler's own values.
    void need_owned(PrefixCounts& after, std::int64_t node, std::int64_t unit, std::int64_t segment) const {
        const Reduction reduced = reduction(unit);
        need(after, ring_lane(), receives(node, ring_lane()).hop_index(reduced.phase, reduced.stream, healthy_ - 2));
        need(after, visit_lane(), receives(node, visit_lane()).pause_index(segment, 0));
    }

    static void need(PrefixCounts& after, Lane lane, std::int64_t index) {
        std::int64_t& count = after[static_cast<std::size_t>(lane)];
        count = std::max(count, index + 1);
    }

    OptccParameters p_;
    std::int64_t healthy_;
    std::int64_t last_phase_;
    OptccLayout layout_;
    PerPhase streams_;
    PerPhase downs_;
    PerPhase ups_;
    std::array<LinkShape, kOptccLanes> send_shapes_;
    std::array<LinkShape, kOptccLanes> receive_shapes_;
};

} // namespace

std::string_view to_string(OptccPlan plan) {
    switch (plan) {
    case OptccPlan::kUniform: return "u";
    case OptccPlan::kBalanced: return "bs";
    case OptccPlan::kStar: return "star";
    }
    return "unknown";
}

std::int64_t star_share(Rank ranks, std::int64_t elements, const Rational& slowdown) {
    if (slowdown >= 2) {
        return 0;
    }
    const Rational spare = 2 - slowdown;
    const Rational share = elements * spare / ((ranks - 1) * slowdown + spare);
    return static_cast<std::int64_t>(boost::multiprecision::cpp_int(numerator(share) / denominator(share)));
}

std::unique_ptr<const Schedule> make_optcc(const OptccParameters& parameters) {
    RB_CHECK(parameters.ranks >= 3, "OptCC needs a straggler and two healthy ranks");
    RB_CHECK(parameters.straggler >= 0 && parameters.straggler < parameters.ranks, "the straggler is a rank");
    RB_CHECK(parameters.elements >= 1, "a vector has at least one element");
    RB_CHECK(parameters.segments >= 1, "a plan has at least one segment");
    RB_CHECK(parameters.star_elements >= 0 && parameters.star_elements <= parameters.elements,
             "the star chunks are a part of the vector");
    RB_CHECK(parameters.plan == OptccPlan::kStar || parameters.star_elements == 0, "only star plans have star chunks");
    return std::make_unique<OptccSchedule>(parameters);
}

} // namespace railbreak::collective
