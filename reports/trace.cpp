#include "reports/trace.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/trace_events.hpp"
#include "harness/record/statistics.hpp"
#include "reports/facts.hpp"

namespace railbreak::reports {

using record::InjectionRow;
using record::IterationRow;
using record::RunData;

namespace {

constexpr auto quoted = &TraceEventWriter::quoted;

/// First and last moment of a run; 0 for one that recorded none. Unlike origin_ns() it heeds the counters too: viewers
/// drop what lies before 0.
std::pair<std::int64_t, std::int64_t> span_of(const RunData& data) {
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    std::int64_t last = 0;
    const auto take = [&](std::int64_t at) {
        first = at > 0 ? std::min(first, at) : first;
        last = std::max(last, at);
    };
    for (const record::EventRow& row : data.events) {
        take(row.at);
    }
    for (const record::CounterRow& row : data.counters) {
        take(row.at);
    }
    for (const IterationRow& row : data.iterations) {
        take(row.started_at);
        take(row.started_at + std::max<std::int64_t>(row.duration_ns, 0));
    }
    for (const record::RankIterationRow& row : data.rank_iterations) {
        take(row.started_at);
        take(row.ended_at);
    }
    for (const InjectionRow& row : data.injections) {
        for (const std::int64_t at :
             {row.ordered_at, row.applied_at, row.observed_at, row.reverted_at, row.restored_at}) {
            take(at);
        }
    }
    return {last > 0 ? first : 0, last};
}

class RunTrace {
public:
    RunTrace(const RunData& data, std::ostream& out) : data_(data), out_(out) {
        std::tie(origin_, end_) = span_of(data);
        for (const record::HostRow& host : data.hosts) {
            run_process_ = std::max<std::int64_t>(run_process_, std::int64_t{host.host} + 1);
        }
        for (const record::RankRow& rank : data.ranks) {
            host_of_[rank.rank] = rank.host;
            fault_thread_ = std::max<std::int64_t>(fault_thread_, std::int64_t{rank.rank} + 2);
        }
        for (const IterationRow& row : data.iterations) {
            if (std::find(algorithms_.begin(), algorithms_.end(), row.algorithm) == algorithms_.end()) {
                algorithms_.push_back(row.algorithm);
            }
        }
    }

    void write() {
        out_.begin({{"run_id", data_.run.run_id},
                    {"scenario", data_.run.scenario_name},
                    {"plan_hash", data_.run.plan_hash},
                    {"backend", data_.run.backend},
                    {"origin_monotonic_ns", std::to_string(origin_)}});
        name_rows();
        add_iterations();
        add_ranks();
        add_phases();
        std::int64_t id = 0;
        for (const InjectionRow& row : data_.injections) {
            add_fault(row, ++id);
        }
        add_counters();
        add_events();
        out_.end();
    }

private:
    [[nodiscard]] Nanoseconds since(std::int64_t at) const { return Nanoseconds(at - origin_); }

    [[nodiscard]] TracePlace row_of(std::string_view algorithm) const {
        const auto at = std::find(algorithms_.begin(), algorithms_.end(), algorithm);
        return {run_process_, at - algorithms_.begin() + 1};
    }
    [[nodiscard]] TracePlace events_row() const {
        return {run_process_, static_cast<std::int64_t>(algorithms_.size()) + 1};
    }

    void name_rows() {
        for (const record::HostRow& host : data_.hosts) {
            out_.name_process(host.host, fmt::format("host {}", host.name));
            for (const auto& [rank, of] : host_of_) {
                if (of == host.host) {
                    out_.name_thread({host.host, std::int64_t{rank} + 1}, fmt::format("rank {}", rank));
                }
            }
            out_.name_thread({host.host, fault_thread_}, "faults");
        }
        out_.name_process(run_process_, "run");
        for (const std::string_view algorithm : algorithms_) {
            out_.name_thread(row_of(algorithm), algorithm);
        }
        out_.name_thread(events_row(), "events");
    }

    void add_iterations() {
        for (const IterationRow& row : data_.iterations) {
            if (row.started_at > 0) {
                out_.complete(row_of(row.algorithm), fmt::format("{} {}", row.phase, row.iteration), row.phase,
                              since(row.started_at), Nanoseconds(std::max<std::int64_t>(row.duration_ns, 0)),
                              fmt::format(R"({{"schedule":{},"correct":{},"error":{}}})", quoted(row.schedule),
                                          row.correct, quoted(row.error)));
            }
        }
    }

