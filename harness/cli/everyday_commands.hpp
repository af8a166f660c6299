// Commands that look into recorded runs, and those that tell of the command line itself.
#pragma once

#include "harness/cli/commands.hpp"

namespace railbreak::cli {

void add_show_command(CLI::App& app, CommonOptions& common, const Choose& choose);
void add_events_command(CLI::App& app, CommonOptions& common, const Choose& choose);
void add_completion_command(CLI::App& app, CommonOptions& common, const Choose& choose);
void add_man_command(CLI::App& app, CommonOptions& common, const Choose& choose);

} // namespace railbreak::cli
