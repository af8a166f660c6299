#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/output_file.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/offered.hpp"
#include "harness/cli/report_subject.hpp"
#include "harness/cli/scenario_input.hpp"
#include "harness/record/reader.hpp"
#include "reports/format.hpp"
#include "reports/json.hpp"
#include "reports/table.hpp"

namespace railbreak::cli {

namespace {

/// What `report` was asked for.
struct ReportOptions {
    std::string run = "latest";
    std::vector<std::string> formats;
    std::string folder; ///< "-": standard output; empty: as where() decides
    std::string name;   ///< of the files, in the place of the run's id
};

constexpr std::string_view kStandardOutput = "-";

/// Where the reports go: one goes to standard output, several go into the current folder, unless it is said.
std::string where(const ReportOptions& options) {
    return !options.folder.empty()       ? options.folder
           : options.formats.size() <= 1 ? std::string(kStandardOutput)
                                         : std::string(".");
}

/// What contradicts itself in the options, before the database is looked at.
Result<void> check_options(const CommonOptions& common, const ReportOptions& options) {
    const bool printed = where(options) == kStandardOutput;
    if (printed && options.formats.size() > 1) {
        return fail(
            Error(ErrorKind::kUsage, fmt::format("{} formats cannot share standard output", options.formats.size()))
                .advise("name a folder with -o, or one format"));
    }
    if (printed && !options.name.empty()) {
        return fail(Error(ErrorKind::kUsage, "--name names files, and nothing is written into a file")
                        .advise("name a folder with -o"));
    }
    if (printed && common.json && options.formats.size() == 1 && options.formats.front() != "json") {
        return fail(Error(ErrorKind::kUsage,
                          fmt::format("--json and --format {} both say what is printed", options.formats.front()))
                        .advise("leave one out, or write into a folder with -o"));
    }
    if (options.name.find('/') != std::string::npos || options.name.starts_with('.')) {
        return fail(Error(ErrorKind::kUsage, fmt::format("\"{}\" cannot be the name of files", options.name))
                        .advise("a name has no '/' and does not begin with '.'; the folder is named by -o"));
    }
    return {};
}

/// A file of a report.
struct ReportFile {
    const reports::Format* format;
    std::string path;
};

/// The reports of one format: of the suite, or one of each run, with the id that each is of.
Result<std::vector<std::pair<std::string, std::string>>> texts_of(const ReportSubject& subject,
                                                                  const reports::Format& format) {
    std::vector<std::pair<std::string, std::string>> texts;
    if (subject.suite && format.write_suite != nullptr) {
        texts.emplace_back(subject.id(), format.write_suite(*subject.suite, subject.runs));
        return texts;
    }
    for (const record::RunData& run : subject.runs) {
        Result<std::string> text = format.write(run);
        if (!text) {
            return tl::unexpected(text.error());
        }
        texts.emplace_back(run.run.run_id, std::move(*text));
    }
    return texts;
}

/// The name of a file before its suffix: what --name says, with the run's id where several runs have a file each.
std::string stem_of(const ReportOptions& options, const std::string& id, bool alone) {
    return options.name.empty() ? id : alone ? options.name : fmt::format("{}-{}", options.name, id);
}

/// Writes each format into the folder and gives the files.
Result<std::vector<ReportFile>> write_reports(const ReportSubject& subject, const ReportOptions& options,
                                              const std::vector<const reports::Format*>& formats) {
    const std::filesystem::path folder = where(options);
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) {
        return fail_errno(ErrorKind::kInput, fmt::format("create the folder {}", folder.string()), error.value());
    }
    std::vector<ReportFile> files;
    for (const reports::Format* format : formats) {
        const auto texts = texts_of(subject, *format);
        if (!texts) {
            return tl::unexpected(texts.error());
        }
        for (const auto& [id, text] : *texts) {
            const std::string stem = stem_of(options, id, texts->size() == 1);
            const std::filesystem::path path = folder / reports::file_name(*format, stem);
            const Result<void> written = write_file(path, [&content = text](std::ostream& out) -> Result<void> {
                out << content;
                return {};
            });
            if (!written) {
                return tl::unexpected(written.error());
            }
            files.push_back({format, path.string()});
        }
    }
    return files;
}

/// "wrote DIR/RUN.junit.xml" a line, or the same as JSON.
void print_written(const CommonOptions& common, const ReportSubject& subject, const std::vector<ReportFile>& files) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const ReportFile& file : files) {
        list.push_back({{"format", file.format->name}, {"media_type", file.format->media_type}, {"path", file.path}});
        if (!common.json) {
            print_result(fmt::format("wrote {}\n", file.path));
        }
    }
    if (common.json) {
        const nlohmann::ordered_json document{{"schema", "railbreak-report-files"},
                                              {"version", 1},
                                              {subject.suite ? "suite_id" : "run_id", subject.id()},
                                              {"files", std::move(list)}};
        print_result(json_text(document));
    }
}

