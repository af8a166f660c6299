// Random schedules, far from any algorithm: whatever waits for whatever, flows keep to their ports, their order and
// their inputs.
#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collective/simulate/simulate.hpp"
#include "tests/unit/simulate/flow_list.hpp"

namespace railbreak::collective {
namespace {

using test::FlowList;
using test::ListedFlow;

constexpr unsigned kSchedules = 400;
constexpr std::int64_t kVector = 600;

struct Draw {
    explicit Draw(unsigned seed) : random(seed) {}
    std::int64_t between(std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(random);
    }
    std::mt19937 random;
};

/// Each flow may wait for anything that was added before it: so there is no deadlock.
std::vector<ListedFlow> random_flows(Draw& draw, Rank ranks, Lane lanes) {
    std::map<std::pair<Rank, Lane>, std::int64_t> sent;
    std::map<std::pair<Rank, Lane>, std::int64_t> received;
    std::vector<ListedFlow> flows;
    for (std::int64_t i = draw.between(1, 60); i > 0; --i) {
        ListedFlow flow;
        flow.from = static_cast<Rank>(draw.between(0, ranks - 1));
        flow.to = static_cast<Rank>((flow.from + draw.between(1, ranks - 1)) % ranks);
        flow.lane = static_cast<Lane>(draw.between(0, lanes - 1));
        flow.slice.offset = draw.between(0, kVector / 10 - 1) * 10;
        flow.slice.count = draw.between(0, (kVector - flow.slice.offset) / 10) * 10;
        for (Lane lane = 0; lane < lanes; ++lane) {
            if (draw.between(0, 2) > 0) { // mostly the latest: that is what cut-through is about
                flow.send_after[static_cast<std::size_t>(lane)] = received[{flow.from, lane}];
            }
            if (draw.between(0, 5) == 0) {
                flow.receive_after[static_cast<std::size_t>(lane)] = sent[{flow.to, lane}];
            }
        }
        ++sent[{flow.from, flow.lane}];
        ++received[{flow.to, flow.lane}];
        flows.push_back(flow);
    }
    return flows;
}

struct Case {
    std::vector<ListedFlow> flows;
    SimulationOptions options;
    Lane lanes = 1;
};

Case random_case(unsigned seed) {
    Draw draw(seed);
    const auto ranks = static_cast<Rank>(draw.between(2, 6));
    const auto lanes = static_cast<Lane>(draw.between(1, 3));
    Topology topology = healthy_topology(ranks);
    for (PortSlowdown& port : topology.servers) {
        port.send = Rational(draw.between(1, 12), draw.between(1, 3));
        port.receive = Rational(draw.between(1, 12), draw.between(1, 3));
    }
    Case drawn{random_flows(draw, ranks, lanes), test::nanosecond_elements(PortModel::kExclusive, topology), lanes};
    drawn.options.flow_overhead = Nanoseconds(draw.between(0, 1) * draw.between(0, 30));
    drawn.options.flow_latency = Nanoseconds(draw.between(0, 1) * draw.between(0, 80));
    return drawn;
}

std::vector<SimulatedFlow> play(const Case& drawn, SimulationOptions options) {
    std::vector<SimulatedFlow> flows;
    options.on_flow = [&](const SimulatedFlow& flow) { flows.push_back(flow); };
    const FlowList list(options.topology.ranks(), drawn.lanes, drawn.flows);
    const auto result = simulate(list, options);
    EXPECT_TRUE(result) << (result ? "" : result.error().to_line());
    const auto with_data = std::count_if(drawn.flows.begin(), drawn.flows.end(),
                                         [](const ListedFlow& flow) { return flow.slice.count > 0; });
    EXPECT_EQ(std::ssize(flows), with_data);
    return flows;
}

std::vector<SimulatedFlow> play(const Case& drawn, PortModel model, bool cut_through) {
    SimulationOptions options = drawn.options;
    options.model = model;
    options.cut_through = cut_through;
    return play(drawn, options);
}

/// The options of a case in the fluid model, with some buffers and either sharing.
SimulationOptions buffered(const Case& drawn, unsigned seed) {
    Draw draw(seed);
    SimulationOptions options = drawn.options;
    options.model = PortModel::kFluid;
    options.cut_through = draw.between(0, 1) == 0;
    options.sharing = draw.between(0, 1) == 0 ? PortSharing::kMaxMin : PortSharing::kWindows;
    options.send_buffer = ByteCount::bytes(static_cast<std::uint64_t>(draw.between(0, 3) * draw.between(0, kVector)));
    options.receive_buffer =
        ByteCount::bytes(static_cast<std::uint64_t>(draw.between(0, 3) * draw.between(0, kVector)));
    return options;
}

/// Longer than its bytes take, and engines and sides not used twice.
void check_ports(const Case& drawn, const std::vector<SimulatedFlow>& flows, bool exclusive) {
    for (const SimulatedFlow& flow : flows) {
        const Topology& topology = drawn.options.topology;
        const double slower = to_double(std::max(topology.server(flow.from).send, topology.server(flow.to).receive));
        const auto least =
            static_cast<double>(flow.slice.count) * slower + static_cast<double>(drawn.options.flow_overhead.count());
        EXPECT_GE(static_cast<double>((flow.end - flow.start).count()) + 1, least);
        for (const SimulatedFlow& other : flows) {
            const bool before = &flow < &other;
            const bool overlap = flow.start < other.end && other.start < flow.end;
            const bool same_side = flow.from == other.from || flow.to == other.to;
            if (before && overlap && same_side) {
                EXPECT_TRUE(!exclusive && flow.lane != other.lane)
                    << fmt::format("{}->{} lane {} and {}->{} lane {}", flow.from, flow.to, flow.lane, other.from,
                                   other.to, other.lane);
            }
        }
    }
}

/// What a flow waits for has ended before it starts, or, with cut-through, is at least under way, and then the flow
/// does not end before the last element that it forwards has come. `latency`: from the end of a flow until it is
/// usable.
void check_inputs(const Case& drawn, const std::vector<SimulatedFlow>& flows, bool cut_through, Nanoseconds latency) {
    const FlowList list(drawn.options.topology.ranks(), drawn.lanes, drawn.flows);
    const Nanoseconds rounding{1};
    for (const SimulatedFlow& flow : flows) {
        const Step step = list.send_step(flow.from, flow.lane, flow.send_index);
        for (const SimulatedFlow& input : flows) {
            const std::int64_t needed = step.after[static_cast<std::size_t>(input.lane)];
            if (input.to != flow.from || input.receive_index >= needed) {
                continue;
            }
            const Nanoseconds usable = input.end + latency - rounding;
            EXPECT_GE(cut_through ? flow.end : flow.start, cut_through ? input.start : usable);
            const bool brings_the_end = input.slice.offset < flow.slice.end() && flow.slice.end() >= input.slice.end();
            if (cut_through && brings_the_end && input.slice.end() > flow.slice.offset) {
                EXPECT_GE(flow.end, usable);
            }
        }
    }
}

TEST(RandomFlows, KeepToTheirPortsAndInputs) {
    for (unsigned seed = 1; seed <= kSchedules && !testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE(fmt::format("seed {}", seed));
        const Case drawn = random_case(seed);
        for (const PortModel model : {PortModel::kExclusive, PortModel::kFluid}) {
            const std::vector<SimulatedFlow> flows = play(drawn, model, false);
            check_ports(drawn, flows, model == PortModel::kExclusive);
            check_inputs(drawn, flows, false, drawn.options.flow_latency);
        }
        const std::vector<SimulatedFlow> flows = play(drawn, PortModel::kFluid, true);
        check_ports(drawn, flows, false);
        check_inputs(drawn, flows, true, drawn.options.flow_latency);
    }
}

/// A side never moves more than its rate allows between any two ends or starts of its flows.
TEST(RandomFlows, FluidSidesKeepToTheirRate) {
    for (unsigned seed = 1; seed <= kSchedules / 4 && !testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE(fmt::format("seed {}", seed));
        const Case drawn = random_case(seed);
        const std::vector<SimulatedFlow> flows = play(drawn, PortModel::kFluid, seed % 2 == 0);
        for (Rank rank = 0; rank < drawn.options.topology.ranks(); ++rank) {
            for (const SimulatedFlow& first : flows) {
                for (const SimulatedFlow& last : flows) {
                    std::int64_t within = 0;
                    for (const SimulatedFlow& flow : flows) {
                        const bool inside = flow.start >= first.start && flow.end <= last.end;
                        within += inside && flow.from == rank ? flow.slice.count : 0;
                    }
                    const double least =
                        static_cast<double>(within) * to_double(drawn.options.topology.server(rank).send);
                    EXPECT_GE(static_cast<double>(std::max<std::int64_t>(0, (last.end - first.start).count())) + 2,
                              least);
                }
            }
        }
    }
}

/// With buffers the flows of an engine overlap, but they are received in order, no side is faster than it is, inputs
/// are waited for, and the same again gives the same.
TEST(RandomFlows, BuffersNeitherReorderNorSpeedUpPorts) {
    for (unsigned seed = 1; seed <= kSchedules && !testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE(fmt::format("seed {}", seed));
        const Case drawn = random_case(seed);
        const SimulationOptions options = buffered(drawn, seed);
        const std::vector<SimulatedFlow> flows = play(drawn, options);
        // What came before the receiver asked for it is usable at once.
        check_inputs(drawn, flows, options.cut_through, Nanoseconds(0));
        std::map<std::pair<Rank, Lane>, std::pair<std::int64_t, Nanoseconds>> last_received;
        std::map<std::pair<Rank, bool>, std::pair<double, Nanoseconds>> sides; // work, end of the last
        for (const SimulatedFlow& flow : flows) {                              // in the order in which they ended
            auto& [index, end] = last_received[{flow.to, flow.lane}];
            EXPECT_LE(index, flow.receive_index);
            EXPECT_LE(end, flow.end);
            index = flow.receive_index;
            end = flow.end;
            for (const bool receive : {false, true}) {
                const PortSlowdown& port = options.topology.server(receive ? flow.to : flow.from);
                auto& [work, last] = sides[{receive ? flow.to : flow.from, receive}];
                work += static_cast<double>(flow.slice.count) * to_double(receive ? port.receive : port.send);
                last = std::max(last, flow.end);
            }
        }
        for (const auto& [side, use] : sides) {
            EXPECT_LE(use.first, static_cast<double>(use.second.count()) * (1 + 1e-6) + 2) << side.first;
        }
        const std::vector<SimulatedFlow> again = play(drawn, options);
        for (std::size_t i = 0; i < flows.size(); ++i) {
            EXPECT_EQ(flows[i].end, again[i].end);
        }
    }
}

} // namespace
} // namespace railbreak::collective
