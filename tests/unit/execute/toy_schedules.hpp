// Small schedules that exercise what a ring does not: two lanes, relays, gaps, empty steps, waits of receives on sends.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collective/schedule.hpp"

namespace railbreak::collective::testing {

/// A schedule given by its lists.
class ListSchedule final : public Schedule {
public:
    ListSchedule(std::string name, Rank ranks, Lane lanes, std::int64_t elements, Rank ranks_per_server = 1)
        : name_(std::move(name)), ranks_(ranks), lanes_(lanes), elements_(elements),
          ranks_per_server_(ranks_per_server), sends_(static_cast<std::size_t>(ranks) * kMaxLanes),
          receives_(static_cast<std::size_t>(ranks) * kMaxLanes) {}

    ListSchedule(ListSchedule&& other) noexcept
        : Schedule(), name_(std::move(other.name_)), ranks_(other.ranks_), lanes_(other.lanes_),
          elements_(other.elements_), ranks_per_server_(other.ranks_per_server_), ports_(std::move(other.ports_)),
          sends_(std::move(other.sends_)), receives_(std::move(other.receives_)) {}

    /// Attaches a lane of a rank to a port; lanes are on NIC 0 otherwise.
    void attach(Rank rank, Lane lane, Port port) { ports_[{rank, lane}] = port; }
    /// Attaches a lane of all ranks to their intra-host ports.
    void attach_inside(Lane lane) {
        for (Rank rank = 0; rank < ranks_; ++rank) {
            attach(rank, lane, {PortKind::kLocal, 0});
        }
    }

    /// Appends a flow: a send step of `from` and the receive step of `to`.
    void add(Rank from, Rank to, Slice slice, Combine combine, PrefixCounts send_after, Lane lane = 0,
             PrefixCounts receive_after = {}) {
        sends_[at(from, lane)].push_back({to, slice, Stage::kReduceScatter, combine, send_after});
        receives_[at(to, lane)].push_back({from, slice, Stage::kReduceScatter, combine, receive_after});
    }
    std::vector<Step>& sends(Rank rank, Lane lane = 0) { return sends_[at(rank, lane)]; }
    std::vector<Step>& receives(Rank rank, Lane lane = 0) { return receives_[at(rank, lane)]; }

    [[nodiscard]] std::string name() const override { return name_; }
    [[nodiscard]] Rank ranks() const override { return ranks_; }
    [[nodiscard]] Lane lanes() const override { return lanes_; }
    [[nodiscard]] Rank ranks_per_server() const override { return ranks_per_server_; }
    [[nodiscard]] Port port(Rank rank, Lane lane) const override {
        const auto found = ports_.find({rank, lane});
        return found == ports_.end() ? Port{} : found->second;
    }
    [[nodiscard]] std::int64_t elements() const override { return elements_; }
    [[nodiscard]] std::int64_t send_count(Rank rank, Lane lane) const override {
        return static_cast<std::int64_t>(sends_[at(rank, lane)].size());
    }
    [[nodiscard]] std::int64_t receive_count(Rank rank, Lane lane) const override {
        return static_cast<std::int64_t>(receives_[at(rank, lane)].size());
    }
    [[nodiscard]] Step send_step(Rank rank, Lane lane, std::int64_t index) const override {
        return sends_[at(rank, lane)].at(static_cast<std::size_t>(index));
    }
    [[nodiscard]] Step receive_step(Rank rank, Lane lane, std::int64_t index) const override {
        return receives_[at(rank, lane)].at(static_cast<std::size_t>(index));
    }

private:
    static std::size_t at(Rank rank, Lane lane) { return static_cast<std::size_t>(rank * kMaxLanes + lane); }

    std::string name_;
    Rank ranks_;
    Lane lanes_;
    std::int64_t elements_;
    Rank ranks_per_server_;
    std::map<std::pair<Rank, Lane>, Port> ports_;
    std::vector<std::vector<Step>> sends_;
    std::vector<std::vector<Step>> receives_;
};

/// Ring AllReduce: hop r of the reduce-scatter moves section rank-r, then the allgather follows.
inline ListSchedule toy_ring(Rank p, std::int64_t elements) {
    ListSchedule made("toy-ring", p, 1, elements);
    const auto section = [&](Rank index) {
        const std::int64_t d = ((index % p) + p) % p;
        return Slice{d * elements / p, (d + 1) * elements / p - d * elements / p};
    };
    for (Rank hop = 0; hop < 2 * (p - 1); ++hop) {
        for (Rank rank = 0; rank < p; ++rank) {
            const bool adds = hop < p - 1;
            made.add(rank, (rank + 1) % p, section(adds ? rank - hop : rank + 1 - (hop - (p - 1))),
                     adds ? Combine::kReduce : Combine::kCopy, {hop, 0});
        }
    }
    return made;
}

/// A chain to the last rank and back: every step forwards the whole vector, so cut-through does all the work.
inline ListSchedule toy_chain(Rank p, std::int64_t elements) {
    ListSchedule made("toy-chain", p, 1, elements);
    const Slice all{0, elements};
    for (Rank rank = 0; rank + 1 < p; ++rank) {
        made.add(rank, rank + 1, all, Combine::kReduce, {rank == 0 ? 0 : 1, 0});
    }
    for (Rank rank = p - 1; rank > 0; --rank) {
        made.add(rank, rank - 1, all, Combine::kCopy, {rank == p - 1 ? 1 : 2, 0});
    }
    return made;
}

/// Two chains at once, one a lane, over the two halves of the vector and in opposite directions.
inline ListSchedule toy_two_lanes(Rank p, std::int64_t elements) {
    ListSchedule made("toy-two-lanes", p, 2, elements);
    const std::int64_t half = elements / 2;
    for (Rank step = 0; step + 1 < p; ++step) {
        made.add(step, step + 1, {0, half}, Combine::kReduce, {step == 0 ? 0 : 1, 0}, 0);
        made.add(p - 1 - step, p - 2 - step, {half, elements - half}, Combine::kReduce, {0, step == 0 ? 0 : 1}, 1);
    }
    for (Rank step = 0; step + 1 < p; ++step) {
        made.add(p - 1 - step, p - 2 - step, {0, half}, Combine::kCopy, {step == 0 ? 1 : 2, 0}, 0);
        made.add(step, step + 1, {half, elements - half}, Combine::kCopy, {0, step == 0 ? 1 : 2}, 1);
    }
    return made;
}

/// Everything to rank 0 in pieces of different sizes, empty ones among them, then back from rank 0. What rank 0 sends
/// back spans several received pieces, and its receive of the next piece waits for nothing.
inline ListSchedule toy_star(Rank p, std::int64_t elements) {
    ListSchedule made("toy-star", p, 1, elements);
    std::vector<Slice> pieces;
    for (std::int64_t at = 0, size = 0; at < elements; at += size, size = size * 2 + 1) {
        pieces.push_back({at, std::min(size, elements - at)});
    }
    pieces.push_back({elements, 0});
    std::int64_t received = 0;
    for (const Slice& piece : pieces) {
        for (Rank rank = 1; rank < p; ++rank) {
            made.add(rank, 0, piece, Combine::kReduce, {});
            ++received;
        }
    }
    for (Rank rank = 1; rank < p; ++rank) {
        made.add(0, rank, {0, elements}, Combine::kCopy, {received, 0}, 0,
                 {static_cast<std::int64_t>(pieces.size()), 0});
    }
    return made;
}

} // namespace railbreak::collective::testing
