// What the scenario tests share.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/load.hpp"

namespace railbreak::scenarios::testing {

inline const KnownAlgorithms& algorithms() {
    static const KnownAlgorithms known{
        {{"ring"}, {"hierarchical"}, {"optcc", {{"plan", "auto, u, bs, star"}, {"k", "1..1048576"}}}, {"optcc-shared"}},
        [](const Scenario&, const AlgorithmSpec& algorithm) {
            const bool bad = algorithm.options.front().second == "tar";
            return bad ? Result<void>(fail(Error(ErrorKind::kInput, "plan \"tar\" is unknown").advise("use bs")))
                       : Result<void>();
        }};
    return known;
}

/// A correct scenario that uses every key of the format.
inline constexpr std::string_view kFull = R"(railbreak: 1
name: full
description: uses every key
cluster: {hosts: 8, nics_per_host: 2, rate: 500Mbit/s, mtu: 9000B, ranks_per_host: 2, local_rate: 2Gbit/s}
workload:
  collective: allreduce
  bytes: 32MiB
  dtype: float32
  algorithms: [ring, optcc]
  iterations: {warmup: 1, steady: 4, degraded: 5, recovered: 6}
  iteration_timeout: 20s
lease: 15s
faults:
  - name: half-rate
    kind: cap
    target: {host: 3, nic: 0}
    direction: send
    rate: 250Mbit/s
    during: degraded
  - name: third
    kind: cap
    target: {host: 2, nic: 1}
    fraction: 1/3
    during: degraded
  - name: blink
    kind: link_down
    target: {host: random}
    at: {iteration: 2, offset: 200ms}
    for: 300ms
expect:
  - {algorithm: optcc, phase: degraded, metric: overhead_exclusive, max: 1.10}
  - {phase: recovered, metric: vs_steady, min: 0.97, max: 1.03}
)";

/// `text` with its first `from` replaced by `to`; `from` must be there.
inline std::string with(std::string_view text, std::string_view from, std::string_view to) {
    std::string result(text);
    const std::size_t at = result.find(from);
    if (at == std::string::npos) {
        throw std::logic_error("the text to replace is not there: " + std::string(from));
    }
    return result.replace(at, from.size(), to);
}

inline Checked<Scenario> load(std::string_view text) {
    return load_scenario(text, "test.yaml", algorithms());
}

/// All diagnostics, one a line; "no error\n" if there are none.
inline std::string errors_of(const Checked<Scenario>& result) {
    if (result) {
        return "no error\n";
    }
    std::string lines;
    for (const Diagnostic& diagnostic : result.error()) {
        lines += diagnostic.to_line() + "\n";
    }
    return lines;
}

inline std::string read_file(const std::filesystem::path& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

inline std::filesystem::path source_dir() {
    return RAILBREAK_SOURCE_DIR;
}

/// The catalog's scenarios, sorted; or those of a folder of it.
inline std::vector<std::filesystem::path> catalog(const std::filesystem::path& folder = "") {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(source_dir() / "scenarios" / "catalog" / folder)) {
        if (entry.is_regular_file()) {
            paths.push_back(entry.path());
        }
    }
    std::sort(paths.begin(), paths.end());
    return paths;
}

} // namespace railbreak::scenarios::testing
