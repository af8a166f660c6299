// The formats in which a run can be reported, by name. A new one is a line in the table of format.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "harness/record/rows.hpp"

namespace railbreak::reports {

/// One format. All of them are functions of the rows alone: the same run gives the same bytes.
struct Format {
    std::string_view name;       ///< as given to `report --format`
    std::string_view suffix;     ///< of its files: ".junit.xml"
    std::string_view media_type; ///< "text/markdown"
    std::string_view purpose;    ///< a few words for help texts
    /// The report. An Error when the run cannot be said in this format.
    Result<std::string> (*write)(const record::RunData& data);
    /// The same of a suite with the runs of its items; nullptr: the format is of single runs, and a suite gets a file
    /// for each of them.
    std::string (*write_suite)(const record::SuiteData& suite, const std::vector<record::RunData>& runs) = nullptr;
};

/// All formats, in the order in which help texts name them.
[[nodiscard]] std::span<const Format> formats();

/// The format of that name. kUsage for an unknown one, with the names that there are and the nearest of them.
[[nodiscard]] Result<const Format*> find_format(std::string_view name);

/// The formats of a list of names, each taken once, in the order of the list. Errors as find_format().
[[nodiscard]] Result<std::vector<const Format*>> find_formats(std::span<const std::string> names);

/// Name of the file of a run or suite in a format: its id, in which everything but letters, digits, '.', '_' and '-' is
/// replaced by '_' (the id comes from a database and must not lead out of the folder), then the format's suffix.
[[nodiscard]] std::string file_name(const Format& format, std::string_view id);

} // namespace railbreak::reports
