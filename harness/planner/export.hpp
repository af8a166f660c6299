// A plan in a form for people or other programs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "collective/schedule.hpp"
#include "collective/simulate/simulate.hpp"
#include "harness/planner/facts.hpp"

namespace railbreak::planner {

/// The forms there are.
enum class Format : std::uint8_t {
    kGantt,       ///< "svg": a picture of who sends what when (gantt_svg.hpp)
    kJson,        ///< "json": every step (schedule_json.hpp)
    kMscclXml,    ///< "msccl-xml": a program for MSCCL runtimes (msccl_xml.hpp)
    kChromeTrace, ///< "chrome-trace": for trace viewers (chrome_trace.hpp)
};

/// "svg", "json", "msccl-xml", "chrome-trace".
[[nodiscard]] std::string_view to_string(Format format);
/// The format of that name, or an Error (kUsage) that lists the names.
[[nodiscard]] Result<Format> parse_format(std::string_view name);

/// What is exported. The references must live as long as the call.
struct PlanExport {
    const collective::Schedule& schedule;
    /// What it is simulated on, for the forms that show times (svg, chrome-trace). on_flow is not called.
    const collective::SimulationOptions& simulation;
    std::optional<BoundTime> bound; ///< shown beside the makespan
};

/// Things that the user of an export should know, one sentence each.
using Notes = std::vector<std::string>;

/// Writes the plan. Errors: those of the form's writer and of simulate().
[[nodiscard]] Result<Notes> export_plan(Format format, const PlanExport& plan, std::ostream& out);
/// Writes the plan into a file, which appears whole or not at all (write_file()).
[[nodiscard]] Result<Notes> export_plan(Format format, const PlanExport& plan, const std::filesystem::path& path);

} // namespace railbreak::planner
