// railbreak db check|prune|export.
#include <charconv>
#include <limits>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/console.hpp"
#include "base/json_text.hpp"
#include "base/units.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/offered.hpp"
#include "harness/cli/scenario_input.hpp"
#include "harness/record/check.hpp"
#include "harness/record/export.hpp"
#include "harness/record/prune.hpp"

namespace railbreak::cli {

namespace {

using nlohmann::ordered_json;

void print_json(const ordered_json& document) {
    print_result(json_text(document));
}

// Text of the database on one line of a terminal.
std::string printable(std::string text) {
    for (char& letter : text) {
        if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F) {
            letter = ' ';
        }
    }
    return text;
}

std::string size_text(std::int64_t bytes) {
    return to_string(ByteCount::bytes(static_cast<std::uint64_t>(bytes)));
}

void print_check(const CommonOptions& common, const record::DatabaseCheck& check) {
    if (common.json) {
        ordered_json findings = ordered_json::array();
        for (const record::Finding& finding : check.findings) {
            findings.push_back({{"kind", finding.kind}, {"problem", finding.problem}, {"text", finding.text}});
        }
        print_json({{"schema", "railbreak-db-check"},
                    {"version", 1},
                    {"database", common.database.string()},
                    {"ok", check.ok()},
                    {"schema_version", check.schema_version},
                    {"runs", check.runs},
                    {"suites", check.suites},
                    {"file_bytes", check.file_bytes},
                    {"log_bytes", check.log_bytes},
                    {"findings", std::move(findings)}});
        return;
    }
    print_result(fmt::format("{}: schema {}, {} runs, {} suites, {}, write-ahead log {}\n", common.database.string(),
                             check.schema_version, check.runs, check.suites, size_text(check.file_bytes),
                             size_text(check.log_bytes)));
    for (const record::Finding& finding : check.findings) {
        print_result(fmt::format("{}: {}\n", finding.problem ? "problem" : "note", printable(finding.text)));
    }
    if (check.ok()) {
        print_result("no problem found\n");
    }
}

int check(const CommonOptions& common) {
    const Result<record::DatabaseCheck> checked = record::check_database(common.database);
    if (!checked) {
        return tell(common, checked.error());
    }
    print_check(common, *checked);
    if (checked->ok()) {
        return 0;
    }
    const auto problems = std::ranges::count_if(checked->findings, &record::Finding::problem);
    const std::string first = std::ranges::find_if(checked->findings, &record::Finding::problem)->text;
    return tell(
        Error(ErrorKind::kOutcome, fmt::format("database {}: {} problem{}, the first: {}", common.database.string(),
                                               problems, problems == 1 ? "" : "s", printable(first))));
}

struct PruneOptions {
    std::int32_t keep = 0; // 0: not given
    std::string older_than;
    bool unfinished = false;
    bool keep_failed = false;
    bool dry_run = false;
    bool vacuum = false;
};

// "90d", "4w", "36h", or any other duration.
Result<Nanoseconds> parse_age(const std::string& text) {
    std::int64_t count = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, count);
    const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
    const std::int64_t hours = unit == "h" ? 1 : unit == "d" ? 24 : unit == "w" ? 7 * 24 : 0;
    if (error != std::errc() || count < 0 || hours == 0) {
        return parse_duration(text);
    }
    constexpr std::int64_t kHour = 3'600'000'000'000;
    if (count > std::numeric_limits<std::int64_t>::max() / (kHour * hours)) {
        return fail(ErrorKind::kUsage, fmt::format("the age {} is longer than anything", text));
    }
    return Nanoseconds(count * hours * kHour);
}

Result<record::Retention> retention_of(const PruneOptions& options) {
    record::Retention retention;
    retention.now = realtime_now();
    retention.unfinished = options.unfinished;
    retention.keep_failed = options.keep_failed;
    if (options.keep > 0) {
        retention.keep = options.keep;
    }
    if (!options.older_than.empty()) {
        Result<Nanoseconds> age = parse_age(options.older_than);
        if (!age) {
            return fail(ErrorKind::kUsage, fmt::format("--older-than: {}", age.error().message()));
        }
        retention.older_than = *age;
    }
    return retention;
}

std::string kept_text(const record::PrunePlan& plan) {
    std::string text;
    const auto add = [&](std::int64_t count, std::string_view why) {
        if (count > 0) {
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, why);
        }
    };
    add(plan.baseline, "of a baseline");
    add(plan.latest_pass, "the latest pass of a scenario");
    add(plan.failed, "without a pass");
    add(plan.recording, "being recorded");
    return text.empty() ? "" : fmt::format("; kept besides: {}", text);
}

void print_pruned(const CommonOptions& common, const PruneOptions& options, const record::PrunePlan& plan,
                  const std::vector<record::PrunedRun>& gone) {
    if (common.json) {
        ordered_json runs = ordered_json::array();
        for (const record::PrunedRun& run : gone) {
            runs.push_back({{"run_id", run.run_id},
                            {"verdict", run.verdict.empty() ? ordered_json(nullptr) : ordered_json(run.verdict)}});
        }
        print_json({{"schema", "railbreak-db-prune"},
                    {"version", 1},
                    {"database", common.database.string()},
                    {"dry_run", options.dry_run},
                    {"runs", plan.all},
                    {"deleted", std::move(runs)},
                    {"kept",
                     {{"baseline", plan.baseline},
                      {"latest_pass", plan.latest_pass},
                      {"failed", plan.failed},
                      {"recording", plan.recording}}}});
        return;
    }
    print_result(fmt::format("{} of {} runs {}{}\n", gone.size(), plan.all,
                             options.dry_run ? "would be deleted" : "deleted", kept_text(plan)));
}

