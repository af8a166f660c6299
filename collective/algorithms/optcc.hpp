// OptCC schedules for one straggler: the healthy ranks keep a full-speed ring, and the straggler exchanges every
// element with it exactly once in each direction, in pauses that circulate round the ring.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/rational.hpp"
#include "collective/schedule.hpp"

namespace railbreak::collective {

/// The plans, which differ in how the vector is cut and in what the pauses carry.
enum class OptccPlan : std::uint8_t {
    kUniform,  ///< "u": k equal segments, k+1 phases, for ring and straggler alike
    kBalanced, ///< "bs": k+1 ring slices and k straggler segments, so that every phase has equal ring work
    kStar,     ///< "star": kUniform, plus chunks that use what a straggler faster than half speed leaves of a pause
};

/// Everything that determines an OptCC schedule.
struct OptccParameters {
    Rank ranks = 0;            ///< >= 3
    Rank straggler = 0;        ///< its rank
    std::int64_t elements = 0; ///< of the vector, >= 1
    OptccPlan plan = OptccPlan::kBalanced;
    std::int64_t segments = 1;      ///< k >= 1
    std::int64_t star_elements = 0; ///< elements at the end of the vector that travel by star; 0 unless kStar
    bool shared = false; ///< two lanes: straggler flows run beside ring flows instead of in pauses between them
};

/// "u", "bs", "star": as in options and names.
[[nodiscard]] std::string_view to_string(OptccPlan plan);

/// How many of `elements` elements the star chunks of all phases carry so that each fills its pause exactly:
/// n (2-l)/(h l + 2-l), rounded down; 0 from slowdown 2 on.
[[nodiscard]] std::int64_t star_share(Rank ranks, std::int64_t elements, const Rational& slowdown);

/// The schedule. Every step of every rank is computed in O(1) without allocation.
[[nodiscard]] std::unique_ptr<const Schedule> make_optcc(const OptccParameters& parameters);

} // namespace railbreak::collective
