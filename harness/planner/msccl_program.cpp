// A rank's messages are put in one order, by level, sends before receives; the steps of each thread block keep it.
// Every wait then points backwards in that order, at every rank, so the program cannot deadlock: a send has its receive
// at the same level, and messages on a connection have rising levels.
//
// A step waits for what the schedule says (the step before it in its queue, the steps named in "after"), and, since
// thread blocks run side by side, for the last steps that touched the same chunks where one of the two changes them:
// additions on two lanes to one chunk must not overlap. What a thread block has waited for already, directly or through
// others, is not waited for again: for each block and step it is known how far every other block had come.
//
// A block may send and receive only if everything it sends is single chunks. Those always fit into the buffer of a
// connection, so such a send ends without the receiver. A longer one may not, and two neighbours of a ring that both
// send first would wait for each other.
#include "harness/planner/msccl_program.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace railbreak::planner {

namespace {

using collective::Lane;
using collective::Rank;
using collective::Schedule;
using collective::Step;

constexpr std::size_t kMostKnowledge = std::size_t{1} << 26; // entries of known_, 4 bytes each

/// A message as one end sees it.
struct Operation {
    std::int64_t level = 0;
    bool sending = false;
    Lane lane = 0;
    std::int64_t index = 0; ///< in its queue
    Step step;
};

struct Place {
    std::int64_t block = -1;
    std::int64_t step = -1;
};

class BlockBuilder {
public:
    BlockBuilder(const Schedule& schedule, const MessageLevels& levels, Rank rank, std::int64_t chunk,
                 std::int64_t most_count)
        : schedule_(schedule), levels_(levels), rank_(rank), chunk_(chunk), most_count_(most_count),
          last_change_(static_cast<std::size_t>(schedule.elements() / chunk)), reads_(last_change_.size()) {}

    Result<std::vector<MscclBlock>> build() {
        list_operations();
        assign_blocks();
        for (const Operation& operation : operations_) {
            place(operation);
            if (steps_ * blocks_.size() > kMostKnowledge) {
                return fail(Error(ErrorKind::kInput,
                                  fmt::format("rank {} of {} has {} messages with {} connections: far more than an "
                                              "MSCCL runtime takes",
                                              rank_, schedule_.name(), operations_.size(), blocks_.size()))
                                .advise("export a plan with fewer segments or fewer ranks"));
            }
        }
        for (const Place& place : awaited_) {
            step_at(place).awaited = true;
        }
        return std::move(blocks_);
    }

private:
    using Known = std::vector<std::int32_t>; ///< by block: the last step known to be complete; -1: none

    [[nodiscard]] MscclStep& step_at(const Place& place) {
        return blocks_[static_cast<std::size_t>(place.block)].steps[static_cast<std::size_t>(place.step)];
    }

    void list_operations() {
        for (Lane lane = 0; lane < schedule_.lanes(); ++lane) {
            for (std::int64_t i = 0; i < schedule_.send_count(rank_, lane); ++i) {
                const Step step = schedule_.send_step(rank_, lane, i);
                if (step.slice.count > 0) {
                    operations_.push_back({levels_.send(rank_, lane, i), true, lane, i, step});
                }
            }
            for (std::int64_t i = 0; i < schedule_.receive_count(rank_, lane); ++i) {
                const Step step = schedule_.receive_step(rank_, lane, i);
                if (step.slice.count > 0) {
                    operations_.push_back({levels_.receive(rank_, lane, i), false, lane, i, step});
                }
            }
        }
        std::ranges::sort(operations_, [](const Operation& left, const Operation& right) {
            return std::tuple(left.level, !left.sending, left.lane) <
                   std::tuple(right.level, !right.sending, right.lane);
        });
    }

