#include "reports/format.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "reports/html/run_page.hpp"
#include "reports/html/suite_page.hpp"
#include "reports/json.hpp"
#include "reports/junit.hpp"
#include "reports/markdown.hpp"
#include "reports/nccl.hpp"
#include "reports/openmetrics.hpp"
#include "reports/suite_json.hpp"
#include "reports/suite_table.hpp"
#include "reports/superbench.hpp"
#include "reports/table.hpp"
#include "reports/trace.hpp"
#include "scenarios/suggest.hpp"

namespace railbreak::reports {

using record::RunData;
using record::SuiteData;

namespace {

constexpr std::array kFormats{
    Format{"text", ".txt", "text/plain", "tables for a terminal",
           [](const RunData& data) -> Result<std::string> { return run_table(data); },
           [](const SuiteData& suite, const std::vector<RunData>&) { return suite_table(suite); }},
    Format{"json", ".json", "application/json", "everything, for programs",
           [](const RunData& data) -> Result<std::string> { return run_json(data); },
           [](const SuiteData& suite, const std::vector<RunData>&) { return suite_json(suite); }},
    Format{"html", ".html", "text/html", "one page for people, opens without a network",
           [](const RunData& data) -> Result<std::string> { return run_html(data); },
           [](const SuiteData& suite, const std::vector<RunData>& runs) { return suite_html(suite, runs); }},
    Format{"junit", ".junit.xml", "application/xml", "test results for CI systems",
           [](const RunData& data) -> Result<std::string> { return run_junit(data); },
           [](const SuiteData& suite, const std::vector<RunData>& runs) { return suite_junit(suite, runs); }},
    Format{"openmetrics", ".prom", "application/openmetrics-text", "gauges for node_exporter's textfile collector",
           [](const RunData& data) -> Result<std::string> { return run_openmetrics(data); },
           [](const SuiteData& suite, const std::vector<RunData>& runs) { return suite_openmetrics(suite, runs); }},
    Format{"trace", ".trace.json", "application/json", "a trace for chrome://tracing and Perfetto",
           [](const RunData& data) -> Result<std::string> { return run_trace(data); }},
    Format{"nccl", ".nccl.txt", "text/plain", "the columns of nccl-tests",
           [](const RunData& data) -> Result<std::string> { return run_nccl_text(data); }},
    Format{"nccl-json", ".nccl.json", "application/json", "nccl-tests' JSON, version 3",
           [](const RunData& data) -> Result<std::string> { return run_nccl_json(data); }},
    Format{"superbench", ".results-summary.jsonl", "application/x-ndjson", "a line a host, for SuperBench's diagnosis",
           [](const RunData& data) -> Result<std::string> { return run_superbench(data); }},
    Format{"markdown", ".md", "text/markdown", "a summary for the page of a CI job",
           [](const RunData& data) -> Result<std::string> { return run_markdown(data); },
           [](const SuiteData& suite, const std::vector<RunData>& runs) { return suite_markdown(suite, runs); }},
};

} // namespace

std::span<const Format> formats() {
    return kFormats;
}

Result<const Format*> find_format(std::string_view name) {
    std::vector<std::string_view> names;
    for (const Format& format : kFormats) {
        if (format.name == name) {
            return &format;
        }
        names.push_back(format.name);
    }
    const std::string_view near = scenarios::nearest(name, names);
    return fail(
        Error(ErrorKind::kUsage, fmt::format("there is no report format \"{}\"", name))
            .advise(fmt::format("{}the formats are: {}", near.empty() ? "" : fmt::format("did you mean {}? ", near),
                                scenarios::join(names))));
}

Result<std::vector<const Format*>> find_formats(std::span<const std::string> names) {
    std::vector<const Format*> found;
    for (const std::string& name : names) {
        const Result<const Format*> format = find_format(name);
        if (!format) {
            return tl::unexpected(format.error());
        }
        if (std::find(found.begin(), found.end(), *format) == found.end()) {
            found.push_back(*format);
        }
    }
    return found;
}

std::string file_name(const Format& format, std::string_view id) {
    std::string name(id);
    const auto plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
               c == '-';
    };
    std::replace_if(
        name.begin(), name.end(), [&](char c) { return !plain(c); }, '_');
    if (name.empty() || name.front() == '.') {
        name.insert(0, "run_");
    }
    name.resize(std::min<std::size_t>(name.size(), 200)); // file systems take 255
    return name + std::string(format.suffix);
}

} // namespace railbreak::reports
