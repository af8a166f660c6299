#include "reports/import_nccl.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "reports/escape.hpp"
#include "reports/nccl_file.hpp"
#include "scenarios/plan_json.hpp"

namespace railbreak::reports {

using record::RunData;

namespace {

struct Type {
    std::string_view nccl;
    std::string_view name; // ours, where we have it
    std::int64_t bytes;
};
constexpr std::array<Type, 12> kTypes{{{"float", "float32", 4},
                                       {"double", "float64", 8},
                                       {"half", "float16", 2},
                                       {"bfloat16", "bfloat16", 2},
                                       {"int32", "int32", 4},
                                       {"int8", "int8", 1},
                                       {"uint8", "uint8", 1},
                                       {"uint32", "uint32", 4},
                                       {"int64", "int64", 8},
                                       {"uint64", "uint64", 8},
                                       {"f8e4m3", "f8e4m3", 1},
                                       {"f8e5m2", "f8e5m2", 1}}};
constexpr std::array<std::string_view, 6> kOperations{"sum", "prod", "max", "min", "avg", "mulsum"};

const Type* find_type(std::string_view name) {
    const auto* const found = std::find_if(kTypes.begin(), kTypes.end(), [&](const Type& t) { return t.nccl == name; });
    return found != kTypes.end() ? found : nullptr;
}

template <class Names> std::string listed(const Names& names) {
    std::string text;
    for (const auto& name : names) {
        text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
    }
    return text;
}

} // namespace

tl::unexpected<Error> nccl_error(const NcclPlace& place, std::string_view what, std::string_view value,
                                 std::string_view allowed) {
    return fail(Error(ErrorKind::kInput, one_line(fmt::format("{}:{}: {}: {}", place.file, place.where, what, value)))
                    .with("file", std::string(place.file))
                    .with("where", place.where)
                    .with("value", std::string(value))
                    .advise(fmt::format("allowed: {}", allowed)));
}

Result<std::int64_t> nccl_integer(const NcclPlace& place, std::string_view what, std::string_view text,
                                  std::int64_t least, std::int64_t most) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
        return nccl_error(place, what, text,
                          least == most ? fmt::format("{}", least)
                                        : fmt::format("a whole number, {} to {}", least, most));
    }
    return value;
}

Result<double> nccl_number(const NcclPlace& place, std::string_view what, double value, double least, double most) {
    if (!(value >= least && value <= most)) { // neither is NaN
        return nccl_error(place, what, fmt::format("{}", value), fmt::format("a number, {} to {}", least, most));
    }
    return value;
}

std::int64_t nccl_type_bytes(std::string_view type) {
    const Type* const found = find_type(type);
    return found != nullptr ? found->bytes : 0;
}

Result<void> check_nccl_result(const NcclPlace& place, const NcclResult& result, std::int64_t count,
                               std::string_view root) {
    const std::int64_t bytes = nccl_type_bytes(result.type);
    if (bytes == 0) {
        std::vector<std::string_view> names;
        std::transform(kTypes.begin(), kTypes.end(), std::back_inserter(names), [](const Type& t) { return t.nccl; });
        return nccl_error(place, "type", result.type, listed(names));
    }
    if (std::find(kOperations.begin(), kOperations.end(), result.redop) == kOperations.end()) {
        return nccl_error(place, "redop", result.redop, listed(kOperations) + ", as an AllReduce has");
    }
    if (root != "-1") {
        return nccl_error(place, "root", root, "-1: an AllReduce has no root");
    }
    if (result.size / bytes != count || result.size % bytes != 0) {
        return nccl_error(place, "count", std::to_string(count),
                          fmt::format("{} / {}: size over the bytes of {}", result.size, bytes, result.type));
    }
    return {};
}

