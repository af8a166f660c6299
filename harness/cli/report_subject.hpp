// What a report is asked of: a run or a suite, by the same kinds of names.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "harness/record/reader.hpp"
#include "harness/record/rows.hpp"

namespace railbreak::cli {

/// A run, or a suite with the runs of its items.
struct ReportSubject {
    std::optional<record::SuiteData> suite;
    std::vector<record::RunData> runs; ///< exactly one without a suite

    /// The suite's id, else the run's.
    [[nodiscard]] const std::string& id() const;
};

/// Finds a run or a suite: by its id, the beginning of exactly one id, or "latest": what was started last, a suite
/// rather than the last of its runs. kInput when there is none, as RunReader::load_run().
[[nodiscard]] Result<ReportSubject> find_report_subject(const record::RunReader& reader, std::string_view which);

} // namespace railbreak::cli
