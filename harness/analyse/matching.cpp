// Each set is grouped by plan and cluster. Groups that are alike belong together; of the others those that are the only
// ones of their scenario's name on both sides.
#include "harness/analyse/matching.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "harness/analyse/comparison.hpp"

namespace railbreak::analyse {

using record::RunData;

namespace {

using Group = std::vector<RunData>;

bool alike(const RunData& a, const RunData& b) {
    return a.run.plan_hash == b.run.plan_hash && place_of(a.run) == place_of(b.run);
}

std::vector<Group> groups_of(std::vector<RunData> runs) {
    std::vector<Group> groups;
    for (RunData& run : runs) {
        auto group = std::ranges::find_if(groups, [&](const Group& one) { return alike(one.front(), run); });
        if (group == groups.end()) {
            group = groups.insert(groups.end(), Group{});
        }
        group->push_back(std::move(run));
    }
    return groups;
}

/// The only group of that scenario, or nullptr.
Group* only_one_of(std::vector<Group*>& groups, const std::string& scenario_name) {
    const auto named = [&](const Group* group) { return group->front().run.scenario_name == scenario_name; };
    return std::ranges::count_if(groups, named) == 1 ? *std::ranges::find_if(groups, named) : nullptr;
}

std::string name_of(const Group& group) {
    const record::RunRow& run = group.front().run;
    return fmt::format("{} {} on {} ({} run{})", run.scenario_name, run.plan_hash.substr(0, 12), place_of(run),
                       group.size(), group.size() == 1 ? "" : "s");
}

} // namespace

Matching match(std::vector<RunData> a, std::vector<RunData> b) {
    std::vector<Group> first = groups_of(std::move(a));
    std::vector<Group> second = groups_of(std::move(b));
    std::vector<std::pair<Group*, Group*>> pairs; // by group of the first set; nullptr: not matched
    std::vector<Group*> left_a;
    std::vector<Group*> left_b;
    for (Group& group : second) {
        left_b.push_back(&group);
    }
    for (Group& group : first) {
        const auto same =
            std::ranges::find_if(left_b, [&](const Group* one) { return alike(one->front(), group.front()); });
        pairs.emplace_back(&group, same != left_b.end() ? *same : nullptr);
        if (same != left_b.end()) {
            left_b.erase(same);
        } else {
            left_a.push_back(&group);
        }
    }
    Matching result;
    for (auto& [group, partner] : pairs) {
        const std::string& name = group->front().run.scenario_name;
        if (partner == nullptr && only_one_of(left_a, name) != nullptr) {
            partner = only_one_of(left_b, name);
            if (partner != nullptr) {
                std::erase(left_a, group);
                std::erase(left_b, partner);
            }
        }
        if (partner == nullptr) {
            result.only_a.push_back(name_of(*group));
        } else {
            result.scenarios.push_back({std::move(*group), std::move(*partner)});
        }
    }
    for (const Group* group : left_b) {
        result.only_b.push_back(name_of(*group));
    }
    return result;
}

} // namespace railbreak::analyse
