// Order of the local work: the reductions of phase 0, then for every phase b the hand-rounds of what was finished in
// phase b-1 and the reductions of what starts in phase b+1. Within an item the pieces of round t go before those of
// round t+1; in round t of a reduction rank x hands part x-1-t to rank x+1, which adds it, so that part r ends at rank
// r; in round t of a hand-round it hands on part x-t.
#include "collective/algorithms/optcc_servers.hpp"

#include <algorithm>

namespace railbreak::collective {

namespace {

OptccParameters rail_parameters(const OptccParameters& parameters, std::int64_t elements) {
    OptccParameters rail = parameters;
    rail.elements = elements;
    for (std::int64_t& star : rail.star_elements) {
        star /= parameters.ranks_per_server;
    }
    return rail;
}

} // namespace

OptccServers::OptccServers(const OptccParameters& parameters)
    : parameters_(parameters), group_(parameters.ranks_per_server), shares_(parameters.elements, group_),
      larger_rails_(parameters.elements % group_), rails_{std::make_unique<OptccRail>(
                                                              rail_parameters(parameters, shares_.largest())),
                                                          std::make_unique<OptccRail>(
                                                              rail_parameters(parameters, shares_.smallest()))},
      local_lane_(rails_[0]->lanes()), rounds_(group_ - 1),
      pieces_(rails_[0]->healthy() + static_cast<std::int64_t>(parameters.star_elements.size())) {
    list_items();
}

void OptccServers::list_items() {
    const OptccProgram& program = rails_[0]->program();
    const auto phases = static_cast<std::int64_t>(program.phases.size());
    std::vector<std::vector<Item>> first(program.phases.size() + 1);
    std::vector<std::vector<Item>> last(program.phases.size());
    for (std::int64_t unit = 0; unit < static_cast<std::int64_t>(program.units.size()); ++unit) {
        if (program.reduced_from[at(unit)] != kOptccNone) {
            first[at(program.reduced_from[at(unit)])].push_back({false, unit, kOptccNone});
        }
        if (program.finished[at(unit)] != kOptccNone) {
            last[at(program.finished[at(unit)])].push_back({true, unit, kOptccNone});
        }
    }
    for (std::int64_t chunk = 0; !parameters_.star_elements.empty() && chunk < phases - 1; ++chunk) {
        const auto attach = [&](std::vector<Item>& items, bool gather) {
            if (items.empty()) {
                items.push_back({gather, kOptccNone, kOptccNone});
            }
            items.back().chunk = chunk;
        };
        attach(first[at(chunk)], false);
        attach(last[at(chunk + 1)], true);
    }
    const auto append = [&](const std::vector<Item>& items) {
        items_.insert(items_.end(), items.begin(), items.end());
    };
    append(first[0]);
    for (std::int64_t phase = 0; phase < phases; ++phase) {
        if (phase > 0) {
            append(last[at(phase - 1)]);
        }
        append(first[at(phase + 1)]);
    }
    append(last.back());
    reduce_item_.assign(program.units.size(), kOptccNone);
    chunk_item_.assign(program.phases.size(), kOptccNone);
    for (std::size_t i = 0; i < items_.size(); ++i) {
        if (!items_[i].gather && items_[i].unit != kOptccNone) {
            reduce_item_[at(items_[i].unit)] = static_cast<std::int64_t>(i);
        }
        if (!items_[i].gather && items_[i].chunk != kOptccNone) {
            chunk_item_[at(items_[i].chunk)] = static_cast<std::int64_t>(i);
        }
    }
}

Port OptccServers::port(Rank rank, Lane lane) const {
    if (lane == local_lane_) {
        return {PortKind::kLocal, 0};
    }
    return {PortKind::kNic, rank % group_ % parameters_.nics_per_server};
}

std::int64_t OptccServers::send_count(Rank rank, Lane lane) const {
    if (lane == local_lane_) {
        return static_cast<std::int64_t>(items_.size()) * rounds_.value() * pieces_.value();
    }
    return rail(rank % group_).send_count(rank / group_, lane);
}

std::int64_t OptccServers::receive_count(Rank rank, Lane lane) const {
    return lane == local_lane_ ? send_count(rank, lane) : rail(rank % group_).receive_count(rank / group_, lane);
}

OptccServers::Place OptccServers::locate(std::int64_t index) const {
    const std::int64_t round = pieces_.quotient(index);
    const std::int64_t item = rounds_.quotient(round);
    return {item, round - item * rounds_.value(), index - round * pieces_.value()};
}

std::int64_t OptccServers::reduce_order(Rank server, std::int64_t section) const {
    // A straggler hands out section 1 first, node i passes on its own section i first.
    const std::int64_t healthy = rails_[0]->healthy();
    const std::int64_t node = rails_[0]->node(server);
    const std::int64_t order = node < 0 ? section - 1 : node - section;
    return order < 0 ? order + healthy : order;
}

OptccRail::Piece OptccServers::piece(Rank server, const Item& item, std::int64_t number) const {
    const std::int64_t healthy = rails_[0]->healthy();
    if (number >= healthy) {
        return {kOptccNone, item.chunk, number - healthy};
    }
    // The reverse of reduce_order. Node i has its section i+1 first after a phase, then i, i-1, ..; a straggler gets
    // section 0 first.
    const std::int64_t node = rails_[0]->node(server);
    const std::int64_t first = node < 0 ? (item.gather ? 0 : 1) : node + (item.gather ? 1 : 0);
    const std::int64_t section = (node < 0 ? first + number : first - number + healthy) % healthy;
    return {item.unit, kOptccNone, section};
}

Slice OptccServers::slice(std::int64_t part, const OptccRail::Piece& piece) const {
    if (piece.unit == kOptccNone && piece.chunk == kOptccNone) {
        return {};
    }
    const Slice inside = rail(part).slice(piece);
    return {shares_.part(part).offset + inside.offset, inside.count};
}

Step OptccServers::local_step(Rank server, std::int64_t from, const Place& place) const {
    const Item& item = items_[at(place.item)];
    const std::int64_t back = (item.gather ? 0 : 1) + place.round;
    const std::int64_t part = (from - back + group_) % group_;
    Step step;
    step.slice = slice(part, piece(server, item, place.piece));
    step.stage = item.gather ? Stage::kLocalGather : Stage::kLocalReduce;
    step.combine = item.gather ? Combine::kCopy : Combine::kReduce;
    return step;
}

void OptccServers::need_reduced(PrefixCounts& after, Rank server, const OptccRail::Piece& piece) const {
    Place place{kOptccNone, group_ - 2, 0};
    if (piece.unit != kOptccNone) {
        place.item = reduce_item_[at(rails_[0]->program().gather_ready[at(piece.unit)].unit)];
        place.piece = reduce_order(server, piece.part);
    } else if (piece.chunk != kOptccNone) {
        place.item = chunk_item_[at(piece.chunk)];
        place.piece = rails_[0]->healthy() + piece.part;
    }
    if (place.item != kOptccNone) {
        after[at(local_lane_)] = index_of(place) + 1;
    }
}

Step OptccServers::send_step(Rank rank, Lane lane, std::int64_t index) const {
    const Rank server = rank / group_;
    const Rank own = rank % group_;
    if (lane != local_lane_) {
        Step step = rail(own).send_step(server, lane, index);
        step.peer = step.peer * group_ + own;
        if (step.slice.count > 0) {
            step.slice.offset += shares_.part(own).offset;
            need_reduced(step.after, server, rail(own).reads(server, lane, index));
        }
        return step;
    }
    const Place place = locate(index);
    Step step = local_step(server, own, place);
    step.peer = server * group_ + (own + 1) % group_;
    if (step.slice.count == 0) {
        return step;
    }
    if (place.round > 0) {
        step.after[at(local_lane_)] = index_of({place.item, place.round - 1, place.piece}) + 1;
    } else if (items_[at(place.item)].gather) {
        const OptccRail::Piece done = piece(server, items_[at(place.item)], place.piece);
        step.after = rail(own).final_after(server, done);
        need_reduced(step.after, server, done);
    }
    return step;
}

Step OptccServers::receive_step(Rank rank, Lane lane, std::int64_t index) const {
    const Rank server = rank / group_;
    const Rank own = rank % group_;
    if (lane != local_lane_) {
        Step step = rail(own).receive_step(server, lane, index);
        step.peer = step.peer * group_ + own;
        if (step.slice.count > 0) {
            step.slice.offset += shares_.part(own).offset;
        }
        return step;
    }
    const Rank from = (own + group_ - 1) % group_;
    Step step = local_step(server, from, locate(index));
    step.peer = server * group_ + from;
    return step;
}

} // namespace railbreak::collective
