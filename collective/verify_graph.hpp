// The queues of a schedule, written out and joined to messages. Private to the verifier.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "collective/schedule.hpp"
#include "collective/verify.hpp"

namespace railbreak::collective::detail {

/// One entry of a queue.
struct Entry {
    Step step;
    std::int32_t queue = 0;
    std::int32_t index = 0;
    std::int32_t message = -1; ///< -1 until paired
};

/// A send entry and the receive entry that takes its data.
struct Message {
    std::int32_t send = 0;
    std::int32_t receive = 0;
};

/// Everything written out. Queue number: (rank * lanes + lane) * 2 + (0 send, 1 receive).
struct Graph {
    Rank ranks = 0;
    Lane lanes = 0;
    std::int64_t elements = 0;
    std::vector<std::int32_t> queue_begin; ///< first entry of each queue, and the end
    std::vector<Entry> entries;
    std::vector<Message> messages;
    std::vector<std::int32_t> order; ///< messages in an order in which they can be carried out

    [[nodiscard]] std::int32_t queue(Rank rank, Lane lane, bool receive) const {
        return (rank * lanes + lane) * 2 + (receive ? 1 : 0);
    }
    [[nodiscard]] Rank rank_of(std::int32_t queue) const { return queue / 2 / lanes; }
    [[nodiscard]] Lane lane_of(std::int32_t queue) const { return queue / 2 % lanes; }
    [[nodiscard]] static bool is_receive(std::int32_t queue) { return queue % 2 != 0; }
    [[nodiscard]] std::int32_t queue_size(std::int32_t queue) const {
        const auto q = static_cast<std::size_t>(queue);
        return queue_begin[q + 1] - queue_begin[q];
    }
    [[nodiscard]] const Entry& entry(std::int32_t number) const { return entries[static_cast<std::size_t>(number)]; }
    [[nodiscard]] const Message& message(std::int32_t number) const {
        return messages[static_cast<std::size_t>(number)];
    }
};

/// Collects violations up to a limit.
class Findings {
public:
    explicit Findings(std::size_t limit) : limit_(limit) {}
    void add(const Graph& graph, const Entry& entry, const char* rule, std::string message);
    void add(Violation violation);
    [[nodiscard]] bool full() const { return list_.size() >= limit_; }
    [[nodiscard]] bool empty() const { return list_.empty(); }
    [[nodiscard]] std::vector<Violation> take() { return std::move(list_); }

private:
    std::size_t limit_;
    std::vector<Violation> list_;
};

/// Writes the queues out and checks each entry by itself.
[[nodiscard]] Graph write_out(const Schedule& schedule, Findings& findings);
/// Joins sends and receives to messages.
void pair_up(Graph& graph, Findings& findings);
/// Carries all messages out with rendezvous semantics; fills `order`.
void find_order(Graph& graph, Findings& findings);
/// Races and data, element range by element range.
void check_data(const Graph& graph, Findings& findings);

} // namespace railbreak::collective::detail
