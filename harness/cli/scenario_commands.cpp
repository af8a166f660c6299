#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/console.hpp"
#include "base/json_text.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/scenario_input.hpp"
#include "scenarios/schema.hpp"
#include "scenarios/suite_summary.hpp"
#include "scenarios/summary.hpp"

namespace railbreak::cli {

namespace {

nlohmann::json to_json(const scenarios::Scenario& scenario) {
    const scenarios::Summary summary = scenarios::summarise(scenario);
    return {{"kind", "scenario"},
            {"name", scenario.name},
            {"iterations", summary.iterations},
            {"estimated_run_time_ns", summary.estimated_run_time.count()},
            {"notes", summary.notes}};
}

nlohmann::json to_json(const scenarios::SuitePlan& suite) {
    nlohmann::json items = nlohmann::json::array();
    for (const scenarios::SuiteItem& item : suite.items) {
        items.push_back({{"name", item.name},
                         {"scenario", item.scenario.name},
                         {"params", nlohmann::json::parse(scenarios::params_json(item.params))},
                         {"repeat", item.repeat},
                         {"seed", std::to_string(item.seed)},
                         {"on_failure", to_string(item.on_failure)},
                         {"plan_hash", item.plan_hash}});
    }
    return {{"kind", "suite"},
            {"name", suite.name},
            {"order", to_string(suite.order)},
            {"seed", std::to_string(suite.seed)},
            {"plan_hash", suite.hash},
            {"estimated_run_time_ns", scenarios::estimate_run_time(suite).count()},
            {"items", std::move(items)}};
}

nlohmann::json errors_json(const scenarios::Diagnostics& diagnostics) {
    nlohmann::json errors = nlohmann::json::array();
    for (const scenarios::Diagnostic& diagnostic : diagnostics) {
        errors.push_back({{"line", diagnostic.at.line},
                          {"column", diagnostic.at.column},
                          {"message", diagnostic.message},
                          {"allowed", diagnostic.allowed}});
    }
    return errors;
}

std::string to_text(const ScenarioOrSuite& what) {
    const auto* scenario = std::get_if<scenarios::Scenario>(&what);
    return scenario != nullptr ? scenarios::to_text(scenarios::summarise(*scenario))
                               : scenarios::to_text(std::get<scenarios::SuitePlan>(what));
}

int validate(const CommonOptions& common, const std::vector<std::string>& paths) {
    int exit_code = 0;
    nlohmann::json results = nlohmann::json::array();
    for (const std::string& path : paths) {
        const scenarios::Checked<ScenarioOrSuite> read = load_any(path, {});
        nlohmann::json& result = results.emplace_back();
        if (!read) {
            exit_code = exit_code_of_bad_input();
            for (const scenarios::Diagnostic& diagnostic : read.error()) {
                tell_user(fmt::format("{}\n", diagnostic.to_line()));
            }
            result["errors"] = errors_json(read.error());
        } else if (common.json) {
            result = std::visit([](const auto& what) { return to_json(what); }, *read);
        } else {
            print_result(fmt::format("{}: valid\n{}", path, to_text(*read)));
        }
        result["file"] = path;
        result["valid"] = read.has_value();
    }
    if (common.json) {
        const nlohmann::json document{{"schema", "railbreak-validate"}, {"version", 1}, {"files", std::move(results)}};
        print_result(json_text(document));
    }
    return exit_code;
}

} // namespace

void add_scenario_commands(CLI::App& app, CommonOptions& common, const Choose& choose) {
    CLI::App* check = app.add_subcommand("validate", "Check scenario and suite files and say what was understood");
    auto paths = std::make_shared<std::vector<std::string>>();
    check->add_option("FILE", *paths, "Scenario or suite files (YAML), - for standard input")->required();
    check->callback([&common, paths, choose] { choose([&common, paths] { return validate(common, *paths); }); });

    CLI::App* schema = app.add_subcommand("schema", "Print the JSON Schema of scenario or suite files");
    auto which = std::make_shared<std::string>("scenario");
    schema->add_option("KIND", *which, "scenario or suite")
        ->check(CLI::IsMember({"scenario", "suite"}))
        ->capture_default_str();
    schema->callback([which, choose] {
        choose([which] {
            print_result(*which == "suite" ? scenarios::suite_schema_json() : scenarios::scenario_schema_json());
            return 0;
        });
    });
}

} // namespace railbreak::cli
