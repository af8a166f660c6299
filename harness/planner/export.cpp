#include "harness/planner/export.hpp"

#include <algorithm>
#include <array>
#include <ostream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/output_file.hpp"
#include "harness/planner/chrome_trace.hpp"
#include "harness/planner/gantt_svg.hpp"
#include "harness/planner/msccl_xml.hpp"
#include "harness/planner/schedule_json.hpp"

namespace railbreak::planner {

namespace {

constexpr std::array<Format, 4> kFormats = {Format::kGantt, Format::kJson, Format::kMscclXml, Format::kChromeTrace};

Result<Notes> without_notes(const Result<void>& written) {
    return written ? Result<Notes>(Notes{}) : Result<Notes>(tl::unexpected(written.error()));
}

Result<Notes> export_gantt(const PlanExport& plan, std::ostream& out) {
    const std::vector<collective::Rank> ranks = gantt_ranks(plan.simulation.topology);
    const auto shown = [&](collective::Rank rank) { return std::ranges::binary_search(ranks, rank); };
    std::vector<collective::SimulatedFlow> flows;
    collective::SimulationOptions options = plan.simulation;
    options.on_flow = [&](const collective::SimulatedFlow& flow) {
        if (shown(flow.from) || shown(flow.to)) {
            flows.push_back(flow);
        }
    };
    const Result<collective::SimulationResult> result = collective::simulate(plan.schedule, options);
    if (!result) {
        return tl::unexpected(result.error());
    }
    return without_notes(
        write_gantt_svg({plan.schedule, plan.simulation, flows, result->flows, result->makespan, plan.bound}, out));
}

Result<Notes> export_trace(const PlanExport& plan, std::ostream& out) {
    ChromeTraceWriter writer(plan.schedule, plan.simulation, out);
    collective::SimulationOptions options = plan.simulation;
    options.on_flow = [&](const collective::SimulatedFlow& flow) { writer.add(flow); };
    writer.begin();
    const Result<collective::SimulationResult> result = collective::simulate(plan.schedule, options);
    if (!result) {
        return tl::unexpected(result.error());
    }
    return without_notes(writer.end(result->makespan, plan.bound));
}

Result<Notes> export_program(const PlanExport& plan, std::ostream& out) {
    const Result<MscclSummary> summary = write_msccl_xml(plan.schedule, out);
    if (!summary) {
        return tl::unexpected(summary.error());
    }
    if (summary->fits_runtime()) {
        return Notes{};
    }
    return Notes{fmt::format("this program is larger than an MSCCL runtime takes: {} steps in a thread block (at most "
                             "{}), {} thread blocks on a channel (at most {})",
                             summary->most_steps, kMscclStepsOfBlock, summary->most_blocks, kMscclBlocksOfChannel)};
}

} // namespace

std::string_view to_string(Format format) {
    switch (format) {
    case Format::kGantt: return "svg";
    case Format::kJson: return "json";
    case Format::kMscclXml: return "msccl-xml";
    case Format::kChromeTrace: return "chrome-trace";
    }
    return {};
}

Result<Format> parse_format(std::string_view name) {
    std::vector<std::string_view> names;
    for (const Format format : kFormats) {
        if (to_string(format) == name) {
            return format;
        }
        names.push_back(to_string(format));
    }
    return fail(Error(ErrorKind::kUsage, fmt::format("there is no format \"{}\"", name))
                    .advise(fmt::format("the formats are: {}", fmt::join(names, ", "))));
}

Result<Notes> export_plan(Format format, const PlanExport& plan, std::ostream& out) {
    switch (format) {
    case Format::kGantt: return export_gantt(plan, out);
    case Format::kJson: return without_notes(write_schedule_json(plan.schedule, out));
    case Format::kMscclXml: return export_program(plan, out);
    case Format::kChromeTrace: return export_trace(plan, out);
    }
    return Notes{};
}

Result<Notes> export_plan(Format format, const PlanExport& plan, const std::filesystem::path& path) {
    Notes notes;
    const Result<void> written = write_file(path, [&](std::ostream& out) -> Result<void> {
        Result<Notes> said = export_plan(format, plan, out);
        if (!said) {
            return tl::unexpected(std::move(said.error()));
        }
        notes = std::move(*said);
        return {};
    });
    if (!written) {
        return tl::unexpected(written.error());
    }
    return notes;
}

} // namespace railbreak::planner
