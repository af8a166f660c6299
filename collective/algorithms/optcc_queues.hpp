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

/// Quotient of an index and a phase size. Queues are shorter than 2^32 steps but for absurd plans, and dividing numbers
/// of 32 bits takes a fraction of the time.
[[nodiscard]] inline std::int64_t optcc_quotient(std::int64_t index, std::int64_t size) {
    if (((index | size) >> 32) == 0) {
        return static_cast<std::uint32_t>(index) / static_cast<std::uint32_t>(size);
    }
    return index / size;
}

/// What the queues of all links have in common on one side of one lane.
struct OptccShape {
    std::int64_t healthy = 0;
    std::int64_t stragglers = 0;
    std::int64_t phases = 0;
    std::int64_t streams = 0;   ///< ring streams of a phase on this lane: 0 or 2
    std::int64_t entries = 0;   ///< steps of a pause on this lane: 0..2
    std::int64_t exchanges = 0; ///< steps of a window in which stragglers meet: 0 or 2
    bool wrap = false;

    [[nodiscard]] std::int64_t link_size() const { return streams * (healthy - 1) + entries * stragglers; }
    [[nodiscard]] std::int64_t straggler_size() const {
        return entries * healthy + (entries > 0 ? exchanges * (stragglers - 1) : 0);
    }
};

/// One side of a link's work on one lane.
class OptccLinkQueue {
public:
    OptccLinkQueue(const OptccShape& shape, std::int64_t link)
        : shape_(shape), link_(link),
          early_(shape.wrap ? std::max<std::int64_t>(0, link + shape.stragglers - shape.healthy) : 0),
          head_(early_ * shape.entries), pause_begin_(head_ + shape.streams * (link - early_)),
          pause_end_(pause_begin_ + (shape.stragglers - early_) * shape.entries) {}

    [[nodiscard]] std::int64_t count() const { return shape_.phases * shape_.link_size(); }

    [[nodiscard]] OptccPlace locate(std::int64_t index) const {
        const std::int64_t size = shape_.link_size();
        const std::int64_t phase = optcc_quotient(index, size);
        const std::int64_t within = index - phase * size;
        if (within < head_) {
            const std::int64_t position = shape_.entries == 2 ? within >> 1 : within;
            return pause(phase, shape_.stragglers - early_ + position, within);
        }
        if (within >= pause_begin_ && within < pause_end_) {
            const std::int64_t offset = within - pause_begin_;
            return pause(phase, shape_.entries == 2 ? offset >> 1 : offset, offset);
        }
        const std::int64_t hops = within < pause_begin_ ? within - head_ : within - shape_.entries * shape_.stragglers;
        return {phase, OptccPlace::Kind::kHop, hops >> 1, hops & 1};
    }

    [[nodiscard]] std::int64_t hop_index(std::int64_t phase, std::int64_t stream, std::int64_t hop) const {
        const std::int64_t pauses = hop < link_ - early_ ? head_ : shape_.entries * shape_.stragglers;
        return phase * shape_.link_size() + pauses + shape_.streams * hop + stream;
    }
    [[nodiscard]] std::int64_t pause_index(std::int64_t phase, std::int64_t straggler, std::int64_t entry) const {
        const bool early = straggler >= shape_.stragglers - early_;
        const std::int64_t begin = early ? (straggler - (shape_.stragglers - early_)) * shape_.entries
                                         : pause_begin_ + straggler * shape_.entries;
        return phase * shape_.link_size() + begin + entry;
    }
    /// The first step of the last pause of a phase that is not at its head.
    [[nodiscard]] std::int64_t last_pause_index(std::int64_t phase) const {
        return phase * shape_.link_size() + pause_end_ - shape_.entries;
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

    [[nodiscard]] std::int64_t count() const { return shape_.phases * shape_.straggler_size(); }

    [[nodiscard]] OptccPlace locate(std::int64_t index) const {
        const std::int64_t size = shape_.straggler_size();
        const std::int64_t phase = optcc_quotient(index, size);
        const std::int64_t within = index - phase * size;
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
        return phase * shape_.straggler_size() + window * shape_.entries + entry;
    }
    [[nodiscard]] std::int64_t exchange_index(std::int64_t phase, std::int64_t distance, std::int64_t entry) const {
        return phase * shape_.straggler_size() + shape_.entries * shape_.healthy + 2 * (distance - 1) + entry;
    }
    /// Steps up to the end of a phase's visits and exchanges but for the last one: the step that brings, from the last
    /// healthy node or straggler of the phase, its part of a star chunk.
    [[nodiscard]] std::int64_t last_star_index(std::int64_t phase) const {
        const std::int64_t end = (phase + 1) * shape_.straggler_size();
        return shape_.exchanges > 0 && shape_.stragglers > 1 ? end - shape_.exchanges : end - 1;
    }

private:
    const OptccShape& shape_;
    std::int64_t straggler_;
};

} // namespace railbreak::collective
