// Races and contributions.
//
// The vector is cut at every slice boundary, so that the elements of a block always travel together. Each block is
// then a small problem of its own: the messages that carry it, in a possible order, each with two events, "read at the
// sender" and "written at the receiver". Event f happens before e when a chain of these leads from f to e:
//   - f reads and e writes the block for the same message;
//   - f and e belong to the same queue and f comes first there;
//   - e is a step whose `after` covers f. For the last covered receive step an executor may cut through, but then
//     only with elements that this step has already delivered, and the block is either delivered or not.
// Everything else is checked by walking through the events once.
//
// Without a race the one order that is walked through stands for all: every read, and every overwriting, has the same
// writes before it in each, and additions between two of those commute. So the sets found are those of every execution.
// They are exact, each contribution once or not at all: an addition of sets that have one in common is refused, and a
// copy puts one exact set in the place of another.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "collective/verify_graph.hpp"

namespace railbreak::collective::detail {

namespace {

using Word = std::uint64_t;
constexpr std::size_t kWordBits = 64;

std::size_t words_for(std::size_t bits) {
    return (bits + kWordBits - 1) / kWordBits;
}

/// Which blocks each message carries, and for each block its messages in order.
struct Blocks {
    std::vector<std::int64_t> cuts;  ///< block b is [cuts[b], cuts[b+1])
    std::vector<std::int64_t> begin; ///< per block, first position in `messages`, and the end
    std::vector<std::int32_t> messages;
};

Blocks cut_into_blocks(const Graph& graph) {
    Blocks blocks;
    blocks.cuts = {0, graph.elements};
    for (const Message& message : graph.messages) {
        const Slice& slice = graph.entry(message.send).step.slice;
        if (slice.count > 0) {
            blocks.cuts.push_back(slice.offset);
            blocks.cuts.push_back(slice.end());
        }
    }
    std::sort(blocks.cuts.begin(), blocks.cuts.end());
    blocks.cuts.erase(std::unique(blocks.cuts.begin(), blocks.cuts.end()), blocks.cuts.end());

    const auto block_at = [&](std::int64_t offset) {
        return static_cast<std::size_t>(std::lower_bound(blocks.cuts.begin(), blocks.cuts.end(), offset) -
                                        blocks.cuts.begin());
    };
    blocks.begin.assign(blocks.cuts.size(), 0);
    for (const bool counting : {true, false}) {
        std::vector<std::int64_t> fill = blocks.begin;
        for (const std::int32_t number : graph.order) {
            const Slice& slice = graph.entry(graph.message(number).send).step.slice;
            for (std::size_t b = block_at(slice.offset); slice.count > 0 && blocks.cuts[b] < slice.end(); ++b) {
                if (counting) {
                    ++blocks.begin[b + 1];
                } else {
                    blocks.messages[static_cast<std::size_t>(fill[b]++)] = number;
                }
            }
        }
        if (counting) {
            for (std::size_t b = 1; b < blocks.begin.size(); ++b) {
                blocks.begin[b] += blocks.begin[b - 1];
            }
            blocks.messages.resize(static_cast<std::size_t>(blocks.begin.back()));
        }
    }
    return blocks;
}

/// The checks of one block; reused from block to block so that its memory is.
class BlockCheck {
public:
    BlockCheck(const Graph& graph, Findings& findings)
        : graph_(graph), findings_(findings), set_words_(words_for(static_cast<std::size_t>(graph.ranks))),
          at_rank_(static_cast<std::size_t>(graph.ranks)) {}

    void run(const Slice& range, const std::int32_t* messages, std::size_t count) {
        range_ = range;
        raced_ = false;
        event_words_ = words_for(2 * count);
        before_.assign(2 * count * event_words_, 0);
        entry_of_.assign(2 * count, nullptr);
        for (std::vector<std::size_t>& list : at_rank_) {
            list.clear();
        }
        start_sets();
        for (std::size_t i = 0; i < count && !findings_.full(); ++i) {
            const Message& message = graph_.message(messages[i]);
            const Entry& send = graph_.entry(message.send);
            const Entry& receive = graph_.entry(message.receive);
            enter(2 * i, send);
            order_after(2 * i + 1, 2 * i);
            enter(2 * i + 1, receive);
        }
        if (!raced_) { // what a race leaves behind means nothing
            for (std::size_t i = 0; i < count; ++i) {
                transfer(graph_.entry(graph_.message(messages[i]).send),
                         graph_.entry(graph_.message(messages[i]).receive));
            }
            check_complete();
        }
    }

private:
    [[nodiscard]] static bool covers(const Entry& later, const Entry& earlier, Lane lane_of_earlier) {
        return later.queue == earlier.queue ||
               (Graph::is_receive(later.queue) != Graph::is_receive(earlier.queue) &&
                earlier.index < later.step.after[static_cast<std::size_t>(lane_of_earlier)]);
    }

    [[nodiscard]] bool known_before(std::size_t event, std::size_t earlier) const {
        return (before_[event * event_words_ + earlier / kWordBits] >> (earlier % kWordBits) & 1U) != 0;
    }

