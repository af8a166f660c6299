// Going through a whole queue of a schedule, in order.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "collective/schedule.hpp"

namespace railbreak::collective {

/// Steps fetched at a time: few enough to stay in the processor's nearest cache.
inline constexpr std::size_t kWalkSteps = 256;

/// Calls `visit(index, step)` for every entry of a send queue.
template <class Visit> void walk_sends(const Schedule& schedule, Rank rank, Lane lane, Visit visit) {
    std::array<Step, kWalkSteps> buffer;
    const std::int64_t count = schedule.send_count(rank, lane);
    for (std::int64_t first = 0; first < count;) {
        const std::size_t size = std::min(kWalkSteps, static_cast<std::size_t>(count - first));
        schedule.send_steps(rank, lane, first, std::span(buffer).first(size));
        for (std::size_t i = 0; i < size; ++i) {
            visit(first++, static_cast<const Step&>(buffer[i]));
        }
    }
}

/// Calls `visit(index, step)` for every entry of a receive queue.
template <class Visit> void walk_receives(const Schedule& schedule, Rank rank, Lane lane, Visit visit) {
    std::array<Step, kWalkSteps> buffer;
    const std::int64_t count = schedule.receive_count(rank, lane);
    for (std::int64_t first = 0; first < count;) {
        const std::size_t size = std::min(kWalkSteps, static_cast<std::size_t>(count - first));
        schedule.receive_steps(rank, lane, first, std::span(buffer).first(size));
        for (std::size_t i = 0; i < size; ++i) {
            visit(first++, static_cast<const Step&>(buffer[i]));
        }
    }
}

} // namespace railbreak::collective
