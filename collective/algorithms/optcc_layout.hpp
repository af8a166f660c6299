// Where the pieces of an OptCC plan lie in the vector, and where its steps lie in the queues.
#pragma once

#include <array>
#include <cstdint>

#include "collective/algorithms/optcc.hpp"
#include "collective/schedule.hpp"
#include "collective/split.hpp"

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
    /// How a section is cut: sections come in two sizes, each with its own cut, so that no part needs a division.
    class SectionCut {
    public:
        SectionCut(const EvenSplit& sections, std::int64_t parts)
            : larger_(sections.largest(), parts), smaller_(sections.smallest(), parts),
              larger_section_(sections.largest()) {}
        [[nodiscard]] Slice part(const Slice& section, std::int64_t index) const {
            const Slice inside = (section.count == larger_section_ ? larger_ : smaller_).part(index);
            return {section.offset + inside.offset, inside.count};
        }

    private:
        EvenSplit larger_;
        EvenSplit smaller_;
        std::int64_t larger_section_;
    };

    std::int64_t ring_elements_;
    EvenSplit sections_;
    SectionCut units_;
    SectionCut segments_;
    EvenSplit star_chunks_;
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

/// What the queues of all links have in common on one side of one lane: how many steps each phase has. Made once per
/// schedule; a step then costs one division, the one that finds its phase.
struct LinkShape {
    LinkShape(std::int64_t healthy, std::int64_t segments, PerPhase streams_of_phase, PerPhase pauses_of_phase)
        : hops(healthy - 1), last_phase(segments), streams(streams_of_phase), pauses(pauses_of_phase),
          first_size(streams.first * hops + pauses.first), middle_size(streams.middle * hops + pauses.middle),
          last_begin(first_size + (last_phase - 1) * middle_size) {}

    [[nodiscard]] std::int64_t phase_begin(std::int64_t phase) const {
        return phase == 0 ? 0 : first_size + (phase - 1) * middle_size;
    }
    [[nodiscard]] std::int64_t count() const { return last_begin + streams.last * hops + pauses.last; }

    std::int64_t hops; ///< of one ring stream
    std::int64_t last_phase;
    PerPhase streams;
    PerPhase pauses;
    std::int64_t first_size;
    std::int64_t middle_size;
    std::int64_t last_begin;
};

/// One side of a link's work, phase by phase: h-1 hops of each ring stream, with the pause between hop link-1 and hop
/// `link`. Either kind may be absent (two lanes keep them apart). Translates between indices and places in O(1). Lives
/// as long as the shape at most. Inline, because a walk over all steps spends its time here.
class LinkQueue {
public:
    LinkQueue(const LinkShape& shape, std::int64_t link) : shape_(shape), link_(link) {}

    [[nodiscard]] Place locate(std::int64_t index) const {
        Place place;
        if (index >= shape_.last_begin) {
            place.phase = shape_.last_phase;
        } else if (index >= shape_.first_size) {
            place.phase = 1 + (index - shape_.first_size) / shape_.middle_size;
        }
        const std::int64_t within = index - shape_.phase_begin(place.phase);
        const std::int64_t streams = shape_.streams.at(place.phase, shape_.last_phase);
        const std::int64_t pauses = shape_.pauses.at(place.phase, shape_.last_phase);
        const std::int64_t pause_begin = streams * link_;
        if (within >= pause_begin && within < pause_begin + pauses) {
            place.pause = true;
            place.entry = within - pause_begin;
            place.window = link_;
            return place;
        }
        const std::int64_t hops = within < pause_begin ? within : within - pauses;
        // There are one or two streams, so no division is needed.
        place.window = streams == 2 ? hops >> 1 : hops;
        place.entry = streams == 2 ? hops & 1 : 0;
        return place;
    }

    [[nodiscard]] std::int64_t hop_index(std::int64_t phase, std::int64_t stream, std::int64_t hop) const {
        const std::int64_t before = hop >= link_ ? shape_.pauses.at(phase, shape_.last_phase) : 0;
        return shape_.phase_begin(phase) + shape_.streams.at(phase, shape_.last_phase) * hop + stream + before;
    }

    [[nodiscard]] std::int64_t pause_index(std::int64_t phase, std::int64_t entry) const {
        return shape_.phase_begin(phase) + shape_.streams.at(phase, shape_.last_phase) * link_ + entry;
    }

private:
    const LinkShape& shape_;
    std::int64_t link_;
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
