#include "collective/algorithms/ring.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.hpp"
#include "collective/algorithms/ring_part.hpp"
#include "collective/split.hpp"

namespace railbreak::collective {

namespace {

class ChannelRing final : public Schedule {
public:
    ChannelRing(Rank ranks, std::int64_t elements, std::vector<std::int32_t> nics)
        : ranks_(ranks), elements_(elements), nics_(std::move(nics)) {
        const EvenSplit shares(elements, std::ssize(nics_));
        for (std::int64_t channel = 0; channel < std::ssize(nics_); ++channel) {
            rings_.emplace_back(ranks, shares.part(channel));
        }
    }

    [[nodiscard]] std::string name() const override {
        return lanes() == 1 ? fmt::format("ring(p={})", ranks_)
                            : fmt::format("ring(p={},channels={})", ranks_, lanes());
    }
    [[nodiscard]] Rank ranks() const override { return ranks_; }
    [[nodiscard]] Lane lanes() const override { return static_cast<Lane>(nics_.size()); }
    [[nodiscard]] Port port(Rank, Lane lane) const override {
        return {PortKind::kNic, nics_[static_cast<std::size_t>(lane)]};
    }
    [[nodiscard]] std::int64_t elements() const override { return elements_; }
    [[nodiscard]] std::int64_t send_count(Rank, Lane lane) const override { return ring(lane).hops(); }
    [[nodiscard]] std::int64_t receive_count(Rank, Lane lane) const override { return ring(lane).hops(); }

    [[nodiscard]] Step send_step(Rank rank, Lane lane, std::int64_t index) const override {
        const Rank next = ring(lane).next(rank);
        Step step = ring(lane).into(next, index);
        step.peer = next;
        step.after[static_cast<std::size_t>(lane)] = index;
        return step;
    }
    [[nodiscard]] Step receive_step(Rank rank, Lane lane, std::int64_t index) const override {
        Step step = ring(lane).into(rank, index);
        step.peer = ring(lane).previous(rank);
        return step;
    }

private:
    [[nodiscard]] const RingPart& ring(Lane lane) const { return rings_[static_cast<std::size_t>(lane)]; }

    Rank ranks_;
    std::int64_t elements_;
    std::vector<std::int32_t> nics_;
    std::vector<RingPart> rings_;
};

/// Position P of channel c is rank c + P of server P / g, counted round the server. The local lane's queues go hop by
/// hop, and within a hop through the channels in ascending order from the one after the rank's own, so that both ends
/// of a local hop list the same channels in the same order: sender i has no local hop for channel i+1, receiver i+1 has
/// none for its own.
class ServerRing final : public Schedule {
public:
    explicit ServerRing(ServerRingParameters parameters)
        : p_(std::move(parameters)), ranks_(p_.servers * p_.ranks_per_server),
          first_from_(static_cast<std::size_t>(p_.ranks_per_server)),
          number_of_(static_cast<std::size_t>(p_.ranks_per_server), -1) {
        const EvenSplit shares(p_.elements, std::ssize(p_.channels));
        for (std::size_t i = 0; i < p_.channels.size(); ++i) {
            rings_.emplace_back(ranks_, shares.part(static_cast<std::int64_t>(i)));
            number_of_[static_cast<std::size_t>(p_.channels[i])] = static_cast<Rank>(i);
        }
        for (Rank from = 0; from < p_.ranks_per_server; ++from) {
            const auto found = std::lower_bound(p_.channels.begin(), p_.channels.end(), from);
            first_from_[static_cast<std::size_t>(from)] =
                static_cast<Rank>(found - p_.channels.begin()) % static_cast<Rank>(p_.channels.size());
        }
    }

    [[nodiscard]] std::string name() const override {
        return fmt::format("ring(p={},servers={},channels={})", ranks_, p_.servers, p_.channels.size());
    }
    [[nodiscard]] Rank ranks() const override { return ranks_; }
    [[nodiscard]] Rank ranks_per_server() const override { return p_.ranks_per_server; }
    [[nodiscard]] Lane lanes() const override { return local_lane() + 1; }
    [[nodiscard]] std::int64_t elements() const override { return p_.elements; }

