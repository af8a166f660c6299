// Works the queues off like unbuffered messages of equal length: a message goes when it heads its send queue and its
// receive queue and what both steps name has gone. Each message that goes may let others go: those at the heads of its
// two ranks' queues. They are looked at again, so every message costs a fixed number of looks.
#include "harness/planner/message_levels.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace railbreak::planner {

using collective::Lane;
using collective::Rank;
using collective::Schedule;
using collective::Step;

MessageLevels::MessageLevels(const Schedule& schedule)
    : lanes_(static_cast<std::size_t>(schedule.lanes())), sends_(static_cast<std::size_t>(schedule.ranks()) * lanes_),
      receives_(sends_.size()) {}

class LevelBuilder {
public:
    explicit LevelBuilder(const Schedule& schedule)
        : schedule_(schedule), levels_(schedule), listed_(levels_.sends_.size(), false) {}

    Result<MessageLevels> build() {
        for (Rank rank = 0; rank < schedule_.ranks(); ++rank) {
            for (Lane lane = 0; lane < schedule_.lanes(); ++lane) {
                look_at(rank, lane);
            }
        }
        while (!list_.empty()) {
            const auto [rank, lane] = list_.back();
            list_.pop_back();
            listed_[levels_.queue(rank, lane)] = false;
            while (go(rank, lane)) {
            }
        }
        for (Rank rank = 0; rank < schedule_.ranks(); ++rank) {
            for (Lane lane = 0; lane < schedule_.lanes(); ++lane) {
                const std::int64_t sent = done(levels_.sends_, rank, lane);
                const std::int64_t received = done(levels_.receives_, rank, lane);
                if (sent < schedule_.send_count(rank, lane) || received < schedule_.receive_count(rank, lane)) {
                    return fail(Error(ErrorKind::kInput,
                                      fmt::format("{} deadlocks: rank {} lane {} stops after {} sends and {} receives",
                                                  schedule_.name(), rank, lane, sent, received))
                                    .advise("only a schedule that is proven correct can be exported"));
                }
            }
        }
        return std::move(levels_);
    }

private:
    using Levels = std::vector<std::vector<std::int64_t>>;

    [[nodiscard]] std::int64_t done(const Levels& levels, Rank rank, Lane lane) const {
        return static_cast<std::int64_t>(levels[levels_.queue(rank, lane)].size());
    }

    /// The highest level among the leading steps that `step` names; -1 when one has none yet.
    [[nodiscard]] std::int64_t level_of_waits(const Levels& opposite, Rank rank, const Step& step) const {
        std::int64_t level = 0;
        for (Lane lane = 0; lane < schedule_.lanes(); ++lane) {
            const std::vector<std::int64_t>& queue = opposite[levels_.queue(rank, lane)];
            const auto needed = static_cast<std::size_t>(step.after[static_cast<std::size_t>(lane)]);
            if (needed > queue.size()) {
                return -1;
            }
            level = needed > 0 ? std::max(level, queue[needed - 1]) : level; // levels of a queue never fall
        }
        return level;
    }

    /// Lets the head of a send queue go, if it can.
    bool go(Rank rank, Lane lane) {
        std::vector<std::int64_t>& out = levels_.sends_[levels_.queue(rank, lane)];
        const auto send_index = static_cast<std::int64_t>(out.size());
        if (send_index >= schedule_.send_count(rank, lane)) {
            return false;
        }
        const Step send = schedule_.send_step(rank, lane, send_index);
        std::vector<std::int64_t>& in = levels_.receives_[levels_.queue(send.peer, lane)];
        const auto receive_index = static_cast<std::int64_t>(in.size());
        if (receive_index >= schedule_.receive_count(send.peer, lane)) {
            return false;
        }
        const Step receive = schedule_.receive_step(send.peer, lane, receive_index);
        const std::int64_t sender = level_of_waits(levels_.receives_, rank, send);
        const std::int64_t receiver = level_of_waits(levels_.sends_, send.peer, receive);
        if (receive.peer != rank || receive.slice != send.slice || sender < 0 || receiver < 0) {
            return false;
        }
        const std::int64_t before =
            std::max({sender, receiver, out.empty() ? 0 : out.back(), in.empty() ? 0 : in.back()});
        const std::int64_t level = before + (send.slice.count > 0 ? 1 : 0);
        out.push_back(level);
        in.push_back(level);
        look_again(rank);
        look_again(send.peer);
        return true;
    }

    void look_again(Rank rank) {
        for (Lane lane = 0; lane < schedule_.lanes(); ++lane) {
            look_at(rank, lane);
            const std::int64_t received = done(levels_.receives_, rank, lane);
            if (received < schedule_.receive_count(rank, lane)) {
                look_at(schedule_.receive_step(rank, lane, received).peer, lane);
            }
        }
    }

    /// Puts a send queue on the list, once.
    void look_at(Rank rank, Lane lane) {
        if (!listed_[levels_.queue(rank, lane)]) {
            listed_[levels_.queue(rank, lane)] = true;
            list_.emplace_back(rank, lane);
        }
    }

    const Schedule& schedule_;
    MessageLevels levels_;
    std::vector<std::pair<Rank, Lane>> list_; ///< send queues whose head may be able to go
    std::vector<bool> listed_;                ///< by queue
};

Result<MessageLevels> MessageLevels::of(const Schedule& schedule) {
    return LevelBuilder(schedule).build();
}

} // namespace railbreak::planner
