#include "collective/algorithms/optcc_layout.hpp"

#include "collective/split.hpp"

namespace railbreak::collective {

OptccLayout::OptccLayout(const OptccParameters& parameters)
    : healthy_(parameters.ranks - 1), segments_(parameters.segments),
      units_(parameters.plan == OptccPlan::kBalanced ? parameters.segments + 1 : parameters.segments),
      ring_elements_(parameters.elements - parameters.star_elements), star_elements_(parameters.star_elements) {}

Slice OptccLayout::part(std::int64_t section, std::int64_t parts, std::int64_t index) const {
    const Slice whole = split_part(ring_elements_, healthy_, section);
    const Slice inside = split_part(whole.count, parts, index);
    return {whole.offset + inside.offset, inside.count};
}

Slice OptccLayout::ring_part(std::int64_t unit, std::int64_t section) const {
    return part(section, units_, unit);
}

Slice OptccLayout::segment_part(std::int64_t segment, std::int64_t section) const {
    return part(section, segments_, segment);
}

Slice OptccLayout::star_chunk(std::int64_t chunk) const {
    const Slice inside = split_part(star_elements_, segments_, chunk);
    return {ring_elements_ + inside.offset, inside.count};
}

std::int64_t LinkQueue::phase_size(std::int64_t phase) const {
    return streams_.at(phase, last_phase_) * (healthy_ - 1) + pauses_.at(phase, last_phase_);
}

std::int64_t LinkQueue::phase_begin(std::int64_t phase) const {
    const std::int64_t middle = streams_.middle * (healthy_ - 1) + pauses_.middle;
    return phase == 0 ? 0 : phase_size(0) + (phase - 1) * middle;
}

Place LinkQueue::locate(std::int64_t index) const {
    Place place;
    const std::int64_t last_begin = phase_begin(last_phase_);
    if (index >= last_begin) {
        place.phase = last_phase_;
    } else if (index >= phase_size(0)) {
        place.phase = 1 + (index - phase_size(0)) / (streams_.middle * (healthy_ - 1) + pauses_.middle);
    }
    const std::int64_t within = index - phase_begin(place.phase);
    const std::int64_t streams = streams_.at(place.phase, last_phase_);
    const std::int64_t pauses = pauses_.at(place.phase, last_phase_);
    const std::int64_t pause_begin = streams * link_;
    if (within >= pause_begin && within < pause_begin + pauses) {
        place.pause = true;
        place.entry = within - pause_begin;
        place.window = link_;
        return place;
    }
    const std::int64_t hops = within < pause_begin ? within : within - pauses;
    // There are one or two streams; a division would be the dearest part of a step.
    place.window = streams == 2 ? hops >> 1 : hops;
    place.entry = streams == 2 ? hops & 1 : 0;
    return place;
}

std::int64_t LinkQueue::hop_index(std::int64_t phase, std::int64_t stream, std::int64_t hop) const {
    const std::int64_t before = hop >= link_ ? pauses_.at(phase, last_phase_) : 0;
    return phase_begin(phase) + streams_.at(phase, last_phase_) * hop + stream + before;
}

std::int64_t LinkQueue::pause_index(std::int64_t phase, std::int64_t entry) const {
    return phase_begin(phase) + streams_.at(phase, last_phase_) * link_ + entry;
}

std::int64_t StragglerQueue::count() const {
    return healthy_ * (pauses_.first + (last_phase_ - 1) * pauses_.middle + pauses_.last);
}

Place StragglerQueue::locate(std::int64_t index) const {
    Place place;
    place.pause = true;
    const std::int64_t first_size = healthy_ * pauses_.first;
    const std::int64_t last_begin = first_size + (last_phase_ - 1) * healthy_ * pauses_.middle;
    std::int64_t within = index;
    if (index >= last_begin) {
        place.phase = last_phase_;
        within = index - last_begin;
    } else if (index >= first_size) {
        place.phase = 1 + (index - first_size) / (healthy_ * pauses_.middle);
        within = (index - first_size) % (healthy_ * pauses_.middle);
    }
    const std::int64_t entries = pauses_.at(place.phase, last_phase_);
    place.window = within / entries;
    place.entry = within % entries;
    return place;
}

std::int64_t StragglerQueue::index(std::int64_t phase, std::int64_t window, std::int64_t entry) const {
    const std::int64_t begin = phase == 0 ? 0 : healthy_ * (pauses_.first + (phase - 1) * pauses_.middle);
    return begin + window * pauses_.at(phase, last_phase_) + entry;
}

} // namespace railbreak::collective
