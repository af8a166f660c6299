#include "scenarios/suite_reader.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "base/rational.hpp"
#include "scenarios/fields.hpp"
#include "scenarios/limits.hpp"
#include "scenarios/map_reader.hpp"
#include "scenarios/suite_path.hpp"
#include "scenarios/yaml_write.hpp"

namespace railbreak::scenarios {

namespace {

constexpr bool kRequired = true;
constexpr std::array kFile{KeySpec{"railbreak", kRequired},
                           KeySpec{"suite", kRequired},
                           KeySpec{"description"},
                           KeySpec{"seed"},
                           KeySpec{"repeats"},
                           KeySpec{"order"},
                           KeySpec{"on_failure"},
                           KeySpec{"parallel"},
                           KeySpec{"scenarios", kRequired}};
constexpr std::array kEntry{KeySpec{"file", kRequired}, KeySpec{"name"},    KeySpec{"set"},       KeySpec{"matrix"},
                            KeySpec{"exclude"},         KeySpec{"repeats"}, KeySpec{"on_failure"}};
constexpr std::array kSections{Section{"", kFile}, Section{"scenarios[]", kEntry}};
constexpr std::array kRangeKeys{KeySpec{"from", kRequired}, KeySpec{"to", kRequired}};
constexpr std::array kPairKeys{KeySpec{"pairs", kRequired}};

constexpr std::int64_t kMaxSeed = std::numeric_limits<std::int64_t>::max();
constexpr std::string_view kSlowdown = "ell";

/// The path without its last word, which is `ell`, and with "fraction" in its place; nothing for another path.
std::optional<std::string> fraction_path(std::string_view path) {
    if (path == kSlowdown) {
        return long_path("fraction");
    }
    return path.ends_with(".ell")
               ? std::optional(std::string(path.substr(0, path.size() - kSlowdown.size())) + "fraction")
               : std::nullopt;
}

/// What a value is called in the names of items.
std::string label_of(const YamlNode& value) {
    if (value.kind == YamlNode::Kind::kScalar) {
        return one_line(value.text);
    }
    std::string label;
    if (value.kind == YamlNode::Kind::kSequence) {
        for (const YamlNode& item : value.items) {
            label += (label.empty() ? "" : "+") + label_of(item);
        }
        return label;
    }
    for (const std::string_view key : {"as", "name"}) { // of an algorithm, of a fault
        const auto found = std::ranges::find(value.keys, key, &YamlNode::text);
        if (found != value.keys.end()) {
            return one_line(value.items[static_cast<std::size_t>(found - value.keys.begin())].text);
        }
    }
    return one_line(flow_yaml(value));
}

class SuiteReader : private MapReader {
public:
    SuiteReader(DiagnosticSink& sink, FieldReader& fields) : MapReader(sink, fields) {}

    Suite read(const Field& root) {
        Suite suite;
        if (!fields_.check_map(root, kSections[0]) || !read_version(root)) {
            return suite;
        }
        SuiteEntry defaults;
        read_name(root, suite.name, "suite");
        read_description(root, suite.description);
        read_integer(root, "seed", 0, kMaxSeed, suite.seed);
        read_integer(root, "repeats", 1, kMaxSuiteItems, defaults.repeats);
        read_integer(root, "parallel", 1, kMaxParallel, suite.parallel);
        with(root, "order", [&](const Field& field) { store_choice(field, kSuiteOrders, suite.order); });
        with(root, "on_failure", [&](const Field& field) { store_choice(field, kOnFailures, defaults.on_failure); });
        with(root, "scenarios", [&](const Field& field) {
            for (const Field& element : fields_.list(field, 1, kMaxSuiteEntries)) {
                read_entry(element, suite.entries.emplace_back(defaults));
            }
        });
        return suite;
    }

private:
    void read_entry(const Field& map, SuiteEntry& entry) {
        entry.at = map.node->at;
        if (!fields_.check_map(map, kSections[1])) {
            return;
        }
        with(map, "file", [&](const Field& field) {
            entry.at = field.node->at;
            const auto text = fields_.text(field);
            if (text && text->empty()) {
                fields_.complain(field, "is empty", "write the path of a scenario, relative to this file");
            }
            store(text, entry.file);
        });
        read_name(map, entry.name);
        read_integer(map, "repeats", 1, kMaxSuiteItems, entry.repeats);
        with(map, "on_failure", [&](const Field& field) { store_choice(field, kOnFailures, entry.on_failure); });
        with(map, "set", [&](const Field& field) { entry.settings = read_settings(field); });
        with(map, "matrix", [&](const Field& field) { read_matrix(field, entry.matrix); });
        with(map, "exclude", [&](const Field& field) {
            for (const Field& element : fields_.list(field, 0, kMaxAxisValues)) {
                read_exclusion(element, entry.matrix, entry.exclusions.emplace_back());
            }
        });
    }

