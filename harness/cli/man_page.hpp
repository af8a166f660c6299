// Manual pages, made from the model of the command line: roff with the man macros.
#pragma once

#include <string>
#include <string_view>

#include "harness/cli/command_model.hpp"

namespace railbreak::cli {

/// railbreak(1): what there is, exit status, environment and files. `version` stands in the footer.
[[nodiscard]] std::string program_page(const CommandModel& program, std::string_view version);

/// The page of one command, railbreak-db(1), with the commands below it.
[[nodiscard]] std::string command_page(const CommandModel& program, const CommandModel& command,
                                       std::string_view version);

/// The name of a page's file: "railbreak-db.1".
[[nodiscard]] std::string page_file(const CommandModel& command);

} // namespace railbreak::cli
