#include "harness/planner/schedule_json.hpp"

#include <ostream>
#include <string>

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

namespace railbreak::planner {

namespace {

using collective::Lane;
using collective::Rank;
using collective::Schedule;
using collective::Step;

void write_step(const Schedule& schedule, const Step& step, bool first, std::ostream& out) {
    fmt::print(out, R"({}{{"peer":{},"offset":{},"count":{},"stage":"{}","combine":"{}","after":[)",
               first ? "\n" : ",\n", step.peer, step.slice.offset, step.slice.count, collective::to_string(step.stage),
               step.combine == collective::Combine::kReduce ? "reduce" : "copy");
    for (Lane lane = 0; lane < schedule.lanes(); ++lane) {
        fmt::print(out, "{}{}", lane == 0 ? "" : ",", step.after[static_cast<std::size_t>(lane)]);
    }
    out << "]}";
}

void write_queue(const Schedule& schedule, Rank rank, Lane lane, std::ostream& out) {
    const collective::Port port = schedule.port(rank, lane);
    fmt::print(out, R"({{"rank":{},"lane":{},"port":{{"kind":"{}","nic":{}}},)", rank, lane,
               port.kind == collective::PortKind::kNic ? "nic" : "local", port.nic);
    out << "\n\"sends\":[";
    for (std::int64_t i = 0; i < schedule.send_count(rank, lane); ++i) {
        write_step(schedule, schedule.send_step(rank, lane, i), i == 0, out);
    }
    out << "],\n\"receives\":[";
    for (std::int64_t i = 0; i < schedule.receive_count(rank, lane); ++i) {
        write_step(schedule, schedule.receive_step(rank, lane, i), i == 0, out);
    }
    out << "]}";
}

} // namespace

Result<void> write_schedule_json(const Schedule& schedule, std::ostream& out) {
    fmt::print(out,
               R"({{"schema":"{}","version":{},"name":{},"ranks":{},"ranks_per_server":{},"lanes":{},"elements":{},)"
               "\n\"queues\":[",
               kScheduleSchema, kScheduleVersion,
               nlohmann::json(schedule.name()).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace),
               schedule.ranks(), schedule.ranks_per_server(), schedule.lanes(), schedule.elements());
    bool first = true;
    for (Rank rank = 0; rank < schedule.ranks() && out; ++rank) {
        for (Lane lane = 0; lane < schedule.lanes(); ++lane) {
            out << (first ? "\n" : ",\n");
            first = false;
            write_queue(schedule, rank, lane, out);
        }
    }
    out << "\n]}\n";
    if (!out) {
        return fail(ErrorKind::kInput, "the schedule could not be written");
    }
    return {};
}

} // namespace railbreak::planner
