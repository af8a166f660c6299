#include "harness/cli/dry_run_output.hpp"
#include "base/json_text.hpp"

#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace railbreak::cli {

namespace {

using controller::FaultForecast;

void add_fault(std::string& text, const FaultForecast& fault) {
    const auto out = std::back_inserter(text);
    fmt::format_to(out, "  {} ({}) {}\n", fault.name, fault.kind, fault.when);
    if (!fault.refusal.empty()) {
        fmt::format_to(out, "    refused: {}\n", fault.refusal);
        return;
    }
    fmt::format_to(out, "    on {}, by {} ({}; felt by {})\n", fault.target, fault.mechanism, fault.realism,
                   fault.data_path);
    for (const std::string& change : fault.changes) {
        fmt::format_to(out, "    do    {}\n", change);
    }
    for (const std::string& undo : fault.undo) {
        fmt::format_to(out, "    undo  {}\n", undo);
    }
}

} // namespace

std::string forecast_text(const controller::Forecast& forecast) {
    std::string text =
        fmt::format("{}: plan {} (seed {}), {} hosts, lease {}; nothing was changed\n", forecast.scenario,
                    forecast.plan_hash.substr(0, 12), forecast.seed, forecast.hosts, forecast.lease);
    for (std::int32_t host = 0; host < forecast.hosts; ++host) {
        bool named = false;
        for (const FaultForecast& fault : forecast.faults) {
            if (fault.host != host) {
                continue;
            }
            if (!named) {
                text += fmt::format("h{}\n", host);
                named = true;
            }
            add_fault(text, fault);
        }
    }
    if (forecast.faults.empty()) {
        text += "no fault is planned\n";
    }
    return text;
}

std::string forecast_json(const controller::Forecast& forecast) {
    nlohmann::json faults = nlohmann::json::array();
    for (const FaultForecast& fault : forecast.faults) {
        faults.push_back({{"name", fault.name},
                          {"kind", fault.kind},
                          {"host", fault.host},
                          {"when", fault.when},
                          {"target", fault.target},
                          {"mechanism", fault.mechanism},
                          {"realism", fault.realism},
                          {"data_path", fault.data_path},
                          {"changes", fault.changes},
                          {"undo", fault.undo},
                          {"refusal", fault.refusal}});
    }
    const nlohmann::json json{{"schema", "railbreak-forecast"},
                              {"version", 1},
                              {"scenario", forecast.scenario},
                              {"plan_hash", forecast.plan_hash},
                              {"seed", forecast.seed},
                              {"hosts", forecast.hosts},
                              {"lease", forecast.lease},
                              {"possible", forecast.all_possible()},
                              {"faults", faults}};
    return json_text(json);
}

} // namespace railbreak::cli
