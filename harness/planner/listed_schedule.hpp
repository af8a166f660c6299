// A schedule written out step by step, for plans that come from elsewhere.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "collective/schedule.hpp"

namespace railbreak::planner {

/// What a schedule says besides its steps.
struct ScheduleHead {
    std::string name;
    collective::Rank ranks = 0;
    collective::Lane lanes = 0;
    collective::Rank ranks_per_server = 1;
    std::int64_t elements = 0;
};

/// The queues of one lane of one rank.
struct LaneQueues {
    collective::Port port;
    std::vector<collective::Step> sends;
    std::vector<collective::Step> receives;
};

/// A schedule that keeps every step in memory (72 bytes each).
class ListedSchedule final : public collective::Schedule {
public:
    /// `queues` has the lanes of rank 0, then those of rank 1, and so on: ranks x lanes entries.
    ListedSchedule(ScheduleHead head, std::vector<LaneQueues> queues)
        : head_(std::move(head)), queues_(std::move(queues)) {}

    [[nodiscard]] std::string name() const override { return head_.name; }
    [[nodiscard]] collective::Rank ranks() const override { return head_.ranks; }
    [[nodiscard]] collective::Lane lanes() const override { return head_.lanes; }
    [[nodiscard]] collective::Rank ranks_per_server() const override { return head_.ranks_per_server; }
    [[nodiscard]] collective::Port port(collective::Rank rank, collective::Lane lane) const override {
        return of(rank, lane).port;
    }
    [[nodiscard]] std::int64_t elements() const override { return head_.elements; }
    [[nodiscard]] std::int64_t send_count(collective::Rank rank, collective::Lane lane) const override {
        return static_cast<std::int64_t>(of(rank, lane).sends.size());
    }
    [[nodiscard]] std::int64_t receive_count(collective::Rank rank, collective::Lane lane) const override {
        return static_cast<std::int64_t>(of(rank, lane).receives.size());
    }
    [[nodiscard]] collective::Step send_step(collective::Rank rank, collective::Lane lane,
                                             std::int64_t index) const override {
        return of(rank, lane).sends[static_cast<std::size_t>(index)];
    }
    [[nodiscard]] collective::Step receive_step(collective::Rank rank, collective::Lane lane,
                                                std::int64_t index) const override {
        return of(rank, lane).receives[static_cast<std::size_t>(index)];
    }

private:
    [[nodiscard]] const LaneQueues& of(collective::Rank rank, collective::Lane lane) const {
        return queues_[static_cast<std::size_t>(rank) * static_cast<std::size_t>(head_.lanes) +
                       static_cast<std::size_t>(lane)];
    }

    ScheduleHead head_;
    std::vector<LaneQueues> queues_;
};

} // namespace railbreak::planner
