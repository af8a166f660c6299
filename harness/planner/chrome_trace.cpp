#include "harness/planner/chrome_trace.hpp"

#include <ostream>
#include <string>

#include <fmt/format.h>

namespace railbreak::planner {

ChromeTraceWriter::ChromeTraceWriter(const collective::Schedule& schedule,
                                     const collective::SimulationOptions& simulation, std::ostream& out)
    : schedule_(schedule), simulation_(simulation), out_(out), events_(out) {}

TracePlace ChromeTraceWriter::place(collective::Rank rank, collective::Lane lane, bool sending) const {
    return {rank / schedule_.ranks_per_server(),
            (rank % schedule_.ranks_per_server() * schedule_.lanes() + lane) * 2 + (sending ? 0 : 1) + 1};
}

void ChromeTraceWriter::begin() {
    events_.begin({{"schedule", schedule_.name()},
                   {"cluster", cluster_text(simulation_)},
                   {"message", message_text(schedule_, simulation_)}});
    const collective::Topology& topology = simulation_.topology;
    for (collective::Rank server = 0; server < topology.server_count(); ++server) {
        const std::string slow = slowdown_text(topology, server);
        events_.name_process(server, slow.empty() ? fmt::format("server {}", server)
                                                  : fmt::format("server {} ({})", server, slow));
    }
    for (collective::Rank rank = 0; rank < schedule_.ranks(); ++rank) {
        for (collective::Lane lane = 0; lane < schedule_.lanes(); ++lane) {
            if (schedule_.send_count(rank, lane) > 0) {
                name_thread(rank, lane, true);
            }
            if (schedule_.receive_count(rank, lane) > 0) {
                name_thread(rank, lane, false);
            }
        }
    }
}

void ChromeTraceWriter::name_thread(collective::Rank rank, collective::Lane lane, bool sending) {
    events_.name_thread(place(rank, lane, sending),
                        fmt::format("rank {} {} lane {} {}", rank, port_text(schedule_.port(rank, lane)), lane,
                                    sending ? "send" : "receive"));
}

void ChromeTraceWriter::add(const collective::SimulatedFlow& flow) {
    add_side(flow, true);
    add_side(flow, false);
}

void ChromeTraceWriter::add_side(const collective::SimulatedFlow& flow, bool sending) {
    const collective::Rank rank = sending ? flow.from : flow.to;
    const std::string_view stage = collective::to_string(flow.stage);
    events_.complete(
        place(rank, flow.lane, sending),
        fmt::format("{} {} {}", stage, sending ? "to" : "from", sending ? flow.to : flow.from), stage, flow.start,
        flow.end - flow.start,
        fmt::format(R"({{"from":{},"to":{},"offset":{},"count":{},"combine":"{}","send_index":{},"receive_index":{}}})",
                    flow.from, flow.to, flow.slice.offset, flow.slice.count,
                    flow.combine == collective::Combine::kReduce ? "reduce" : "copy", flow.send_index,
                    flow.receive_index));
}

Result<void> ChromeTraceWriter::end(Nanoseconds makespan, const std::optional<BoundTime>& bound) {
    events_.instant({}, true, "makespan", makespan);
    if (bound) {
        events_.instant({}, true, fmt::format("lower bound ({})", bound->name), bound->time);
    }
    events_.end();
    if (!out_) {
        return fail(ErrorKind::kInput, "the trace could not be written");
    }
    return {};
}

} // namespace railbreak::planner
