#include "collective/execute/links.hpp"

#include <set>

#include "collective/walk.hpp"

namespace railbreak::collective {

LinkSpec link_of(const Schedule& schedule, Rank rank, Direction direction, Rank peer, Lane lane) {
    return {direction, peer, lane, schedule.port(rank, lane), schedule.port(peer, lane)};
}

std::vector<LinkSpec> links_of(const Schedule& schedule, Rank rank) {
    std::set<LinkSpec> links;
    for (Lane lane = 0; lane < schedule.lanes(); ++lane) {
        const auto collect = [&](Direction direction) {
            return [&, direction, last = Rank{-1}](std::int64_t, const Step& step) mutable {
                if (step.slice.count > 0 && step.peer != last) { // mostly the peer of the step before
                    last = step.peer;
                    links.insert(link_of(schedule, rank, direction, step.peer, lane));
                }
            };
        };
        walk_sends(schedule, rank, lane, collect(Direction::kOutgoing));
        walk_receives(schedule, rank, lane, collect(Direction::kIncoming));
    }
    return {links.begin(), links.end()};
}

} // namespace railbreak::collective
