#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/console.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/scenario_input.hpp"
#include "scenarios/schema.hpp"
#include "scenarios/summary.hpp"

namespace railbreak::cli {

namespace {

nlohmann::json to_json(const std::string& path, const scenarios::Checked<scenarios::Scenario>& scenario) {
    nlohmann::json json{{"file", path}, {"valid", scenario.has_value()}};
    if (!scenario) {
        for (const scenarios::Diagnostic& diagnostic : scenario.error()) {
            json["errors"].push_back({{"line", diagnostic.at.line},
                                      {"column", diagnostic.at.column},
                                      {"message", diagnostic.message},
                                      {"allowed", diagnostic.allowed}});
        }
        return json;
    }
    const scenarios::Summary summary = scenarios::summarise(*scenario);
    json["name"] = scenario->name;
    json["iterations"] = summary.iterations;
    json["estimated_run_time_ns"] = summary.estimated_run_time.count();
    json["notes"] = summary.notes;
    return json;
}

int validate(const CommonOptions& common, const std::vector<std::string>& paths) {
    int exit_code = 0;
    nlohmann::json results = nlohmann::json::array();
    for (const std::string& path : paths) {
        const scenarios::Checked<scenarios::Scenario> scenario = load(path);
        if (!scenario) {
            exit_code = exit_code_of_bad_input();
            for (const scenarios::Diagnostic& diagnostic : scenario.error()) {
                tell_user(fmt::format("{}\n", diagnostic.to_line()));
            }
        } else if (!common.json) {
            print_result(fmt::format("{}: valid\n{}", path, scenarios::to_text(scenarios::summarise(*scenario))));
        }
        results.push_back(to_json(path, scenario));
    }
    if (common.json) {
        print_result(fmt::format(
            "{}\n", nlohmann::json{{"schema", "railbreak-validate"}, {"version", 1}, {"files", results}}.dump(2)));
    }
    return exit_code;
}

} // namespace

void add_scenario_commands(CLI::App& app, CommonOptions& common, const Choose& choose) {
    CLI::App* check = app.add_subcommand("validate", "Check scenario files and say what was understood");
    auto paths = std::make_shared<std::vector<std::string>>();
    check->add_option("FILE", *paths, "Scenario files (YAML), - for standard input")->required();
    check->callback([&common, paths, choose] { choose([&common, paths] { return validate(common, *paths); }); });

    CLI::App* schema = app.add_subcommand("schema", "Print the JSON Schema of scenario files");
    schema->callback([choose] {
        choose([] {
            const std::string_view text = scenarios::scenario_schema_json();
            print_result(text);
            return 0;
        });
    });
}

} // namespace railbreak::cli
