#include "scenarios/suite_plan_json.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/suite_expand.hpp"

namespace railbreak::scenarios {

using nlohmann::json;

namespace {

std::string dump(const json& value) {
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

json to_json(const std::vector<std::pair<std::string, std::string>>& params) {
    json object = json::object();
    for (const auto& [name, label] : params) {
        object[name] = label;
    }
    return object;
}

/// The first key of which two objects have different values, with both of them.
std::string difference_of(const json& former, const json& present) {
    for (const auto& [key, value] : present.items()) {
        if (key != "items" && former.value(key, json()) != value) {
            return fmt::format("\"{}\" was {} and is now {}", key, dump(former.value(key, json())), dump(value));
        }
    }
    return "";
}

} // namespace

std::string params_json(const std::vector<std::pair<std::string, std::string>>& params) {
    return dump(to_json(params));
}

std::string canonical_json(const SuitePlan& plan) {
    json items = json::array();
    for (const SuiteItem& item : plan.items) {
        items.push_back({{"name", item.name},
                         {"scenario", item.scenario.name},
                         {"params", to_json(item.params)},
                         {"repeat", item.repeat},
                         {"seed", item.seed},
                         {"on_failure", to_string(item.on_failure)},
                         {"plan_hash", item.plan_hash}});
    }
    return dump({{"suite", plan.name},
                 {"seed", plan.seed},
                 {"order", to_string(plan.order)},
                 {"parallel", plan.parallel},
                 {"faults", plan.faults},
                 {"items", std::move(items)}});
}

std::string difference_of_suite_plans(const std::string& former, const std::string& present) {
    const json before = json::parse(former, nullptr, false);
    const json now = json::parse(present, nullptr, false);
    if (!before.is_object() || !now.is_object() || !before.contains("items") || !before["items"].is_array()) {
        return former == present ? "" : "the recorded plan is not readable";
    }
    std::string difference = difference_of(before, now);
    const json& old_items = before["items"];
    const json& new_items = now["items"];
    for (std::size_t i = 0; difference.empty() && i < std::min(old_items.size(), new_items.size()); ++i) {
        if (old_items[i].is_object() && old_items[i] != new_items[i]) {
            difference = fmt::format("item {} ({}): {}", i + 1, old_items[i].value("name", ""),
                                     difference_of(old_items[i], new_items[i]));
        }
    }
    if (difference.empty() && old_items.size() != new_items.size()) {
        difference = fmt::format("it had {} items and has now {}", old_items.size(), new_items.size());
    }
    return difference;
}

} // namespace railbreak::scenarios
