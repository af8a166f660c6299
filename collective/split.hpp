// Cutting a range into nearly equal parts.
#pragma once

#include <cstdint>

namespace railbreak::collective {

/// floor(total * index / parts): where part `index` of `parts` nearly equal parts begins. Parts may be empty.
/// Written so that no intermediate value exceeds total + parts^2.
[[nodiscard]] constexpr std::int64_t split_point(std::int64_t total, std::int64_t parts, std::int64_t index) {
    return index * (total / parts) + index * (total % parts) / parts;
}

} // namespace railbreak::collective
