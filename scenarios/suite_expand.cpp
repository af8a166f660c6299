#include "scenarios/suite_expand.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>

#include <fnmatch.h>

#include <fmt/format.h>

#include "scenarios/limits.hpp"
#include "scenarios/load.hpp"
#include "scenarios/plan.hpp"
#include "scenarios/random.hpp"
#include "scenarios/suite_path.hpp"
#include "scenarios/suite_plan_json.hpp"
#include "scenarios/suite_reader.hpp"
#include "scenarios/yaml_write.hpp"

namespace railbreak::scenarios {

namespace {

/// One combination of an entry's parameters.
struct Combination {
    YamlNode tree; ///< the scenario with the parameters put in
    std::vector<std::pair<std::string, std::string>> params;
    std::optional<std::uint64_t> seed;
    std::map<Position, Position> origins; ///< places in the scenario whose value came from the suite, and from where
};

YamlNode number_node(std::int64_t number, Position at) {
    return {.kind = YamlNode::Kind::kScalar, .at = at, .text = std::to_string(number)};
}

/// A whole number of the scenario's tree. What is none is told of by the scenario's reader later.
std::int64_t number_at(const YamlNode& tree, std::string_view path, std::int64_t otherwise) {
    const YamlNode* node = find_value(tree, path);
    std::int64_t number = 0;
    if (node == nullptr) {
        return otherwise;
    }
    const auto [end, error] = std::from_chars(node->text.data(), node->text.data() + node->text.size(), number);
    return error == std::errc() && number >= 1 && number <= kMaxHosts * kMaxRanksPerHost ? number : otherwise;
}

/// How many values a path that walks the cluster has.
std::int64_t count_of(const YamlNode& tree, std::string_view path) {
    const std::int64_t hosts = number_at(tree, "cluster.hosts", 1);
    if (path.ends_with(".host")) {
        return hosts;
    }
    if (path.ends_with(".nic")) {
        return number_at(tree, "cluster.nics_per_host", 1);
    }
    const std::int64_t ranks = number_at(tree, "cluster.ranks_per_host", 1);
    const std::string beside = std::string(path.substr(0, path.rfind('.') + 1)) + "host";
    return find_value(tree, beside) != nullptr ? ranks : ranks * hosts; // see the targets of faults
}

/// The values of a parameter for a scenario whose listed parameters are put in.
std::vector<MatrixValue> values_of(const MatrixAxis& axis, const YamlNode& tree) {
    std::vector<MatrixValue> values;
    switch (axis.kind) {
    case MatrixAxis::Kind::kListed: return axis.values;
    case MatrixAxis::Kind::kEach:
        for (std::int64_t i = 0; i < count_of(tree, axis.paths[0]); ++i) {
            values.push_back({std::to_string(i), {{axis.paths[0], number_node(i, axis.at), axis.at}}, {}, axis.at});
        }
        return values;
    case MatrixAxis::Kind::kPairs: break;
    }
    const std::int64_t hosts = number_at(tree, "cluster.hosts", 1);
    for (std::int64_t i = 0; i < hosts; ++i) {
        for (std::int64_t j = i + 1; j < hosts; ++j) {
            values.push_back(
                {fmt::format("{}+{}", i, j),
                 {{axis.paths[0], number_node(i, axis.at), axis.at}, {axis.paths[1], number_node(j, axis.at), axis.at}},
                 {},
                 axis.at});
        }
    }
    return values;
}

class SuiteExpander {
public:
    SuiteExpander(const Suite& suite, const KnownAlgorithms& known, const SuiteChoices& choices)
        : suite_(suite), known_(known), choices_(choices), sink_(suite.source_name) {}

    Checked<SuitePlan> expand() {
        plan_.name = suite_.name;
        plan_.description = suite_.description;
        plan_.seed = choices_.seed.value_or(suite_.seed);
        plan_.order = suite_.order;
        plan_.parallel = suite_.parallel;
        plan_.faults = !choices_.no_faults;
        plan_.source_text = suite_.source_text;
        plan_.source_name = suite_.source_name;
        for (std::size_t i = 0; i < suite_.entries.size() && !sink_.full(); ++i) {
            expand_entry(static_cast<std::int32_t>(i), suite_.entries[i]);
        }
        if (sink_.empty()) {
            choose();
        }
        if (!sink_.empty()) {
            return tl::unexpected<Diagnostics>(std::move(sink_).take());
        }
        plan_.canonical_json = canonical_json(plan_);
        plan_.hash = plan_hash(plan_.canonical_json);
        return std::move(plan_);
    }

private:
    void expand_entry(std::int32_t index, const SuiteEntry& entry) {
        std::optional<Combination> base = read_scenario_of(entry);
        if (!base) {
            return;
        }
        for (const SuiteSetting& setting : entry.settings) {
            if (!put(*base, setting)) {
                return;
            }
        }
        std::vector<const MatrixAxis*> axes;
        for (const bool walks : {false, true}) {
            for (const MatrixAxis& axis : entry.matrix) {
                if ((axis.kind != MatrixAxis::Kind::kListed) == walks) {
                    axes.push_back(&axis);
                }
            }
        }
        std::vector<Combination> combinations{std::move(*base)};
        for (const MatrixAxis* axis : axes) {
            if (!multiply(entry, *axis, combinations)) {
                return;
            }
        }
        exclude(entry, combinations);
        load(index, entry, combinations);
    }

