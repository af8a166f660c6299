// The OptCC schedule of one rail: one rank a server, one NIC each. A schedule by itself, and what the schedule of
// several ranks a server is made of, which therefore may ask it what its steps read and when a range is final.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collective/algorithms/optcc.hpp"
#include "collective/algorithms/optcc_layout.hpp"
#include "collective/algorithms/optcc_program.hpp"
#include "collective/algorithms/optcc_queues.hpp"
#include "collective/schedule.hpp"

namespace railbreak::collective {

/// Ranks are servers here. `parameters.elements` may be 0.
class OptccRail final : public Schedule {
public:
    /// A piece of the vector that the ranks of a server reduce and gather among themselves.
    struct Piece {
        std::int64_t unit = kOptccNone;  ///< of the ring, with its section; or
        std::int64_t chunk = kOptccNone; ///< of a star, with its straggler
        std::int64_t part = 0;           ///< section or straggler
    };

    explicit OptccRail(const OptccParameters& parameters);

    [[nodiscard]] std::string name() const override;
    [[nodiscard]] Rank ranks() const override { return parameters_.servers; }
    [[nodiscard]] Lane lanes() const override { return parameters_.shared ? 2 : 1; }
    [[nodiscard]] std::int64_t elements() const override { return parameters_.elements; }
    [[nodiscard]] std::int64_t send_count(Rank rank, Lane lane) const override;
    [[nodiscard]] std::int64_t receive_count(Rank rank, Lane lane) const override;
    [[nodiscard]] Step send_step(Rank rank, Lane lane, std::int64_t index) const override;
    /// Receive steps wait for no send. A rank's own values of an element are overwritten only by the finished sum of
    /// that element, and the finished sum exists only because those values left this rank before.
    [[nodiscard]] Step receive_step(Rank rank, Lane lane, std::int64_t index) const override;
    void send_steps(Rank rank, Lane lane, std::int64_t first, std::span<Step> steps) const override;
    void receive_steps(Rank rank, Lane lane, std::int64_t first, std::span<Step> steps) const override;

    [[nodiscard]] const OptccParameters& parameters() const { return parameters_; }
    [[nodiscard]] const OptccProgram& program() const { return program_; }
    [[nodiscard]] std::int64_t healthy() const { return healthy_; }
    [[nodiscard]] bool is_straggler(Rank rank) const { return node(rank) < 0; }
    /// The number of a healthy rank on the ring; -1-a for straggler a.
    [[nodiscard]] std::int64_t node(Rank rank) const { return nodes_[static_cast<std::size_t>(rank)]; }
    [[nodiscard]] Slice slice(const Piece& piece) const;
    /// The piece whose sum over its server a send step hands on, and which must therefore be complete there.
    [[nodiscard]] Piece reads(Rank rank, Lane lane, std::int64_t index) const;
    /// The receive steps after which a rank has the final sum of a piece.
    [[nodiscard]] PrefixCounts final_after(Rank rank, const Piece& piece) const;

private:
    /// What a step carries. A Step is put together in one go from this and from Counts, both of which stay in
    /// registers: changing members of a Step and copying it afterwards makes the processor wait for its own stores.
    struct Cargo {
        Slice slice;
        Stage stage;
        Combine combine;
    };
    /// Receive steps that a send waits for: so many of the ring, so many of the stragglers' visits.
    struct Counts {
        std::int64_t ring = 0;
        std::int64_t visits = 0;
    };
    using Kind = OptccPlace::Kind;

    [[nodiscard]] PrefixCounts after(const Counts& counts) const {
        if (parameters_.shared) {
            return {counts.ring, counts.visits, 0, 0};
        }
        return {std::max(counts.ring, counts.visits), 0, 0, 0};
    }
    [[nodiscard]] Step make_step(Rank peer, const Cargo& cargo, const Counts& counts) const {
        return {peer, cargo.slice, cargo.stage, cargo.combine, after(counts)};
    }

