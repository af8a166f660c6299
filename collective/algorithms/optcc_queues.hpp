// Where the steps of an OptCC plan stand in the queues of one rail.
//
// Link i joins the send side of node i-1 to the receive side of node i; both sides have the same order. A phase of a
// link has h-1 hops, each of all ring streams, and a pause for each straggler. Straggler a meets link i in window i+a:
// the pauses of a link follow each other, between hop i-1 and hop i ("block"). Where the stragglers also exchange star
// chunks with each other, straggler a meets link i in window (i+a) mod h, so that the m-1 windows behind the first h
// are free for that ("wrap"): then the pauses for the last i+m-h stragglers stand at the head of the phase.
//
// Inline, because a walk over all steps spends its time here.
#pragma once

#include <algorithm>
#include <cstdint>

namespace railbreak::collective {

/// What stands at an index of a queue.
struct OptccPlace {
    enum class Kind : std::uint8_t {
        kHop,      ///< `number` is the hop, `entry` the ring stream
        kPause,    ///< `number` is the straggler (in a link's queue) or the link (in a straggler's), `entry` counts
        kExchange, ///< `number` is the distance 1..m-1 between the two stragglers, `entry` counts
    };
    std::int64_t phase = 0;
    Kind kind = Kind::kHop;
    std::int64_t number = 0;
    std::int64_t entry = 0;
};

/// A number to divide by, over and over. Dividing by multiplication with the reciprocal is exact while both numbers are
/// below 2^32, and takes a fraction of the time; queues are longer only in absurd plans.
class OptccDivisor {
public:
    explicit OptccDivisor(std::int64_t value) : value_(value) {
        if (value > 1 && value >> 32 == 0) {
            reciprocal_ = ~std::uint64_t{0} / static_cast<std::uint64_t>(value) + 1;
        }
    }
    [[nodiscard]] std::int64_t value() const { return value_; }
    /// floor(index / value), for index >= 0.
    [[nodiscard]] std::int64_t quotient(std::int64_t index) const {
        if (index >> 32 == 0 && reciprocal_ != 0) {
            __extension__ using Wide = unsigned __int128;
            return static_cast<std::int64_t>(Wide{reciprocal_} * static_cast<std::uint64_t>(index) >> 64);
        }
        return index / value_;
    }

private:
    std::int64_t value_;
    std::uint64_t reciprocal_ = 0; ///< ceil(2^64 / value), or 0: do divide
};

/// What the queues of all links have in common on one side of one lane.
struct OptccShape {
    /// ring_streams: of a phase on this lane, 0 or 2. pause_entries: steps of a pause, 0..2. window_exchanges: steps of
    /// a window in which stragglers meet, 0 or 2.
    OptccShape(std::int64_t healthy_nodes, std::int64_t straggler_count, std::int64_t phase_count,
               std::int64_t ring_streams, std::int64_t pause_entries, std::int64_t window_exchanges, bool wrapped)
        : healthy(healthy_nodes), stragglers(straggler_count), phases(phase_count), streams(ring_streams),
          entries(pause_entries), exchanges(window_exchanges), wrap(wrapped), pauses(pause_entries * straggler_count),
          link_size(ring_streams * (healthy_nodes - 1) + pauses),
          straggler_size(pause_entries * healthy_nodes +
                         (pause_entries > 0 ? window_exchanges * (straggler_count - 1) : 0)) {}

    std::int64_t healthy;
    std::int64_t stragglers;
    std::int64_t phases;
    std::int64_t streams;
    std::int64_t entries;
    std::int64_t exchanges;
    bool wrap;
    std::int64_t pauses;         ///< steps of all pauses of a link in a phase
    OptccDivisor link_size;      ///< steps of a link in a phase
    OptccDivisor straggler_size; ///< steps of a straggler in a phase
};

/// One side of a link's work on one lane.
class OptccLinkQueue {
public:
    OptccLinkQueue(const OptccShape& shape, std::int64_t link)
        : shape_(shape), link_(link),
          early_(shape.wrap ? std::max<std::int64_t>(0, link + shape.stragglers - shape.healthy) : 0),
          head_(early_ * shape.entries), pause_begin_(head_ + shape.streams * (link - early_)),
          pause_end_(pause_begin_ + (shape.stragglers - early_) * shape.entries) {}

    [[nodiscard]] std::int64_t count() const { return shape_.phases * shape_.link_size.value(); }

