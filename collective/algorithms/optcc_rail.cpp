// OptCC in closed form.
//
// The h healthy ranks are nodes 0..h-1 of a ring, in rank order. Link i joins the send side of node i-1 to the receive
// side of node i. In a phase every link makes h-1 hops of each ring stream and pauses once for every straggler. In its
// pause for straggler a, node i gets a's own values of section i+1 (download, added: node i is where the reduce-scatter
// of that section ends), and node i-1 hands a the finished section i of an earlier segment (upload). A section is
// therefore complete at its owner when the phase ends, is gathered in a later phase, and a straggler meets one link per
// window. A segment that adds at the straggler goes the other way round: the straggler adds its own values to the
// healthy sum that comes up and sends the total down, which the owner stores.
//
// With star chunks every node also sends its own values of each straggler's chunk in these pauses; the straggler sums
// them and returns the sum in the next phase. In the windows that follow, the stragglers do the same among themselves.
//
// All nodes and sections are numbered modulo h.
#include "collective/algorithms/optcc_rail.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace railbreak::collective {

OptccRail::OptccRail(const OptccParameters& parameters)
    : parameters_(parameters), stragglers_(static_cast<std::int64_t>(parameters.stragglers.size())),
      healthy_(parameters.servers - stragglers_), program_(make_program(parameters)),
      layout_(program_, parameters.elements, healthy_, parameters.star_elements, parameters.star_weights),
      order_(parameters.stragglers), nodes_(at(parameters.servers), 0),
      star_(!parameters.star_elements.empty()), shapes_{shape(0), shape(1)} {
    if (program_.late_others) {
        std::rotate(order_.begin(), order_.begin() + 1, order_.end()); // the slowest meets every link last
    }
    for (std::int64_t a = 0; a < stragglers_; ++a) {
        nodes_[at(straggler_rank(a))] = -1 - a;
    }
    for (Rank rank = 0; rank < parameters.servers; ++rank) {
        if (nodes_[at(rank)] >= 0) {
            nodes_[at(rank)] = static_cast<std::int64_t>(ring_.size());
            ring_.push_back(rank);
        }
    }
}

OptccShape OptccRail::shape(Lane lane) const {
    const std::int64_t entries = lane != visit_lane() ? 0 : star_ ? 2 : 1;
    return {healthy_,
            stragglers_,
            static_cast<std::int64_t>(program_.phases.size()),
            lane == 0 ? kOptccStreams : 0,
            entries,
            star_ ? 2 : 0,
            star_};
}

std::string OptccRail::name() const {
    const std::string group =
        parameters_.ranks_per_server > 1 ? fmt::format(",g={}", parameters_.ranks_per_server) : std::string();
    return fmt::format("optcc-{}{}(k={},{}={}{})", parameters_.shared ? "shared-" : "", to_string(parameters_.plan),
                       parameters_.segments, stragglers_ == 1 ? "straggler" : "stragglers",
                       fmt::join(parameters_.stragglers, ","), group);
}

std::int64_t OptccRail::send_count(Rank rank, Lane lane) const {
    if (is_straggler(rank)) {
        return lane == visit_lane() ? straggler_sends(-1 - node(rank)).count() : 0;
    }
    return sends(node(rank), lane).count();
}

std::int64_t OptccRail::receive_count(Rank rank, Lane lane) const {
    if (is_straggler(rank)) {
        return lane == visit_lane() ? straggler_receives(-1 - node(rank)).count() : 0;
    }
    return receives(node(rank), lane).count();
}

// Flat, because a walk over all steps of a large plan spends its time here.
[[gnu::flatten]] Step OptccRail::send_step(Rank rank, Lane lane, std::int64_t index) const {
    const std::int64_t node = this->node(rank);
    if (node < 0) {
        const std::int64_t straggler = -1 - node;
        return straggler_send(straggler, straggler_sends(straggler).locate(index));
    }
    const std::int64_t link = wrap(node + 1);
    const OptccPlace place = sends(node, lane).locate(index);
    if (place.kind == Kind::kPause) {
        return make_step(straggler_rank(place.number), visit_up(place.phase, place.entry, link, place.number),
                         needs(node, place));
    }
    return make_step(rank_of(link), hop(place, link), needs(node, place));
}