    void add_ranks() {
        std::map<std::int64_t, const IterationRow*> by_id;
        for (const IterationRow& row : data_.iterations) {
            by_id.emplace(row.id, &row);
        }
        for (const record::RankIterationRow& row : data_.rank_iterations) {
            const auto found = by_id.find(row.iteration);
            const auto host = host_of_.find(row.rank);
            if (found == by_id.end() || host == host_of_.end() || row.started_at <= 0) {
                continue;
            }
            const IterationRow& whole = *found->second;
            out_.complete({host->second, std::int64_t{row.rank} + 1},
                          fmt::format("{} {} {}", whole.algorithm, whole.phase, whole.iteration), whole.phase,
                          since(row.started_at), Nanoseconds(std::max<std::int64_t>(row.ended_at - row.started_at, 0)),
                          fmt::format(R"({{"rank":{},"bytes_sent":{},"bytes_received":{},"digest_right":{}}})",
                                      row.rank, row.bytes_sent, row.bytes_received,
                                      !row.digest.empty() && row.digest == whole.expected_digest));
        }
    }

    void add_phases() {
        std::int64_t id = 0;
        for (const record::PhaseStatistics& entry : record::phase_statistics(data_)) {
            std::int64_t from = std::numeric_limits<std::int64_t>::max();
            std::int64_t until = 0;
            for (const IterationRow& row : data_.iterations) {
                if (row.algorithm == entry.algorithm && row.phase == entry.phase && row.started_at > 0) {
                    from = std::min(from, row.started_at);
                    until = std::max(until, row.started_at + std::max<std::int64_t>(row.duration_ns, 0));
                }
            }
            if (until > 0) {
                const TracePlace place = row_of(entry.algorithm);
                const std::string name = fmt::format("{} {}", entry.algorithm, entry.phase);
                out_.async_begin(place, name, "phase", ++id, since(from));
                out_.async_end(place, name, "phase", id, since(until));
            }
        }
    }

    void add_fault(const InjectionRow& row, std::int64_t id) {
        const TracePlace place{row.host, fault_thread_};
        const std::string name = fmt::format("{}: {} on {}", subject_of(row), row.kind, place_of(data_, row));
        const std::string facts = fmt::format(
            R"({{"kind":{},"algorithm":{},"direction":{},"mechanism":{},"realism":{},"wanted_rate_bits_per_s":{},)"
            R"("error":{}}})",
            quoted(row.kind), quoted(row.algorithm), quoted(row.direction), quoted(row.mechanism), quoted(row.realism),
            row.wanted_rate_bits_per_s, quoted(row.error));
        if (row.applied_at <= 0) {
            if (row.ordered_at > 0) {
                out_.instant(place, false, name + ": not applied", since(row.ordered_at), facts);
            }
            return;
        }
        const bool reverted = row.reverted_at > 0;
        const std::int64_t until = std::max(row.applied_at, reverted ? row.reverted_at : end_);
        out_.async_begin(place, name, "fault", id, since(row.applied_at), facts);
        if (row.observed_at >= row.applied_at && row.observed_at <= until) {
            out_.async_instant(place, name, "fault", id, since(row.observed_at), R"({"observed":true})");
        }
        out_.async_end(place, name, "fault", id, since(until),
                       fmt::format(R"({{"reverted":{},"restored":{}}})", reverted, row.restored_at > 0));
        if (!reverted) {
            out_.instant(place, false, name + ": never reverted", since(until));
        } else if (row.restored_at > 0) {
            out_.instant(place, false, name + ": restored", since(row.restored_at));
        }
    }

    void add_counters() {
        for (const record::CounterRow& row : data_.counters) {
            const auto nic = std::find_if(data_.nics.begin(), data_.nics.end(), [&](const record::NicRow& n) {
                return n.host == row.host && n.nic == row.nic;
            });
            out_.counter(row.host,
                         fmt::format("{} {} ({})", nic != data_.nics.end() ? nic->name : fmt::format("NIC {}", row.nic),
                                     row.name, row.source),
                         since(std::max(row.at, origin_)), row.value);
        }
    }

    void add_events() {
        for (const record::EventRow& row : data_.events) {
            out_.instant(events_row(), row.level == "error", row.kind, since(std::max(row.at, origin_)),
                         fmt::format(R"({{"level":{},"source":{},"text":{}}})", quoted(row.level), quoted(row.source),
                                     quoted(row.text)));
        }
    }

    const RunData& data_;
    TraceEventWriter out_;
    std::int64_t origin_ = 0;
    std::int64_t end_ = 0;
    std::int64_t run_process_ = 0;  // after the hosts
    std::int64_t fault_thread_ = 1; // after the ranks, which count from 1
    std::map<std::int32_t, std::int32_t> host_of_;
    std::vector<std::string_view> algorithms_;
};

} // namespace

std::string run_trace(const RunData& data) {
    std::ostringstream out;
    RunTrace(data, out).write();
    return out.str();
}

} // namespace railbreak::reports
