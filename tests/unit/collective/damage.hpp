// What tests that damage a written-out schedule share.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collective/verify.hpp"
#include "tests/unit/collective/list_schedule.hpp"

namespace railbreak::collective::test {

/// One entry of one queue.
struct Spot {
    Rank rank = -1;
    Lane lane = 0;
    std::size_t index = 0;
};

inline Step& send_at(ListSchedule& schedule, const Spot& spot) {
    return schedule.sends(spot.rank, spot.lane)[spot.index];
}

/// Where the other end of a send step stands.
inline Spot other_end(ListSchedule& schedule, const Spot& spot) {
    const std::vector<Step>& sends = schedule.sends(spot.rank, spot.lane);
    const Rank peer = sends[spot.index].peer;
    std::size_t nth = 0;
    for (std::size_t i = 0; i < spot.index; ++i) {
        nth += sends[i].peer == peer ? 1 : 0;
    }
    const std::vector<Step>& receives = schedule.receives(peer, spot.lane);
    for (std::size_t i = 0; i < receives.size(); ++i) {
        if (receives[i].peer == spot.rank && nth-- == 0) {
            return {peer, spot.lane, i};
        }
    }
    ADD_FAILURE() << "unpaired model";
    return {};
}

inline Step& receive_at(ListSchedule& schedule, const Spot& spot) {
    return schedule.receives(spot.rank, spot.lane)[spot.index];
}

/// The rule that the verifier finds broken first, or "accepted".
inline std::string first_rule(const Schedule& schedule) {
    const std::vector<Violation> found = verify(schedule, 4);
    return found.empty() ? "accepted" : found.front().rule;
}

} // namespace railbreak::collective::test
