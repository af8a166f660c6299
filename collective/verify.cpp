#include "collective/verify.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.hpp"
#include "collective/verify_graph.hpp"

namespace railbreak::collective {

namespace detail {

void Findings::add(Violation violation) {
    if (!full()) {
        list_.push_back(std::move(violation));
    }
}

void Findings::add(const Graph& graph, const Entry& entry, const char* rule, std::string message) {
    add({rule, graph.rank_of(entry.queue), graph.lane_of(entry.queue), !Graph::is_receive(entry.queue), entry.index,
         std::move(message)});
}

namespace {

void check_entry(const Graph& graph, const Entry& entry, Findings& findings) {
    const Step& step = entry.step;
    const Rank rank = graph.rank_of(entry.queue);
    if (step.peer < 0 || step.peer >= graph.ranks || step.peer == rank) {
        findings.add(graph, entry, "pairing", fmt::format("peer {} is not another rank", step.peer));
    }
    if (step.slice.offset < 0 || step.slice.count < 0 || step.slice.end() > graph.elements) {
        findings.add(graph, entry, "pairing",
                     fmt::format("slice {}+{} lies outside the vector", step.slice.offset, step.slice.count));
    }
    for (Lane lane = 0; lane < kMaxLanes; ++lane) {
        const std::int64_t count = step.after[static_cast<std::size_t>(lane)];
        const std::int64_t most =
            lane < graph.lanes ? graph.queue_size(graph.queue(rank, lane, !Graph::is_receive(entry.queue))) : 0;
        if (count < 0 || count > most) {
            findings.add(graph, entry, "deadlock",
                         fmt::format("waits for {} steps of lane {}, which has {}", count, lane, most));
        }
    }
}

} // namespace

namespace {

/// Rules that concern one rank's lanes, and the number of ranks.
void check_lanes(const Schedule& schedule, Findings& findings) {
    if (schedule.ranks_per_server() < 1 || schedule.ranks() % schedule.ranks_per_server() != 0) {
        findings.add(
            {"ports", 0, 0, false, -1,
             fmt::format("{} ranks do not make servers of {}", schedule.ranks(), schedule.ranks_per_server())});
        return;
    }
    for (Rank rank = 0; rank < schedule.ranks(); ++rank) {
        int local = 0;
        for (Lane lane = 0; lane < schedule.lanes(); ++lane) {
            const Port port = schedule.port(rank, lane);
            local += port.kind == PortKind::kLocal ? 1 : 0;
            if (port.nic < 0 || (port.kind == PortKind::kLocal && port.nic != 0)) {
                findings.add({"ports", rank, lane, false, -1, fmt::format("there is no port {}", port.nic)});
            }
        }
        if (local > 1) {
            findings.add({"ports", rank, 0, false, -1, fmt::format("{} lanes share the intra-host port", local)});
        }
    }
}

/// Both ends of a step have ports of the same kind, and an intra-host port leads no further than the server.
void check_ports(const Schedule& schedule, const Graph& graph, const Entry& entry, Findings& findings) {
    const Rank rank = graph.rank_of(entry.queue);
    const Lane lane = graph.lane_of(entry.queue);
    const PortKind kind = schedule.port(rank, lane).kind;
    const Rank group = schedule.ranks_per_server();
    if (schedule.port(entry.step.peer, lane).kind != kind) {
        findings.add(graph, entry, "ports", fmt::format("rank {} has a port of another kind here", entry.step.peer));
    } else if (kind == PortKind::kLocal && rank / group != entry.step.peer / group) {
        findings.add(graph, entry, "ports", fmt::format("rank {} is on another server", entry.step.peer));
    }
}

} // namespace

Graph write_out(const Schedule& schedule, Findings& findings) {
    check_lanes(schedule, findings);
    Graph graph;
    graph.ranks = schedule.ranks();
    graph.lanes = schedule.lanes();
    graph.elements = schedule.elements();
    RB_CHECK(graph.lanes >= 1 && graph.lanes <= kMaxLanes, "a schedule has one to kMaxLanes lanes");
    graph.queue_begin.push_back(0);
    for (std::int32_t queue = 0; queue < graph.ranks * graph.lanes * 2; ++queue) {
        const Rank rank = graph.rank_of(queue);
        const Lane lane = graph.lane_of(queue);
        const bool receive = Graph::is_receive(queue);
        const std::int64_t count = receive ? schedule.receive_count(rank, lane) : schedule.send_count(rank, lane);
        RB_CHECK(count >= 0 && count + graph.queue_begin.back() <= std::numeric_limits<std::int32_t>::max(),
                 "the verifier takes schedules of up to 2^31 steps");
        graph.queue_begin.push_back(graph.queue_begin.back() + static_cast<std::int32_t>(count));
    }
    graph.entries.reserve(static_cast<std::size_t>(graph.queue_begin.back()));
    for (std::int32_t queue = 0; queue < graph.ranks * graph.lanes * 2; ++queue) {
        const Rank rank = graph.rank_of(queue);
        const Lane lane = graph.lane_of(queue);
        for (std::int32_t index = 0; index < graph.queue_size(queue); ++index) {
            const Step step = Graph::is_receive(queue) ? schedule.receive_step(rank, lane, index)
                                                       : schedule.send_step(rank, lane, index);
            graph.entries.push_back({step, queue, index, -1});
            check_entry(graph, graph.entries.back(), findings);
            if (findings.empty()) { // the peer exists, and so does its server
                check_ports(schedule, graph, graph.entries.back(), findings);
            }
        }
    }
    return graph;
}

namespace {

/// Sender, receiver and lane of an entry as one number.
std::int64_t channel(const Graph& graph, const Entry& entry) {
    const std::int64_t here = graph.rank_of(entry.queue);
    const std::int64_t peer = entry.step.peer;
    const bool receive = Graph::is_receive(entry.queue);
    const std::int64_t from = receive ? peer : here;
    const std::int64_t to = receive ? here : peer;
    return (from * graph.ranks + to) * graph.lanes + graph.lane_of(entry.queue);
}

/// Entries of one direction, by channel, in queue order inside a channel.
std::vector<std::int32_t> by_channel(const Graph& graph, bool receive) {
    std::vector<std::int32_t> list;
    for (std::size_t i = 0; i < graph.entries.size(); ++i) {
        if (Graph::is_receive(graph.entries[i].queue) == receive) {
            list.push_back(static_cast<std::int32_t>(i));
        }
    }
    std::stable_sort(list.begin(), list.end(), [&](std::int32_t a, std::int32_t b) {
        return channel(graph, graph.entry(a)) < channel(graph, graph.entry(b));
    });
    return list;
}

void check_pair(const Graph& graph, const Entry& send, const Entry& receive, Findings& findings) {
    const Step& a = send.step;
    const Step& b = receive.step;
    if (a.slice == b.slice && a.stage == b.stage && a.combine == b.combine) {
        return;
    }
    findings.add(graph, receive, "pairing",
                 fmt::format("takes {}+{} {} {}, but send {} of rank {} carries {}+{} {} {}", b.slice.offset,
                             b.slice.count, to_string(b.stage), b.combine == Combine::kCopy ? "copy" : "reduce",
                             send.index, graph.rank_of(send.queue), a.slice.offset, a.slice.count, to_string(a.stage),
                             a.combine == Combine::kCopy ? "copy" : "reduce"));
}

} // namespace

void pair_up(Graph& graph, Findings& findings) {
    const std::vector<std::int32_t> sends = by_channel(graph, false);
    const std::vector<std::int32_t> receives = by_channel(graph, true);
    std::size_t r = 0;
    std::size_t s = 0;
    while (s < sends.size() || r < receives.size()) {
        const std::int64_t none = std::numeric_limits<std::int64_t>::max();
        const std::int64_t from = s < sends.size() ? channel(graph, graph.entry(sends[s])) : none;
        const std::int64_t to = r < receives.size() ? channel(graph, graph.entry(receives[r])) : none;
        if (from != to) {
            const Entry& alone = graph.entry(from < to ? sends[s++] : receives[r++]);
            findings.add(graph, alone, "pairing", fmt::format("rank {} has no step for it", alone.step.peer));
            continue;
        }
        check_pair(graph, graph.entry(sends[s]), graph.entry(receives[r]), findings);
        const auto number = static_cast<std::int32_t>(graph.messages.size());
        graph.entries[static_cast<std::size_t>(sends[s])].message = number;
        graph.entries[static_cast<std::size_t>(receives[r])].message = number;
        graph.messages.push_back({sends[s++], receives[r++]});
    }
}

namespace {

/// Carries messages out as the engines would, each when both its ends are at the head of their queues and have what
/// they wait for. Queues only move on, so the order in which they are looked at does not matter.
class Runner {
public:
    explicit Runner(Graph& graph) : graph_(graph), done_(graph.queue_begin.size() - 1, 0) {}