    [[nodiscard]] OptccPlace locate(std::int64_t index) const {
        const std::int64_t phase = shape_.link_size.quotient(index);
        const std::int64_t within = index - phase * shape_.link_size.value();
        if (within < head_) {
            const std::int64_t position = shape_.entries == 2 ? within >> 1 : within;
            return pause(phase, shape_.stragglers - early_ + position, within);
        }
        if (within >= pause_begin_ && within < pause_end_) {
            const std::int64_t offset = within - pause_begin_;
            return pause(phase, shape_.entries == 2 ? offset >> 1 : offset, offset);
        }
        const std::int64_t hops = within < pause_begin_ ? within - head_ : within - shape_.pauses;
        return {phase, OptccPlace::Kind::kHop, hops >> 1, hops & 1};
    }

    /// How many hops of a phase come before the pauses that are not at its head.
    [[nodiscard]] std::int64_t hops_before_pause() const { return link_ - early_; }
    /// How many hop steps, this one included, follow each other from a hop's step on.
    [[nodiscard]] std::int64_t hops_from(std::int64_t index) const {
        const std::int64_t within = index - shape_.link_size.quotient(index) * shape_.link_size.value();
        return (within < pause_begin_ ? pause_begin_ : shape_.link_size.value()) - within;
    }

    [[nodiscard]] std::int64_t hop_index(std::int64_t phase, std::int64_t stream, std::int64_t hop) const {
        const std::int64_t pauses = hop < link_ - early_ ? head_ : shape_.pauses;
        return phase * shape_.link_size.value() + pauses + shape_.streams * hop + stream;
    }
    [[nodiscard]] std::int64_t pause_index(std::int64_t phase, std::int64_t straggler, std::int64_t entry) const {
        const bool early = straggler >= shape_.stragglers - early_;
        const std::int64_t begin = early ? (straggler - (shape_.stragglers - early_)) * shape_.entries
                                         : pause_begin_ + straggler * shape_.entries;
        return phase * shape_.link_size.value() + begin + entry;
    }
    /// The first step of the last pause of a phase that is not at its head.
    [[nodiscard]] std::int64_t last_pause_index(std::int64_t phase) const {
        return phase * shape_.link_size.value() + pause_end_ - shape_.entries;
    }

private:
    [[nodiscard]] OptccPlace pause(std::int64_t phase, std::int64_t straggler, std::int64_t offset) const {
        return {phase, OptccPlace::Kind::kPause, straggler, shape_.entries == 2 ? offset & 1 : 0};
    }

    const OptccShape& shape_;
    std::int64_t link_;
    std::int64_t early_; ///< pauses at the head of a phase
    std::int64_t head_;
    std::int64_t pause_begin_;
    std::int64_t pause_end_;
};

/// One side of a straggler's work on the lane of its visits: one link after the other, then the other stragglers.
class OptccStragglerQueue {
public:
    OptccStragglerQueue(const OptccShape& shape, std::int64_t straggler) : shape_(shape), straggler_(straggler) {}

    [[nodiscard]] std::int64_t count() const { return shape_.phases * shape_.straggler_size.value(); }

    [[nodiscard]] OptccPlace locate(std::int64_t index) const {
        const std::int64_t phase = shape_.straggler_size.quotient(index);
        const std::int64_t within = index - phase * shape_.straggler_size.value();
        const std::int64_t visits = shape_.entries * shape_.healthy;
        if (within >= visits) {
            return {phase, OptccPlace::Kind::kExchange, 1 + ((within - visits) >> 1), (within - visits) & 1};
        }
        const std::int64_t window = shape_.entries == 2 ? within >> 1 : within;
        const std::int64_t link = shape_.wrap ? window - straggler_ : window;
        return {phase, OptccPlace::Kind::kPause, link < 0 ? link + shape_.healthy : link,
                shape_.entries == 2 ? within & 1 : 0};
    }

    [[nodiscard]] std::int64_t visit_index(std::int64_t phase, std::int64_t link, std::int64_t entry) const {
        const std::int64_t shifted = shape_.wrap ? link + straggler_ : link;
        const std::int64_t window = shifted >= shape_.healthy ? shifted - shape_.healthy : shifted;
        return phase * shape_.straggler_size.value() + window * shape_.entries + entry;
    }
    [[nodiscard]] std::int64_t exchange_index(std::int64_t phase, std::int64_t distance, std::int64_t entry) const {
        return phase * shape_.straggler_size.value() + shape_.entries * shape_.healthy + 2 * (distance - 1) + entry;
    }
    /// Steps up to the end of a phase's visits and exchanges but for the last one: the step that brings, from the last
    /// healthy node or straggler of the phase, its part of a star chunk.
    [[nodiscard]] std::int64_t last_star_index(std::int64_t phase) const {
        const std::int64_t end = (phase + 1) * shape_.straggler_size.value();
        return shape_.exchanges > 0 && shape_.stragglers > 1 ? end - shape_.exchanges : end - 1;
    }

private:
    const OptccShape& shape_;
    std::int64_t straggler_;
};

} // namespace railbreak::collective
