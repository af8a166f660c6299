#include "collective/simulate/simulate.hpp"

#include <algorithm>

#include "collective/simulate/exclusive.hpp"
#include "collective/simulate/fluid.hpp"
#include "collective/simulate/ports.hpp"
#include "collective/simulate/rates.hpp"

namespace railbreak::collective {

namespace {

using simulation::Engine;
using simulation::PortTable;
using simulation::Rates;
using simulation::SideNumber;
using simulation::Ticks;

/// The exclusive model at the rates of the options.
class RatedPace {
public:
    using Time = Ticks;
    RatedPace(const Rates& rates, const SimulationOptions& options)
        : rates_(rates), starts_(options.rank_start), overhead_(simulation::to_ticks(options.flow_overhead)),
          latency_(simulation::to_ticks(options.flow_latency)) {}

    [[nodiscard]] Time rank_start(Rank rank) const {
        return starts_.empty() ? 0 : simulation::to_ticks(starts_[static_cast<std::size_t>(rank)]);
    }
    [[nodiscard]] Time latency() const { return latency_; }
    [[nodiscard]] std::optional<Time> flow_end(SideNumber send, SideNumber receive, std::int64_t elements,
                                               Time start) const {
        return rates_.transfer_end(send, receive, elements, start + overhead_);
    }

private:
    const Rates& rates_;
    const std::vector<Nanoseconds>& starts_;
    Time overhead_;
    Time latency_;
};

/// What a listener of the options is told of a flow; empty when nobody listens.
simulation::FlowListener listener(const Schedule& schedule, const SimulationOptions& options) {
    if (!options.on_flow) {
        return {};
    }
    return [&schedule, &options](const Engine& from, const Engine& to, const Ticks& start, const Ticks& end) {
        options.on_flow({.from = from.rank,
                         .to = to.rank,
                         .lane = from.lane,
                         .from_port = schedule.port(from.rank, from.lane),
                         .to_port = schedule.port(to.rank, to.lane),
                         .send_index = from.index,
                         .receive_index = to.index,
                         .slice = from.head.slice,
                         .stage = from.head.stage,
                         .combine = from.head.combine,
                         .start = simulation::to_nanoseconds(start),
                         .end = simulation::to_nanoseconds(end)});
    };
}

SimulationResult sum_up(const simulation::Tally<Ticks>& tally, std::uint32_t element_bytes) {
    SimulationResult result;
    result.flows = tally.flows;
    for (std::size_t rank = 0; rank < tally.rank_ends.size(); ++rank) {
        result.rank_ends.push_back(simulation::to_nanoseconds(tally.rank_ends[rank]));
        result.makespan = std::max(result.makespan, result.rank_ends.back());
        result.bytes_sent.push_back(static_cast<std::uint64_t>(tally.elements_sent[rank]) * element_bytes);
        result.bytes_received.push_back(static_cast<std::uint64_t>(tally.elements_received[rank]) * element_bytes);
    }
    return result;
}

template <class Engine> Result<SimulationResult> run(Engine& engine, const SimulationOptions& options) {
    if (const Result<void> ran = engine.run(); !ran) {
        return tl::unexpected(ran.error());
    }
    return sum_up(engine.tally(), options.element_bytes);
}

} // namespace

std::string_view to_string(PortSharing sharing) {
    switch (sharing) {
    case PortSharing::kMaxMin: return "max-min";
    case PortSharing::kWindows: return "windows";
    }
    return "";
}

Result<SimulationResult> simulate(const Schedule& schedule, const SimulationOptions& options) {
    const Result<PortTable> ports = PortTable::make(schedule, options.topology);
    if (!ports) {
        return tl::unexpected(ports.error());
    }
    const Result<Rates> rates = Rates::make(*ports, options);
    if (!rates) {
        return tl::unexpected(rates.error());
    }
    switch (options.model) {
    case PortModel::kExclusive: {
        const RatedPace pace(*rates, options);
        simulation::Exclusive<RatedPace> engine(schedule, *ports, pace, listener(schedule, options));
        return run(engine, options);
    }
    case PortModel::kFluid: {
        simulation::Fluid engine(schedule, *ports, *rates, options, listener(schedule, options));
        return run(engine, options);
    }
    }
    return fail(ErrorKind::kInternal, "unknown port model");
}

} // namespace railbreak::collective
