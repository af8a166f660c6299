// Where the pieces of an OptCC plan lie in the vector.
#pragma once

#include <cstdint>
#include <vector>

#include "collective/algorithms/optcc.hpp"
#include "collective/algorithms/optcc_program.hpp"
#include "collective/schedule.hpp"
#include "collective/split.hpp"

namespace railbreak::collective {

/// Element ranges of a vector of `elements` elements (may be 0). The vector is cut into h sections first and each
/// section into units and segments, so that "unit x of section d" and "segment j of section d" are each one contiguous
/// range although a balanced plan's units and segments overlap. Star chunks lie behind the sections, straggler by
/// straggler. Any part may be empty.
class OptccLayout {
public:
    OptccLayout(const OptccProgram& program, std::int64_t elements, std::int64_t healthy,
                const std::vector<std::int64_t>& star_elements, const std::vector<std::int64_t>& star_weights);

    /// Where the parts of one unit lie, section by section. A value of its own, which a loop can keep in registers.
    class UnitParts {
    public:
        UnitParts(const EvenSplit& sections, const Slice& larger, const Slice& smaller)
            : sections_(sections), larger_(larger), smaller_(smaller) {}
        [[nodiscard]] Slice part(std::int64_t section) const {
            const Slice whole = sections_.part(section);
            const Slice& inside = whole.count == sections_.largest() ? larger_ : smaller_;
            return {whole.offset + inside.offset, inside.count};
        }

    private:
        EvenSplit sections_;
        Slice larger_;
        Slice smaller_;
    };

    /// The parts of a unit: part(section) is ring_part(unit, section).
    [[nodiscard]] UnitParts unit_parts(std::int64_t unit) const {
        const auto index = static_cast<std::size_t>(unit);
        return {sections_, unit_cut_.larger[index], unit_cut_.smaller[index]};
    }
    /// Part of section `section` that travels round the ring as unit `unit`.
    [[nodiscard]] Slice ring_part(std::int64_t unit, std::int64_t section) const {
        return part(unit_cut_, unit, section);
    }
    /// Part of section `section` that the stragglers exchange as segment `segment`.
    [[nodiscard]] Slice segment_part(std::int64_t segment, std::int64_t section) const {
        return part(segment_cut_, segment, section);
    }
    /// Star chunk `chunk` (0 .. phases-2) of straggler `straggler`; empty where the plan has none.
    [[nodiscard]] Slice star_chunk(std::int64_t chunk, std::int64_t straggler) const {
        const std::size_t row = static_cast<std::size_t>(straggler * star_chunks_ + chunk);
        return star_.empty() || chunk < 0 || chunk >= star_chunks_ ? Slice{} : star_[row];
    }

private:
    /// How a section is cut: sections come in two sizes, each with its own ranges.
    struct Cut {
        std::vector<Slice> larger;
        std::vector<Slice> smaller;
    };

    [[nodiscard]] Cut cut(const std::vector<OptccProgram::Range>& ranges, std::int64_t scale) const;
    void cut_star(std::int64_t offset, const std::vector<std::int64_t>& star_elements,
                  const std::vector<std::int64_t>& star_weights);
    [[nodiscard]] Slice part(const Cut& cut, std::int64_t index, std::int64_t section) const {
        const Slice whole = sections_.part(section);
        const Slice inside =
            (whole.count == sections_.largest() ? cut.larger : cut.smaller)[static_cast<std::size_t>(index)];
        return {whole.offset + inside.offset, inside.count};
    }

    EvenSplit sections_;
    Cut unit_cut_;
    Cut segment_cut_;
    std::int64_t star_chunks_; ///< of one straggler
    std::vector<Slice> star_;
};

} // namespace railbreak::collective
