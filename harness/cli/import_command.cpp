#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/json_text.hpp"
#include "base/version.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/scenario_input.hpp"
#include "harness/record/reader.hpp"
#include "harness/record/recorder.hpp"
#include "reports/import_nccl.hpp"
#include "scenarios/limits.hpp"

namespace railbreak::cli {

namespace {

constexpr std::int32_t kAllRuns = std::numeric_limits<std::int32_t>::max();

struct ImportOptions {
    std::string file;
    std::string name;
};

/// The content of a file or of standard input, up to one byte more than may be read.
Result<std::string> content_of(const std::string& path) {
    std::ifstream file;
    if (path != "-") {
        std::error_code error;
        if (std::filesystem::is_directory(path, error)) {
            return fail_errno(ErrorKind::kInput, fmt::format("read {}", path), EISDIR);
        }
        file.open(path, std::ios::binary);
        if (!file) {
            return fail_errno(ErrorKind::kInput, fmt::format("read {}", path), errno);
        }
    }
    std::istream& in = path == "-" ? std::cin : file;
    std::string text(reports::kMostImportBytes + 1, '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(in.gcount()));
    if (in.bad()) {
        return fail_errno(ErrorKind::kInput, fmt::format("read {}", path), errno);
    }
    return text;
}

/// A file is known by what it holds, whenever it is imported: ids end in a digest of it.
Result<void> check_new(const CommonOptions& common, const std::vector<record::RunData>& runs) {
    const Result<record::RunReader> reader = record::RunReader::open_readonly(common.database);
    if (!reader) {
        return tl::unexpected(reader.error());
    }
    for (const record::RunData& data : runs) {
        const std::string& id = data.run.run_id;
        const std::string digest = id.substr(id.rfind('-'));
        const auto alike = reader->find_runs(data.run.scenario_name, data.run.plan_hash, "", kAllRuns);
        if (!alike) {
            return tl::unexpected(alike.error());
        }
        const auto same = std::ranges::find_if(*alike, [&](const record::RunSummary& run) {
            return run.backend == data.run.backend && run.run_id.ends_with(digest);
        });
        if (same != alike->end()) {
            return fail(Error(ErrorKind::kInput, fmt::format("this file was imported before, as {}", same->run_id))
                            .advise("see railbreak list; --name gives it another name"));
        }
    }
    return {};
}

/// Records the rows of a run one after the other; the first error ends it.
Result<void> store(record::Recorder& recorder, record::RunData& data) {
    const Result<std::int64_t> run = recorder.begin_run(data.run);
    Result<void> done = run ? Result<void>() : tl::unexpected(run.error());
    const auto each = [&](auto& rows, auto add) {
        for (auto& row : rows) {
            if (done) {
                row.run = *run;
                done = add(row);
            }
        }
    };
    each(data.hosts, [&](const record::HostRow& row) { return recorder.add_host(row); });
    each(data.ranks, [&](const record::RankRow& row) { return recorder.add_rank(row); });
    each(data.events, [&](const record::EventRow& row) { return recorder.add_event(row); });
    each(data.iterations,
         [&](const record::IterationRow& row) { return recorder.add_iteration(row, {}).map([](std::int64_t) {}); });
    return done ? recorder.finish_run(*run, data.run.finished_realtime_ns, data.verdicts) : done;
}

void print_imported(const CommonOptions& common, const std::vector<record::RunData>& runs) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const record::RunData& data : runs) {
        const record::VerdictRow& verdict = data.verdicts.front();
        list.push_back({{"run_id", data.run.run_id},
                        {"scenario_name", data.run.scenario_name},
                        {"vector_bytes", data.run.bytes},
                        {"dtype", data.run.dtype},
                        {"rank_count", data.ranks.size()},
                        {"iterations", data.iterations.size()},
                        {"verdict", verdict.verdict},
                        {"reason", verdict.reason}});
        if (!common.json) {
            print_result(fmt::format("imported {}: {} bytes of {} on {} ranks, {} iterations\n  {}: {}\n",
                                     data.run.run_id, data.run.bytes, data.run.dtype, data.ranks.size(),
                                     data.iterations.size(), verdict.verdict, verdict.reason));
        }
    }
    if (common.json) {
        const nlohmann::ordered_json document{{"schema", "railbreak-import"}, {"version", 1}, {"runs", list}};
        print_result(json_text(document));
    }
}

std::string name_problem(const std::string& name) {
    const bool plain =
        std::ranges::all_of(name, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
    return plain && !name.empty() && name.size() <= scenarios::kMaxNameLength
               ? ""
               : fmt::format("a name is 1 to {} of the characters a-z, 0-9 and -", scenarios::kMaxNameLength);
}

int import_file(const CommonOptions& common, const ImportOptions& options) {
    const Result<std::string> text = content_of(options.file);
    if (!text) {
        return tell(common, text.error());
    }
    std::string name = options.name;
    if (name.empty()) {
        name = options.file == "-" ? "nccl-tests" : std::filesystem::path(options.file).stem().string();
    }
    const BuildInfo build = build_info();
    Result<std::vector<record::RunData>> runs =
        reports::import_nccl({.text = *text,
                              .file = options.file,
                              .name = std::move(name),
                              .version = fmt::format("{} {}", build.version, build.commit),
                              .command_line = common.command_line,
                              .realtime_ns = realtime_now().count()});
    if (!runs) {
        return tell(common, runs.error());
    }
    Result<record::Recorder> recorder = record::Recorder::open(common.database);
    if (!recorder) {
        return tell(common, recorder.error());
    }
    if (const Result<void> known = check_new(common, *runs); !known) {
        return tell(common, known.error());
    }
    for (record::RunData& data : *runs) {
        if (const Result<void> stored = store(*recorder, data); !stored) {
            return tell(common, stored.error());
        }
    }
    print_imported(common, *runs);
    return 0;
}

} // namespace

void add_import_command(CLI::App& app, CommonOptions& common, const Choose& choose) {
    CLI::App* command = app.add_subcommand(
        "import",
        "Record what nccl-tests' all_reduce_perf measured, as runs to compare with: its text or its JSON (-J)");
    auto options = std::make_shared<ImportOptions>();
    command->add_option("FILE", options->file, "What it wrote, - for standard input")->required();
    command->add_option("--name", options->name, "Name of the runs, as of a scenario (default: that of the file)")
        ->check(name_problem);
    command->callback([&common, options, choose] {
        choose([&common, options] {
            return choose_database(common) ? import_file(common, *options) : exit_code_of_bad_usage();
        });
    });
}

} // namespace railbreak::cli