    void order_after(std::size_t event, std::size_t earlier) {
        Word* mine = &before_[event * event_words_];
        const Word* its = &before_[earlier * event_words_];
        for (std::size_t w = 0; w < event_words_; ++w) {
            mine[w] |= its[w];
        }
        mine[earlier / kWordBits] |= Word{1} << (earlier % kWordBits);
    }

    /// Two accesses that must not meet. Additions of different lanes may come in either order.
    [[nodiscard]] static bool conflict(const Entry& a, const Entry& b) {
        const bool a_writes = Graph::is_receive(a.queue);
        const bool b_writes = Graph::is_receive(b.queue);
        const bool both_add =
            a_writes && b_writes && a.step.combine == Combine::kReduce && b.step.combine == Combine::kReduce;
        return (a_writes || b_writes) && !both_add;
    }

    void enter(std::size_t event, const Entry& entry) {
        entry_of_[event] = &entry;
        std::vector<std::size_t>& earlier = at_rank_[static_cast<std::size_t>(graph_.rank_of(entry.queue))];
        for (const std::size_t other : earlier) {
            if (!known_before(event, other) &&
                covers(entry, *entry_of_[other], graph_.lane_of(entry_of_[other]->queue))) {
                order_after(event, other);
            }
        }
        for (const std::size_t other : earlier) {
            const Entry& former = *entry_of_[other];
            if (conflict(entry, former) && !known_before(event, other)) {
                raced_ = true;
                findings_.add(graph_, entry, "race",
                              fmt::format("elements {}+{}: no order against {} {} of lane {}", range_.offset,
                                          range_.count, Graph::is_receive(former.queue) ? "receive" : "send",
                                          former.index, graph_.lane_of(former.queue)));
            }
        }
        earlier.push_back(event);
    }

    [[nodiscard]] Word* set_of(Rank rank) { return &sets_[static_cast<std::size_t>(rank) * set_words_]; }

    void start_sets() {
        sets_.assign(static_cast<std::size_t>(graph_.ranks) * set_words_, 0);
        for (Rank rank = 0; rank < graph_.ranks; ++rank) {
            const auto bit = static_cast<std::size_t>(rank);
            set_of(rank)[bit / kWordBits] |= Word{1} << (bit % kWordBits);
        }
    }

    [[nodiscard]] bool complete(Rank rank) {
        const Word* set = set_of(rank);
        std::size_t left = static_cast<std::size_t>(graph_.ranks);
        for (std::size_t w = 0; w < set_words_; ++w) {
            const Word full = left >= kWordBits ? ~Word{0} : (Word{1} << left) - 1;
            if (set[w] != full) {
                return false;
            }
            left -= std::min(left, kWordBits);
        }
        return true;
    }

    /// A copy may carry any set: what a rank holds on the way is its own affair, as long as it ends with everything.
    void transfer(const Entry& send, const Entry& receive) {
        const Rank from = graph_.rank_of(send.queue);
        const Rank to = graph_.rank_of(receive.queue);
        const bool copy = receive.step.combine == Combine::kCopy;
        const Word* source = set_of(from);
        Word* target = set_of(to);
        bool twice = false;
        for (std::size_t w = 0; w < set_words_; ++w) {
            twice = twice || (!copy && (source[w] & target[w]) != 0);
            target[w] = copy ? source[w] : source[w] | target[w];
        }
        if (twice) {
            findings_.add(
                graph_, receive, "data",
                fmt::format("elements {}+{}: adds a contribution a second time", range_.offset, range_.count));
        }
    }

    void check_complete() {
        for (Rank rank = 0; rank < graph_.ranks; ++rank) {
            if (!complete(rank)) {
                findings_.add({"data", rank, 0, false, -1,
                               fmt::format("elements {}+{} end incomplete", range_.offset, range_.count)});
            }
        }
    }

    const Graph& graph_;
    Findings& findings_;
    std::size_t set_words_;
    Slice range_;
    bool raced_ = false;
    std::size_t event_words_ = 0;
    std::vector<Word> before_; ///< per event, the set of events that happen before it
    std::vector<const Entry*> entry_of_;
    std::vector<std::vector<std::size_t>> at_rank_; ///< events so far at each rank
    std::vector<Word> sets_;                        ///< per rank, whose values its copy of the block contains
};

} // namespace

void check_data(const Graph& graph, Findings& findings) {
    const Blocks blocks = cut_into_blocks(graph);
    BlockCheck check(graph, findings);
    for (std::size_t b = 0; b + 1 < blocks.cuts.size() && !findings.full(); ++b) {
        const auto first = static_cast<std::size_t>(blocks.begin[b]);
        const auto count = static_cast<std::size_t>(blocks.begin[b + 1]) - first;
        check.run({blocks.cuts[b], blocks.cuts[b + 1] - blocks.cuts[b]}, blocks.messages.data() + first, count);
    }
}

} // namespace railbreak::collective::detail
