// Small schedules written down flow by flow, and a cluster on which an element takes a nanosecond.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "collective/simulate/simulate.hpp"

namespace railbreak::collective::test {

/// A flow of a FlowList. Both engines take flows in the order in which they were added.
struct ListedFlow {
    Rank from = 0;
    Rank to = 0;
    Slice slice;
    Lane lane = 0;
    PrefixCounts send_after{};
    PrefixCounts receive_after{};
};

class FlowList final : public Schedule {
public:
    FlowList(Rank ranks, Lane lanes, const std::vector<ListedFlow>& flows, Rank ranks_per_server = 1)
        : ranks_(ranks), lanes_(lanes), ranks_per_server_(ranks_per_server),
          sends_(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(lanes)), receives_(sends_.size()) {
        for (const ListedFlow& flow : flows) {
            add_send(flow.from, flow.lane, {.peer = flow.to, .slice = flow.slice, .after = flow.send_after});
            add_receive(flow.to, flow.lane, {.peer = flow.from, .slice = flow.slice, .after = flow.receive_after});
        }
    }
    void add_send(Rank rank, Lane lane, const Step& step) { sends_[number(rank, lane)].push_back(step); }
    void add_receive(Rank rank, Lane lane, const Step& step) { receives_[number(rank, lane)].push_back(step); }
    void attach(Rank rank, Lane lane, Port port) { ports_[{rank, lane}] = port; }

    [[nodiscard]] std::string name() const override { return "list"; }
    [[nodiscard]] Rank ranks() const override { return ranks_; }
    [[nodiscard]] Lane lanes() const override { return lanes_; }
    [[nodiscard]] Rank ranks_per_server() const override { return ranks_per_server_; }
    [[nodiscard]] Port port(Rank rank, Lane lane) const override {
        const auto place = ports_.find({rank, lane});
        return place == ports_.end() ? Port{} : place->second;
    }
    [[nodiscard]] std::int64_t elements() const override { return 1'000'000; }
    [[nodiscard]] std::int64_t send_count(Rank rank, Lane lane) const override {
        return static_cast<std::int64_t>(sends_[number(rank, lane)].size());
    }
    [[nodiscard]] std::int64_t receive_count(Rank rank, Lane lane) const override {
        return static_cast<std::int64_t>(receives_[number(rank, lane)].size());
    }
    [[nodiscard]] Step send_step(Rank rank, Lane lane, std::int64_t index) const override {
        return sends_[number(rank, lane)][static_cast<std::size_t>(index)];
    }
    [[nodiscard]] Step receive_step(Rank rank, Lane lane, std::int64_t index) const override {
        return receives_[number(rank, lane)][static_cast<std::size_t>(index)];
    }

private:
    [[nodiscard]] std::size_t number(Rank rank, Lane lane) const {
        return static_cast<std::size_t>(rank) * static_cast<std::size_t>(lanes_) + static_cast<std::size_t>(lane);
    }

    Rank ranks_;
    Lane lanes_;
    Rank ranks_per_server_;
    std::vector<std::vector<Step>> sends_;
    std::vector<std::vector<Step>> receives_;
    std::map<std::pair<Rank, Lane>, Port> ports_;
};

/// Options with an element of one byte and one nanosecond.
inline SimulationOptions nanosecond_elements(PortModel model, const Topology& topology) {
    return {.model = model,
            .topology = topology,
            .healthy_goodput = BitRate::bits_per_s(8'000'000'000),
            .element_bytes = 1};
}

/// Start and end of each flow in nanoseconds, by sender, receiver and place in the send queue.
struct Times {
    std::int64_t start = 0;
    std::int64_t end = 0;
    bool operator==(const Times&) const = default;
};
using Trace = std::map<std::tuple<Rank, Rank, std::int64_t>, Times>;

inline void record(SimulationOptions& options, Trace& trace) {
    options.on_flow = [&trace](const SimulatedFlow& flow) {
        trace[{flow.from, flow.to, flow.send_index}] = {flow.start.count(), flow.end.count()};
    };
}

/// Makespan in nanoseconds; -1 and a test failure when there is an error.
inline std::int64_t makespan(const Schedule& schedule, const SimulationOptions& options) {
    const Result<SimulationResult> result = simulate(schedule, options);
    EXPECT_TRUE(result) << (result ? "" : result.error().to_line());
    return result ? result->makespan.count() : -1;
}

} // namespace railbreak::collective::test