    void run() {
        std::vector<std::int32_t> look(done_.size());
        std::iota(look.begin(), look.end(), 0);
        while (!look.empty()) {
            const std::int32_t queue = look.back();
            look.pop_back();
            const std::int32_t message = ready(queue);
            if (message < 0) {
                continue;
            }
            graph_.order.push_back(message);
            for (const std::int32_t number : {graph_.message(message).send, graph_.message(message).receive}) {
                const std::int32_t moved = graph_.entry(number).queue;
                ++done_[static_cast<std::size_t>(moved)];
                const std::int32_t first = graph_.queue(graph_.rank_of(moved), 0, false);
                for (std::int32_t other = first; other < first + graph_.lanes * 2; ++other) {
                    look.push_back(other);
                }
            }
        }
    }

    /// Reports the head of every queue that did not empty.
    void report_stuck(Findings& findings) const {
        for (std::size_t queue = 0; queue < done_.size(); ++queue) {
            if (done_[queue] < graph_.queue_size(static_cast<std::int32_t>(queue))) {
                const Entry& head = graph_.entry(graph_.queue_begin[queue] + done_[queue]);
                findings.add(graph_, head, "deadlock",
                             fmt::format("never happens: {} rank {}, after ({})",
                                         waits_done(head) ? "waits for" : "lacks its inputs, peer", head.step.peer,
                                         fmt::join(head.step.after, ", ")));
            }
        }
    }

private:
    [[nodiscard]] bool waits_done(const Entry& entry) const {
        const Rank rank = graph_.rank_of(entry.queue);
        for (Lane lane = 0; lane < graph_.lanes; ++lane) {
            const std::int32_t other = graph_.queue(rank, lane, !Graph::is_receive(entry.queue));
            if (done_[static_cast<std::size_t>(other)] < entry.step.after[static_cast<std::size_t>(lane)]) {
                return false;
            }
        }
        return true;
    }

