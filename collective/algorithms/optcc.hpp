// OptCC schedules: the healthy ranks keep a full-speed ring, and every straggler exchanges every element with it
// exactly once in each direction, in pauses that circulate round the ring.
//
// With several ranks a server the words rank and straggler below mean servers: rank r of every server forms rail r,
// which does the same on its share of the vector through NIC r, and the ranks of a server add up and hand round what
// the rails carry on their intra-host ports.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/rational.hpp"
#include "collective/schedule.hpp"

namespace railbreak::collective {

/// The plans, which differ in how the vector is cut and in what the pauses carry.
enum class OptccPlan : std::uint8_t {
    kUniform,  ///< "u": k equal segments, k+1 phases, for ring and stragglers alike
    kBalanced, ///< "bs": k+1 ring slices and k straggler segments, so that every phase has equal ring work
    kStar,     ///< "star": kUniform, plus chunks that use what a straggler faster than half speed leaves of a pause
    kLag,      ///< "lag": unequal segments that go up one window after they came down (to the slowest straggler)
    kLagStar,  ///< "lag-star": kLag with star chunks (one straggler)
    kRamp,     ///< "ramp": kLag with segments that grow faster, since the ring reduces first and gathers later
    kPatterns, ///< "abcd": the four interleaved patterns of the OptCC paper (one straggler, k a multiple of 4)
};

/// Everything that determines an OptCC schedule.
struct OptccParameters {
    Rank servers = 0;             ///< >= stragglers + 2
    std::vector<Rank> stragglers; ///< at least one server, the slowest first
    std::int64_t elements = 0;    ///< of the vector, >= 1
    OptccPlan plan = OptccPlan::kBalanced;
    std::int64_t segments = 1; ///< k >= 1
    /// kLag, kLagStar, kRamp: k relative sizes of the segments, > 0; kRamp: symmetric. Otherwise empty.
    std::vector<std::int64_t> weights;
    /// For each straggler, how many elements at the end of the vector travel by its star; empty unless kStar, kLagStar.
    std::vector<std::int64_t> star_elements;
    /// kLagStar: k+1 relative sizes of the star chunks, not all 0. Otherwise empty: equal chunks.
    std::vector<std::int64_t> star_weights;
    /// Two NIC lanes: straggler flows run beside ring flows instead of in pauses between them.
    bool shared = false;
    /// Link 0 hands each segment up one phase later than the others (kUniform). Of use with several stragglers of which
    /// one is slower than half speed: then phases overlap, and the last download of a phase, which link 0 would have
    /// to wait for, would hold up the next one.
    bool late_first_link = false;
    Rank ranks_per_server = 1;        ///< g >= 1
    std::int32_t nics_per_server = 1; ///< rank r of a server uses its NIC r modulo this
};

/// "u", "bs", "star", "lag", "lag-star", "ramp", "abcd": as in options and names.
[[nodiscard]] std::string_view to_string(OptccPlan plan);

/// How many of `elements` elements the star chunks of each straggler carry so that every chunk fills its pause exactly:
/// n c_a / (h + c_1 + .. + c_m) with c = (2-l)/l, rounded down; 0 from slowdown 2 on.
[[nodiscard]] std::vector<std::int64_t> star_shares(Rank servers, std::int64_t elements,
                                                    const std::vector<Rational>& slowdowns);

/// The schedule. Every step of every rank is computed in O(1) without allocation.
[[nodiscard]] std::unique_ptr<const Schedule> make_optcc(const OptccParameters& parameters);

} // namespace railbreak::collective
