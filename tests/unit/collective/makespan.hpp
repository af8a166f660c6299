// Exact time of a schedule on exclusive ports: every queue starts its next step as soon as both ends are free and the
// data is there. Whole messages, no cut-through: the model in which the closed forms hold.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "collective/schedule.hpp"

namespace railbreak::collective::test {

/// Time in ticks; an element from u to v takes max(ticks[u], ticks[v]), on a local port `local` ticks, a flow
/// `overhead` ticks more. Every lane has a port to itself.
inline std::int64_t makespan(const Schedule& schedule, const std::vector<std::int64_t>& ticks,
                             std::int64_t overhead = 0, std::int64_t local = 0) {
    struct Queue {
        std::int64_t done = 0;
        std::int64_t free = 0;
        std::vector<std::int64_t> ends;
    };
    const Lane lanes = schedule.lanes();
    std::map<std::array<int, 3>, Queue> queues; // rank, lane, receive
    const auto inputs_ready = [&](Rank rank, const Step& step, bool receive) -> std::int64_t {
        std::int64_t ready = 0;
        for (Lane lane = 0; lane < lanes; ++lane) {
            const Queue& other = queues[{rank, lane, receive ? 0 : 1}];
            const std::int64_t needed = step.after[static_cast<std::size_t>(lane)];
            if (needed > other.done) {
                return -1;
            }
            ready = std::max(ready, needed > 0 ? other.ends[static_cast<std::size_t>(needed - 1)] : 0);
        }
        return ready;
    };
    std::int64_t last = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (Rank rank = 0; rank < schedule.ranks(); ++rank) {
            for (Lane lane = 0; lane < lanes; ++lane) {
                Queue& out = queues[{rank, lane, 0}];
                while (out.done < schedule.send_count(rank, lane)) {
                    const Step send = schedule.send_step(rank, lane, out.done);
                    Queue& in = queues[{send.peer, lane, 1}];
                    if (in.done >= schedule.receive_count(send.peer, lane)) {
                        break;
                    }
                    const Step receive = schedule.receive_step(send.peer, lane, in.done);
                    const std::int64_t ready = inputs_ready(rank, send, false);
                    if (receive.peer != rank || receive.slice != send.slice || ready < 0) {
                        break;
                    }
                    const std::int64_t pace = schedule.port(rank, lane).kind == PortKind::kLocal
                                                  ? local
                                                  : std::max(ticks[static_cast<std::size_t>(rank)],
                                                             ticks[static_cast<std::size_t>(send.peer)]);
                    const std::int64_t cost = send.slice.count > 0 ? send.slice.count * pace + overhead : 0;
                    const std::int64_t end = std::max({out.free, in.free, ready}) + cost;
                    out.free = in.free = end;
                    in.ends.push_back(end);
                    out.ends.push_back(end);
                    ++out.done;
                    ++in.done;
                    last = std::max(last, end);
                    moved = true;
                }
            }
        }
    }
    for (Rank rank = 0; rank < schedule.ranks(); ++rank) {
        for (Lane lane = 0; lane < lanes; ++lane) {
            if (queues[{rank, lane, 0}].done < schedule.send_count(rank, lane)) {
                return -1; // stuck
            }
        }
    }
    return last;
}

} // namespace railbreak::collective::test