    [[nodiscard]] Port port(Rank rank, Lane lane) const override {
        if (lane == local_lane()) {
            return {PortKind::kLocal, 0};
        }
        const Rank server = rank / p_.ranks_per_server;
        const bool leaves = lane == lane_of(leaving(rank));
        const Rank into = !leaves ? server : server + 1 == p_.servers ? 0 : server + 1;
        const Rank channel = leaves ? leaving(rank) : local(rank);
        return {PortKind::kNic, p_.nics[static_cast<std::size_t>(into * p_.ranks_per_server + channel)]};
    }

    [[nodiscard]] std::int64_t send_count(Rank rank, Lane lane) const override {
        return hops() * channels_on(lane, leaving(rank));
    }
    [[nodiscard]] std::int64_t receive_count(Rank rank, Lane lane) const override {
        return hops() * channels_on(lane, local(rank));
    }

    [[nodiscard]] Step send_step(Rank rank, Lane lane, std::int64_t index) const override {
        const bool leaves = lane != local_lane();
        const auto [channel, hop] = leaves ? Place{leaving(rank), index} : local_place(leaving(rank), index);
        const RingPart& ring = ring_of(channel);
        Step step = ring.into(ring.next(position(rank, channel)), hop);
        step.peer = leaves ? entry_of_next_server(rank, channel) : server_start(rank) + leaving(rank);
        if (hop > 0) { // the receive of hop-1, wherever that is
            const bool entered = channel == local(rank);
            const Lane from = entered ? lane_of(channel) : local_lane();
            step.after[static_cast<std::size_t>(from)] =
                entered ? hop : (hop - 1) * channels_on(from, local(rank)) + turn(local(rank), channel) + 1;
        }
        return step;
    }

    [[nodiscard]] Step receive_step(Rank rank, Lane lane, std::int64_t index) const override {
        const bool enters = lane != local_lane();
        const auto [channel, hop] = enters ? Place{local(rank), index} : local_place(local(rank), index);
        Step step = ring_of(channel).into(position(rank, channel), hop);
        step.peer = enters ? exit_of_previous_server(rank, channel) : server_start(rank) + before(local(rank));
        return step;
    }

private:
    struct Place {
        Rank channel = 0;
        std::int64_t hop = 0;
    };

    [[nodiscard]] std::int64_t hops() const { return 2 * (std::int64_t{ranks_} - 1); }
    [[nodiscard]] Rank local(Rank rank) const { return rank % p_.ranks_per_server; }
    [[nodiscard]] Rank server_start(Rank rank) const { return rank - local(rank); }
    [[nodiscard]] Rank before(Rank in_server) const { return (in_server == 0 ? p_.ranks_per_server : in_server) - 1; }
    /// The channel that leaves the server at this rank: that of the next rank.
    [[nodiscard]] Rank leaving(Rank rank) const { return local(rank) + 1 == p_.ranks_per_server ? 0 : local(rank) + 1; }
    [[nodiscard]] Lane local_lane() const { return p_.ranks_per_server % 2 == 0 ? 2 : 3; }
    [[nodiscard]] Lane lane_of(Rank channel) const {
        return p_.ranks_per_server % 2 != 0 && channel + 1 == p_.ranks_per_server ? 2 : channel % 2;
    }
    [[nodiscard]] bool exists(Rank channel) const { return number_of_[static_cast<std::size_t>(channel)] >= 0; }
    [[nodiscard]] const RingPart& ring_of(Rank channel) const {
        return rings_[static_cast<std::size_t>(number_of_[static_cast<std::size_t>(channel)])];
    }
    [[nodiscard]] Rank position(Rank rank, Rank channel) const {
        const Rank walked = local(rank) - channel;
        return server_start(rank) + (walked < 0 ? walked + p_.ranks_per_server : walked);
    }
    [[nodiscard]] Rank entry_of_next_server(Rank rank, Rank channel) const {
        const Rank start = server_start(rank) + p_.ranks_per_server;
        return (start == ranks_ ? 0 : start) + channel;
    }
    [[nodiscard]] Rank exit_of_previous_server(Rank rank, Rank channel) const {
        const Rank start = server_start(rank) == 0 ? ranks_ : server_start(rank);
        return start - p_.ranks_per_server + before(channel);
    }