namespace {

/// What makes results one run.
using Group = std::tuple<std::int64_t, std::string, std::string>; // size, type, operation

/// Rows of ranks that one file may make.
constexpr std::size_t kMostRows = 4'000'000;

/// Bus over algorithm bandwidth tells which collective it was, and over how many ranks.
Result<void> check_factor(std::string_view file, const NcclResult& result, const NcclTimes& times, double ranks) {
    const double factor = 2 * (ranks - 1) / ranks;
    constexpr double kRounding = 0.01; // of the last digit that is printed
    const double difference = std::abs(times.busbw - times.algbw * factor);
    if (difference > times.algbw * factor * 0.02 + 2 * kRounding) {
        return nccl_error({file, result.where}, "busbw", fmt::format("{} with algbw {}", times.busbw, times.algbw),
                          fmt::format("{:.3f} times algbw, as of an AllReduce over {} ranks", factor, ranks));
    }
    return {};
}

Result<void> check(const NcclFile& file, std::string_view name) {
    if (file.ranks.empty()) {
        return nccl_error({name, "the file"}, "ranks", "none", "lines \"# Rank N Group N Pid N on HOST device N ...\"");
    }
    if (file.results.empty()) {
        return nccl_error({name, "the file"}, "results", "none", "at least one line under the header");
    }
    for (const NcclResult& result : file.results) {
        if (!result.out_of_place && !result.in_place) {
            return nccl_error({name, result.where}, "time", "N/A twice", "a time in place or out of place");
        }
        for (const std::optional<NcclTimes>* times : {&result.out_of_place, &result.in_place}) {
            const auto checked =
                *times ? check_factor(name, result, **times, static_cast<double>(file.ranks.size())) : Result<void>();
            if (!checked) {
                return checked;
            }
        }
    }
    return {};
}

void add_cluster(const NcclFile& file, RunData& data) {
    std::map<std::string, std::int32_t> hosts;
    for (const NcclRank& rank : file.ranks) {
        const auto [host, first] = hosts.emplace(rank.host, static_cast<std::int32_t>(hosts.size()));
        if (first) {
            data.hosts.push_back({0, host->second, rank.host, "", "", 0, 0});
        }
        data.ranks.push_back({0, rank.rank, host->second, rank.pid});
    }
    data.run.hosts = static_cast<std::int32_t>(data.hosts.size());
}

/// When the first iteration is said to begin.
constexpr std::int64_t kStart = 1'000'000'000;

/// Where the next iteration goes.
struct Cursor {
    std::int64_t now = kStart; // moment after the iterations so far
    std::int32_t warmup = 0;   // iterations of the algorithm so far
    std::int32_t steady = 0;
};

/// Iterations of one placement of one result.
void add_iterations(const NcclTimes& times, std::string_view algorithm, RunData& data, Cursor& cursor) {
    const bool right = times.wrong == 0;
    const std::vector<double> single{times.time_us};
    const std::vector<double>& all = times.times_us.empty() ? single : times.times_us;
    for (std::size_t i = 0; i < all.size(); ++i) {
        record::IterationRow row;
        row.algorithm = algorithm;
        const bool warmup = i < times.skipped;
        row.phase = warmup ? "warmup" : "steady";
        row.iteration = ++(warmup ? cursor.warmup : cursor.steady);
        row.schedule = "nccl-tests";
        row.started_at = cursor.now;
        row.duration_ns = std::max<std::int64_t>(1, std::llround(all[i] * 1e3));
        row.expected_digest = times.wrong ? "checked by nccl-tests" : "";
        row.correct = right;
        cursor.now += row.duration_ns;
        data.iterations.push_back(std::move(row));
    }
}

void judge(std::string_view algorithm, const std::vector<const NcclTimes*>& times, RunData& data) {
    std::int64_t wrong = 0;
    bool checked = true;
    for (const NcclTimes* one : times) {
        wrong += one->wrong.value_or(0);
        checked = checked && one->wrong.has_value();
    }
    const std::string reason = wrong > 0 ? fmt::format("nccl-tests counted {} wrong elements", wrong)
                               : checked ? "nccl-tests counted no wrong element; railbreak did not see the data"
                                         : "nccl-tests did not check the result (#wrong is N/A)";
    data.verdicts.push_back(
        {0, "correctness", std::string(algorithm), wrong > 0 ? "fail" : "inconclusive", reason, {}, {}, {}});
}

void judge_run(const NcclFile& file, RunData& data) {
    const auto failed = std::find_if(data.verdicts.begin(), data.verdicts.end(),
                                     [](const record::VerdictRow& row) { return row.verdict == "fail"; });
    std::string reason = failed != data.verdicts.end()
                             ? fmt::format("correctness of {}: {}", failed->subject, failed->reason)
                             : "imported from nccl-tests: railbreak verified nothing of it";
    reason += file.complete ? "" : "; the file ends before its summary, so the test may have been cut off";
    data.verdicts.insert(
        data.verdicts.begin(),
        {0, "run", "", failed != data.verdicts.end() ? "fail" : "inconclusive", std::move(reason), {}, {}, {}});
}

std::string environment_json(const NcclFile& file) {
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    for (const auto& [key, value] : file.environment) {
        json[key] = value;
    }
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Name, plan and times of the run of a group.
void describe(const NcclImport& import, const NcclFile& file, const Group& group, const std::string& suffix,
              RunData& data) {
    const auto& [size, type, redop] = group;
    record::RunRow& run = data.run;
    run.scenario_name = import.name + suffix;
    run.plan_json = nlohmann::json{{"imported", "nccl-tests all_reduce_perf"},
                                   {"bytes", size},
                                   {"dtype", type},
                                   {"redop", redop},
                                   {"ranks", file.ranks.size()},
                                   {"hosts", data.run.hosts}}
                        .dump();
    run.plan_hash = scenarios::plan_hash(run.plan_json);
    run.backend = kImportedBackend;
    run.version = import.version;
    run.command_line = import.command_line;
    run.environment_json = environment_json(file);
    run.bytes = size;
    run.dtype = find_type(type)->name;
    run.started_realtime_ns = file.started_realtime_ns > 0 ? file.started_realtime_ns : import.realtime_ns;
    // The end of the id is a digest of what the file holds, by which it is known when it is imported again.
    std::string stamp = to_iso8601(Nanoseconds(run.started_realtime_ns)).substr(0, 19) + "Z";
    std::erase_if(stamp, [](char c) { return c == '-' || c == ':'; });
    const std::string digest =
        scenarios::plan_hash(fmt::format("{}\n{}\n{}", run.scenario_name, run.plan_json, import.text));
    run.run_id = fmt::format("{}-{}-{}", stamp, run.scenario_name, digest.substr(0, 8));
}

void add_event(const NcclFile& file, const NcclImport& import, RunData& data) {
    std::string text =
        fmt::format("imported from {}: times are those of nccl-tests; when an iteration began is made up", import.file);
    if (std::none_of(file.results.begin(), file.results.end(),
                     [](const auto& r) { return (r.in_place && !r.in_place->times_us.empty()); })) {
        text += file.iterations > 0 ? fmt::format("; each is the mean of {} iterations", file.iterations)
                                    : "; each is a mean over iterations";
    }
    if (file.ignored_lines > 0) {
        text += fmt::format("; {} other lines were passed over", file.ignored_lines);
    }
    data.events.push_back({0, 1, "info", "import", "imported", std::move(text), "{}"});
}

RunData run_of(const NcclImport& import, const NcclFile& file, const Group& group, const std::string& suffix) {
    RunData data;
    add_cluster(file, data);
    describe(import, file, group, suffix, data);
    add_event(file, import, data);
    Cursor cursor;
    for (const auto& [algorithm, placement] :
         {std::pair("nccl", &NcclResult::in_place), std::pair("nccl-out-of-place", &NcclResult::out_of_place)}) {
        std::vector<const NcclTimes*> times;
        cursor.warmup = 0;
        cursor.steady = 0;
        for (const NcclResult& result : file.results) {
            if (std::tie(result.size, result.type, result.redop) == group && result.*placement) {
                times.push_back(&*(result.*placement));
                add_iterations(*times.back(), algorithm, data, cursor);
            }
        }
        if (!times.empty()) {
            judge(algorithm, times, data);
        }
    }
    judge_run(file, data);
    const record::IterationRow& last = data.iterations.back();
    data.run.finished_realtime_ns =
        std::max(file.finished_realtime_ns, data.run.started_realtime_ns + last.started_at + last.duration_ns - kStart);
    return data;
}

} // namespace

Result<std::vector<RunData>> import_nccl(const NcclImport& import) {
    if (import.text.size() > kMostImportBytes) {
        return nccl_error({import.file, "the file"}, "size", fmt::format("{} bytes", import.text.size()),
                          fmt::format("at most {}", kMostImportBytes));
    }
    const std::size_t first = import.text.find_first_not_of(" \t\r\n");
    const bool json = first != std::string_view::npos && import.text[first] == '{';
    const Result<NcclFile> file =
        json ? read_nccl_json(import.text, import.file) : read_nccl_text(import.text, import.file);
    if (!file) {
        return tl::unexpected(file.error());
    }
    if (const Result<void> checked = check(*file, import.file); !checked) {
        return tl::unexpected(checked.error());
    }
    std::vector<Group> groups;
    std::set<std::string> types;
    std::set<std::string> operations;
    for (const NcclResult& result : file->results) {
        Group group(result.size, result.type, result.redop);
        if (std::find(groups.begin(), groups.end(), group) == groups.end()) {
            groups.push_back(std::move(group));
        }
        types.insert(result.type);
        operations.insert(result.redop);
    }
    if (groups.size() * file->ranks.size() > kMostRows) {
        return nccl_error({import.file, "the file"}, "results",
                          fmt::format("{} over {} ranks", groups.size(), file->ranks.size()),
                          fmt::format("at most {} results times ranks", kMostRows));
    }
    std::vector<RunData> runs;
    for (const Group& group : groups) {
        std::string suffix = groups.size() > 1 ? fmt::format("-{}", std::get<0>(group)) : "";
        suffix += types.size() > 1 ? "-" + std::get<1>(group) : "";
        suffix += operations.size() > 1 ? "-" + std::get<2>(group) : "";
        runs.push_back(run_of(import, *file, group, suffix));
    }
    return runs;
}

} // namespace railbreak::reports
