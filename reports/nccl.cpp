#include "reports/nccl.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/json_text.hpp"
#include "harness/record/statistics.hpp"
#include "reports/facts.hpp"
#include "reports/text.hpp"

namespace railbreak::reports {

using record::IterationRow;
using record::PhaseStatistics;
using record::RunData;
using Json = nlohmann::ordered_json;

namespace {

constexpr std::string_view kNone = "N/A";

/// A type of elements: its name here and there, and the bytes of one.
struct Type {
    std::string_view name;
    std::string_view nccl;
    std::int64_t bytes;
};
constexpr std::array<Type, 5> kTypes{{{"float32", "float", 4},
                                      {"float64", "double", 8},
                                      {"int32", "int32", 4},
                                      {"bfloat16", "bfloat16", 2},
                                      {"float16", "half", 2}}};

Type type_of(const RunData& data) {
    const auto* const found =
        std::find_if(kTypes.begin(), kTypes.end(), [&](const Type& type) { return type.name == data.run.dtype; });
    return found != kTypes.end() ? *found : Type{data.run.dtype, data.run.dtype, 1};
}

/// What is listed: every phase but warm-up and tries.
std::vector<PhaseStatistics> listed(const RunData& data) {
    std::vector<PhaseStatistics> all = record::phase_statistics(data);
    std::erase_if(all, [](const PhaseStatistics& e) { return e.phase == "warmup" || e.phase == "comparison"; });
    return all;
}

bool verified(const RunData& data) {
    return data.run.backend != record::kSimulatedBackend;
}

// As many decimals as nccl-tests gives a number in a column, and four below 1: slow networks need them.
std::string figure(double value, int width) {
    int digits = 0;
    for (double power = 1; value >= power; power *= 10) {
        ++digits;
    }
    const int decimals = digits == 0 ? 4 : digits < width - 2 ? 2 : digits < width - 1 ? 1 : 0;
    return fmt::format("{:>{}.{}f}", value, width, decimals);
}

std::string title(std::string_view size, std::string_view count, std::string_view type, std::string_view redop,
                  std::string_view root, const std::array<std::string_view, 4>& side) {
    std::string line = fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", size, count, type, redop, root);
    for (int i = 0; i < 2; ++i) {
        line += fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", side[0], side[1], side[2], side[3]);
    }
    return line + " \n";
}

// How many iterations the phases have at most.
std::int32_t most_iterations(const RunData& data, bool warmup) {
    std::int32_t most = 0;
    for (const PhaseStatistics& entry : record::phase_statistics(data)) {
        if ((entry.phase == "warmup") == warmup && entry.phase != "comparison") {
            most = std::max(most, entry.iterations + entry.failed);
        }
    }
    return most;
}

struct Device {
    std::int32_t rank = 0;
    std::int64_t pid = 0;
    std::string host;
    int index = 0; // among the ranks of its host
};

std::vector<Device> devices_of(const RunData& data) {
    std::vector<Device> devices;
    std::map<std::int32_t, int> used;
    for (const record::RankRow& rank : data.ranks) {
        const auto host = std::find_if(data.hosts.begin(), data.hosts.end(),
                                       [&](const record::HostRow& h) { return h.host == rank.host; });
        devices.push_back({rank.rank, rank.pid, host != data.hosts.end() ? host->name : "unknown", used[rank.host]++});
    }
    return devices;
}

std::string head(const RunData& data) {
    std::string out =
        printable(fmt::format("# railbreak {}: run {} of {} on {}, in the columns of nccl-tests", data.run.version,
                              data.run.run_id, data.run.scenario_name, data.run.backend)) +
        "\n# Collective test starting: all_reduce_perf\n";
    out +=
        fmt::format("# nThread 1 nGpus 1 minBytes {0} maxBytes {0} step: 2(factor) warmup iters: {1} iters: {2} agg "
                    "iters: 1 validation: {3} graph: 0\n#\n# Using devices\n",
                    data.run.bytes, most_iterations(data, true), most_iterations(data, false), verified(data) ? 1 : 0);
    for (const Device& device : devices_of(data)) {
        std::string host = printable(device.host);
        std::replace(host.begin(), host.end(), ' ', '_'); // readers split at spaces
        out += fmt::format("#  Rank {:>2} Group  0 Pid {:>6} on {:>10} device {:>2} [0000:00:00] CPU\n", device.rank,
                           device.pid, host, device.index);
    }
    out += fmt::format("#\n# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}           out-of-place                       in-place"
                       "          \n",
                       "", "", "", "", "");
    return out + title("size", "count", "type", "redop", "root", {"time", "algbw", "busbw", "#wrong"}) +
           title("(B)", "(elements)", "", "", "", {"(us)", "(GB/s)", "(GB/s)", ""});
}

/// What the last lines sum up.
struct Sums {
    int wrong = 0;
    int lines = 0;
    double busbw = 0; // GB/s, of all lines together