int prune(const CommonOptions& common, const PruneOptions& options) {
    const Result<record::Retention> retention = retention_of(options);
    if (!retention) {
        return tell(common, retention.error());
    }
    const Result<record::PrunePlan> plan = record::plan_prune(common.database, *retention);
    if (!plan) {
        return tell(common, plan.error());
    }
    std::vector<record::PrunedRun> gone;
    const auto deleted = [&](const record::PrunedRun& run) {
        gone.push_back(run);
        if (!common.json) {
            print_result(fmt::format("{} {} ({})\n", options.dry_run ? "would delete" : "deleted",
                                     printable(run.run_id), run.verdict.empty() ? "unfinished" : run.verdict));
        }
    };
    Result<void> done;
    if (options.dry_run) {
        for (const record::PrunedRun& run : plan->runs) {
            deleted(run);
        }
    } else {
        done = record::prune(common.database, *plan, options.vacuum, deleted);
    }
    print_pruned(common, options, *plan, gone);
    return done ? 0 : tell(done.error());
}

struct ExportArguments {
    std::string format = "csv";
    record::ExportOptions options;
};

int export_files(const CommonOptions& common, ExportArguments& arguments) {
    const Result<record::ExportFormat> format = record::parse_export_format(arguments.format);
    if (!format) {
        return tell(common, format.error());
    }
    arguments.options.format = *format;
    const auto tables = record::export_tables(common.database, arguments.options);
    if (!tables) {
        return tell(common, tables.error());
    }
    ordered_json list = ordered_json::array();
    for (const record::ExportedTable& table : *tables) {
        if (common.json) {
            list.push_back({{"table", table.table}, {"file", table.file.string()}, {"rows", table.rows}});
        } else {
            print_result(fmt::format("{}: {} rows\n", table.file.string(), table.rows));
        }
    }
    if (common.json) {
        print_json({{"schema", "railbreak-db-export"},
                    {"version", 1},
                    {"database", common.database.string()},
                    {"format", arguments.format},
                    {"tables", std::move(list)}});
    }
    return 0;
}

// Runs `action` with a database chosen.
Action with_database(CommonOptions& common, std::function<int()> action) {
    return
        [&common, action = std::move(action)] { return choose_database(common) ? action() : exit_code_of_bad_usage(); };
}

void add_prune(CLI::App& app, CommonOptions& common, const Choose& choose) {
    CLI::App* command = app.add_subcommand(
        "prune", "Delete old runs. Of several rules each must let a run go. Runs of a baseline, runs that are being "
                 "recorded and the latest pass of a scenario always stay");
    auto options = std::make_shared<PruneOptions>();
    command->add_option("--keep", options->keep, "Let go what is not among the last N runs of its scenario")
        ->check(CLI::Range(1, 1'000'000'000))
        ->type_name("N");
    command->add_option("--older-than", options->older_than, "Let go what started longer ago, for example 90d, 4w, 36h")
        ->type_name("AGE");
    command->add_flag("--unfinished", options->unfinished, "Let go runs that never ended and whose controller is gone");
    command->add_flag("--keep-failed", options->keep_failed, "Runs with another verdict than pass stay");
    command->add_flag("--dry-run", options->dry_run, "Only say what would be deleted");
    command->add_flag("--vacuum", options->vacuum, "Give the freed space back to the file system");
    command->callback([&common, options, choose] {
        choose(with_database(common, [&common, options] { return prune(common, *options); }));
    });
}

void add_export(CLI::App& app, CommonOptions& common, const Choose& choose) {
    CLI::App* command = app.add_subcommand("export", "Write tables and views as files for other programs");
    auto arguments = std::make_shared<ExportArguments>();
    command->add_option("--format", arguments->format, "Kind of the files")
        ->check(offered({"csv", "jsonl"}))
        ->type_name("FORMAT")
        ->capture_default_str();
    command->add_option("--table", arguments->options.tables, "Only this table or view (repeat for several)")
        ->check(offered({record::exportable_tables().begin(), record::exportable_tables().end()}))
        ->type_name("TABLE");
    command->add_option("--run", arguments->options.run, "Only what belongs to this run")->type_name("RUN");
    command->add_option("-o,--output", arguments->options.folder, "Folder for the files")->type_name("DIR")->required();
    command->callback([&common, arguments, choose] {
        choose(with_database(common, [&common, arguments] { return export_files(common, *arguments); }));
    });
}

} // namespace

void add_db_commands(CLI::App& app, CommonOptions& common, const Choose& choose) {
    CLI::App* database = app.add_subcommand("db", "Look after the database of runs");
    database->require_subcommand(1);
    database->fallthrough();
    CLI::App* checked = database->add_subcommand(
        "check", "Look for damage, for runs that never ended and for a log that does not shrink (exit code 1)");
    checked->callback([&common, choose] { choose(with_database(common, [&common] { return check(common); })); });
    add_prune(*database, common, choose);
    add_export(*database, common, choose);
}

} // namespace railbreak::cli
