// The command line as data: what completion scripts and manual pages are made of, read from the same description that
// the parser works by, so that neither can say anything else.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace railbreak::cli {

/// What the value of an option or an argument is taken from.
enum class ValueKind : std::uint8_t {
    kNone, ///< a flag: it has no value
    kText, ///< anything
    kChoice,
    kFile,
    kFolder,
    kRun,         ///< a recorded run
    kRunOrSuite,  ///< a recorded run or suite
    kRuns,        ///< recorded runs: "A,B,C" or "A..B"
    kRunsOrSuite, ///< the same, or a suite
    kScenario,    ///< the name of a scenario with recorded runs
    kSuite,       ///< a recorded suite
    kBaseline,    ///< the tag of a baseline
    kArtefact,    ///< the name of an artefact of a recorded run
};

/// An option, or an argument, which has no names.
struct ValueModel {
    std::vector<std::string> names; ///< "-o", "--output": as typed
    std::string label;              ///< of its value: "DIR"; empty for a flag
    std::string description;
    ValueKind kind = ValueKind::kNone;
    std::vector<std::string> choices; ///< of kChoice
    std::string range;                ///< "1 to 10000"; empty: none is told
    std::string default_text;         ///< empty: none
    bool list = false;                ///< several values, separated by commas
    bool repeats = false;             ///< may be given several times
    bool required = false;
};

/// A command with everything below it. What is internal is left out.
struct CommandModel {
    std::vector<std::string> path; ///< {"db", "check"}; empty for the program itself
    std::string purpose;
    std::vector<ValueModel> options;   ///< its own; those of the program hold everywhere
    std::vector<ValueModel> arguments; ///< by their place
    std::vector<CommandModel> commands;

    /// The path in one string: "db check".
    [[nodiscard]] std::string name() const;
};

/// The model of a program.
[[nodiscard]] CommandModel model_of(const CLI::App& app);

/// A command and all commands below it, each before those below it.
[[nodiscard]] std::vector<const CommandModel*> all_commands(const CommandModel& model);

} // namespace railbreak::cli