    [[nodiscard]] OptccShape shape(Lane lane) const;
    [[nodiscard]] Lane visit_lane() const { return parameters_.shared ? 1 : 0; }
    /// Modulo h, for -h <= node < 2h. A walk over all steps spends its time in divisions, so none here.
    [[nodiscard]] std::int64_t wrap(std::int64_t node) const {
        return node < 0 ? node + healthy_ : node >= healthy_ ? node - healthy_ : node;
    }
    [[nodiscard]] Rank rank_of(std::int64_t node) const { return ring_[static_cast<std::size_t>(node)]; }
    [[nodiscard]] Rank straggler_rank(std::int64_t straggler) const {
        return order_[static_cast<std::size_t>(straggler)];
    }
    /// The straggler `distance` behind the given one, in a circle.
    [[nodiscard]] std::int64_t straggler_behind(std::int64_t straggler, std::int64_t distance) const {
        const std::int64_t sum = straggler + distance;
        return sum >= stragglers_ ? sum - stragglers_ : sum;
    }

    [[nodiscard]] OptccLinkQueue sends(std::int64_t node, Lane lane) const {
        return {shapes_[static_cast<std::size_t>(lane)], wrap(node + 1)};
    }
    [[nodiscard]] OptccLinkQueue receives(std::int64_t node, Lane lane) const {
        return {shapes_[static_cast<std::size_t>(lane)], node};
    }
    [[nodiscard]] OptccStragglerQueue straggler_sends(std::int64_t straggler) const {
        return {shapes_[static_cast<std::size_t>(visit_lane())], straggler};
    }
    [[nodiscard]] OptccStragglerQueue straggler_receives(std::int64_t straggler) const {
        return {shapes_[static_cast<std::size_t>(visit_lane())], straggler};
    }

    /// By how many phases an upload comes later than the first ones of its segment.
    [[nodiscard]] std::int64_t lateness(std::int64_t link, std::int64_t straggler) const {
        return (program_.late_first_link && link == 0 ? 1 : 0) +
               (program_.late_others && straggler + 1 < stragglers_ ? 1 : 0);
    }
    /// The segment that link `link` hands up to a straggler in a phase.
    [[nodiscard]] std::int64_t up_segment(std::int64_t phase, std::int64_t link, std::int64_t straggler) const {
        return program_.up(phase, lateness(link, straggler));
    }
    [[nodiscard]] Cargo hop(const OptccPlace& place, std::int64_t link) const;
    [[nodiscard]] Cargo visit_up(std::int64_t phase, std::int64_t entry, std::int64_t link,
                                 std::int64_t straggler) const;
    [[nodiscard]] Cargo visit_down(std::int64_t phase, std::int64_t entry, std::int64_t link,
                                   std::int64_t straggler) const;
    /// What `from` gives `to` in a window in which stragglers meet: its own values of to's chunk, its own chunk.
    [[nodiscard]] Cargo exchange(const OptccPlace& place, std::int64_t from, std::int64_t to) const;

    /// Ring hops that follow each other in the queue of a healthy node, from `first` on, none of them of hop 0 when
    /// they are sent. Every second step is of the same stream.
    void fill_hops(std::int64_t node, bool send, const OptccPlace& first, std::span<Step> steps) const;

    [[nodiscard]] Step straggler_send(std::int64_t straggler, const OptccPlace& place) const;
    [[nodiscard]] Counts needs(std::int64_t node, const OptccPlace& place) const;
    [[nodiscard]] Counts owned(std::int64_t node, const OptccProgram::Ready& ready) const;
    [[nodiscard]] Counts star_complete(std::int64_t straggler, std::int64_t chunk) const;

    OptccParameters parameters_;
    std::int64_t stragglers_;
    std::int64_t healthy_;
    OptccProgram program_;
    OptccLayout layout_;
    std::vector<Rank> order_;         ///< rank of each straggler, in the order of the pauses of a link
    std::vector<Rank> ring_;          ///< rank of each healthy node
    std::vector<std::int64_t> nodes_; ///< node of each rank, or -1-a
    bool star_;
    std::array<OptccShape, 2> shapes_; ///< per lane
};

} // namespace railbreak::collective