    /// The receive connection that each send connection forwards most from, as far as each can have its own.
    [[nodiscard]] std::map<Rank, Rank> pair_connections(Lane lane) const {
        std::map<std::pair<Rank, Rank>, std::int64_t> forwards;
        std::set<Rank> long_sends;
        for (const Operation& operation : operations_) {
            if (!operation.sending || operation.lane != lane) {
                continue;
            }
            if (operation.step.slice.count > chunk_) {
                long_sends.insert(operation.step.peer);
            }
            const std::int64_t received = operation.step.after[static_cast<std::size_t>(lane)];
            if (received > 0) {
                const Step last = schedule_.receive_step(rank_, lane, received - 1);
                forwards[{operation.step.peer, last.peer}] += last.slice.count > 0 ? 1 : 0;
            }
        }
        std::vector<std::tuple<std::int64_t, Rank, Rank>> ranking;
        for (const auto& [pair, count] : forwards) {
            if (count > 0 && !long_sends.contains(pair.first)) {
                ranking.emplace_back(-count, pair.first, pair.second);
            }
        }
        std::ranges::sort(ranking);
        std::map<Rank, Rank> receive_of;
        std::set<Rank> taken;
        for (const auto& [count, send, receive] : ranking) {
            if (!receive_of.contains(send) && taken.insert(receive).second) {
                receive_of[send] = receive;
            }
        }
        return receive_of;
    }

    void assign_blocks() {
        std::vector<std::map<Rank, Rank>> receive_of;
        for (Lane lane = 0; lane < schedule_.lanes(); ++lane) {
            receive_of.push_back(pair_connections(lane));
        }
        for (const Operation& operation : operations_) { // numbered in the order in which they begin
            if (block_of_.contains({operation.lane, operation.sending, operation.step.peer})) {
                continue;
            }
            MscclBlock block{.channel = operation.lane};
            const std::map<Rank, Rank>& pairs = receive_of[static_cast<std::size_t>(operation.lane)];
            if (operation.sending) {
                block.send_peer = operation.step.peer;
                const auto pair = pairs.find(block.send_peer);
                block.receive_peer = pair == pairs.end() ? -1 : pair->second;
            } else {
                block.receive_peer = operation.step.peer;
                const auto pair =
                    std::ranges::find_if(pairs, [&](const auto& p) { return p.second == block.receive_peer; });
                block.send_peer = pair == pairs.end() ? -1 : pair->first;
            }
            const auto number = static_cast<std::int64_t>(blocks_.size());
            if (block.send_peer >= 0) {
                block_of_[{operation.lane, true, block.send_peer}] = number;
            }
            if (block.receive_peer >= 0) {
                block_of_[{operation.lane, false, block.receive_peer}] = number;
            }
            blocks_.push_back(std::move(block));
        }
        known_.resize(blocks_.size());
    }

    /// Notes that a step at `place` must be complete.
    void need(std::map<std::int64_t, std::int64_t>& needed, const Place& place) const {
        if (place.block >= 0) {
            std::int64_t& step = needed.try_emplace(place.block, -1).first->second;
            step = std::max(step, place.step);
        }
    }

    /// Where the last message of the `count` leading entries of a queue stands.
    [[nodiscard]] Place last_of(bool sending, Lane lane, std::int64_t count) const {
        const auto queue = queues_.find({lane, sending});
        if (queue == queues_.end()) {
            return {};
        }
        const auto after = queue->second.lower_bound(count);
        return after == queue->second.begin() ? Place{} : std::prev(after)->second;
    }

    [[nodiscard]] std::map<std::int64_t, std::int64_t> waits_of(const Operation& operation) const {
        std::map<std::int64_t, std::int64_t> needed;
        need(needed, last_of(operation.sending, operation.lane, operation.index));
        for (Lane lane = 0; lane < schedule_.lanes(); ++lane) {
            need(needed, last_of(!operation.sending, lane, operation.step.after[static_cast<std::size_t>(lane)]));
        }
        const auto first = static_cast<std::size_t>(operation.step.slice.offset / chunk_);
        const auto end = static_cast<std::size_t>(operation.step.slice.end() / chunk_);
        for (std::size_t chunk = first; chunk < end; ++chunk) {
            need(needed, last_change_[chunk]);
            if (!operation.sending) {
                for (const Place& read : reads_[chunk]) {
                    need(needed, read);
                }
            }
        }
        return needed;
    }

    /// Leaves out what the block knows, and what another of the waits implies.
    [[nodiscard]] std::vector<Place> reduced(const std::map<std::int64_t, std::int64_t>& needed,
                                             std::int64_t block) const {
        const std::vector<Known>& own = known_[static_cast<std::size_t>(block)];
        std::vector<Place> waits;
        for (const auto& [other, step] : needed) {
            const bool known = other == block || (!own.empty() && own.back()[static_cast<std::size_t>(other)] >= step);
            const bool implied = std::ranges::any_of(needed, [&, other = other, step = step](const auto& third) {
                return third.first != other && third.first != block &&
                       known_at({third.first, third.second})[static_cast<std::size_t>(other)] >= step;
            });
            if (!known && !implied) {
                waits.push_back({other, step});
            }
        }
        return waits;
    }

