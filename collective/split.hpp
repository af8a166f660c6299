// Cutting a range into nearly equal parts.
#pragma once

#include <cstdint>

#include "collective/schedule.hpp"

namespace railbreak::collective {

/// Part `index` of `parts` nearly equal parts of `total` elements: from floor(total*index/parts) to where the next part
/// begins. Parts may be empty. Two divisions, no intermediate value above total + parts^2.
[[nodiscard]] constexpr Slice split_part(std::int64_t total, std::int64_t parts, std::int64_t index) {
    const std::int64_t each = total / parts;
    const std::int64_t rest = total % parts;
    const std::int64_t extra = index * rest;
    return {index * each + extra / parts, each + (extra % parts + rest >= parts ? 1 : 0)};
}

} // namespace railbreak::collective