    [[nodiscard]] bool at_head(const Entry& entry) const {
        return done_[static_cast<std::size_t>(entry.queue)] == entry.index;
    }

    /// The message at the head of the queue if it can happen now, otherwise -1.
    [[nodiscard]] std::int32_t ready(std::int32_t queue) const {
        const std::int32_t done = done_[static_cast<std::size_t>(queue)];
        if (done == graph_.queue_size(queue)) {
            return -1;
        }
        const std::int32_t message = graph_.entry(graph_.queue_begin[static_cast<std::size_t>(queue)] + done).message;
        const Entry& send = graph_.entry(graph_.message(message).send);
        const Entry& receive = graph_.entry(graph_.message(message).receive);
        return at_head(send) && at_head(receive) && waits_done(send) && waits_done(receive) ? message : -1;
    }

    Graph& graph_;
    std::vector<std::int32_t> done_;
};

} // namespace

void find_order(Graph& graph, Findings& findings) {
    graph.order.reserve(graph.messages.size());
    Runner runner(graph);
    runner.run();
    if (graph.order.size() != graph.messages.size()) {
        runner.report_stuck(findings);
    }
}

} // namespace detail

std::string to_string(const Violation& violation) {
    return fmt::format("{}: rank {} lane {} {} {}: {}", violation.rule, violation.rank, violation.lane,
                       violation.sending ? "send" : "receive", violation.index, violation.message);
}

std::vector<Violation> verify(const Schedule& schedule, std::size_t limit) {
    detail::Findings findings(limit);
    detail::Graph graph = detail::write_out(schedule, findings);
    for (const auto part : {detail::pair_up, detail::find_order}) {
        if (findings.empty()) {
            part(graph, findings);
        }
    }
    if (findings.empty()) {
        detail::check_data(graph, findings);
    }
    return findings.take();
}

} // namespace railbreak::collective
