// The JSON Schema and the reader must describe the same format.
#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "scenarios/format.hpp"
#include "scenarios/model.hpp"
#include "scenarios/schema.hpp"
#include "tests/unit/scenarios/support.hpp"

namespace railbreak::scenarios {
namespace {

using nlohmann::json;

struct Keys {
    std::set<std::string> all;
    std::set<std::string> required;
    bool operator==(const Keys&) const = default;
};
using KeysByPath = std::map<std::string, Keys>;

const json& resolved(const json& schema, const json& root) {
    if (!schema.contains("$ref")) {
        return schema;
    }
    const auto reference = schema.at("$ref").get<std::string>();
    return resolved(root.at(json::json_pointer(reference.substr(1))), root);
}

void walk(const json& node, const json& root, const std::string& path, KeysByPath& found) {
    const json& schema = resolved(node, root);
    if (schema.contains("items")) {
        walk(schema.at("items"), root, path + "[]", found);
    }
    for (const json& alternative : schema.value("anyOf", json::array())) {
        walk(alternative, root, path, found);
    }
    if (!schema.contains("properties")) {
        return;
    }
    EXPECT_EQ(schema.value("additionalProperties", json()), json(false)) << path;
    Keys keys;
    for (const auto& [name, property] : schema.at("properties").items()) {
        keys.all.insert(name);
        walk(property, root, path.empty() ? name : path + "." + name, found);
    }
    for (const json& name : schema.value("required", json::array())) {
        keys.required.insert(name.get<std::string>());
    }
    found[path] = keys;
}

KeysByPath keys_of_schema() {
    const json root = json::parse(scenario_schema_json());
    KeysByPath found;
    walk(root, root, "", found);
    return found;
}

KeysByPath keys_of_reader() {
    KeysByPath found;
    for (const Section& section : format_sections()) {
        Keys& keys = found[std::string(section.path)];
        for (const KeySpec& key : section.keys) {
            keys.all.insert(std::string(key.name));
            if (key.required) {
                keys.required.insert(std::string(key.name));
            }
        }
    }
    return found;
}

template <class Enum, std::size_t N> json words(const std::array<Enum, N>& values) {
    json result = json::array();
    for (const Enum value : values) {
        result.push_back(to_string(value));
    }
    return result;
}

TEST(Schema, IsTheFileOfTheRepository) {
    EXPECT_EQ(scenario_schema_json(),
              testing::read_file(testing::source_dir() / "scenarios" / "schema" / "scenario-v1.schema.json"));
}

TEST(Schema, HasTheKeysOfTheReader) {
    const KeysByPath schema = keys_of_schema();
    const KeysByPath reader = keys_of_reader();
    for (const auto& [path, keys] : reader) {
        ASSERT_TRUE(schema.contains(path)) << "the schema lacks the section \"" << path << "\"";
        EXPECT_EQ(schema.at(path).all, keys.all) << path;
        EXPECT_EQ(schema.at(path).required, keys.required) << path;
    }
    for (const auto& [path, keys] : schema) {
        EXPECT_TRUE(reader.contains(path)) << "the reader does not know the section \"" << path << "\"";
    }
}

TEST(Schema, HasTheWordsOfTheReader) {
    const json defs = json::parse(scenario_schema_json()).at("$defs");
    EXPECT_EQ(defs.at("fault").at("properties").at("kind").at("enum"), words(kFaultKinds));
    EXPECT_EQ(defs.at("fault").at("properties").at("direction").at("enum"), words(kDirections));
    json mechanisms = words(kCapMechanisms);
    for (const json& word : words(kLinkDownMechanisms)) {
        if (std::find(mechanisms.begin(), mechanisms.end(), word) == mechanisms.end()) {
            mechanisms.push_back(word);
        }
    }
    EXPECT_EQ(defs.at("fault").at("properties").at("mechanism").at("enum"), mechanisms);
    json metrics = words(kMetrics);
    metrics.insert(metrics.begin(), "overhead"); // over the bound of the port model that stands beside it
    EXPECT_EQ(defs.at("expectation").at("properties").at("metric").at("enum"), metrics);
    EXPECT_EQ(defs.at("baseline").at("properties").at("side").at("enum"), words(kSides));
    EXPECT_EQ(defs.at("expectation").at("properties").at("outcome").at("enum"), words(kOutcomes));
    json judged = words(kPhases);
    judged.erase(judged.begin()); // the warm-up is never judged
    EXPECT_EQ(defs.at("expectation").at("properties").at("phase").at("enum"), judged);
    for (const json& dtype : defs.at("workload").at("properties").at("dtype").at("enum")) {
        EXPECT_TRUE(parse_dtype(dtype.get<std::string>())) << dtype;
    }
}

TEST(Schema, HasTheNumbersOfTheReader) {
    // Each bound of the schema is accepted, and the next number is refused.
    const json defs = json::parse(scenario_schema_json()).at("$defs");
    const auto accepts = [](std::string_view from, const std::string& to) {
        return testing::load(testing::with(testing::kFull, from, to)).has_value();
    };
    const json& hosts = defs.at("cluster").at("properties").at("hosts");
    EXPECT_TRUE(accepts("hosts: 8", "hosts: " + hosts.at("maximum").dump()));
    EXPECT_FALSE(accepts("hosts: 8", "hosts: " + std::to_string(hosts.at("maximum").get<int>() + 1)));
    EXPECT_FALSE(accepts("hosts: 8", "hosts: " + std::to_string(hosts.at("minimum").get<int>() - 1)));
    const json& nics = defs.at("cluster").at("properties").at("nics_per_host");
    EXPECT_TRUE(accepts("host: 2,", "host: 2,"));
    EXPECT_TRUE(accepts("nics_per_host: 2", "nics_per_host: " + nics.at("maximum").dump()));
    EXPECT_FALSE(accepts("nics_per_host: 2", "nics_per_host: " + std::to_string(nics.at("maximum").get<int>() + 1)));
    const int count = defs.at("count").at("maximum").get<int>();
    EXPECT_TRUE(accepts("steady: 4", "steady: " + std::to_string(count)));
    EXPECT_FALSE(accepts("steady: 4", "steady: " + std::to_string(count + 1)));
    const int limit = defs.at("limit").at("maximum").get<int>();
    EXPECT_TRUE(accepts("max: 1.10", "max: " + std::to_string(limit)));
    EXPECT_FALSE(accepts("max: 1.10", "max: " + std::to_string(limit + 1)));
}

} // namespace
} // namespace railbreak::scenarios