    /// The entry's file as a tree.
    std::optional<Combination> read_scenario_of(const SuiteEntry& entry) {
        const std::string path = path_of(entry);
        const Checked<std::string> text = read_text_file(path, "a scenario file");
        if (!text) {
            sink_.add(entry.at, text.error().front().to_line(), "");
            return std::nullopt;
        }
        if (is_suite(*text)) {
            sink_.add(entry.at, fmt::format("{} is a suite", quote(path)), "a suite lists scenarios");
            return std::nullopt;
        }
        const auto checked = check_text(*text, path);
        const auto tree = checked ? parse_yaml(*text, path) : tl::unexpected<Diagnostic>(checked.error());
        if (!tree) {
            sink_.add(entry.at, tree.error().to_line(), "");
            return std::nullopt;
        }
        if (tree->kind != YamlNode::Kind::kMap) {
            sink_.add(entry.at, fmt::format("{} is no scenario", quote(path)), "a scenario is a YAML map");
            return std::nullopt;
        }
        return Combination{*tree, {}, {}, {}};
    }

    [[nodiscard]] std::string path_of(const SuiteEntry& entry) const {
        const std::filesystem::path folder = std::filesystem::path(suite_.source_name).parent_path();
        return (folder / entry.file).lexically_normal().string();
    }

    bool put(Combination& into, const SuiteSetting& setting) {
        const auto places = put_value(into.tree, setting.path, setting.value);
        if (!places) {
            std::string path = one_line(setting.path);
            if (const std::size_t only = path.find('?'); only != std::string::npos) {
                path.replace(only, 1, "NAME"); // see long_path()
            }
            sink_.add(setting.at, fmt::format("{}: {}", path, places.error().what), places.error().allowed);
            return false;
        }
        for (const Position place : *places) {
            into.origins.insert_or_assign(place, setting.at);
        }
        return true;
    }

    /// Every combination with every value of one more parameter.
    bool multiply(const SuiteEntry& entry, const MatrixAxis& axis, std::vector<Combination>& combinations) {
        std::vector<Combination> product;
        for (const Combination& combination : combinations) {
            for (const MatrixValue& value : values_of(axis, combination.tree)) {
                if ((product.size() + 1) * static_cast<std::size_t>(entry.repeats) + plan_.items.size() >
                    kMaxSuiteItems) {
                    return too_many(axis.at);
                }
                Combination one = combination;
                one.params.emplace_back(axis.name, value.label);
                one.seed = value.seed ? value.seed : one.seed;
                for (const SuiteSetting& setting : value.settings) {
                    if (!put(one, setting)) {
                        return false;
                    }
                }
                product.push_back(std::move(one));
            }
        }
        combinations = std::move(product);
        return true;
    }

    bool too_many(Position at) {
        sink_.add(at, fmt::format("the suite has more than {} items", kMaxSuiteItems),
                  "fewer values, fewer repeats, or several suites");
        return false;
    }

    void exclude(const SuiteEntry& entry, std::vector<Combination>& combinations) {
        for (const MatrixExclusion& exclusion : entry.exclusions) {
            const auto matches = [&](const Combination& combination) {
                return std::ranges::all_of(exclusion.when, [&](const auto& condition) {
                    const auto param = std::ranges::find(combination.params, condition.first,
                                                         &std::pair<std::string, std::string>::first);
                    return param != combination.params.end() &&
                           std::ranges::find(condition.second, param->second) != condition.second.end();
                });
            };
            if (std::erase_if(combinations, matches) == 0) {
                sink_.add(exclusion.at, "nothing is excluded by this",
                          "every value must be one that the parameter has, written as in the names of items");
            }
        }
        if (combinations.empty()) {
            sink_.add(entry.at, "nothing is left of this scenario", "exclude less");
        }
    }

    /// Reads every combination, and makes its items: all combinations once, then all of them again.
    void load(std::int32_t index, const SuiteEntry& entry, const std::vector<Combination>& combinations) {
        if (plan_.items.size() + combinations.size() * static_cast<std::size_t>(entry.repeats) > kMaxSuiteItems) {
            (void)too_many(entry.at);
            return;
        }
        std::vector<SuiteItem> items;
        for (const Combination& combination : combinations) {
            if (sink_.full()) {
                return;
            }
            if (auto item = load(index, entry, combination)) {
                items.push_back(std::move(*item));
            }
        }
        for (std::int32_t repeat = 1; repeat <= entry.repeats; ++repeat) {
            for (SuiteItem item : items) {
                item.repeat = repeat;
                item.name += entry.repeats > 1 ? fmt::format("#{}", repeat) : "";
                if (!names_.insert(item.name).second) {
                    sink_.add(entry.at, fmt::format("there are two items {}", quote(item.name)),
                              "give one of the entries another name");
                    return;
                }
                plan_.items.push_back(std::move(item));
            }
        }
    }

