#include "collective/algorithms/optcc_layout.hpp"

namespace railbreak::collective {

OptccLayout::OptccLayout(const OptccParameters& parameters)
    : ring_elements_(parameters.elements - parameters.star_elements), sections_(ring_elements_, parameters.ranks - 1),
      units_(sections_, parameters.plan == OptccPlan::kBalanced ? parameters.segments + 1 : parameters.segments),
      segments_(sections_, parameters.segments), star_chunks_(parameters.star_elements, parameters.segments) {}

Slice OptccLayout::ring_part(std::int64_t unit, std::int64_t section) const {
    return units_.part(sections_.part(section), unit);
}

Slice OptccLayout::segment_part(std::int64_t segment, std::int64_t section) const {
    return segments_.part(sections_.part(section), segment);
}

Slice OptccLayout::star_chunk(std::int64_t chunk) const {
    const Slice inside = star_chunks_.part(chunk);
    return {ring_elements_ + inside.offset, inside.count};
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
