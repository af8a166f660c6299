#include "reports/superbench.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/analyse/verdict.hpp"
#include "harness/record/statistics.hpp"

namespace railbreak::reports {

using record::PhaseStatistics;
using record::RunData;
using Json = nlohmann::ordered_json;

namespace {

constexpr std::string_view kBenchmark = "allreduce-perf";

std::string word(std::string_view name) {
    std::string out(name);
    const auto plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
               c == '-';
    };
    std::replace_if(
        out.begin(), out.end(), [&](char c) { return !plain(c); }, '_');
    return out;
}

void add(Json& line, const std::string& name, const std::optional<double>& value, double scale = 1) {
    if (value) {
        line[name] = *value / scale;
    }
}

void add_collective(const RunData& data, const std::vector<PhaseStatistics>& statistics, Json& line) {
    // SuperBench's rules take anything but 0 for a failure.
    line[fmt::format("{}/return_code", kBenchmark)] = static_cast<int>(analyse::exit_code_of(data.verdicts));
    for (const PhaseStatistics& entry : statistics) {
        const std::string name =
            fmt::format("{}/{}_{}_{}", kBenchmark, word(entry.algorithm), entry.phase, data.run.bytes);
        add(line, name + "_busbw", entry.busbw_bytes_per_s, 1e9);
        add(line, name + "_algbw", entry.algbw_bytes_per_s, 1e9);
        add(line, name + "_time", entry.time_median_ns, 1e3);
        add(line, name + "_vs_healthy", entry.vs_healthy);
        add(line, name + "_overhead_exclusive", entry.overhead_exclusive);
        add(line, name + "_overhead_fluid", entry.overhead_fluid);
        line[name + "_wrong"] = entry.wrong;
        line[name + "_failed"] = entry.failed;
    }
}

/// Median, over a phase's iterations, of the time that the slowest rank of a host took by itself.
class HostTimes {
public:
    explicit HostTimes(const RunData& data) {
        std::map<std::int32_t, std::int32_t> host_of;
        for (const record::RankRow& row : data.ranks) {
            host_of[row.rank] = row.host;
        }
        for (const record::RankIterationRow& row : data.rank_iterations) {
            const auto host = host_of.find(row.rank);
            if (host != host_of.end() && row.started_at > 0 && row.ended_at > row.started_at) {
                double& slowest = slowest_[{host->second, row.iteration}];
                slowest = std::max(slowest, static_cast<double>(row.ended_at - row.started_at));
            }
        }
    }

    [[nodiscard]] std::optional<double> median(const RunData& data, std::int32_t host,
                                               const PhaseStatistics& entry) const {
        std::vector<double> times;
        for (const record::IterationRow& row : data.iterations) {
            const auto found = slowest_.find({host, row.id});
            if (row.algorithm == entry.algorithm && row.phase == entry.phase && row.error.empty() &&
                found != slowest_.end()) {
                times.push_back(found->second);
            }
        }
        return record::median(std::move(times));
    }

private:
    std::map<std::pair<std::int32_t, std::int64_t>, double> slowest_; // by host and iteration
};

} // namespace

std::string run_superbench(const RunData& data) {
    std::vector<PhaseStatistics> statistics = record::phase_statistics(data);
    std::erase_if(statistics, [](const PhaseStatistics& entry) { return entry.phase == "comparison"; });
    const HostTimes times(data);
    const auto dumped = [](const Json& line) {
        return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    };
    if (data.hosts.empty()) {
        Json line{{"node", "unknown"}};
        add_collective(data, statistics, line);
        return dumped(line);
    }
    std::string out;
    for (const record::HostRow& host : data.hosts) {
        Json line{{"node", host.name}};
        add_collective(data, statistics, line);
        for (const PhaseStatistics& entry : statistics) {
            add(line,
                fmt::format("{}/{}_{}_{}_node_time", kBenchmark, word(entry.algorithm), entry.phase, data.run.bytes),
                times.median(data, host.host, entry), 1e3);
        }
        for (const record::NicRow& nic : data.nics) {
            if (nic.host == host.host && nic.send_goodput_bits_per_s > 0) {
                line[fmt::format("nic-goodput/send_bw:{}", nic.nic)] =
                    static_cast<double>(nic.send_goodput_bits_per_s) / 8e9;
            }
            if (nic.host == host.host && nic.receive_goodput_bits_per_s > 0) {
                line[fmt::format("nic-goodput/receive_bw:{}", nic.nic)] =
                    static_cast<double>(nic.receive_goodput_bits_per_s) / 8e9;
            }
        }
        out += dumped(line);
    }
    return out;
}

} // namespace railbreak::reports
