// OptCC for servers of several ranks: a rail schedule for each rank of a server, and on one more lane the work that the
// ranks of a server do among themselves.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collective/algorithms/optcc.hpp"
#include "collective/algorithms/optcc_rail.hpp"
#include "collective/schedule.hpp"
#include "collective/split.hpp"

namespace railbreak::collective {

/// Rank r of every server forms rail r, which is an OptCC schedule of its own on 1/g of the vector. Before a piece of
/// rail r takes part in the first phase that uses it, the ranks of every server add it up in a ring on their intra-host
/// ports so that rank r has the sum; after its last phase they hand it round. Both happen one phase ahead of and behind
/// the NICs, piece by piece, in an order that is the same for all ranks of a server.
class OptccServers final : public Schedule {
public:
    /// parameters.ranks_per_server >= 2.
    explicit OptccServers(const OptccParameters& parameters);

    [[nodiscard]] std::string name() const override { return rails_[0]->name(); }
    [[nodiscard]] Rank ranks() const override { return parameters_.servers * group_; }
    [[nodiscard]] Lane lanes() const override { return local_lane_ + 1; }
    [[nodiscard]] Rank ranks_per_server() const override { return group_; }
    [[nodiscard]] Port port(Rank rank, Lane lane) const override;
    [[nodiscard]] std::int64_t elements() const override { return parameters_.elements; }
    [[nodiscard]] std::int64_t send_count(Rank rank, Lane lane) const override;
    [[nodiscard]] std::int64_t receive_count(Rank rank, Lane lane) const override;
    [[nodiscard]] Step send_step(Rank rank, Lane lane, std::int64_t index) const override;
    [[nodiscard]] Step receive_step(Rank rank, Lane lane, std::int64_t index) const override;

private:
    /// Local work on one unit and on the star chunks of one phase; either may be missing.
    struct Item {
        bool gather = false;
        std::int64_t unit = kOptccNone;
        std::int64_t chunk = kOptccNone;
    };
    /// Where a local step stands.
    struct Place {
        std::int64_t item = 0;
        std::int64_t round = 0; ///< 0..g-2: parts travel one rank further in each
        std::int64_t piece = 0; ///< 0..h-1 sections in the server's order, then stars
    };

    void list_items();
    [[nodiscard]] const OptccRail& rail(std::int64_t part) const { return *rails_[part < larger_rails_ ? 0 : 1]; }
    [[nodiscard]] Place locate(std::int64_t index) const;
    [[nodiscard]] std::int64_t index_of(const Place& place) const {
        return (place.item * rounds_.value() + place.round) * pieces_.value() + place.piece;
    }
    [[nodiscard]] OptccRail::Piece piece(Rank server, const Item& item, std::int64_t number) const;
    /// Position of a section in the order of a server.
    [[nodiscard]] std::int64_t reduce_order(Rank server, std::int64_t section) const;
    [[nodiscard]] Slice slice(std::int64_t part, const OptccRail::Piece& piece) const;
    /// What a local step carries from rank `from` of a server to the next.
    [[nodiscard]] Step local_step(Rank server, std::int64_t from, const Place& place) const;
    /// Waits until a rank has the sum of its server for a piece.
    void need_reduced(PrefixCounts& after, Rank server, const OptccRail::Piece& piece) const;

    OptccParameters parameters_;
    Rank group_;
    EvenSplit shares_; ///< of the rails
    std::int64_t larger_rails_;
    std::array<std::unique_ptr<const OptccRail>, 2> rails_; ///< the larger and the smaller ones
    Lane local_lane_;
    OptccDivisor rounds_; ///< of an item: g-1
    OptccDivisor pieces_; ///< of a round
    std::vector<Item> items_;
    std::vector<std::int64_t> reduce_item_; ///< per unit
    std::vector<std::int64_t> chunk_item_;  ///< per chunk
};

} // namespace railbreak::collective
