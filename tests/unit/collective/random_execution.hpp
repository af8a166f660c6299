// A schedule carried out on real numbers, element by element, in random order: a check that shares nothing with the
// verifier. Messages are buffered without limit, senders cut through as the contract of a schedule allows.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "collective/schedule.hpp"

namespace railbreak::collective::test {

class RandomExecution {
public:
    RandomExecution(const Schedule& schedule, std::uint64_t seed)
        : s_(schedule), random_(seed), heads_(static_cast<std::size_t>(s_.ranks() * s_.lanes()) * 2) {
        for (Rank rank = 0; rank < s_.ranks(); ++rank) {
            values_.emplace_back();
            for (std::int64_t e = 0; e < s_.elements(); ++e) {
                values_.back().push_back(std::int64_t{1} << rank); // a sum shows whose values it has, and how often
            }
        }
    }

    /// True when everything ended and every element of every rank is the complete sum.
    bool run() {
        std::vector<std::size_t> open(heads_.size());
        for (std::size_t i = 0; i < open.size(); ++i) {
            open[i] = i;
        }
        // Some queues are slow: they get a turn only now and then.
        std::vector<unsigned> pace(heads_.size());
        for (unsigned& value : pace) {
            value = random_() % 3 == 0 ? 40U : 1U;
        }
        int idle = 0;
        while (idle < 100'000) {
            const std::size_t queue = random_() % heads_.size();
            idle = random_() % pace[queue] == 0 && advance(queue) ? 0 : idle + 1;
            if (all_done()) {
                break;
            }
        }
        const std::int64_t sum = (std::int64_t{1} << s_.ranks()) - 1;
        for (const std::vector<std::int64_t>& vector : values_) {
            for (const std::int64_t value : vector) {
                if (value != sum) {
                    return false;
                }
            }
        }
        return all_done();
    }

private:
    struct Head {
        std::int64_t done = 0;  ///< steps
        std::int64_t moved = 0; ///< elements of the present step
    };

    [[nodiscard]] Head& head(Rank rank, Lane lane, bool receive) {
        return heads_[static_cast<std::size_t>((rank * s_.lanes() + lane) * 2 + (receive ? 1 : 0))];
    }

    [[nodiscard]] bool all_done() {
        for (Rank rank = 0; rank < s_.ranks(); ++rank) {
            for (Lane lane = 0; lane < s_.lanes(); ++lane) {
                if (head(rank, lane, false).done < s_.send_count(rank, lane) ||
                    head(rank, lane, true).done < s_.receive_count(rank, lane)) {
                    return false;
                }
            }
        }
        return true;
    }

    /// May `element` move, of a send or receive step that waits as given? The last awaited step of the other side may
    /// be under way.
    [[nodiscard]] bool may_move(Rank rank, bool receiving, const Step& step, std::int64_t element) {
        for (Lane lane = 0; lane < s_.lanes(); ++lane) {
            const std::int64_t needed = step.after[static_cast<std::size_t>(lane)];
            const Head& other = head(rank, lane, !receiving);
            if (other.done >= needed) {
                continue;
            }
            if (other.done < needed - 1) {
                return false;
            }
            const Slice slice =
                (receiving ? s_.send_step(rank, lane, needed - 1) : s_.receive_step(rank, lane, needed - 1)).slice;
            if (element >= slice.offset + other.moved && element < slice.end()) {
                return false;
            }
        }
        return true;
    }

    bool advance(std::size_t queue) {
        const auto lanes = static_cast<std::size_t>(s_.lanes());
        const auto rank = static_cast<Rank>(queue / 2 / lanes);
        const auto lane = static_cast<Lane>(queue / 2 % lanes);
        return queue % 2 == 0 ? send(rank, lane) : receive(rank, lane);
    }

    bool send(Rank rank, Lane lane) {
        Head& mine = head(rank, lane, false);
        if (mine.done == s_.send_count(rank, lane)) {
            return false;
        }
        const Step step = s_.send_step(rank, lane, mine.done);
        if (step.slice.count > 0) {
            const std::int64_t element = step.slice.offset + mine.moved;
            if (!may_move(rank, false, step, element)) {
                return false;
            }
            wire_[{rank, step.peer, lane}].push_back(
                values_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(element)]);
            ++mine.moved;
        }
        finish(mine, step);
        return true;
    }

    bool receive(Rank rank, Lane lane) {
        Head& mine = head(rank, lane, true);
        if (mine.done == s_.receive_count(rank, lane)) {
            return false;
        }
        const Step step = s_.receive_step(rank, lane, mine.done);
        if (step.slice.count > 0) {
            std::deque<std::int64_t>& wire = wire_[{step.peer, rank, lane}];
            const std::int64_t element = step.slice.offset + mine.moved;
            if (wire.empty() || !may_move(rank, true, step, element)) {
                return false;
            }
            std::int64_t& value = values_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(element)];
            value = step.combine == Combine::kReduce ? value + wire.front() : wire.front();
            wire.pop_front();
            ++mine.moved;
        }
        finish(mine, step);
        return true;
    }

    static void finish(Head& head, const Step& step) {
        if (head.moved == step.slice.count) {
            head = {head.done + 1, 0};
        }
    }

    const Schedule& s_;
    std::mt19937_64 random_;
    std::vector<Head> heads_;
    std::vector<std::vector<std::int64_t>> values_;
    std::map<std::tuple<Rank, Rank, Lane>, std::deque<std::int64_t>> wire_;
};

/// How many of `runs` random executions went wrong.
inline int wrong_runs(const Schedule& schedule, int runs = 12) {
    int wrong = 0;
    for (int seed = 1; seed <= runs; ++seed) {
        wrong += RandomExecution(schedule, static_cast<std::uint64_t>(seed)).run() ? 0 : 1;
    }
    return wrong;
}

} // namespace railbreak::collective::test
