#include "base/trace_events.hpp"

#include <algorithm>
#include <cstdlib>
#include <ostream>

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

namespace railbreak {

namespace {

/// Nanoseconds as microseconds, exactly.
std::string microseconds(Nanoseconds time) {
    const std::int64_t size = std::abs(time.count());
    return fmt::format("{}{}.{:03}", time.count() < 0 ? "-" : "", size / 1000, size % 1000);
}

std::string with_args(std::string_view args) {
    return args.empty() ? std::string() : fmt::format(",\"args\":{}", args);
}

} // namespace

std::string TraceEventWriter::quoted(std::string_view text) {
    const auto plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
    if (std::all_of(text.begin(), text.end(), plain)) { // a trace has millions of these
        return fmt::format("\"{}\"", text);
    }
    return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

void TraceEventWriter::separate() {
    out_ << (first_ ? "\n" : ",\n");
    first_ = false;
}

void TraceEventWriter::begin(const std::vector<std::pair<std::string_view, std::string>>& facts) {
    out_ << R"({"displayTimeUnit":"ns","otherData":{)";
    for (std::size_t i = 0; i < facts.size(); ++i) {
        fmt::print(out_, "{}{}:{}", i == 0 ? "" : ",", quoted(facts[i].first), quoted(facts[i].second));
    }
    out_ << "},\n\"traceEvents\":[";
}

void TraceEventWriter::end() {
    out_ << "\n]}\n";
}

void TraceEventWriter::name_process(std::int64_t process, std::string_view name) {
    separate();
    fmt::print(out_,
               R"({{"ph":"M","name":"process_name","pid":{0},"args":{{"name":{1}}}}},)"
               "\n"
               R"({{"ph":"M","name":"process_sort_index","pid":{0},"args":{{"sort_index":{0}}}}})",
               process, quoted(name));
}

void TraceEventWriter::name_thread(TracePlace place, std::string_view name) {
    separate();
    fmt::print(out_,
               R"({{"ph":"M","name":"thread_name","pid":{0},"tid":{1},"args":{{"name":{2}}}}},)"
               "\n"
               R"({{"ph":"M","name":"thread_sort_index","pid":{0},"tid":{1},"args":{{"sort_index":{1}}}}})",
               place.process, place.thread, quoted(name));
}

void TraceEventWriter::complete(TracePlace place, std::string_view name, std::string_view category, Nanoseconds start,
                                Nanoseconds duration, std::string_view args) {
    separate();
    fmt::print(out_, R"({{"ph":"X","name":{},"cat":{},"pid":{},"tid":{},"ts":{},"dur":{}{}}})", quoted(name),
               quoted(category), place.process, place.thread, microseconds(start), microseconds(duration),
               with_args(args));
}

void TraceEventWriter::instant(TracePlace place, bool everywhere, std::string_view name, Nanoseconds at,
                               std::string_view args) {
    separate();
    fmt::print(out_, R"({{"ph":"i","s":"{}","name":{},"pid":{},"tid":{},"ts":{}{}}})", everywhere ? 'g' : 't',
               quoted(name), place.process, place.thread, microseconds(at), with_args(args));
}

void TraceEventWriter::counter(std::int64_t process, std::string_view name, Nanoseconds at, std::int64_t value) {
    separate();
    fmt::print(out_, R"({{"ph":"C","name":{},"pid":{},"ts":{},"args":{{"value":{}}}}})", quoted(name), process,
               microseconds(at), value);
}

void TraceEventWriter::async(char what, TracePlace place, std::string_view name, std::string_view category,
                             std::int64_t id, Nanoseconds at, std::string_view args) {
    separate();
    fmt::print(out_, R"({{"ph":"{}","name":{},"cat":{},"id":"{}","pid":{},"tid":{},"ts":{}{}}})", what, quoted(name),
               quoted(category), id, place.process, place.thread, microseconds(at), with_args(args));
}

void TraceEventWriter::async_begin(TracePlace place, std::string_view name, std::string_view category, std::int64_t id,
                                   Nanoseconds at, std::string_view args) {
    async('b', place, name, category, id, at, args);
}

void TraceEventWriter::async_instant(TracePlace place, std::string_view name, std::string_view category,
                                     std::int64_t id, Nanoseconds at, std::string_view args) {
    async('n', place, name, category, id, at, args);
}

void TraceEventWriter::async_end(TracePlace place, std::string_view name, std::string_view category, std::int64_t id,
                                 Nanoseconds at, std::string_view args) {
    async('e', place, name, category, id, at, args);
}

} // namespace railbreak
