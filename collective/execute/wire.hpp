// The header in front of every step's data. It costs 32 bytes a step and turns two ranks that follow different plans,
// or a stream that is out of step, into a named error instead of a wrong sum.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "collective/schedule.hpp"

namespace railbreak::collective {

/// What both ends of a step must agree on.
struct StepHeader {
    std::uint32_t run = 0;     ///< how many runs the executor made before
    std::uint32_t ordinal = 0; ///< number of the step among the non-empty steps of its link in this run
    std::int64_t offset = 0;   ///< first element
    std::uint64_t bytes = 0;   ///< of data
    Lane lane = 0;
    Stage stage = Stage::kProbe;
    Combine combine = Combine::kCopy;
    bool operator==(const StepHeader&) const = default;
};

inline constexpr std::size_t kHeaderBytes = 32;
using HeaderBytes = std::array<std::byte, kHeaderBytes>;

/// The header as it crosses the wire (little-endian, with a magic number and a format version).
[[nodiscard]] HeaderBytes pack(const StepHeader& header);
/// Empty when `received` is exactly what `expected` packs to; otherwise one sentence that tells the difference.
[[nodiscard]] std::string mismatch(const StepHeader& expected, const HeaderBytes& received);

} // namespace railbreak::collective
