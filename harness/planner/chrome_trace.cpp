#include "harness/planner/chrome_trace.hpp"

#include <ostream>
#include <string>

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

namespace railbreak::planner {

namespace {

/// Nanoseconds as microseconds, exactly.
std::string microseconds(Nanoseconds time) {
    return fmt::format("{}.{:03}", time.count() / 1000, time.count() % 1000);
}

std::string quoted(const std::string& text) {
    return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

} // namespace

ChromeTraceWriter::ChromeTraceWriter(const collective::Schedule& schedule,
                                     const collective::SimulationOptions& simulation, std::ostream& out)
    : schedule_(schedule), simulation_(simulation), out_(out) {}

int ChromeTraceWriter::thread(collective::Rank rank, collective::Lane lane, bool sending) const {
    // From 1: viewers treat thread 0 as the idle task.
    return (rank % schedule_.ranks_per_server() * schedule_.lanes() + lane) * 2 + (sending ? 0 : 1) + 1;
}

void ChromeTraceWriter::separate() {
    out_ << (first_ ? "\n" : ",\n");
    first_ = false;
}

void ChromeTraceWriter::begin() {
    fmt::print(out_, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"schedule\":{},\"cluster\":{},\"message\":{}}},\n",
               quoted(schedule_.name()), quoted(cluster_text(simulation_)),
               quoted(message_text(schedule_, simulation_)));
    out_ << "\"traceEvents\":[";
    const collective::Topology& topology = simulation_.topology;
    for (collective::Rank server = 0; server < topology.server_count(); ++server) {
        const std::string slow = slowdown_text(topology, server);
        separate();
        fmt::print(
            out_,
            R"({{"ph":"M","name":"process_name","pid":{0},"args":{{"name":{1}}}}},)"
            "\n"
            R"({{"ph":"M","name":"process_sort_index","pid":{0},"args":{{"sort_index":{0}}}}})",
            server,
            quoted(slow.empty() ? fmt::format("server {}", server) : fmt::format("server {} ({})", server, slow)));
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
    const int id = thread(rank, lane, sending);
    separate();
    fmt::print(out_,
               R"({{"ph":"M","name":"thread_name","pid":{0},"tid":{1},"args":{{"name":{2}}}}},)"
               "\n"
               R"({{"ph":"M","name":"thread_sort_index","pid":{0},"tid":{1},"args":{{"sort_index":{1}}}}})",
               rank / schedule_.ranks_per_server(), id,
               quoted(fmt::format("rank {} {} lane {} {}", rank, port_text(schedule_.port(rank, lane)), lane,
                                  sending ? "send" : "receive")));
}

void ChromeTraceWriter::add(const collective::SimulatedFlow& flow) {
    add_side(flow, true);
    add_side(flow, false);
}

void ChromeTraceWriter::add_side(const collective::SimulatedFlow& flow, bool sending) {
    const collective::Rank rank = sending ? flow.from : flow.to;
    const std::string_view stage = collective::to_string(flow.stage);
    separate();
    fmt::print(out_,
               R"({{"ph":"X","name":"{} {} {}","cat":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{"from":{},)"
               R"("to":{},"offset":{},"count":{},"combine":"{}","send_index":{},"receive_index":{}}}}})",
               stage, sending ? "to" : "from", sending ? flow.to : flow.from, stage,
               rank / schedule_.ranks_per_server(), thread(rank, flow.lane, sending), microseconds(flow.start),
               microseconds(flow.end - flow.start), flow.from, flow.to, flow.slice.offset, flow.slice.count,
               flow.combine == collective::Combine::kReduce ? "reduce" : "copy", flow.send_index, flow.receive_index);
}

void ChromeTraceWriter::mark(Nanoseconds at, const std::string& name) {
    separate();
    fmt::print(out_, R"({{"ph":"i","s":"g","name":{},"pid":0,"tid":1,"ts":{}}})", quoted(name), microseconds(at));
}

Result<void> ChromeTraceWriter::end(Nanoseconds makespan, const std::optional<BoundTime>& bound) {
    mark(makespan, "makespan");
    if (bound) {
        mark(bound->time, fmt::format("lower bound ({})", bound->name));
    }
    out_ << "\n]}\n";
    if (!out_) {
        return fail(ErrorKind::kInput, "the trace could not be written");
    }
    return {};
}

} // namespace railbreak::planner