[[gnu::flatten]] Step OptccRail::receive_step(Rank rank, Lane lane, std::int64_t index) const {
    const std::int64_t node = this->node(rank);
    if (node < 0) {
        const std::int64_t straggler = -1 - node;
        const OptccPlace place = straggler_receives(straggler).locate(index);
        if (place.kind == Kind::kExchange) {
            const std::int64_t from = straggler_behind(straggler, stragglers_ - place.number);
            return make_step(straggler_rank(from), exchange(place, from, straggler), {});
        }
        return make_step(rank_of(wrap(place.number - 1)), visit_up(place.phase, place.entry, place.number, straggler),
                         {});
    }
    const OptccPlace place = receives(node, lane).locate(index);
    if (place.kind == Kind::kPause) {
        return make_step(straggler_rank(place.number), visit_down(place.phase, place.entry, node, place.number), {});
    }
    return make_step(rank_of(wrap(node - 1)), hop(place, node), {});
}

OptccRail::Cargo OptccRail::hop(const OptccPlace& place, std::int64_t link) const {
    const OptccProgram::Stream& stream = program_.phase(place.phase).streams[at(place.entry)];
    const Stage stage = stream.gather ? Stage::kAllGather : Stage::kReduceScatter;
    const Combine combine = stream.gather ? Combine::kCopy : Combine::kReduce;
    if (stream.unit == kOptccNone) {
        return {{}, stage, combine};
    }
    const std::int64_t section = wrap(stream.gather ? link - place.number : link - 1 - place.number);
    return {layout_.ring_part(stream.unit, section), stage, combine};
}

OptccRail::Cargo OptccRail::visit_up(std::int64_t phase, std::int64_t entry, std::int64_t link,
                                     std::int64_t straggler) const {
    if (entry == 1) {
        return {layout_.star_chunk(phase, straggler), Stage::kStarUp, Combine::kReduce};
    }
    const std::int64_t segment = up_segment(phase, link, straggler);
    if (segment == kOptccNone) {
        return {{}, Stage::kUpload, Combine::kCopy};
    }
    return {layout_.segment_part(segment, link), Stage::kUpload,
            program_.adds_at_straggler[at(segment)] ? Combine::kReduce : Combine::kCopy};
}

OptccRail::Cargo OptccRail::visit_down(std::int64_t phase, std::int64_t entry, std::int64_t link,
                                       std::int64_t straggler) const {
    if (entry == 1) {
        return {layout_.star_chunk(phase - 1, straggler), Stage::kStarDown, Combine::kCopy};
    }
    const std::int64_t segment = program_.phase(phase).down;
    if (segment == kOptccNone) {
        return {{}, Stage::kDownload, Combine::kReduce};
    }
    return {layout_.segment_part(segment, wrap(link + 1)), Stage::kDownload,
            program_.adds_at_straggler[at(segment)] ? Combine::kCopy : Combine::kReduce};
}

OptccRail::Cargo OptccRail::exchange(const OptccPlace& place, std::int64_t from, std::int64_t to) const {
    if (place.entry == 0) {
        return {layout_.star_chunk(place.phase, to), Stage::kStarExchange, Combine::kReduce};
    }
    return {layout_.star_chunk(place.phase - 1, from), Stage::kStarExchange, Combine::kCopy};
}

OptccRail::Counts OptccRail::owned(std::int64_t node, const OptccProgram::Ready& ready) const {
    const std::int64_t reduced = receives(node, 0).hop_index(ready.reduced.phase, ready.reduced.stream, healthy_ - 2);
    const std::int64_t down =
        ready.down == kOptccNone ? kOptccNone : receives(node, visit_lane()).last_pause_index(ready.down);
    return {reduced + 1, down + 1};
}

/// The sum of a straggler's chunk is complete when the last rank of its phase has added its values.
OptccRail::Counts OptccRail::star_complete(std::int64_t straggler, std::int64_t chunk) const {
    return {0, straggler_receives(straggler).last_star_index(chunk) + 1};
}

/// Of a straggler's own values nothing has to arrive before.
Step OptccRail::straggler_send(std::int64_t straggler, const OptccPlace& place) const {
    if (place.kind == Kind::kExchange) {
        const std::int64_t to = straggler_behind(straggler, place.number);
        const Cargo cargo = exchange(place, straggler, to);
        const bool complete = place.entry == 1 && cargo.slice.count > 0;
        return make_step(straggler_rank(to), cargo, complete ? star_complete(straggler, place.phase - 1) : Counts{});
    }
    const Cargo cargo = visit_down(place.phase, place.entry, place.number, straggler);
    Counts counts;
    if (place.entry == 1 && cargo.slice.count > 0) {
        counts = star_complete(straggler, place.phase - 1);
    } else if (cargo.combine == Combine::kCopy && cargo.slice.count > 0) {
        // Section i+1 came up on link i+1.
        const std::int64_t from = wrap(place.number + 1);
        const std::int64_t phase = program_.up_phase[at(program_.phase(place.phase).down)];
        counts.visits = straggler_receives(straggler).visit_index(phase, from, 0) + 1;
    }
    return make_step(rank_of(place.number), cargo, counts);
}