    /// Channels in one queue of a rank, where `outside` is the channel that crosses the network on that side.
    [[nodiscard]] std::int64_t channels_on(Lane lane, Rank outside) const {
        const std::int64_t crossing = exists(outside) ? 1 : 0;
        if (lane == local_lane()) {
            return std::ssize(p_.channels) - crossing;
        }
        return lane == lane_of(outside) ? crossing : 0;
    }
    /// Entry `index` of the local queue on that side.
    [[nodiscard]] Place local_place(Rank outside, std::int64_t index) const {
        const std::int64_t width = channels_on(local_lane(), outside);
        const auto number = static_cast<std::size_t>(first_after(outside) + index % width) % p_.channels.size();
        return {p_.channels[number], index / width};
    }
    /// Which place of a hop a channel has in the local queue on that side.
    [[nodiscard]] std::int64_t turn(Rank outside, Rank channel) const {
        const Rank ahead = number_of_[static_cast<std::size_t>(channel)] - first_after(outside);
        return ahead < 0 ? ahead + std::ssize(p_.channels) : ahead;
    }
    /// Number of the first existing channel after `channel`, going round; `channel` itself comes last.
    [[nodiscard]] Rank first_after(Rank channel) const {
        return first_from_[static_cast<std::size_t>(channel + 1 == p_.ranks_per_server ? 0 : channel + 1)];
    }

    ServerRingParameters p_;
    Rank ranks_;
    std::vector<RingPart> rings_;  ///< by number among the existing channels
    std::vector<Rank> first_from_; ///< number of the first existing channel >= c, or 0
    std::vector<Rank> number_of_;  ///< number of channel c, -1 when it does not exist
};

} // namespace

std::unique_ptr<const Schedule> make_ring(Rank ranks, std::int64_t elements) {
    return make_channel_ring(ranks, elements, {0});
}

std::unique_ptr<const Schedule> make_channel_ring(Rank ranks, std::int64_t elements, std::vector<std::int32_t> nics) {
    RB_CHECK(ranks >= 2, "a ring has at least two ranks");
    RB_CHECK(elements >= 1, "a vector has at least one element");
    RB_CHECK(!nics.empty() && nics.size() <= static_cast<std::size_t>(kMaxLanes), "a channel is a lane");
    return std::make_unique<ChannelRing>(ranks, elements, std::move(nics));
}

ServerRingParameters rail_aligned_ring(Rank servers, Rank ranks_per_server, std::int32_t nics_per_server,
                                       std::int64_t elements) {
    ServerRingParameters parameters{servers, ranks_per_server, elements, {}, {}};
    for (Rank channel = 0; channel < ranks_per_server; ++channel) {
        parameters.channels.push_back(channel);
    }
    for (Rank rank = 0; rank < servers * ranks_per_server; ++rank) {
        parameters.nics.push_back(rank % ranks_per_server % nics_per_server);
    }
    return parameters;
}

std::unique_ptr<const Schedule> make_server_ring(ServerRingParameters parameters) {
    RB_CHECK(parameters.servers >= 2 && parameters.ranks_per_server >= 2, "at least two servers of two ranks");
    RB_CHECK(parameters.elements >= 1, "a vector has at least one element");
    RB_CHECK(!parameters.channels.empty() && parameters.channels.front() >= 0 &&
                 parameters.channels.back() < parameters.ranks_per_server &&
                 std::is_sorted(parameters.channels.begin(), parameters.channels.end()),
             "channels are ascending numbers of ranks in a server");
    RB_CHECK(std::ssize(parameters.nics) == std::int64_t{parameters.servers} * parameters.ranks_per_server,
             "one NIC for every hop into a server");
    return std::make_unique<ServerRing>(std::move(parameters));
}

} // namespace railbreak::collective
