// A simulated schedule as a trace for chrome://tracing and ui.perfetto.dev: a process for each server, a thread for
// each side of each lane, a complete ("X") event for each flow on the thread of its sender and on that of its receiver.
#pragma once

#include <iosfwd>
#include <optional>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/trace_events.hpp"
#include "collective/schedule.hpp"
#include "collective/simulate/simulate.hpp"
#include "harness/planner/facts.hpp"

namespace railbreak::planner {

/// Writes a trace while the simulation runs; keeps nothing in memory. Call begin(), add() for each flow, end(). Times
/// are microseconds with three decimals, so that nanoseconds survive. References must outlive the writer.
class ChromeTraceWriter {
public:
    ChromeTraceWriter(const collective::Schedule& schedule, const collective::SimulationOptions& simulation,
                      std::ostream& out);

    /// Head of the document, and the names of processes and threads.
    void begin();
    /// One flow, in any order; a viewer sorts.
    void add(const collective::SimulatedFlow& flow);
    /// Marks makespan and bound and ends the document. Error (kInput): the stream took no more.
    [[nodiscard]] Result<void> end(Nanoseconds makespan, const std::optional<BoundTime>& bound);

private:
    [[nodiscard]] TracePlace place(collective::Rank rank, collective::Lane lane, bool sending) const;
    void name_thread(collective::Rank rank, collective::Lane lane, bool sending);
    void add_side(const collective::SimulatedFlow& flow, bool sending);

    const collective::Schedule& schedule_;
    const collective::SimulationOptions& simulation_;
    std::ostream& out_;
    TraceEventWriter events_;
};

} // namespace railbreak::planner
