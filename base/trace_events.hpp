// Traces for chrome://tracing and ui.perfetto.dev. Format: Chrome trace event format, JSON object form.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"

namespace railbreak {

/// Where an event is drawn: a process is a group of rows, a thread a row. Thread 0 is the idle task to viewers: count
/// from 1.
struct TracePlace {
    std::int64_t process = 0;
    std::int64_t thread = 1;
};

/// Writes a trace event by event and keeps nothing in memory. Call begin(), events in any order (viewers sort), end().
/// Times are from the trace's origin; they become microseconds with three decimals, so that nanoseconds survive. Texts
/// may hold anything: they are quoted, and what is not ASCII is escaped. `args` are the text of a JSON object, or
/// empty. Failures of the stream stay in the stream.
class TraceEventWriter {
public:
    /// The stream must outlive the writer.
    explicit TraceEventWriter(std::ostream& out) : out_(out) {}

    /// Head of the document. `facts` are shown as the trace's own data.
    void begin(const std::vector<std::pair<std::string_view, std::string>>& facts);
    /// End of the document.
    void end();

    /// Names a process, or a thread of it; they are shown in the order of their numbers.
    void name_process(std::int64_t process, std::string_view name);
    void name_thread(TracePlace place, std::string_view name);

    /// Something with a beginning and an end on its row; those of one row must nest.
    void complete(TracePlace place, std::string_view name, std::string_view category, Nanoseconds start,
                  Nanoseconds duration, std::string_view args);

    /// A moment, drawn over its thread or, with `everywhere`, over all rows.
    void instant(TracePlace place, bool everywhere, std::string_view name, Nanoseconds at, std::string_view args = {});
    /// The value of a counter from this moment on.
    void counter(std::int64_t process, std::string_view name, Nanoseconds at, std::int64_t value);

    /// Beginning, moment and end of something that may overlap others of its row. The three belong together by category
    /// and id; what is begun must be ended.
    void async_begin(TracePlace place, std::string_view name, std::string_view category, std::int64_t id,
                     Nanoseconds at, std::string_view args = {});
    void async_instant(TracePlace place, std::string_view name, std::string_view category, std::int64_t id,
                       Nanoseconds at, std::string_view args = {});
    void async_end(TracePlace place, std::string_view name, std::string_view category, std::int64_t id, Nanoseconds at,
                   std::string_view args = {});

    /// A text as a JSON string, for args.
    [[nodiscard]] static std::string quoted(std::string_view text);

private:
    void separate();
    void async(char what, TracePlace place, std::string_view name, std::string_view category, std::int64_t id,
               Nanoseconds at, std::string_view args);

    std::ostream& out_;
    bool first_ = true;
};

} // namespace railbreak
