#include "collective/execute/links.hpp"

#include <set>

namespace railbreak::collective {

LinkSpec link_of(const Schedule& schedule, Rank rank, Direction direction, Rank peer, Lane lane) {
    return {direction, peer, lane, schedule.port(rank, lane), schedule.port(peer, lane)};
}

std::vector<LinkSpec> links_of(const Schedule& schedule, Rank rank) {
    std::set<LinkSpec> links;
    for (Lane lane = 0; lane < schedule.lanes(); ++lane) {
        for (std::int64_t i = 0; i < schedule.send_count(rank, lane); ++i) {
            if (const Step step = schedule.send_step(rank, lane, i); step.slice.count > 0) {
                links.insert(link_of(schedule, rank, Direction::kOutgoing, step.peer, lane));
            }
        }
        for (std::int64_t i = 0; i < schedule.receive_count(rank, lane); ++i) {
            if (const Step step = schedule.receive_step(rank, lane, i); step.slice.count > 0) {
                links.insert(link_of(schedule, rank, Direction::kIncoming, step.peer, lane));
            }
        }
    }
    return {links.begin(), links.end()};
}

} // namespace railbreak::collective
