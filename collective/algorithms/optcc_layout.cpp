#include "collective/algorithms/optcc_layout.hpp"

#include <numeric>

namespace railbreak::collective {

namespace {

/// floor(total * part / scale), without overflow.
std::int64_t share(std::int64_t total, std::int64_t part, std::int64_t scale) {
    return static_cast<std::int64_t>(static_cast<__int128>(total) * part / scale);
}

std::vector<Slice> cut_section(std::int64_t size, const std::vector<OptccProgram::Range>& ranges, std::int64_t scale) {
    std::vector<Slice> parts;
    parts.reserve(ranges.size());
    for (const OptccProgram::Range& range : ranges) {
        const std::int64_t begin = share(size, range.begin, scale);
        parts.push_back({begin, share(size, range.end, scale) - begin});
    }
    return parts;
}

std::int64_t sum(const std::vector<std::int64_t>& values) {
    return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

} // namespace

OptccLayout::OptccLayout(const OptccProgram& program, std::int64_t elements, std::int64_t healthy,
                         const std::vector<std::int64_t>& star_elements, const std::vector<std::int64_t>& star_weights)
    : sections_(elements - sum(star_elements), healthy), unit_cut_(cut(program.units, program.scale)),
      segment_cut_(cut(program.segments, program.scale)),
      star_chunks_(static_cast<std::int64_t>(program.phases.size()) - 1) {
    cut_star(elements - sum(star_elements), star_elements, star_weights);
}

OptccLayout::Cut OptccLayout::cut(const std::vector<OptccProgram::Range>& ranges, std::int64_t scale) const {
    return {cut_section(sections_.largest(), ranges, scale), cut_section(sections_.smallest(), ranges, scale)};
}

void OptccLayout::cut_star(std::int64_t offset, const std::vector<std::int64_t>& star_elements,
                           const std::vector<std::int64_t>& star_weights) {
    for (const std::int64_t elements : star_elements) {
        const std::int64_t total = star_weights.empty() ? star_chunks_ : sum(star_weights);
        std::int64_t before = 0;
        for (std::int64_t chunk = 0; chunk < star_chunks_; ++chunk) {
            const std::int64_t weight = star_weights.empty() ? 1 : star_weights[static_cast<std::size_t>(chunk)];
            const std::int64_t begin = share(elements, before, total);
            before += weight;
            star_.push_back({offset + begin, share(elements, before, total) - begin});
        }
        offset += elements;
    }
}

} // namespace railbreak::collective