/// Prints the one report that was asked for.
Result<void> print_report(const ReportSubject& subject, const reports::Format& format) {
    if (!subject.suite && format.name == "text") { // the one report that knows of terminals
        print_result(reports::run_table(subject.runs.front(), {.colour = wants_colour(STDOUT_FILENO)}));
        return {};
    }
    if (subject.suite && format.write_suite == nullptr) {
        return fail(Error(ErrorKind::kUsage, fmt::format("{} is a format of single runs, and {} is a suite of {}",
                                                         format.name, subject.id(), subject.runs.size()))
                        .advise("name a folder with -o for a file of each run, or one of its runs"));
    }
    const auto texts = texts_of(subject, format);
    if (!texts) {
        return tl::unexpected(texts.error());
    }
    print_result(texts->front().second);
    return {};
}

int report(const CommonOptions& common, const ReportOptions& options) {
    if (const Result<void> sound = check_options(common, options); !sound) {
        return tell(common, sound.error());
    }
    std::vector<std::string> names = options.formats;
    if (names.empty()) {
        names.emplace_back(common.json ? "json" : "text");
    }
    const Result<std::vector<const reports::Format*>> formats = reports::find_formats(names);
    if (!formats) {
        return tell(common, formats.error());
    }
    Result<record::RunReader> reader = record::RunReader::open_readonly(common.database);
    if (!reader) {
        return tell(common, reader.error());
    }
    const Result<ReportSubject> subject = find_report_subject(*reader, options.run);
    if (!subject) {
        return tell(common, subject.error());
    }
    if (where(options) == kStandardOutput) {
        const Result<void> printed = print_report(*subject, *formats->front());
        return printed ? 0 : tell(common, printed.error());
    }
    const Result<std::vector<ReportFile>> files = write_reports(*subject, options, *formats);
    if (!files) {
        return tell(common, files.error());
    }
    print_written(common, *subject, *files);
    return 0;
}

std::string format_help() {
    std::string text = "Formats, separated by commas:";
    for (const reports::Format& format : reports::formats()) {
        text += fmt::format("\n{}: {}", format.name, format.purpose);
    }
    return text;
}

std::vector<std::string> format_names() {
    std::vector<std::string> names;
    for (const reports::Format& format : reports::formats()) {
        names.emplace_back(format.name);
    }
    return names;
}

void add_report(CLI::App& app, CommonOptions& common, const Choose& choose) {
    CLI::App* one = app.add_subcommand("report", "Report a recorded run or suite, in any of several formats");
    auto options = std::make_shared<ReportOptions>();
    one->add_option("RUN", options->run, "Id of a run or suite, the beginning of one, or latest: what was started last")
        ->type_name("RUN|SUITE")
        ->capture_default_str();
    one->add_option("--format", options->formats, format_help())
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(offered(format_names()))
        ->type_name("NAME,...");
    one->add_option("-o,--output", options->folder,
                    "Folder for the files, created if missing; - for standard output. Default: one format is printed, "
                    "several go into the current folder")
        ->type_name("DIR");
    one->add_option("--name", options->name, "Name of the files before their suffix (default: the id)");
    one->callback([&common, options, choose] {
        choose([&common, options] {
            return choose_database(common) ? report(common, *options) : exit_code_of_bad_usage();
        });
    });
}

int list(const CommonOptions& common, std::int32_t limit) {
    Result<record::RunReader> reader = record::RunReader::open_readonly(common.database);
    if (!reader) {
        return tell(common, reader.error());
    }
    Result<std::vector<record::RunSummary>> runs = reader->list_runs(limit);
    if (!runs) {
        return tell(common, runs.error());
    }
    print_result(common.json ? reports::list_json(*runs)
                             : reports::list_table(*runs, {.colour = wants_colour(STDOUT_FILENO)}));
    return 0;
}

} // namespace

void add_report_commands(CLI::App& app, CommonOptions& common, const Choose& choose) {
    add_report(app, common, choose);

    CLI::App* all = app.add_subcommand("list", "List recorded runs, the latest first");
    auto limit = std::make_shared<std::int32_t>(20);
    all->add_option("-n,--limit", *limit, "How many")->check(CLI::Range(1, 1000000))->capture_default_str();
    all->callback([&common, limit, choose] {
        choose([&common, limit] { return choose_database(common) ? list(common, *limit) : exit_code_of_bad_usage(); });
    });
}

} // namespace railbreak::cli