    [[nodiscard]] double average() const { return lines > 0 ? busbw / lines : 0; }
};

Sums sums_of(const std::vector<PhaseStatistics>& entries) {
    Sums sums;
    for (const PhaseStatistics& entry : entries) {
        sums.wrong += entry.wrong;
        if (entry.time_median_ns) {
            ++sums.lines;
            sums.busbw += entry.busbw_bytes_per_s.value_or(0) / 1e9;
        }
    }
    return sums;
}

} // namespace

std::string run_nccl_text(const RunData& data) {
    const std::vector<PhaseStatistics> entries = listed(data);
    const Type type = type_of(data);
    std::string out = head(data);
    for (const PhaseStatistics& entry : entries) {
        out += printable(fmt::format("# algorithm {}, phase {}: median of {} iterations, {} failed", entry.algorithm,
                                     entry.phase, entry.iterations, entry.failed)) +
               "\n";
        if (!entry.time_median_ns) {
            continue;
        }
        out += fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}", data.run.bytes, data.run.bytes / type.bytes,
                           printable(type.nccl), "sum", -1);
        out += fmt::format("  {0:>7}  {0:>6}  {0:>6}  {0:>6}", kNone);
        out += fmt::format("  {}  {}  {}  {:>6}\n", figure(*entry.time_median_ns / 1e3, 7),
                           figure(entry.algbw_bytes_per_s.value_or(0) / 1e9, 6),
                           figure(entry.busbw_bytes_per_s.value_or(0) / 1e9, 6),
                           verified(data) ? std::to_string(entry.wrong) : std::string(kNone));
    }
    const Sums sums = sums_of(entries);
    out += fmt::format("# {:<20} : {} {}\n", "Out of bounds values", sums.wrong, sums.wrong > 0 ? "FAILED" : "OK");
    out += fmt::format("# {:<20} : {:.6g} \n", "Avg bus bandwidth", sums.average());
    return out + "#\n# Collective test concluded: all_reduce_perf\n";
}

namespace {

std::string time_text(std::int64_t realtime_ns) {
    std::string text = to_iso8601(Nanoseconds(realtime_ns)).substr(0, 19);
    std::replace(text.begin(), text.end(), 'T', ' ');
    return text;
}

// nccl-tests writes its booleans as strings.
std::string_view bool_text(bool value) {
    return value ? "true" : "false";
}

Json arguments_of(std::string_view line) {
    Json words = Json::array();
    while (!line.empty()) {
        const std::string_view word = line.substr(0, line.find(' '));
        if (!word.empty()) {
            words.push_back(word);
        }
        line.remove_prefix(std::min(word.size() + 1, line.size()));
    }
    return words;
}

Json environment_of(const RunData& data) {
    Json list = Json::array();
    const auto facts = Json::parse(data.run.environment_json, nullptr, false);
    if (facts.is_object()) {
        for (const auto& [key, value] : facts.items()) {
            list.push_back(fmt::format("{}={}", key,
                                       value.is_string() ? value.get<std::string>()
                                                         : value.dump(-1, ' ', false, Json::error_handler_t::replace)));
        }
    }
    return list;
}

Json config_of(const RunData& data) {
    Json devices = Json::array();
    for (const Device& device : devices_of(data)) {
        devices.push_back({{"rank", device.rank},
                           {"group", 0},
                           {"pid", device.pid},
                           {"hostname", device.host},
                           {"device", device.index},
                           {"device_hex", "0000:00:00"},
                           {"device_info", "CPU"}});
    }
    return {{"nthreads", 1},
            {"ngpus", 1},
            {"minimum_bytes", data.run.bytes},
            {"maximum_bytes", data.run.bytes},
            {"step_factor", 2},
            {"warmup_iters", most_iterations(data, true)},
            {"iterations", most_iterations(data, false)},
            {"aggregated_iterations", 1},
            {"validation", verified(data) ? 1 : 0},
            {"graph", 0},
            {"blocking_collectives", bool_text(true)},
            {"per_iter_timing", bool_text(true)},
            {"per_iter_skip", 0},
            {"parallel_init", bool_text(false)},
            {"devices", std::move(devices)}};
}

// For each rank the time of each iteration; empty unless every rank has every iteration.
Json process_times(const RunData& data, const std::vector<const IterationRow*>& iterations) {
    std::map<std::int64_t, std::map<std::int32_t, const record::RankIterationRow*>> by_iteration;
    for (const IterationRow* row : iterations) {
        by_iteration[row->id];
    }
    for (const record::RankIterationRow& row : data.rank_iterations) {
        if (const auto found = by_iteration.find(row.iteration); found != by_iteration.end()) {
            found->second[row.rank] = &row;
        }
    }
    std::map<std::int32_t, Json> times;
    for (const IterationRow* row : iterations) {
        const auto& ranks = by_iteration[row->id];
        if (ranks.size() != static_cast<std::size_t>(record::rank_count(data)) || ranks.empty()) {
            return Json::array();
        }
        const auto start = std::min_element(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) {
                               return a.second->started_at < b.second->started_at;
                           })->second->started_at;
        for (const auto& [rank, part] : ranks) {
            times[rank].push_back(static_cast<double>(part->ended_at - start) / 1e3);
        }
    }
    Json list = Json::array();
    for (auto& [rank, values] : times) {
        list.push_back(std::move(values));
    }
    return list;
}

