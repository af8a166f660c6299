// Completion for shells, made from the model of the command line. A script knows commands, options and fixed choices by
// itself; what is in the database it asks for, by `railbreak completion --runs` and the like.
#pragma once

#include <string>

#include "harness/cli/command_model.hpp"

namespace railbreak::cli {

/// For bash 4.4 or newer: a function for `complete -F`.
[[nodiscard]] std::string bash_completion(const CommandModel& model);
/// For zsh: a function for a file _railbreak in $fpath, or to be sourced after compinit.
[[nodiscard]] std::string zsh_completion(const CommandModel& model);
/// For fish 3.4 or newer.
[[nodiscard]] std::string fish_completion(const CommandModel& model);

/// The option of `railbreak completion` that lists what a value of this kind can be: "--runs"; empty for other kinds.
[[nodiscard]] std::string list_option(ValueKind kind);

} // namespace railbreak::cli
