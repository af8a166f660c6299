// The published schema describes exactly what is emitted. The checker knows the part of JSON Schema that the schema
// uses, and refuses any other keyword, so that nothing in it goes unchecked.
#include <fstream>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "reports/json.hpp"
#include "tests/unit/reports/report_fixture.hpp"

namespace railbreak::reports {
namespace {

using Json = nlohmann::json;

Json load(const std::string& path) {
    std::ifstream file(std::string(RAILBREAK_SOURCE_DIR) + "/" + path);
    EXPECT_TRUE(file.good()) << path;
    return Json::parse(file);
}

bool has_type(const Json& value, const std::string& type) {
    return (type == "object" && value.is_object()) || (type == "array" && value.is_array()) ||
           (type == "string" && value.is_string()) || (type == "boolean" && value.is_boolean()) ||
           (type == "integer" && value.is_number_integer()) || (type == "number" && value.is_number()) ||
           (type == "null" && value.is_null());
}

class Checker {
public:
    explicit Checker(Json root) : root_(std::move(root)) {}

    // Appends a line to errors for everything in `value` that `schema` does not allow.
    void check(const Json& value, const Json& schema, const std::string& at) {
        static const std::set<std::string> kKnown{
            "$schema", "$id",        "title",    "description",         "$ref", "$defs", "type", "const", "enum",
            "items",   "properties", "required", "additionalProperties"};
        for (const auto& [keyword, unused] : schema.items()) {
            if (!kKnown.contains(keyword)) {
                errors.push_back(at + ": unknown keyword " + keyword);
            }
        }
        if (schema.contains("$ref")) {
            const std::string pointer = schema.at("$ref").get<std::string>().substr(1);
            check(value, root_.at(Json::json_pointer(pointer)), at);
            return;
        }
        if (schema.contains("const") && value != schema.at("const")) {
            errors.push_back(at + ": is not " + schema.at("const").dump());
        }
        if (schema.contains("enum") &&
            std::find(schema.at("enum").begin(), schema.at("enum").end(), value) == schema.at("enum").end()) {
            errors.push_back(at + ": " + value.dump() + " is not in the list");
        }
        if (schema.contains("type")) {
            const Json types = schema.at("type").is_array() ? schema.at("type") : Json::array({schema.at("type")});
            if (std::none_of(types.begin(), types.end(), [&](const Json& type) { return has_type(value, type); })) {
                errors.push_back(at + ": " + value.dump() + " is no " + types.dump());
            }
        }
        if (value.is_array() && schema.contains("items")) {
            for (const Json& item : value) {
                check(item, schema.at("items"), at + "[]");
            }
        }
        if (value.is_object()) {
            check_object(value, schema, at);
        }
    }

    std::vector<std::string> errors;
    std::set<std::string> seen; ///< every key that was emitted

private:
    void check_object(const Json& value, const Json& schema, const std::string& at) {
        if (schema.value("additionalProperties", false)) {
            return; // free-form facts
        }
        const Json properties = schema.value("properties", Json::object());
        for (const auto& [key, part] : value.items()) {
            seen.insert(key);
            if (!properties.contains(key)) {
                errors.push_back(at + "." + key + ": is not in the schema");
                continue;
            }
            if (properties.at(key).value("description", "").empty()) {
                errors.push_back(at + "." + key + ": has no description");
            }
            check(part, properties.at(key), at + "." + key);
        }
        for (const auto& [key, unused] : properties.items()) {
            if (!value.contains(key)) {
                errors.push_back(at + "." + key + ": is in the schema but was not emitted");
            }
        }
        const Json required = schema.value("required", Json::array());
        if (required.size() != properties.size()) {
            errors.push_back(at + ": every property is always emitted, so all must be required");
        }
    }

    Json root_;
};

TEST(ReportSchema, DescribesExactlyWhatIsEmitted) {
    const Json schema = load("reports/schema/run-report-v1.schema.json");
    Checker checker(schema);
    for (const auto& data : {good_run(), bad_run(), unfinished_run()}) {
        checker.check(Json::parse(run_json(data)), schema, "report");
    }
    EXPECT_TRUE(checker.errors.empty()) << Json(checker.errors).dump(1);
    EXPECT_GT(checker.seen.size(), 80U);
}

TEST(ReportSchema, CheckerRejectsStrangers) {
    const Json schema = load("reports/schema/run-report-v1.schema.json");
    const auto errors_of = [&](const Json& report) {
        Checker checker(schema);
        checker.check(report, schema, "report");
        return checker.errors.size();
    };
    Json report = Json::parse(run_json(good_run()));
    EXPECT_EQ(errors_of(report), 0U);
    report["run"]["extra"] = 1;
    EXPECT_EQ(errors_of(report), 1U);
    report["run"].erase("extra");
    report["run"].erase("seed");
    EXPECT_EQ(errors_of(report), 1U);
    report["run"]["seed"] = 7;
    EXPECT_EQ(errors_of(report), 1U);
    report["run"]["seed"] = "7";
    report["verdict"] = "good";
    EXPECT_EQ(errors_of(report), 1U);
}

TEST(ReportSchema, DocumentNamesEveryKey) {
    std::ifstream file(std::string(RAILBREAK_SOURCE_DIR) + "/docs/report-schema.md");
    const std::string document(std::istreambuf_iterator<char>(file), {});
    const Json schema = load("reports/schema/run-report-v1.schema.json");
    Checker checker(schema);
    checker.check(Json::parse(run_json(good_run())), schema, "report");
    std::set<std::string> keys = checker.seen;
    const Json run = Json::parse(list_json(summaries())).at("runs").at(0);
    for (const auto& [key, unused] : run.items()) {
        keys.insert(key);
    }
    for (const std::string& key : keys) {
        EXPECT_NE(document.find("`" + key + "`"), std::string::npos) << key << " is not in docs/report-schema.md";
    }
}

} // namespace
} // namespace railbreak::reports
