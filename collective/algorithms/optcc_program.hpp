// What an OptCC plan does in which phase, without a word about ranks and elements.
//
// Every section of the vector is cut in the same way. Ring streams carry *units* (ranges of each section), stragglers
// exchange *segments* (ranges of each section); a phase has up to two ring streams, one segment on its way down from
// the stragglers, one on its way up to them. Units and segments may be cut differently (balanced plans do it), so a
// range is given in parts of a common scale, and what a stream must wait for is found by comparing range ends.
//
// All phases have room for the same number of steps; what a phase does not have is an empty step, which costs neither
// message nor time. So the place of a step in its queue needs no search.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "collective/algorithms/optcc.hpp"

namespace railbreak::collective {

/// Ring streams that a phase has room for.
inline constexpr std::int64_t kOptccStreams = 2;
/// No unit, no segment, no phase.
inline constexpr std::int64_t kOptccNone = -1;

/// A number of ranks, units or segments as an index.
[[nodiscard]] constexpr std::size_t at(std::int64_t index) {
    return static_cast<std::size_t>(index);
}

/// The phases of a plan.
struct OptccProgram {
    /// Part of every section, in 1/scale of it.
    struct Range {
        std::int64_t begin = 0;
        std::int64_t end = 0;
    };
    /// A ring stream: reduce-scatter or allgather of one unit.
    struct Stream {
        std::int64_t unit = kOptccNone;
        bool gather = false;
    };
    struct Phase {
        std::array<Stream, kOptccStreams> streams;
        std::int64_t down = kOptccNone; ///< segment that the stragglers send
        std::int64_t up = kOptccNone;   ///< segment that the stragglers receive (on link 0: see late_first_link)
    };
    /// Where a stream stands.
    struct Spot {
        std::int64_t phase = kOptccNone;
        std::int64_t stream = 0;
    };
    /// When the owner of a section has everything of a range of it.
    struct Ready {
        Spot reduced;                   ///< the reduce-scatter that ends last
        std::int64_t unit = kOptccNone; ///< its unit
        std::int64_t down = kOptccNone; ///< phase of the download that comes last; kOptccNone: needs none
    };

    std::int64_t scale = 1;
    std::vector<Phase> phases;
    std::vector<Range> units;
    std::vector<Range> segments;
    /// Per segment: the straggler adds its own values to the healthy sum and returns the total, instead of handing out
    /// its own values before. Only for one straggler: two of them would count the healthy sum twice.
    std::vector<bool> adds_at_straggler;
    /// Link 0 hands each segment up one phase later than the other links.
    bool late_first_link = false;
    /// Stragglers but the slowest get each segment one phase later than that one. Only the straggler that meets a link
    /// last can get a section one window after it has come down: it alone finds all downloads of it done by then.
    bool late_others = false;

    std::vector<std::int64_t> reduced_from; ///< per unit: the first phase that uses it; kOptccNone if none reduces it
    std::vector<Ready> gather_ready;        ///< per unit: before its allgather starts
    std::vector<Ready> up_ready;            ///< per segment: before it goes up
    std::vector<Spot> gathered;             ///< per unit: its allgather, if it has one
    std::vector<std::int64_t> up_phase;     ///< per segment, links other than 0
    std::vector<std::int64_t> last_segment; ///< per unit: the segment in which it ends
    /// Per unit: the phase after which every rank has its sum; kOptccNone if none gathers it.
    std::vector<std::int64_t> finished;

    [[nodiscard]] const Phase& phase(std::int64_t index) const { return phases[static_cast<std::size_t>(index)]; }
    /// The segment that goes up in a phase `late` phases after its first links.
    [[nodiscard]] std::int64_t up(std::int64_t index, std::int64_t late) const {
        return index < late ? kOptccNone : phase(index - late).up;
    }
    /// Phases from the first upload of a segment to its last one.
    [[nodiscard]] std::int64_t up_delay() const { return (late_first_link ? 1 : 0) + (late_others ? 1 : 0); }
};

/// The program of a plan. Of the parameters it looks at plan, segments, weights, late_first_link and the number of
/// stragglers.
[[nodiscard]] OptccProgram make_program(const OptccParameters& parameters);

} // namespace railbreak::collective
