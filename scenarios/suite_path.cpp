#include "scenarios/suite_path.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "scenarios/suggest.hpp"

namespace railbreak::scenarios {

namespace {

constexpr std::string_view kForm =
    R"(write a path like "cluster.hosts", "faults.NAME.fraction" or "faults[0].target.host")";
constexpr std::size_t kLongestIndex = 4;
constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kShortForms{
    {{"hosts", "cluster.hosts"},
     {"bytes", "workload.bytes"},
     {"dtype", "workload.dtype"},
     {"algorithms", "workload.algorithms"},
     {"host", "faults.?.target.host"},
     {"nic", "faults.?.target.nic"},
     {"rank", "faults.?.target.rank"},
     {"kind", "faults.?.kind"},
     {"fraction", "faults.?.fraction"},
     {"rate", "faults.?.rate"}}};

/// One word of a path: a key or name, or "[N]" as a number.
struct Step {
    std::string_view word;
    std::optional<std::size_t> index;
};

std::optional<Step> take_index(std::string_view& path) {
    const std::size_t end = path.find(']');
    std::size_t index = 0;
    if (end == std::string_view::npos || end < 2 || end > kLongestIndex + 1) {
        return std::nullopt;
    }
    const auto [stopped, error] = std::from_chars(path.data() + 1, path.data() + end, index);
    if (error != std::errc() || stopped != path.data() + end) {
        return std::nullopt;
    }
    path.remove_prefix(end + 1);
    return Step{{}, index};
}

/// The steps of a path; nothing when it is none.
std::optional<std::vector<Step>> steps_of(std::string_view path) {
    std::vector<Step> steps;
    bool first = true;
    while (!path.empty()) {
        if (path.front() == '[' && !first) {
            const auto step = take_index(path);
            if (!step) {
                return std::nullopt;
            }
            steps.push_back(*step);
            continue;
        }
        if (!first) {
            if (path.front() != '.') {
                return std::nullopt;
            }
            path.remove_prefix(1);
        }
        const std::size_t end = std::min(path.find_first_of(".["), path.size());
        if (end == 0) {
            return std::nullopt;
        }
        steps.push_back({path.substr(0, end), std::nullopt});
        path.remove_prefix(end);
        first = false;
    }
    return steps.empty() ? std::nullopt : std::optional(std::move(steps));
}

tl::unexpected<PathProblem> problem(std::string what, std::string allowed) {
    return tl::unexpected<PathProblem>({std::move(what), std::move(allowed)});
}

/// The name of a list's element: of a map its "name", of a scalar its text.
std::string_view name_of(const YamlNode& node) {
    if (node.kind == YamlNode::Kind::kScalar) {
        return node.text;
    }
    const auto found = std::ranges::find(node.keys, "name", &YamlNode::text);
    return found == node.keys.end()
               ? std::string_view()
               : std::string_view(node.items[static_cast<std::size_t>(found - node.keys.begin())].text);
}

/// The elements of a list that a step names.
tl::expected<std::vector<std::size_t>, PathProblem> elements(const YamlNode& list, const Step& step) {
    std::vector<std::size_t> found;
    std::vector<std::string_view> names;
    for (std::size_t i = 0; i < list.items.size(); ++i) {
        names.push_back(name_of(list.items[i]));
        if (step.index ? *step.index == i : step.word == "*" || step.word == names.back()) {
            found.push_back(i);
        }
    }
    if (step.word == "?" && list.items.size() == 1) {
        return std::vector<std::size_t>{0};
    }
    if (step.word == "?") {
        return problem(fmt::format("the scenario has {} faults", list.items.size()),
                       fmt::format("say which: faults.NAME. ..., with one of {}", join(names)));
    }
    if (found.empty()) {
        const std::string what = step.index ? fmt::format("there is no element [{}]", *step.index)
                                            : fmt::format("there is no element named {}", quote(step.word));
        return problem(what, list.items.empty() ? "the list is empty" : fmt::format("there are: {}", join(names)));
    }
    return found;
}

/// Everything below a node is told of at one place.
void place_at(YamlNode& node, Position at) {
    node.at = at;
    for (YamlNode& key : node.keys) {
        place_at(key, at);
    }
    for (YamlNode& item : node.items) {
        place_at(item, at);
    }
}

void replace(YamlNode& node, const YamlNode& value, Position at, std::vector<Position>& places) {
    node = value;
    place_at(node, at);
    places.push_back(at);
}

using Done = tl::expected<void, PathProblem>;

Done put(YamlNode& node, std::span<const Step> steps, const YamlNode& value, std::vector<Position>& places);

Done put_in_list(YamlNode& list, std::span<const Step> steps, const YamlNode& value, std::vector<Position>& places) {
    const auto chosen = elements(list, steps.front());
    if (!chosen) {
        return tl::unexpected<PathProblem>(chosen.error());
    }
    for (auto index = chosen->rbegin(); index != chosen->rend(); ++index) { // from the end, for some may be taken away
        if (steps.size() == 1 && value.kind == YamlNode::Kind::kNull) {
            places.push_back(list.items[*index].at);
            list.items.erase(list.items.begin() + static_cast<std::ptrdiff_t>(*index));
            continue;
        }
        if (Done done = put(list.items[*index], steps.subspan(1), value, places); !done) {
            return done;
        }
    }
    return {};
}

Done put_in_map(YamlNode& map, std::span<const Step> steps, const YamlNode& value, std::vector<Position>& places) {
    const std::string_view word = steps.front().word;
    const auto found = std::ranges::find(map.keys, word, &YamlNode::text);
    if (found != map.keys.end()) {
        const auto index = found - map.keys.begin();
        if (steps.size() == 1 && value.kind == YamlNode::Kind::kNull) {
            places.push_back(found->at);
            map.keys.erase(found);
            map.items.erase(map.items.begin() + index);
            return {};
        }
        return put(map.items[static_cast<std::size_t>(index)], steps.subspan(1), value, places);
    }
    if (value.kind == YamlNode::Kind::kNull) {
        return {}; // what is not there need not be taken away
    }
    if (steps.size() > 1 && steps[1].word == "?") {
        return problem("the scenario has no faults", "this parameter belongs to the scenario's only fault");
    }
    YamlNode key{.kind = YamlNode::Kind::kScalar, .at = map.at, .text = std::string(word)};
    YamlNode added{.kind = YamlNode::Kind::kNull, .at = map.at};
    if (steps.size() > 1) {
        added.kind = YamlNode::Kind::kMap;
    }
    if (Done done = put(added, steps.subspan(1), value, places); !done) {
        return done;
    }
    map.keys.push_back(std::move(key));
    map.items.push_back(std::move(added));
    return {};
}

Done put(YamlNode& node, std::span<const Step> steps, const YamlNode& value, std::vector<Position>& places) {
    if (steps.empty()) {
        replace(node, value, node.at, places);
        return {};
    }
    switch (node.kind) {
    case YamlNode::Kind::kSequence: return put_in_list(node, steps, value, places);
    case YamlNode::Kind::kMap:
        if (!steps.front().index) {
            return put_in_map(node, steps, value, places);
        }
        return problem(fmt::format("[{}] counts the elements of a list, and there is a map", *steps.front().index),
                       "write the key");
    case YamlNode::Kind::kNull:
    case YamlNode::Kind::kScalar: break;
    }
    return problem(fmt::format("there is a single value before {}", steps.front().index
                                                                        ? fmt::format("[{}]", *steps.front().index)
                                                                        : quote(steps.front().word)),
                   std::string(kForm));
}

} // namespace

tl::expected<void, PathProblem> check_path(std::string_view path) {
    if (!steps_of(path)) {
        return problem(fmt::format("{} is not a path", quote(path)), std::string(kForm));
    }
    return {};
}

std::string long_path(std::string_view path) {
    const auto* const found =
        std::ranges::find(kShortForms, path, &std::pair<std::string_view, std::string_view>::first);
    return std::string(found == kShortForms.end() ? path : found->second);
}

tl::expected<std::vector<Position>, PathProblem> put_value(YamlNode& root, std::string_view path,
                                                           const YamlNode& value) {
    const auto steps = steps_of(path);
    if (!steps) {
        return problem(fmt::format("{} is not a path", quote(path)), std::string(kForm));
    }
    std::vector<Position> places;
    if (Done done = put(root, *steps, value, places); !done) {
        return tl::unexpected<PathProblem>(done.error());
    }
    return places;
}

const YamlNode* find_value(const YamlNode& root, std::string_view path) {
    const auto steps = steps_of(path);
    const YamlNode* node = &root;
    for (const Step& step : steps.value_or(std::vector<Step>())) {
        if (node->kind == YamlNode::Kind::kMap && !step.index) {
            const auto found = std::ranges::find(node->keys, step.word, &YamlNode::text);
            if (found == node->keys.end()) {
                return nullptr;
            }
            node = &node->items[static_cast<std::size_t>(found - node->keys.begin())];
        } else if (node->kind == YamlNode::Kind::kSequence) {
            const auto chosen = elements(*node, step);
            if (!chosen || chosen->size() != 1) {
                return nullptr;
            }
            node = &node->items[chosen->front()];
        } else {
            return nullptr;
        }
    }
    return steps ? node : nullptr;
}

} // namespace railbreak::scenarios