    /// The elements of a map whose keys are free, each key once.
    std::vector<std::pair<std::string, Field>> free_map(const Field& field, std::string_view keys) {
        const YamlNode& node = *field.node;
        if (node.kind != YamlNode::Kind::kMap || node.items.empty() || node.items.size() > kMaxAxisValues) {
            fields_.complain(field, fmt::format("must be a map of 1 to {} entries", kMaxAxisValues),
                             fmt::format("write {{{}: value}}", keys));
            return {};
        }
        std::vector<std::pair<std::string, Field>> elements;
        std::set<std::string_view> seen;
        for (std::size_t i = 0; i < node.items.size(); ++i) {
            if (!seen.insert(node.keys[i].text).second) {
                sink_.add(node.keys[i].at,
                          fmt::format("key {} stands twice in {}", quote(node.keys[i].text), field.path),
                          "keep one of them");
                continue;
            }
            elements.emplace_back(node.keys[i].text, Field{&node.items[i], field.child(one_line(node.keys[i].text))});
        }
        return elements;
    }

    bool check_place(const Field& field, std::string_view path) {
        const auto checked = check_path(path);
        if (!checked) {
            fields_.complain(field, checked.error().what, checked.error().allowed);
        }
        return checked.has_value();
    }

    std::vector<SuiteSetting> read_settings(const Field& field) {
        std::vector<SuiteSetting> settings;
        for (const auto& [path, value] : free_map(field, "path")) {
            if (path == "seed") {
                fields_.complain(value, "a seed is no part of a scenario", "make \"seed\" a parameter of the matrix");
            } else if (check_place(value, path)) {
                settings.push_back(setting(value, path, *value.node));
            }
        }
        return settings;
    }

    /// The value as it goes into the tree: an ell as a fraction, one algorithm as a list of one.
    SuiteSetting setting(const Field& field, const std::string& path, YamlNode value) {
        if (const auto fraction = fraction_path(path)) {
            const auto slowdown = value.kind == YamlNode::Kind::kScalar ? parse_rational(value.text)
                                                                        : fail(ErrorKind::kInput, "no number");
            if (!slowdown || *slowdown < 1) {
                fields_.complain(field, fmt::format("{} is no slowdown", quote(flow_yaml(value))),
                                 "allowed: healthy rate over what is left, 1 or more, like 8/7 or 2");
            } else {
                value.text = fmt::format("{}/{}", denominator(*slowdown).str(), numerator(*slowdown).str());
            }
            return {*fraction, std::move(value), field.node->at};
        }
        std::string place = long_path(path);
        if (place == "workload.algorithms" && value.kind == YamlNode::Kind::kScalar) {
            YamlNode list{.kind = YamlNode::Kind::kSequence, .at = value.at};
            list.items.push_back(std::move(value));
            value = std::move(list);
        }
        return {std::move(place), std::move(value), field.node->at};
    }

    void read_matrix(const Field& field, std::vector<MatrixAxis>& matrix) {
        const auto axes = free_map(field, "path");
        if (axes.size() > kMaxAxes) {
            fields_.complain(field, fmt::format("has {} parameters", axes.size()),
                             fmt::format("allowed: at most {}", kMaxAxes));
            return;
        }
        for (const auto& [name, value] : axes) {
            MatrixAxis& axis = matrix.emplace_back();
            axis.name = name;
            axis.at = value.node->at;
            read_axis(value, axis);
            std::set<std::string_view> labels;
            for (const MatrixValue& one : axis.values) {
                if (!labels.insert(one.label).second) {
                    sink_.add(one.at, fmt::format("{}: {} stands twice", value.path, quote(one.label)),
                              "keep one of them");
                }
            }
        }
    }

    void read_axis(const Field& field, MatrixAxis& axis) {
        const YamlNode& node = *field.node;
        const auto has = [&](std::string_view key, YamlNode::Kind kind) {
            const auto found = std::ranges::find(node.keys, key, &YamlNode::text);
            return found != node.keys.end() &&
                   node.items[static_cast<std::size_t>(found - node.keys.begin())].kind == kind;
        };
        if (node.kind == YamlNode::Kind::kSequence) {
            for (const Field& element : fields_.list(field, 1, kMaxAxisValues)) {
                read_value(element, axis);
            }
        } else if (node.kind == YamlNode::Kind::kScalar && node.text == "each") {
            read_each(field, axis);
        } else if (has("pairs", YamlNode::Kind::kSequence)) {
            read_pairs(field, axis);
        } else if (has("from", YamlNode::Kind::kScalar) || has("to", YamlNode::Kind::kScalar)) {
            read_range(field, axis);
        } else if (node.kind == YamlNode::Kind::kMap) {
            for (const auto& [label, settings] : free_map(field, "label")) {
                axis.values.push_back({one_line(label), read_settings(settings), {}, settings.node->at});
            }
        } else {
            fields_.complain(field, "has no values",
                             "write a list, \"each\", {from: 1, to: 9}, {pairs: [PATH, PATH]}, or "
                             "{label: {path: value}}");
        }
    }