/// The receive steps whose data a send step of a healthy node carries.
OptccRail::Counts OptccRail::needs(std::int64_t node, const OptccPlace& place) const {
    if (place.kind == Kind::kPause) {
        const std::int64_t segment =
            place.entry == 0 ? up_segment(place.phase, wrap(node + 1), place.number) : kOptccNone;
        return segment == kOptccNone ? Counts{} : owned(node, program_.up_ready[at(segment)]);
    }
    const OptccProgram::Stream& stream = program_.phase(place.phase).streams[at(place.entry)];
    if (stream.unit == kOptccNone) {
        return {};
    }
    if (place.number > 0) {
        return {receives(node, 0).hop_index(place.phase, place.entry, place.number - 1) + 1, 0};
    }
    return stream.gather ? owned(node, program_.gather_ready[at(stream.unit)]) : Counts{};
}

Slice OptccRail::slice(const Piece& piece) const {
    return piece.unit != kOptccNone ? layout_.ring_part(piece.unit, piece.part)
                                    : layout_.star_chunk(piece.chunk, piece.part);
}

OptccRail::Piece OptccRail::reads(Rank rank, Lane lane, std::int64_t index) const {
    const std::int64_t node = this->node(rank);
    const OptccPlace place = node < 0 ? straggler_sends(-1 - node).locate(index) : sends(node, lane).locate(index);
    if (place.kind == Kind::kExchange) {
        const std::int64_t to = straggler_behind(-1 - node, place.number);
        return place.entry == 0 ? Piece{kOptccNone, place.phase, to} : Piece{kOptccNone, place.phase - 1, -1 - node};
    }
    if (node < 0) {
        if (place.entry == 1) {
            return {kOptccNone, place.phase - 1, -1 - node};
        }
        const std::int64_t segment = program_.phase(place.phase).down;
        return {program_.up_ready[at(segment)].unit, kOptccNone, wrap(place.number + 1)};
    }
    const std::int64_t link = wrap(node + 1);
    if (place.kind == Kind::kPause) {
        if (place.entry == 1) {
            return {kOptccNone, place.phase, place.number};
        }
        return {program_.up_ready[at(up_segment(place.phase, link, place.number))].unit, kOptccNone, link};
    }
    const OptccProgram::Stream& stream = program_.phase(place.phase).streams[at(place.entry)];
    if (stream.gather && place.number > 0) {
        return {}; // a finished sum on its way
    }
    return {stream.unit, kOptccNone, wrap(stream.gather ? link - place.number : link - 1 - place.number)};
}

PrefixCounts OptccRail::final_after(Rank rank, const Piece& piece) const {
    const std::int64_t node = this->node(rank);
    if (piece.unit != kOptccNone && node >= 0) {
        const std::int64_t hop = wrap(node - piece.part);
        const OptccProgram::Spot& gathered = program_.gathered[at(piece.unit)];
        return after(hop == healthy_ - 1
                         ? owned(node, program_.gather_ready[at(piece.unit)])
                         : Counts{receives(node, 0).hop_index(gathered.phase, gathered.stream, hop) + 1, 0});
    }
    if (piece.unit != kOptccNone) {
        const std::int64_t phase =
            program_.up_phase[at(program_.last_segment[at(piece.unit)])] + lateness(piece.part, -1 - node);
        return after({0, straggler_receives(-1 - node).visit_index(phase, piece.part, 0) + 1});
    }
    if (node >= 0) {
        return after({0, receives(node, visit_lane()).pause_index(piece.chunk + 1, piece.part, 1) + 1});
    }
    if (piece.part == -1 - node) {
        return after(star_complete(piece.part, piece.chunk));
    }
    const std::int64_t distance = straggler_behind(-1 - node, stragglers_ - piece.part);
    return after({0, straggler_receives(-1 - node).exchange_index(piece.chunk + 1, distance, 1) + 1});
}

} // namespace railbreak::collective
