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

#include "base/output_file.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/offered.hpp"
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

/// Writes each format into the folder and gives the paths.
Result<std::vector<std::string>> write_reports(const record::RunData& data, const ReportOptions& options,
                                               const std::vector<const reports::Format*>& formats) {
    const std::filesystem::path folder = where(options);
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) {
        return fail_errno(ErrorKind::kInput, fmt::format("create the folder {}", folder.string()), error.value());
    }
    std::vector<std::string> paths;
    for (const reports::Format* format : formats) {
        const Result<std::string> text = format->write(data);
        if (!text) {
            return tl::unexpected(text.error());
        }
        const std::filesystem::path path = folder / (options.name.empty() ? reports::file_name(*format, data)
                                                                          : options.name + std::string(format->suffix));
        const Result<void> written = write_file(path, [&](std::ostream& out) -> Result<void> {
            out << *text;
            return {};
        });
        if (!written) {
            return tl::unexpected(written.error());
        }
        paths.push_back(path.string());
    }
    return paths;
}

/// "wrote DIR/RUN.junit.xml" a line, or the same as JSON.
void print_written(const CommonOptions& common, const record::RunData& data,
                   const std::vector<const reports::Format*>& formats, const std::vector<std::string>& paths) {
    nlohmann::ordered_json files = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < paths.size(); ++i) {
        files.push_back({{"format", formats[i]->name}, {"media_type", formats[i]->media_type}, {"path", paths[i]}});
        if (!common.json) {
            print_result(fmt::format("wrote {}\n", paths[i]));
        }
    }
    if (common.json) {
        const nlohmann::ordered_json document{{"schema", "railbreak-report-files"},
                                              {"version", 1},
                                              {"run_id", data.run.run_id},
                                              {"files", std::move(files)}};
        print_result(document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    }
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
    Result<record::RunData> data = reader->load_run(options.run);
    if (!data) {
        return tell(common, data.error());
    }
    if (where(options) == kStandardOutput) {
        // The table is the one report that knows of terminals.
        const Result<std::string> text = names.front() == "text"
                                             ? reports::run_table(*data, {.colour = wants_colour(STDOUT_FILENO)})
                                             : formats->front()->write(*data);
        if (!text) {
            return tell(common, text.error());
        }
        print_result(*text);
        return 0;
    }
    const Result<std::vector<std::string>> paths = write_reports(*data, options, *formats);
    if (!paths) {
        return tell(common, paths.error());
    }
    print_written(common, *data, *formats, *paths);
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
    CLI::App* one = app.add_subcommand("report", "Report a recorded run again, in any of several formats");
    auto options = std::make_shared<ReportOptions>();
    one->add_option("RUN", options->run, "Run id, the beginning of one, or latest")->capture_default_str();
    one->add_option("--format", options->formats, format_help())
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(offered(format_names()))
        ->type_name("NAME,...");
    one->add_option("-o,--output", options->folder,
                    "Folder for the files, created if missing; - for standard output. Default: one format is printed, "
                    "several go into the current folder")
        ->type_name("DIR");
    one->add_option("--name", options->name, "Name of the files before their suffix (default: the run's id)");
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
