// Where the pieces of an OptCC plan lie in the vector, and where its steps lie in the queues.
#pragma once

#include <array>
#include <cstdint>

#include "collective/algorithms/optcc.hpp"
#include "collective/schedule.hpp"

namespace railbreak::collective {

/// Element ranges. The vector is cut into h sections first and each section into slices and segments, so that "slice
/// x of section d" and "segment j of section d" are each one contiguous range although a balanced plan's slices and
/// segments overlap. Star chunks lie behind the sections. Any part may be empty.
class OptccLayout {
public:
    explicit OptccLayout(const OptccParameters& parameters);

    /// Part of section `section` that travels round the ring as unit `unit` (0..k-1, balanced 0..k).
    [[nodiscard]] Slice ring_part(std::int64_t unit, std::int64_t section) const;
    /// Part of section `section` that the straggler exchanges as segment `segment` (0..k-1).
    [[nodiscard]] Slice segment_part(std::int64_t segment, std::int64_t section) const;
    /// Star chunk `chunk` (0..k-1).
    [[nodiscard]] Slice star_chunk(std::int64_t chunk) const;

private:
    [[nodiscard]] Slice part(std::int64_t section, std::int64_t parts, std::int64_t index) const;

    std::int64_t healthy_;
    std::int64_t segments_;
    std::int64_t units_;
    std::int64_t ring_elements_;
    std::int64_t star_elements_;
};

/// A count that is the same in all phases but the first and the last.
struct PerPhase {
    std::int64_t first = 0;
    std::int64_t middle = 0;
    std::int64_t last = 0;
    [[nodiscard]] std::int64_t at(std::int64_t phase, std::int64_t last_phase) const {
        return phase == 0 ? first : phase == last_phase ? last : middle;
    }
};

/// What stands at an index of a queue.
struct Place {
    std::int64_t phase = 0;
    bool pause = false;      ///< a straggler step, otherwise a ring hop
    std::int64_t entry = 0;  ///< which one of the pause, or which of the phase's ring streams
    std::int64_t window = 0; ///< hop number; for the straggler the window, that is the link it meets
};

/// One side of a link's work, phase by phase: h-1 hops of each ring stream, with the pause between hop link-1 and hop
/// `link`. Either kind may be absent (two lanes keep them apart). Translates between indices and places in O(1).
class LinkQueue {
public:
    LinkQueue(std::int64_t healthy, std::int64_t segments, std::int64_t link, PerPhase streams, PerPhase pauses)
        : healthy_(healthy), last_phase_(segments), link_(link), streams_(streams), pauses_(pauses) {}

    [[nodiscard]] std::int64_t count() const { return phase_begin(last_phase_) + phase_size(last_phase_); }
    [[nodiscard]] Place locate(std::int64_t index) const;
    [[nodiscard]] std::int64_t hop_index(std::int64_t phase, std::int64_t stream, std::int64_t hop) const;
    [[nodiscard]] std::int64_t pause_index(std::int64_t phase, std::int64_t entry) const;

private:
    [[nodiscard]] std::int64_t phase_size(std::int64_t phase) const;
    [[nodiscard]] std::int64_t phase_begin(std::int64_t phase) const;

    std::int64_t healthy_;
    std::int64_t last_phase_;
    std::int64_t link_;
    PerPhase streams_;
    PerPhase pauses_;
};

/// One side of the straggler's work: in window t of every phase the pause steps of link t.
class StragglerQueue {
public:
    StragglerQueue(std::int64_t healthy, std::int64_t segments, PerPhase pauses)
        : healthy_(healthy), last_phase_(segments), pauses_(pauses) {}

    [[nodiscard]] std::int64_t count() const;
    [[nodiscard]] Place locate(std::int64_t index) const;
    [[nodiscard]] std::int64_t index(std::int64_t phase, std::int64_t window, std::int64_t entry) const;

private:
    std::int64_t healthy_;
    std::int64_t last_phase_;
    PerPhase pauses_;
};

} // namespace railbreak::collective
