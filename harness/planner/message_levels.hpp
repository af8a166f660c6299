// An order of a schedule's messages that respects everything any message waits for. Internal to harness/planner.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.hpp"
#include "collective/schedule.hpp"

namespace railbreak::planner {

/// A level for every queue entry: both ends of a message have the same, and it is above that of whatever the message
/// has to wait for when every message takes a while and needs both ends at once. Entries without data have that of the
/// last entry before them.
class MessageLevels {
public:
    /// Error (kInput): the queues cannot be worked off.
    [[nodiscard]] static Result<MessageLevels> of(const collective::Schedule& schedule);

    [[nodiscard]] std::int64_t send(collective::Rank rank, collective::Lane lane, std::int64_t index) const {
        return sends_[queue(rank, lane)][static_cast<std::size_t>(index)];
    }
    [[nodiscard]] std::int64_t receive(collective::Rank rank, collective::Lane lane, std::int64_t index) const {
        return receives_[queue(rank, lane)][static_cast<std::size_t>(index)];
    }

private:
    friend class LevelBuilder;
    explicit MessageLevels(const collective::Schedule& schedule);
    [[nodiscard]] std::size_t queue(collective::Rank rank, collective::Lane lane) const {
        return static_cast<std::size_t>(rank) * lanes_ + static_cast<std::size_t>(lane);
    }

    std::size_t lanes_;
    std::vector<std::vector<std::int64_t>> sends_;    ///< by queue, as many as have a level
    std::vector<std::vector<std::int64_t>> receives_; ///< likewise
};

} // namespace railbreak::planner
