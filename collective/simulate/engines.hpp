// The send and receive engines of all ranks: where each stands in its queue and what it waits for. Knows nothing of
// time or rates; the port models build on it. Private to the simulator.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "collective/schedule.hpp"
#include "collective/simulate/ports.hpp"

namespace railbreak::collective::simulation {

/// An engine and its queue.
struct Engine {
    Step head;               ///< the step it is at, while index < count and open
    std::int64_t index = 0;  ///< leading steps that are over: ended, or empty
    std::int64_t count = 0;  ///< length of the queue
    std::int64_t usable = 0; ///< leading steps on which the opposite engines of the rank may build
    SideNumber side = 0;
    Rank rank = 0;
    Lane lane = 0;
    bool open = false;         ///< the rank has begun
    bool busy = false;         ///< with a flow
    bool waits_on_own = false; ///< the head names steps of the opposite queues
    [[nodiscard]] bool done() const { return index == count; }
};

/// All engines of a schedule. Steps are computed when an engine comes to them and forgotten afterwards.
///
/// Every change puts the engines that may now be able to begin on a list; the port model takes them from there and asks
/// ready() or partner(). Nothing else need ever be looked at.
class Engines {
public:
    Engines(const Schedule& schedule, const PortTable& ports);

    [[nodiscard]] const Engine& at(QueueNumber queue) const { return engines_[static_cast<std::size_t>(queue)]; }
    [[nodiscard]] const Schedule& schedule() const { return schedule_; }
    [[nodiscard]] QueueNumber number(Rank rank, Lane lane, bool receive) const {
        return (rank * lanes_ + lane) * 2 + (receive ? 1 : 0);
    }
    [[nodiscard]] QueueNumber queue_count() const { return static_cast<QueueNumber>(engines_.size()); }
    [[nodiscard]] Rank ranks() const { return ranks_; }
    [[nodiscard]] Lane lanes() const { return lanes_; }

    /// The rank begins.
    void open(Rank rank);
    /// Whether an engine can begin with its head now, as far as its own rank goes.
    [[nodiscard]] bool ready(QueueNumber queue) const {
        const Engine& here = at(queue);
        return !here.busy && here.open && !here.done() && inputs_usable(here, queue % 2 != 0);
    }
    /// The other end of the engine's head, which must be open and not done.
    [[nodiscard]] QueueNumber opposite(QueueNumber queue) const {
        return number(at(queue).head.peer, at(queue).lane, queue % 2 == 0);
    }
    /// The send engine whose flow with its present peer can begin now that this engine has changed, -1: none can.
    [[nodiscard]] QueueNumber able_to_send(QueueNumber queue) const;
    /// Whether both ends mean the same flow. False is an error of the schedule, kept for explain().
    [[nodiscard]] bool agree(const Engine& from, const Engine& to);
    /// The engine is busy with its head.
    void begin(QueueNumber queue) { engine(queue).busy = true; }
    /// The engine is through with its head and goes on to its next step with data. What was sent has left at once; what
    /// was received can be used when arrive() says so.
    void end(QueueNumber queue);
    /// The first `usable` steps of a receive queue can be used.
    void arrive(QueueNumber receive, std::int64_t usable);

    /// Takes an engine from the list of those to look at; -1: none.
    [[nodiscard]] QueueNumber next_look() {
        if (look_.empty()) {
            return -1;
        }
        const QueueNumber queue = look_.back();
        look_.pop_back();
        return queue;
    }

    [[nodiscard]] bool all_done() const;
    /// Why not all is done although nothing moves any more, in terms of the first engine that waits.
    [[nodiscard]] Error explain() const;
    /// "rank 3, lane 0, send step 12 to rank 4".
    [[nodiscard]] static std::string describe(const Engine& engine, bool receive);

private:
    [[nodiscard]] Engine& engine(QueueNumber queue) { return engines_[static_cast<std::size_t>(queue)]; }
    void load(QueueNumber queue);
    [[nodiscard]] bool inputs_usable(const Engine& engine, bool receive) const;

    const Schedule& schedule_;
    Rank ranks_;
    Lane lanes_;
    std::vector<Engine> engines_;
    std::vector<QueueNumber> look_;
    std::optional<Error> broken_; ///< the first impossible step met
};

} // namespace railbreak::collective::simulation
