#include "harness/cli/run_selection.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include <fmt/format.h>

namespace railbreak::cli {

using record::RunData;
using record::RunReader;

namespace {

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(separator, begin), text.size());
        parts.emplace_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

/// The names of the runs from one to another.
Result<std::vector<std::string>> names_between(const RunReader& reader, std::string_view from, std::string_view to) {
    const Result<RunData> first = reader.load_run(from);
    if (!first) {
        return tl::unexpected(first.error());
    }
    const Result<RunData> last = reader.load_run(to);
    if (!last) {
        return tl::unexpected(last.error());
    }
    if (first->run.scenario_name != last->run.scenario_name) {
        return fail(Error(ErrorKind::kInput, fmt::format("{} and {} are runs of two scenarios ({}, {})", from, to,
                                                         first->run.scenario_name, last->run.scenario_name))
                        .advise("a range is of one scenario; list the runs with commas"));
    }
    const auto runs = reader.find_runs(first->run.scenario_name, "", "", std::numeric_limits<std::int32_t>::max());
    if (!runs) {
        return tl::unexpected(runs.error());
    }
    const auto find = [&](const std::string& name) {
        return std::ranges::find(*runs, name, &record::RunSummary::run_id);
    };
    auto begin = find(first->run.run_id);
    auto end = find(last->run.run_id);
    if (begin == runs->end() || end == runs->end()) {
        return fail(ErrorKind::kInput, fmt::format("run {} is not finished, so no range ends there",
                                                   begin == runs->end() ? first->run.run_id : last->run.run_id));
    }
    if (end < begin) {
        std::swap(begin, end);
    }
    std::vector<std::string> names;
    std::transform(begin, end + 1, std::back_inserter(names), [](const auto& run) { return run.run_id; });
    return names;
}

Result<std::vector<RunData>> load_all(const RunReader& reader, const std::vector<std::string>& names) {
    std::vector<RunData> set;
    for (const std::string& name : names) {
        Result<RunData> run = reader.load_run(name);
        if (!run) {
            return tl::unexpected(run.error());
        }
        const bool known = std::ranges::any_of(set, [&](const RunData& other) { return other.run.id == run->run.id; });
        if (!known) {
            set.push_back(std::move(*run));
        }
    }
    return set;
}

Result<void> not_too_many(const std::vector<std::string>& names) {
    if (names.size() > static_cast<std::size_t>(kMostRuns)) {
        return fail(Error(ErrorKind::kInput, fmt::format("{} runs are too many for one set", names.size()))
                        .advise(fmt::format("at most {}", kMostRuns)));
    }
    return {};
}

} // namespace

Result<std::vector<RunData>> load_set(const RunReader& reader, std::string_view text) {
    std::vector<std::string> names;
    for (const std::string& part : split(text, ',')) {
        const std::size_t dots = part.find("..");
        if (dots == std::string::npos) {
            names.push_back(part);
            continue;
        }
        const auto between =
            names_between(reader, std::string_view(part).substr(0, dots), std::string_view(part).substr(dots + 2));
        if (!between) {
            return tl::unexpected(between.error());
        }
        names.insert(names.end(), between->begin(), between->end());
    }
    if (const Result<void> few = not_too_many(names); !few) {
        return tl::unexpected(few.error());
    }
    return load_all(reader, names);
}

Result<std::vector<RunData>> load_baseline(const RunReader& reader, std::string_view tag) {
    const auto rows = reader.baseline(tag);
    if (!rows) {
        return tl::unexpected(rows.error());
    }
    std::vector<std::string> names;
    std::ranges::transform(*rows, std::back_inserter(names), [](const auto& row) { return row.run_id; });
    if (const Result<void> few = not_too_many(names); !few) {
        return tl::unexpected(few.error());
    }
    return load_all(reader, names);
}

} // namespace railbreak::cli
