// railbreak man: manual pages, and the model of the command line that they are made from.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/output_file.hpp"
#include "base/version.hpp"
#include "harness/cli/everyday_commands.hpp"
#include "harness/cli/man_page.hpp"

namespace railbreak::cli {

namespace {

using nlohmann::ordered_json;

struct ManOptions {
    std::string command;
    std::string folder;
};

ordered_json to_json(const ValueModel& value) {
    ordered_json json{{"label", value.label},         {"description", value.description},
                      {"required", value.required},   {"repeats", value.repeats},
                      {"list", value.list},           {"choices", value.choices},
                      {"default", value.default_text}};
    if (!value.names.empty()) {
        json["names"] = value.names;
    }
    return json;
}

ordered_json to_json(const CommandModel& command) {
    ordered_json options = ordered_json::array();
    for (const ValueModel& option : command.options) {
        options.push_back(to_json(option));
    }
    ordered_json arguments = ordered_json::array();
    for (const ValueModel& argument : command.arguments) {
        arguments.push_back(to_json(argument));
    }
    ordered_json commands = ordered_json::array();
    for (const CommandModel& below : command.commands) {
        commands.push_back(to_json(below));
    }
    return {{"name", command.name()},
            {"purpose", command.purpose},
            {"arguments", std::move(arguments)},
            {"options", std::move(options)},
            {"commands", std::move(commands)}};
}

void print_json(const ordered_json& document) {
    print_result(json_text(document));
}

std::string page_of(const CommandModel& program, const CommandModel& command) {
    return command.path.empty() ? program_page(program, build_info().version)
                                : command_page(program, command, build_info().version);
}

/// The program and its commands: each has a page.
std::vector<const CommandModel*> with_page(const CommandModel& program) {
    std::vector<const CommandModel*> all{&program};
    for (const CommandModel& command : program.commands) {
        all.push_back(&command);
    }
    return all;
}

Result<std::vector<std::string>> write_pages(const CommandModel& program, const std::filesystem::path& folder) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) {
        return fail_errno(ErrorKind::kInput, fmt::format("create the folder {}", folder.string()), error.value());
    }
    std::vector<std::string> paths;
    for (const CommandModel* command : with_page(program)) {
        const std::filesystem::path path = folder / page_file(*command);
        const Result<void> written = write_file(path, [&](std::ostream& out) -> Result<void> {
            out << page_of(program, *command);
            return {};
        });
        if (!written) {
            return tl::unexpected(written.error());
        }
        paths.push_back(path.string());
    }
    return paths;
}

int man(const CommonOptions& common, const CommandModel& program, const ManOptions& options) {
    if (!options.folder.empty()) {
        const Result<std::vector<std::string>> paths = write_pages(program, options.folder);
        if (!paths) {
            return tell(common, paths.error());
        }
        if (common.json) {
            print_json({{"schema", "railbreak-man-files"}, {"version", 1}, {"paths", *paths}});
        } else {
            print_result(fmt::format("wrote {}\n", fmt::join(*paths, "\nwrote ")));
        }
        return 0;
    }
    const std::vector<const CommandModel*> pages = with_page(program);
    const auto found = std::ranges::find(pages, options.command, [](const CommandModel* one) { return one->name(); });
    if (found == pages.end()) {
        return tell(common, Error(ErrorKind::kUsage, fmt::format("there is no command \"{}\"", options.command))
                                .advise("railbreak --help lists the commands"));
    }
    if (common.json) {
        print_json({{"schema", "railbreak-commands"}, {"version", 1}, {"command", to_json(**found)}});
    } else {
        print_result(page_of(program, **found));
    }
    return 0;
}

} // namespace

void add_man_command(CLI::App& app, CommonOptions& common, const Choose& choose) {
    CLI::App* command = app.add_subcommand("man", "Print a manual page; to read it: railbreak man | man -l -");
    auto options = std::make_shared<ManOptions>();
    command->add_option("COMMAND", options->command, "The page of this command; without one: of railbreak itself")
        ->type_name("PAGE"); // which offers the commands that there are
    command->add_option("-o,--output", options->folder, "Write all pages into this folder")->type_name("DIR");
    command->callback([&app, &common, options, choose] {
        choose([&app, &common, options] { return man(common, model_of(app), *options); });
    });
}

} // namespace railbreak::cli