    std::optional<SuiteItem> load(std::int32_t index, const SuiteEntry& entry, const Combination& combination) {
        SuiteItem item;
        item.entry = index;
        item.params = combination.params;
        item.on_failure = entry.on_failure;
        item.seed = combination.seed.value_or(plan_.seed);
        item.name = name_of(entry, combination);
        const std::string text = text_of(entry, item, combination.tree);
        Checked<Scenario> scenario = load_scenario(text, path_of(entry), known_);
        if (!scenario) {
            tell(entry, item, combination);
            return std::nullopt;
        }
        item.scenario = std::move(*scenario);
        Result<Plan> plan = scenarios::expand(item.scenario, item.seed);
        if (!plan) {
            sink_.add(entry.at, fmt::format("{}: {}", item.name, plan.error().to_line()), "");
            return std::nullopt;
        }
        item.plan_hash = plan->hash;
        return item;
    }

    /// What is wrong with a combination, with the places that its values came from.
    void tell(const SuiteEntry& entry, const SuiteItem& item, const Combination& combination) {
        const Checked<Scenario> scenario = load_scenario_tree(combination.tree, path_of(entry), known_);
        if (scenario) { // cannot be, but an item must not vanish without a word
            sink_.add(entry.at, fmt::format("{}: cannot be written as a scenario", item.name), "");
            return;
        }
        for (const Diagnostic& diagnostic : scenario.error()) {
            const auto origin = combination.origins.find(diagnostic.at);
            const std::string line = diagnostic.to_line();
            if (told_.insert(line).second) { // once, not for every other value of every other parameter
                sink_.add(origin != combination.origins.end() ? origin->second : entry.at,
                          fmt::format("{}: {}", item.name, line), "");
            }
        }
    }

    [[nodiscard]] static std::string name_of(const SuiteEntry& entry, const Combination& combination) {
        const YamlNode* name = find_value(combination.tree, "name");
        std::string text = !entry.name.empty() ? entry.name : one_line(name != nullptr ? name->text : entry.file);
        std::string params;
        for (const auto& [path, label] : combination.params) {
            const auto last = [](std::string_view whole) { return whole.substr(whole.rfind('.') + 1); };
            const auto alike = std::ranges::count_if(
                combination.params, [&](const auto& other) { return last(other.first) == last(path); });
            params += fmt::format("{}{}={}", params.empty() ? "" : ",", alike > 1 ? std::string_view(path) : last(path),
                                  label);
        }
        return params.empty() ? text : fmt::format("{}[{}]", text, params);
    }

    [[nodiscard]] std::string text_of(const SuiteEntry& entry, const SuiteItem& item, const YamlNode& tree) const {
        return fmt::format("# {} of suite {}, made from {}\n# railbreak run --seed {} repeats it.\n{}", item.name,
                           suite_.name, one_line(entry.file), item.seed, write_yaml(tree));
    }

    /// The chosen items in the order in which they will run.
    void choose() {
        if (!choices_.only.empty()) {
            const std::string example = plan_.items.front().name;
            std::erase_if(plan_.items, [&](const SuiteItem& item) {
                return ::fnmatch(choices_.only.c_str(), item.name.c_str(), 0) != 0;
            });
            if (plan_.items.empty()) {
                sink_.add({}, fmt::format("no item is named like {}", quote(choices_.only)),
                          fmt::format("railbreak validate lists them; one is {}", quote(example)));
                return;
            }
        }
        if (plan_.order == SuiteOrder::kShuffled) { // Fisher and Yates, from the end
            SplitMix64 random(plan_.seed);
            for (std::size_t i = plan_.items.size(); i > 1; --i) {
                std::swap(plan_.items[i - 1], plan_.items[random.below(i)]);
            }
        }
    }

    const Suite& suite_;
    const KnownAlgorithms& known_;
    const SuiteChoices& choices_;
    DiagnosticSink sink_;
    SuitePlan plan_;
    std::set<std::string> names_;
    std::set<std::string> told_;
};

} // namespace

std::string pattern_of(std::string_view item_name) {
    std::string pattern;
    for (const char letter : item_name) {
        pattern += std::string_view("*?[]\\").find(letter) != std::string_view::npos ? "\\" : "";
        pattern += letter;
    }
    return pattern;
}

Checked<SuitePlan> expand_suite(const Suite& suite, const KnownAlgorithms& known, const SuiteChoices& choices) {
    return SuiteExpander(suite, known, choices).expand();
}

} // namespace railbreak::scenarios