    void read_value(const Field& element, MatrixAxis& axis) {
        if (axis.name == "seed") {
            if (const auto seed = fields_.integer(element, 0, kMaxSeed)) {
                axis.values.push_back(seed_value(*seed, element.node->at));
            }
        } else if (element.node->kind == YamlNode::Kind::kNull) {
            fields_.complain(element, "has no value", "write a value; only settings can take a key away");
        } else if (check_place(element, axis.name)) {
            axis.values.push_back(
                {label_of(*element.node), {setting(element, axis.name, *element.node)}, {}, element.node->at});
        }
    }

    static MatrixValue seed_value(std::int64_t seed, Position at) {
        return {std::to_string(seed), {}, static_cast<std::uint64_t>(seed), at};
    }

    void read_range(const Field& field, MatrixAxis& axis) {
        std::int64_t from = 0;
        std::int64_t to = -1;
        if (!fields_.check_map(field, {"", kRangeKeys}) || !(axis.name == "seed" || check_place(field, axis.name))) {
            return;
        }
        read_integer(field, "from", 0, kMaxSeed - 1, from);
        read_integer(field, "to", 0, kMaxSeed - 1, to);
        if (to < from || to - from >= static_cast<std::int64_t>(kMaxAxisValues)) {
            fields_.complain(field, fmt::format("from {} to {} are not 1 to {} values", from, to, kMaxAxisValues),
                             "\"from\" is the first and \"to\" the last value");
            return;
        }
        for (std::int64_t value = from; value <= to; ++value) {
            if (axis.name == "seed") {
                axis.values.push_back(seed_value(value, field.node->at));
                continue;
            }
            const std::string text = std::to_string(value);
            YamlNode node{.kind = YamlNode::Kind::kScalar, .at = field.node->at, .text = text};
            axis.values.push_back({text, {setting(field, axis.name, std::move(node))}, {}, field.node->at});
        }
    }

    void read_each(const Field& field, MatrixAxis& axis) {
        axis.kind = MatrixAxis::Kind::kEach;
        if (!check_place(field, axis.name)) {
            return;
        }
        const std::string path = long_path(axis.name);
        const bool known = path.ends_with(".host") || path.ends_with(".nic") || path.ends_with(".rank");
        if (!known) {
            fields_.complain(field, "\"each\" walks hosts, NICs and ranks, and this is none of them",
                             "write it for host, nic, rank, or a path that ends in one of these");
            return;
        }
        axis.paths.push_back(path);
    }

    void read_pairs(const Field& field, MatrixAxis& axis) {
        axis.kind = MatrixAxis::Kind::kPairs;
        if (!fields_.check_map(field, {"", kPairKeys})) {
            return;
        }
        for (const Field& element : fields_.list(*fields_.find(field, "pairs"), 2, 2)) {
            const auto path = fields_.text(element);
            if (path && check_place(element, *path)) {
                axis.paths.push_back(long_path(*path));
            }
        }
    }

    void read_exclusion(const Field& field, const std::vector<MatrixAxis>& matrix, MatrixExclusion& exclusion) {
        exclusion.at = field.node->at;
        for (const auto& [name, value] : free_map(field, "parameter")) {
            if (std::ranges::find(matrix, name, &MatrixAxis::name) == matrix.end()) {
                fields_.complain(value, "is no parameter of this matrix", "write one of its keys");
                continue;
            }
            std::vector<std::string> labels;
            if (value.node->kind == YamlNode::Kind::kSequence) {
                for (const Field& element : fields_.list(value, 1, kMaxAxisValues)) {
                    labels.push_back(label_of(*element.node));
                }
            } else {
                labels.push_back(label_of(*value.node));
            }
            exclusion.when.emplace_back(name, std::move(labels));
        }
    }
};

std::string_view without_mark(std::string_view text) {
    return text.starts_with("\xef\xbb\xbf") ? text.substr(3) : text;
}

} // namespace

std::span<const Section> suite_sections() {
    return kSections;
}

bool is_suite(std::string_view text) {
    text = without_mark(text);
    if (!check_text(text, "")) {
        return false;
    }
    const auto root = parse_yaml(std::string(text), "");
    return root && root->kind == YamlNode::Kind::kMap &&
           std::ranges::find(root->keys, "suite", &YamlNode::text) != root->keys.end();
}

Checked<Suite> load_suite(std::string_view text, std::string_view source_name) {
    const std::string source(source_name);
    text = without_mark(text);
    if (const auto checked = check_text(text, source); !checked) {
        return tl::unexpected<Diagnostics>(Diagnostics{checked.error()});
    }
    const auto root = parse_yaml(std::string(text), source);
    if (!root) {
        return tl::unexpected<Diagnostics>(Diagnostics{root.error()});
    }
    DiagnosticSink sink(source);
    Origins origins;
    FieldReader fields(sink, origins);
    Suite suite = SuiteReader(sink, fields).read({&*root, ""});
    if (!sink.empty()) {
        return tl::unexpected<Diagnostics>(std::move(sink).take());
    }
    suite.source_text = std::string(text);
    suite.source_name = source;
    return suite;
}

} // namespace railbreak::scenarios
