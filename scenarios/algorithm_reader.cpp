#include "scenarios/algorithm_reader.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "scenarios/limits.hpp"
#include "scenarios/suggest.hpp"

namespace railbreak::scenarios {

namespace {

constexpr std::string_view kLabelLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.=,()+";

std::vector<std::string_view> names_of(const KnownAlgorithms& known) {
    std::vector<std::string_view> names;
    for (const KnownAlgorithm& algorithm : known.list) {
        names.push_back(algorithm.name);
    }
    return names;
}

/// "plan (auto, u, bs, star), k (1..1048576)".
std::string describe_options(const KnownAlgorithm& algorithm) {
    std::vector<std::string> texts;
    for (const KnownOption& option : algorithm.options) {
        texts.push_back(fmt::format("{} ({})", option.name, option.values));
    }
    return texts.empty() ? fmt::format("{} takes no options", algorithm.name)
                         : fmt::format("its options: {}", fmt::join(texts, ", "));
}

class AlgorithmReader {
public:
    AlgorithmReader(FieldReader& fields, const KnownAlgorithms& known)
        : fields_(fields), known_(known), names_(names_of(known)) {}

    std::optional<AlgorithmSpec> read(const Field& field) {
        if (field.node->kind != YamlNode::Kind::kMap) {
            const auto index = fields_.choice(field, names_);
            return index ? std::optional(
                               AlgorithmSpec{.name = std::string(names_[*index]), .label = std::string(names_[*index])})
                         : std::nullopt;
        }
        // Every key is let through here: which options there are depends on the name.
        std::vector<KeySpec> keys{{"name", true}, {"as"}};
        for (const YamlNode& key : field.node->keys) {
            if (key.text != "name" && key.text != "as") {
                keys.push_back({key.text});
            }
        }
        if (!fields_.check_map(field, {"workload.algorithms[]", keys})) {
            return std::nullopt;
        }
        const std::optional<Field> name = fields_.find(field, "name");
        const auto index = name ? fields_.choice(*name, names_) : std::nullopt;
        if (!index) {
            return std::nullopt;
        }
        AlgorithmSpec algorithm{.name = known_.list[*index].name};
        read_options(field, known_.list[*index], algorithm);
        algorithm.label = default_label(algorithm);
        read_label(field, algorithm);
        return algorithm;
    }

private:
    void read_options(const Field& map, const KnownAlgorithm& known, AlgorithmSpec& algorithm) {
        std::vector<std::string_view> names;
        for (const KnownOption& option : known.options) {
            names.push_back(option.name);
        }
        for (const YamlNode& key : map.node->keys) {
            if (key.text == "name" || key.text == "as") {
                continue;
            }
            if (std::ranges::find(names, key.text) == names.end()) {
                const std::string_view guess = nearest(key.text, names);
                fields_.complain({&key, map.path}, fmt::format("{} has no option {}", known.name, quote(key.text)),
                                 (guess.empty() ? "" : fmt::format("did you mean \"{}\"? ", guess)) +
                                     describe_options(known));
                continue;
            }
            const std::optional<Field> value = fields_.find(map, key.text);
            if (const auto text = value ? fields_.text(*value) : std::nullopt) {
                algorithm.options.emplace_back(key.text, *text);
            }
        }
    }

    void read_label(const Field& map, AlgorithmSpec& algorithm) {
        const std::optional<Field> field = fields_.find(map, "as");
        if (const auto text = field ? fields_.text(*field) : std::nullopt) {
            algorithm.label = *text;
        }
        const std::string& label = algorithm.label;
        if (label.empty() || label.size() > kMaxNameLength ||
            label.find_first_not_of(kLabelLetters) != std::string::npos) {
            fields_.complain(
                field.value_or(map), fmt::format("{} cannot be a label", quote(label)),
                fmt::format("allowed as \"as\": 1 to {} of the characters a-z, A-Z, 0-9 and -_.=,()+", kMaxNameLength));
        } else if (label != algorithm.name && std::ranges::find(names_, label) != names_.end()) {
            fields_.complain(field.value_or(map), fmt::format("{} is the name of another algorithm", quote(label)),
                             "give a label that nobody takes for something else");
        } else if (label == algorithm.name && !algorithm.options.empty()) {
            fields_.complain(field.value_or(map), fmt::format("{} means the algorithm without options", quote(label)),
                             "give another label");
        }
    }

    FieldReader& fields_;
    const KnownAlgorithms& known_;
    std::vector<std::string_view> names_;
};

} // namespace

void read_algorithms(FieldReader& fields, const KnownAlgorithms& known, const Field& list,
                     std::vector<AlgorithmSpec>& algorithms) {
    AlgorithmReader reader(fields, known);
    for (const Field& element : fields.list(list, 1, kMaxAlgorithms)) {
        std::optional<AlgorithmSpec> algorithm = reader.read(element);
        if (!algorithm) {
            continue;
        }
        if (std::ranges::find(algorithms, algorithm->label, &AlgorithmSpec::label) != algorithms.end()) {
            fields.complain(element, fmt::format("{} stands twice", quote(algorithm->label)),
                            "name each algorithm once, or tell them apart with \"as\"");
        }
        algorithms.push_back(std::move(*algorithm));
    }
}

} // namespace railbreak::scenarios