    [[nodiscard]] const Known& known_at(const Place& place) const {
        return known_[static_cast<std::size_t>(place.block)][static_cast<std::size_t>(place.step)];
    }

    void append(std::int64_t block, const MscclStep& step, const Known& known) {
        MscclBlock& target = blocks_[static_cast<std::size_t>(block)];
        target.steps.push_back(step);
        ++steps_;
        std::vector<Known>& history = known_[static_cast<std::size_t>(block)];
        history.push_back(known);
        history.back()[static_cast<std::size_t>(block)] = static_cast<std::int32_t>(target.steps.size()) - 1;
    }

    void place(const Operation& operation) {
        const std::int64_t block = block_of_.at({operation.lane, operation.sending, operation.step.peer});
        const std::vector<Place> waits = reduced(waits_of(operation), block);
        const std::vector<Known>& own = known_[static_cast<std::size_t>(block)];
        Known known = own.empty() ? Known(blocks_.size(), -1) : own.back();
        for (const Place& wait : waits) {
            const Known& there = known_at(wait);
            for (std::size_t i = 0; i < known.size(); ++i) {
                known[i] = std::max(known[i], there[i]);
            }
            awaited_.push_back(wait);
        }
        for (std::size_t i = 0; i + 1 < waits.size(); ++i) {
            append(block, {.wait_block = waits[i].block, .wait_step = waits[i].step}, known);
        }
        MscclStep step{.type = type_of(operation)};
        if (!waits.empty()) {
            step.wait_block = waits.back().block;
            step.wait_step = waits.back().step;
        }
        const std::int64_t end = operation.step.slice.end() / chunk_;
        for (step.chunk = operation.step.slice.offset / chunk_; step.chunk < end; step.chunk += step.count) {
            step.count = std::min(most_count_, end - step.chunk);
            append(block, step, known);
            step.wait_block = step.wait_step = -1;
        }
        remember(operation, block);
    }

    static MscclStep::Type type_of(const Operation& operation) {
        if (operation.sending) {
            return MscclStep::Type::kSend;
        }
        return operation.step.combine == collective::Combine::kReduce ? MscclStep::Type::kReceiveReduce
                                                                      : MscclStep::Type::kReceive;
    }

    void remember(const Operation& operation, std::int64_t block) {
        const Place here{block, static_cast<std::int64_t>(blocks_[static_cast<std::size_t>(block)].steps.size()) - 1};
        queues_[{operation.lane, operation.sending}][operation.index] = here;
        const auto first = static_cast<std::size_t>(operation.step.slice.offset / chunk_);
        const auto end = static_cast<std::size_t>(operation.step.slice.end() / chunk_);
        for (std::size_t chunk = first; chunk < end; ++chunk) {
            if (operation.sending) {
                reads_[chunk].push_back(here);
            } else {
                last_change_[chunk] = here;
                reads_[chunk].clear();
            }
        }
    }

    const Schedule& schedule_;
    const MessageLevels& levels_;
    Rank rank_;
    std::int64_t chunk_;
    std::int64_t most_count_;
    std::vector<Operation> operations_;
    std::vector<MscclBlock> blocks_;
    std::map<std::tuple<Lane, bool, Rank>, std::int64_t> block_of_;         ///< channel, sending, peer
    std::vector<std::vector<Known>> known_;                                 ///< by block and step
    std::map<std::pair<Lane, bool>, std::map<std::int64_t, Place>> queues_; ///< last step of each message placed
    std::vector<Place> last_change_;        ///< by chunk: the receive that changed it last
    std::vector<std::vector<Place>> reads_; ///< by chunk: the sends since then
    std::vector<Place> awaited_;
    std::size_t steps_ = 0; ///< of all blocks
};

} // namespace

Result<std::vector<MscclBlock>> msccl_blocks(const Schedule& schedule, const MessageLevels& levels, Rank rank,
                                             std::int64_t chunk, std::int64_t most_count) {
    return BlockBuilder(schedule, levels, rank, chunk, most_count).build();
}

} // namespace railbreak::planner
