#include "harness/cli/report_subject.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace railbreak::cli {

namespace {

Result<ReportSubject> subject_of(const record::RunReader& reader, record::SuiteData suite) {
    ReportSubject subject;
    for (const std::string& run_id : suite.run_ids) {
        if (run_id.empty()) {
            continue;
        }
        Result<record::RunData> run = reader.load_run(run_id);
        if (!run) {
            return fail(std::move(run.error()));
        }
        subject.runs.push_back(std::move(*run));
    }
    subject.suite = std::move(suite);
    return subject;
}

Result<ReportSubject> subject_of(record::RunData run) {
    ReportSubject subject;
    subject.runs.push_back(std::move(run));
    return subject;
}

/// The suite that was started last, when the run that was started last is one of its own.
Result<std::optional<record::SuiteData>> suite_of_latest_run(const record::RunReader& reader,
                                                             const std::string& run_id) {
    Result<std::vector<record::SuiteRow>> suites = reader.list_suites(1);
    if (!suites) {
        return fail(std::move(suites.error()));
    }
    if (suites->empty()) {
        return std::optional<record::SuiteData>();
    }
    Result<record::SuiteData> suite = reader.load_suite(suites->front().suite_id);
    if (!suite) {
        return fail(std::move(suite.error()));
    }
    const std::vector<std::string>& ids = suite->run_ids;
    const bool own = std::find(ids.begin(), ids.end(), run_id) != ids.end();
    return own ? std::optional(std::move(*suite)) : std::nullopt;
}

bool is_ambiguous(const Error& error) {
    return std::ranges::any_of(error.facts(), [](const auto& fact) { return fact.first == record::kAmbiguous; });
}

} // namespace

const std::string& ReportSubject::id() const {
    return suite ? suite->suite.suite_id : runs.front().run.run_id;
}

Result<ReportSubject> find_report_subject(const record::RunReader& reader, std::string_view which) {
    Result<record::RunData> run = reader.load_run(which);
    if (which == "latest" && run) {
        Result<std::optional<record::SuiteData>> suite = suite_of_latest_run(reader, run->run.run_id);
        if (!suite) {
            return fail(std::move(suite.error()));
        }
        return *suite ? subject_of(reader, std::move(**suite)) : subject_of(std::move(*run));
    }
    if (!run && is_ambiguous(run.error())) {
        return fail(std::move(run.error()));
    }
    Result<record::SuiteData> suite = reader.load_suite(which);
    if (!suite && is_ambiguous(suite.error())) {
        return fail(std::move(suite.error()));
    }
    if (run && suite) {
        return fail(
            Error(ErrorKind::kInput, fmt::format("\"{}\" is the beginning of a run's id and of a suite's", which))
                .advise(fmt::format("give more of it: {} or {}", run->run.run_id, suite->suite.suite_id)));
    }
    if (suite) {
        return subject_of(reader, std::move(*suite));
    }
    return run ? subject_of(std::move(*run)) : Result<ReportSubject>(fail(std::move(run.error())));
}

} // namespace railbreak::cli
