#include "collective/simulate/engines.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace railbreak::collective::simulation {

Engines::Engines(const Schedule& schedule, const PortTable& ports)
    : schedule_(schedule), ranks_(schedule.ranks()), lanes_(schedule.lanes()),
      engines_(static_cast<std::size_t>(ranks_ * lanes_) * 2) {
    for (Rank rank = 0; rank < ranks_; ++rank) {
        for (Lane lane = 0; lane < lanes_; ++lane) {
            for (const bool receive : {false, true}) {
                const QueueNumber queue = number(rank, lane, receive);
                Engine& here = engine(queue);
                here.rank = rank;
                here.lane = lane;
                here.side = ports.side_of(queue);
                here.count = receive ? schedule.receive_count(rank, lane) : schedule.send_count(rank, lane);
            }
        }
    }
}

void Engines::load(QueueNumber queue) {
    Engine& here = engine(queue);
    const bool receive = queue % 2 != 0;
    for (; here.index < here.count; ++here.index) {
        here.head = receive ? schedule_.receive_step(here.rank, here.lane, here.index)
                            : schedule_.send_step(here.rank, here.lane, here.index);
        if (here.head.slice.count == 0) {
            continue;
        }
        if (here.head.slice.count < 0 || here.head.peer < 0 || here.head.peer >= ranks_ ||
            here.head.peer == here.rank) {
            if (!broken_) {
                broken_.emplace(ErrorKind::kInput,
                                fmt::format("{}: no such flow is possible", describe(here, receive)));
            }
            here.open = false;
        }
        here.waits_on_own = here.head.after != PrefixCounts{};
        break;
    }
}

void Engines::open(Rank rank) {
    for (QueueNumber queue = number(rank, 0, false); queue < number(rank + 1, 0, false); ++queue) {
        engine(queue).open = true;
        load(queue);
        engine(queue).usable = engine(queue).index;
    }
    for (Lane lane = 0; lane < lanes_; ++lane) {
        look_.push_back(number(rank, lane, false));
        look_.push_back(number(rank, lane, true));
    }
}

bool Engines::inputs_usable(const Engine& engine, bool receive) const {
    if (!engine.waits_on_own) {
        return true;
    }
    const QueueNumber first = number(engine.rank, 0, !receive);
    for (Lane lane = 0; lane < lanes_; ++lane) {
        if (at(first + lane * 2).usable < engine.head.after[static_cast<std::size_t>(lane)]) {
            return false;
        }
    }
    return true;
}

QueueNumber Engines::able_to_send(QueueNumber queue) const {
    if (!ready(queue)) {
        return -1;
    }
    const QueueNumber other = opposite(queue);
    if (!ready(other) || at(other).head.peer != at(queue).rank) {
        return -1;
    }
    return queue % 2 == 0 ? queue : other;
}

bool Engines::agree(const Engine& from, const Engine& to) {
    if (from.head.slice == to.head.slice && from.head.combine == to.head.combine) {
        return true;
    }
    broken_.emplace(ErrorKind::kInput,
                    fmt::format("{} and {} are not the same flow", describe(from, false), describe(to, true)));
    return false;
}

void Engines::end(QueueNumber queue) {
    Engine& here = engine(queue);
    here.busy = false;
    ++here.index;
    load(queue);
    look_.push_back(queue);
    if (queue % 2 != 0) {
        return;
    }
    here.usable = here.index;
    for (Lane lane = 0; lane < lanes_; ++lane) {
        const QueueNumber receive = number(here.rank, lane, true);
        if (at(receive).waits_on_own) {
            look_.push_back(receive);
        }
    }
}

void Engines::arrive(QueueNumber receive, std::int64_t usable) {
    Engine& here = engine(receive);
    here.usable = usable;
    for (Lane lane = 0; lane < lanes_; ++lane) {
        const QueueNumber send = number(here.rank, lane, false);
        if (at(send).waits_on_own) {
            look_.push_back(send);
        }
    }
}

bool Engines::all_done() const {
    return std::all_of(engines_.begin(), engines_.end(), [](const Engine& engine) { return engine.done(); });
}

std::string Engines::describe(const Engine& engine, bool receive) {
    return fmt::format("rank {}, lane {}, {} step {} {} rank {}", engine.rank, engine.lane,
                       receive ? "receive" : "send", engine.index, receive ? "from" : "to", engine.head.peer);
}

Error Engines::explain() const {
    if (broken_) {
        return *broken_;
    }
    for (QueueNumber queue = 0; queue < queue_count(); ++queue) {
        const Engine& here = at(queue);
        if (!here.done()) {
            const bool receive = queue % 2 != 0;
            return Error(ErrorKind::kOutcome,
                         fmt::format("{} deadlocks: {} waits for ever for {}", schedule_.name(),
                                     describe(here, receive), inputs_usable(here, receive) ? "its peer" : "its data"))
                .with("rank", std::to_string(here.rank))
                .with("step", std::to_string(here.index));
        }
    }
    return {ErrorKind::kInternal, "everything is done"};
}

} // namespace railbreak::collective::simulation
