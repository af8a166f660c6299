#include "harness/cli/command_model.hpp"

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

#include <CLI/CLI.hpp>

namespace railbreak::cli {

namespace {

/// What CLI11 writes for the type of a value when nobody has named it.
constexpr std::array<std::string_view, 5> kUnnamed{"TEXT", "INT", "UINT", "FLOAT", "BOOLEAN"};

constexpr std::array<std::pair<std::string_view, ValueKind>, 11> kKinds{{{"FILE", ValueKind::kFile},
                                                                         {"FILE.svg", ValueKind::kFile},
                                                                         {"DIR", ValueKind::kFolder},
                                                                         {"RUN", ValueKind::kRun},
                                                                         {"RUN|SUITE", ValueKind::kRunOrSuite},
                                                                         {"RUNS", ValueKind::kRuns},
                                                                         {"RUNS|SUITE", ValueKind::kRunsOrSuite},
                                                                         {"SCENARIO", ValueKind::kScenario},
                                                                         {"SUITE", ValueKind::kSuite},
                                                                         {"TAG", ValueKind::kBaseline},
                                                                         {"ARTEFACT", ValueKind::kArtefact}}};
/// The type of an argument that is a command of the program.
constexpr std::string_view kCommandName = "PAGE";

ValueKind kind_of(std::string_view label) {
    const auto found = std::ranges::find(kKinds, label, [](const auto& entry) { return entry.first; });
    return found != kKinds.end() ? found->second : ValueKind::kText;
}

/// The words of "{a,b,c}" in a type's description; none where it has no such part.
std::vector<std::string> choices_in(const std::string& type) {
    std::vector<std::string> choices;
    const std::size_t begin = type.find('{');
    const std::size_t end = type.find('}', begin);
    if (begin == std::string::npos || end == std::string::npos) {
        return choices;
    }
    std::istringstream words(type.substr(begin + 1, end - begin - 1));
    for (std::string word; std::getline(words, word, ',');) {
        choices.push_back(word);
    }
    return choices;
}

/// "1 to 10000" of "INT in [1 - 10000]".
std::string range_in(const std::string& type) {
    const std::size_t begin = type.find(" in [");
    const std::size_t dash = type.find(" - ", begin);
    const std::size_t end = type.find(']', dash);
    if (begin == std::string::npos || dash == std::string::npos || end == std::string::npos) {
        return "";
    }
    return type.substr(begin + 5, dash - begin - 5) + " to " + type.substr(dash + 3, end - dash - 3);
}

/// `commands` are those of the program.
ValueModel model_of(const CLI::Option& option, const std::vector<std::string>& commands) {
    ValueModel model;
    for (const std::string& name : option.get_snames()) {
        model.names.push_back("-" + name);
    }
    for (const std::string& name : option.get_lnames()) {
        model.names.push_back("--" + name);
    }
    model.description = option.get_description();
    model.required = option.get_required();
    model.default_text = option.get_default_str();
    if (option.get_items_expected_max() == 0) {
        model.repeats = model.names.size() > 1 && model.names.front() == "-v";
        return model;
    }
    const std::string type = option.get_type_name();
    model.label = type.substr(0, type.find_first_of(":{"));
    model.list = option.get_delimiter() != '\0' || model.label.ends_with(",...");
    if (model.label.ends_with(",...")) {
        model.label.resize(model.label.size() - 4);
    }
    const bool unnamed = model.label.empty() || std::ranges::find(kUnnamed, model.label) != kUnnamed.end();
    if (unnamed) {
        model.label = option.get_positional() ? option.get_name(true) : "VALUE";
    }
    model.kind = kind_of(model.label);
    if (option.get_positional()) {
        model.label = option.get_name(true);
    }
    model.choices = type == kCommandName ? commands : choices_in(type);
    model.kind = model.choices.empty() ? model.kind : ValueKind::kChoice;
    model.range = range_in(type);
    model.repeats = option.get_items_expected_max() > 1;
    return model;
}

bool is_shown(const CLI::App* command) {
    return !command->get_group().empty(); // what is internal has none
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
    return app.get_subcommands(std::function<bool(const CLI::App*)>(is_shown));
}

CommandModel model_of(const CLI::App& app, const std::vector<std::string>& path,
                      const std::vector<std::string>& commands) {
    CommandModel model{.path = path, .purpose = app.get_description()};
    for (const CLI::Option* option : app.get_options()) {
        if (!option->get_group().empty()) {
            (option->get_positional() ? model.arguments : model.options).push_back(model_of(*option, commands));
        }
    }
    for (const CLI::App* command : commands_of(app)) {
        std::vector<std::string> below = path;
        below.push_back(command->get_name());
        model.commands.push_back(model_of(*command, below, commands));
    }
    return model;
}

void collect(const CommandModel& model, std::vector<const CommandModel*>& all) {
    all.push_back(&model);
    for (const CommandModel& command : model.commands) {
        collect(command, all);
    }
}

} // namespace

std::string CommandModel::name() const {
    std::string joined;
    for (const std::string& word : path) {
        joined += (joined.empty() ? "" : " ") + word;
    }
    return joined;
}

CommandModel model_of(const CLI::App& app) {
    std::vector<std::string> commands;
    for (const CLI::App* command : commands_of(app)) {
        commands.push_back(command->get_name());
    }
    return model_of(app, {}, commands);
}

std::vector<const CommandModel*> all_commands(const CommandModel& model) {
    std::vector<const CommandModel*> all;
    collect(model, all);
    return all;
}

} // namespace railbreak::cli
