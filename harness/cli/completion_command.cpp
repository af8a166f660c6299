// railbreak completion: the scripts for shells, and the lists that these ask for.
#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/cli/completion_scripts.hpp"
#include "harness/cli/everyday_commands.hpp"
#include "harness/cli/scenario_input.hpp"
#include "harness/record/reader.hpp"

namespace railbreak::cli {

namespace {

/// Runs and suites that are offered: nobody reads more, and the rest can be typed.
constexpr std::int32_t kOffered = 200;

struct CompletionOptions {
    std::string shell;
    bool runs = false;
    bool scenarios = false;
    bool suites = false;
    bool subjects = false; ///< runs and suites
    bool tags = false;
    bool artefacts = false;
    [[nodiscard]] bool lists() const { return runs || scenarios || suites || subjects || tags || artefacts; }
};

/// Whether a shell can insert the word as it is: what is in the database may have been written by anybody.
bool is_plain(const std::string& word) {
    return !word.empty() && std::ranges::all_of(word, [](char letter) {
        return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
               (letter >= '0' && letter <= '9') || letter == '-' || letter == '_' || letter == '.' || letter == '+' ||
               letter == '/';
    });
}

void add_once(std::vector<std::string>& words, const std::string& word) {
    if (is_plain(word) && std::ranges::find(words, word) == words.end()) {
        words.push_back(word);
    }
}

Result<std::vector<std::string>> recorded(const CommonOptions& common, const CompletionOptions& options) {
    const Result<record::RunReader> reader = record::RunReader::open_readonly(common.database);
    if (!reader) {
        return tl::unexpected(reader.error());
    }
    std::vector<std::string> words;
    Result<void> done;
    const auto add_all = [&](const auto& rows, auto name) {
        if (!rows) {
            done = tl::unexpected(rows.error());
            return;
        }
        for (const auto& row : *rows) {
            add_once(words, std::invoke(name, row));
        }
    };
    const bool runs = options.runs || options.subjects;
    const bool suites = options.suites || options.subjects;
    if (runs || suites) {
        words.emplace_back("latest");
    }
    if (runs) {
        add_all(reader->list_runs(kOffered), &record::RunSummary::run_id);
    }
    if (suites) {
        add_all(reader->list_suites(kOffered), &record::SuiteRow::suite_id);
    }
    if (options.scenarios) {
        add_all(reader->list_runs(kOffered), &record::RunSummary::scenario_name);
    }
    if (options.tags) {
        add_all(reader->list_baselines(), &record::BaselineRow::tag);
    }
    if (options.artefacts) {
        add_all(reader->artefact_names(kOffered), [](const std::string& name) { return name; });
    }
    return done ? Result<std::vector<std::string>>(std::move(words)) : tl::unexpected(done.error());
}

int print_recorded(const CommonOptions& common, const CompletionOptions& options) {
    const Result<std::vector<std::string>> words = recorded(common, options);
    if (!words) {
        return tell(common, words.error());
    }
    if (common.json) {
        const nlohmann::ordered_json document{
            {"schema", "railbreak-completion-words"}, {"version", 1}, {"words", *words}};
        print_result(document.dump(2) + "\n");
        return 0;
    }
    for (const std::string& word : *words) {
        print_result(word + "\n");
    }
    return 0;
}

int print_script(const CommonOptions& common, const CommandModel& model, const std::string& shell) {
    const std::string script = shell == "bash"  ? bash_completion(model)
                               : shell == "zsh" ? zsh_completion(model)
                                                : fish_completion(model);
    if (common.json) {
        const nlohmann::ordered_json document{
            {"schema", "railbreak-completion"}, {"version", 1}, {"shell", shell}, {"script", script}};
        print_result(document.dump(2) + "\n");
    } else {
        print_result(script);
    }
    return 0;
}

} // namespace

void add_completion_command(CLI::App& app, CommonOptions& common, const Choose& choose) {
    CLI::App* command = app.add_subcommand(
        "completion", "Print the completion for a shell; for bash: source <(railbreak completion bash)");
    auto options = std::make_shared<CompletionOptions>();
    command->add_option("SHELL", options->shell, "Which shell")->check(CLI::IsMember({"bash", "zsh", "fish"}));
    const auto hidden = [&](const char* name, bool& chosen, const char* what) {
        command->add_flag(name, chosen, what)->group("");
    };
    hidden("--runs", options->runs, "Internal: the latest runs");
    hidden("--scenarios", options->scenarios, "Internal: names of scenarios with runs");
    hidden("--suites", options->suites, "Internal: the latest suites");
    hidden("--subjects", options->subjects, "Internal: the latest runs and suites");
    hidden("--artefacts", options->artefacts, "Internal: names of artefacts of the latest runs");
    hidden("--tags", options->tags, "Internal: tags of baselines");
    command->callback([&app, &common, options, choose] {
        choose([&app, &common, options]() -> int {
            if (options->lists()) {
                return choose_database(common) ? print_recorded(common, *options) : exit_code_of_bad_usage();
            }
            if (options->shell.empty()) {
                return tell(
                    common,
                    Error(ErrorKind::kUsage, "which shell is to complete commands?").advise("give bash, zsh or fish"));
            }
            return print_script(common, model_of(app), options->shell);
        });
    });
}

} // namespace railbreak::cli
