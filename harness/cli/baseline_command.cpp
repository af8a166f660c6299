// railbreak baseline set|list|drop.
#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/json_text.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/scenario_input.hpp"
#include "harness/record/reader.hpp"
#include "harness/record/recorder.hpp"

namespace railbreak::cli {

namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMostTag = 64;

struct SetArguments {
    std::string tag;
    std::vector<std::string> runs;
    std::string suite;
    std::string note;
};

// What the user names: runs one by one, or all runs of a suite.
Result<std::vector<std::int64_t>> chosen_runs(const record::RunReader& reader, const SetArguments& arguments) {
    std::vector<std::int64_t> runs;
    for (const std::string& which : arguments.runs) {
        Result<std::int64_t> run = reader.find_run(which);
        if (!run) {
            return tl::unexpected(std::move(run).error());
        }
        runs.push_back(*run);
    }
    if (!arguments.suite.empty()) {
        Result<record::SuiteData> suite = reader.load_suite(arguments.suite);
        if (!suite) {
            return tl::unexpected(std::move(suite).error());
        }
        for (const record::SuiteItemRow& item : suite->items) {
            if (item.run != 0) {
                runs.push_back(item.run);
            }
        }
    }
    if (runs.empty()) {
        return fail(
            Error(ErrorKind::kUsage, "there is no run for the baseline").advise("give RUN... or --suite SUITE"));
    }
    return runs;
}

ordered_json to_json(const record::BaselineRow& row) {
    return {{"tag", row.tag},
            {"run_id", row.run_id},
            {"set_at", to_iso8601(Nanoseconds(row.set_realtime_ns))},
            {"note", row.note}};
}

int print_baselines(const CommonOptions& common, const std::vector<record::BaselineRow>& rows) {
    if (common.json) {
        ordered_json list = ordered_json::array();
        for (const record::BaselineRow& row : rows) {
            list.push_back(to_json(row));
        }
        const ordered_json document{{"schema", "railbreak-baselines"}, {"version", 1}, {"runs", std::move(list)}};
        print_result(json_text(document));
        return 0;
    }
    if (rows.empty()) {
        print_result("No baselines yet.\n");
    }
    for (const record::BaselineRow& row : rows) {
        std::string line = fmt::format("{}  {}  {}{}{}", row.tag, row.run_id,
                                       to_iso8601(Nanoseconds(row.set_realtime_ns)).substr(0, 19) + "Z",
                                       row.note.empty() ? "" : "  ", row.note);
        std::ranges::replace_if(
            line, [](char letter) { return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F; }, ' ');
        print_result(line + "\n");
    }
    return 0;
}

/// A run that goes on, or never ended, cannot stand for how it should be.
Result<void> check_ended(const record::RunReader& reader, const std::vector<std::int64_t>& runs) {
    for (const std::int64_t run : runs) {
        const Result<record::RunState> state = reader.run_state(run);
        if (!state) {
            return tl::unexpected(state.error());
        }
        if (!state->finished) {
            return fail(Error(ErrorKind::kInput, "a run of the baseline has not ended")
                            .with("run", state->run_id)
                            .advise("name runs that have a verdict; railbreak list shows them"));
        }
    }
    return {};
}

std::string tag_problem(const std::string& tag) {
    const bool plain = std::ranges::all_of(tag, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
               c == '-';
    });
    return plain && !tag.empty() && tag.size() <= kMostTag
               ? ""
               : fmt::format("a tag is 1 to {} of the characters a-z, A-Z, 0-9, '.', '_' and '-'", kMostTag);
}

int set(const CommonOptions& common, const SetArguments& arguments) {
    Result<record::RunReader> reader = record::RunReader::open_readonly(common.database);
    if (!reader) {
        return tell(common, reader.error());
    }
    Result<std::vector<std::int64_t>> runs = chosen_runs(*reader, arguments);
    if (!runs) {
        return tell(common, runs.error());
    }
    if (const Result<void> ended = check_ended(*reader, *runs); !ended) {
        return tell(common, ended.error());
    }
    Result<record::Recorder> recorder = record::Recorder::open(common.database);
    if (!recorder) {
        return tell(common, recorder.error());
    }
    Result<void> stored = recorder->set_baseline(arguments.tag, *runs, realtime_now().count(), arguments.note);
    if (!stored) {
        return tell(common, stored.error());
    }
    Result<std::vector<record::BaselineRow>> rows = reader->baseline(arguments.tag);
    return rows ? print_baselines(common, *rows) : tell(common, rows.error());
}

int list(const CommonOptions& common) {
    Result<record::RunReader> reader = record::RunReader::open_readonly(common.database);
    if (!reader) {
        return tell(common, reader.error());
    }
    Result<std::vector<record::BaselineRow>> rows = reader->list_baselines();
    return rows ? print_baselines(common, *rows) : tell(common, rows.error());
}

int drop(const CommonOptions& common, const std::string& tag) {
    // Read first: a file that is not there shall not be made in order to find nothing in it.
    Result<record::RunReader> reader = record::RunReader::open_readonly(common.database);
    if (!reader) {
        return tell(common, reader.error());
    }
    Result<std::vector<record::BaselineRow>> rows = reader->baseline(tag);
    if (!rows) {
        return tell(common, rows.error());
    }
    Result<record::Recorder> recorder = record::Recorder::open(common.database);
    if (!recorder) {
        return tell(common, recorder.error());
    }
    Result<void> dropped = recorder->drop_baseline(tag);
    return dropped ? print_baselines(common, *rows) : tell(common, dropped.error());
}

} // namespace

void add_baseline_command(CLI::App& app, CommonOptions& common, const Choose& choose) {
    CLI::App* command =
        app.add_subcommand("baseline", "Name the runs that stand for how it should be; they are never pruned");
    command->require_subcommand(1);
    command->fallthrough();
    const auto add = [&](CLI::App* one, std::function<int()> action) {
        one->callback([&common, choose, action = std::move(action)] {
            choose([&common, action] { return choose_database(common) ? action() : exit_code_of_bad_usage(); });
        });
    };
    CLI::App* setting = command->add_subcommand("set", "Make runs the baseline TAG, in the place of what it was");
    auto arguments = std::make_shared<SetArguments>();
    setting->add_option("TAG", arguments->tag, "Name of the baseline")->required()->check(tag_problem);
    setting->add_option("RUN", arguments->runs, "Run ids, beginnings of them, or latest");
    setting->add_option("--suite", arguments->suite, "All runs of this suite")->type_name("SUITE");
    setting->add_option("--note", arguments->note, "Why, in a line")->type_name("TEXT");
    add(setting, [&common, arguments] { return set(common, *arguments); });

    add(command->add_subcommand("list", "List all baselines with their runs"), [&common] { return list(common); });

    CLI::App* dropping = command->add_subcommand("drop", "Forget a baseline and print what it was; its runs stay");
    auto tag = std::make_shared<std::string>();
    dropping->add_option("TAG", *tag, "Name of the baseline")->required();
    add(dropping, [&common, tag] { return drop(common, *tag); });
}

} // namespace railbreak::cli