// Figures of the single iterations, each computed as nccl-tests does.
Json iterations_of(const RunData& data, const PhaseStatistics& entry) {
    std::vector<const IterationRow*> rows;
    std::vector<double> times;
    for (const IterationRow& row : data.iterations) {
        if (row.algorithm == entry.algorithm && row.phase == entry.phase && row.error.empty() && row.duration_ns > 0) {
            rows.push_back(&row);
            times.push_back(static_cast<double>(row.duration_ns) / 1e3);
        }
    }
    std::vector<double> sorted = times;
    std::sort(sorted.begin(), sorted.end());
    const std::size_t n = sorted.size();
    const auto percentile = [&](std::size_t percent) { return sorted[std::min(n - 1, (n * percent + 99) / 100 - 1)]; };
    double sum = 0;
    for (const double time : times) {
        sum += time;
    }
    const double average = sum / static_cast<double>(n);
    double squares = 0;
    for (const double time : times) {
        squares += (time - average) * (time - average);
    }
    const double deviation = std::sqrt(squares / static_cast<double>(n));
    Json json{
        {"skipped_iterations", 0},  {"min_us", sorted.front()}, {"max_us", sorted.back()},
        {"avg_us", average},        {"p50_us", sorted[n / 2]},  {"p95_us", percentile(95)},
        {"p99_us", percentile(99)}, {"stdev_us", deviation},    {"cv_pct", average > 0 ? deviation / average * 100 : 0},
        {"times_us", times}};
    if (Json processes = process_times(data, rows); processes.size() > 1) {
        json["per_process_max_times_us"] = std::move(processes);
    }
    return json;
}

Json result_of(const RunData& data, const PhaseStatistics& entry) {
    const Type type = type_of(data);
    return {{"size", data.run.bytes},
            {"count", data.run.bytes / type.bytes},
            {"type", type.nccl},
            {"redop", "sum"},
            {"root", "    -1"},
            {"out_of_place", nullptr},
            {"in_place",
             {{"time", *entry.time_median_ns / 1e3},
              {"alg_bw", entry.algbw_bytes_per_s.value_or(0) / 1e9},
              {"bus_bw", entry.busbw_bytes_per_s.value_or(0) / 1e9},
              {"nwrong", verified(data) ? Json(static_cast<double>(entry.wrong)) : Json(nullptr)}}},
            {"in_place_per_iter", iterations_of(data, entry)},
            {"actual_iterations", entry.iterations},
            {"experiment_name", fmt::format("{} {}", entry.algorithm, entry.phase)}};
}

} // namespace

std::string run_nccl_json(const RunData& data) {
    const std::vector<PhaseStatistics> entries = listed(data);
    Json results = Json::array();
    Json errors = Json::array();
    for (const PhaseStatistics& entry : entries) {
        if (entry.time_median_ns) {
            results.push_back(result_of(data, entry));
        }
    }
    for (const IterationRow& row : data.iterations) {
        if (!row.error.empty()) {
            errors.push_back(fmt::format("{} {} {}: {}", row.algorithm, row.phase, row.iteration, row.error));
        }
    }
    const Sums sums = sums_of(entries);
    Json report{{"version", 3},
                {"railbreak_run", data.run.run_id},
                {"start_time", time_text(data.run.started_realtime_ns)},
                {"args", arguments_of(data.run.command_line)},
                {"env", environment_of(data)},
                {"nccl_version", 0},
                {"config", config_of(data)},
                {"results", std::move(results)},
                {"out_of_bounds", {{"count", sums.wrong}, {"okay", bool_text(sums.wrong == 0)}}},
                {"average_bus_bandwidth", {{"bandwidth", sums.average()}, {"okay", "unchecked"}}},
                {"errors", std::move(errors)},
                {"end_time",
                 data.run.finished_realtime_ns > 0 ? Json(time_text(data.run.finished_realtime_ns)) : Json(nullptr)}};
    return json_text(report);
}

} // namespace railbreak::reports
